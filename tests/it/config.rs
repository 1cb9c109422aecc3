//! What a configuration may leave out or say in another way.

use dllm_rt::gguf::Gguf;
use dllm_rt::model::{Config, Network};

use super::common::gguf_writer::GgufWriter;
use super::common::tiny;

fn config(change: impl Fn(&mut GgufWriter)) -> Result<Config, String> {
    let mut file = tiny::smallest("llada");
    change(&mut file);
    let gguf = Gguf::from_bytes(file.bytes()).unwrap();
    Network::from_gguf(&gguf).map(|network| network.config).map_err(|error| error.to_string())
}

#[test]
fn a_missing_base_of_the_frequencies_is_ten_thousand_and_said() {
    let plain = config(|_| {}).unwrap();
    assert!(plain.warnings.is_empty(), "{:?}", plain.warnings);
    let assumed = config(|file| {
        file.remove("llada.rope.freq_base");
    });
    let assumed = assumed.unwrap();
    assert_eq!(assumed.rope.theta, 10_000.0);
    assert_eq!(assumed.warnings, ["llada.rope.freq_base is missing: 10000 is assumed"]);
}

#[test]
fn scaling_by_one_is_none() {
    let plain = config(|_| {}).unwrap();
    let linear = |factor: Option<f32>| {
        config(|file| {
            file.str("llada.rope.scaling.type", "linear");
            factor.iter().for_each(|factor| {
                file.f32("llada.rope.scaling.factor", *factor);
            });
        })
    };
    assert_eq!(linear(Some(1.0)).as_ref(), Ok(&plain));
    assert_eq!(linear(None).as_ref(), Ok(&plain));
    assert!(linear(Some(2.0)).unwrap_err().contains("rope.scaling.factor"));
    let yarn = config(|file| {
        file.str("llada.rope.scaling.type", "yarn").f32("llada.rope.scaling.factor", 1.0);
    });
    assert!(yarn.unwrap_err().contains("rope.scaling.type"));
}

#[test]
fn sizes_may_be_arrays_of_equal_numbers() {
    let plain = config(|_| {}).unwrap();
    let array = |key: &str, items: &[i32]| {
        let key = format!("llada.{key}");
        config(|file| {
            file.i32s(&key, items);
        })
    };
    let (heads, kv, ff) = (plain.heads as i32, plain.kv_heads as i32, plain.ff_width as i32);
    for (key, size) in [
        ("attention.head_count", heads),
        ("attention.head_count_kv", kv),
        ("feed_forward_length", ff),
    ] {
        assert_eq!(array(key, &[size, size, size]).as_ref(), Ok(&plain), "{key}");
        for unlike in [&[][..], &[size, size + 1], &[-1, -1]] {
            let said = array(key, unlike).unwrap_err();
            assert!(said.contains(key), "{said}");
        }
        assert!(array(key, &[0, 0]).unwrap_err().contains("between 1 and"));
    }
}
