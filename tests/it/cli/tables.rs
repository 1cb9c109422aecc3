//! `plan` and `inspect`.

use super::support::{DREAM, LLADA, model, on, run};
use serde_json::Value;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn the_plan_is_complete_and_lies_inside_the_arena() {
    for name in [LLADA, DREAM] {
        let args = "--rows 48 --output-rows 8 --threads 3 --guidance --json";
        let plan = on(name, "plan", args).json();
        let limits = &plan["limits"];
        assert_eq!((&limits["rows"], &limits["output_rows"]), (&48.into(), &8.into()));
        assert_eq!((&limits["threads"], &limits["guidance"]), (&3.into(), &true.into()));
        let (weights, total) = (number(&plan["weight_bytes"]), number(&plan["total_bytes"]));
        assert_eq!(weights + number(&plan["buffer_bytes"]), total);
        let entries = plan["weights"]["entries"].as_array().unwrap();
        let end = |item: &Value| number(&item["offset"]) + number(&item["bytes"]);
        assert!(entries.iter().all(|entry| end(entry) <= weights));
        assert!(entries.is_sorted_by(|a, b| end(a) <= number(&b["offset"])));
        let kinds = plan["weights"]["kinds"].as_object().unwrap();
        let sum = |key: &str| kinds.values().map(|kind| number(&kind[key])).sum::<u64>();
        assert_eq!(sum("count"), entries.len() as u64);
        assert_eq!(sum("bytes"), entries.iter().map(|e| number(&e["bytes"])).sum::<u64>());
        let buffers = plan["buffers"].as_array().unwrap();
        assert!(buffers.iter().all(|b| number(&b["offset"]) >= weights && end(b) <= total));
        let guide = buffers.iter().find(|b| b["name"] == "logits.guide").unwrap();
        let apart =
            |b: &Value| end(b) <= number(&guide["offset"]) || number(&b["offset"]) >= end(guide);
        let others = || buffers.iter().filter(|b| b["name"] != "logits.guide");
        assert!(others().all(apart), "a second pass would write over the first one's logits");
        assert!(buffers.iter().all(|b| b["live"].as_array().unwrap().len() == 2));
        let ops = plan["ops"].as_array().unwrap();
        assert_eq!((&ops[0]["name"], &ops[0]["layer"]), (&"embed".into(), &Value::Null));
        assert_eq!(ops.last().unwrap()["name"], "choose");
        assert!(ops.iter().all(|op| number(&op["items"]) > 0 && number(&op["rows"]) > 0));
        assert_eq!(ops.iter().filter(|op| op["name"] == "gate_up").count(), 2, "two layers");
        assert!(plan["fits"].is_boolean());
    }
}

#[test]
fn every_sequence_has_room_for_its_keys_in_every_layer() {
    for name in [LLADA, DREAM] {
        let plan = |more: &str| {
            on(name, "plan", &format!("--rows 40 --threads 1 --kv-cache --json {more}")).json()
        };
        let (one, three) = (plan(""), plan("--sequences 3"));
        assert_eq!(three["limits"]["sequences"], 3);
        let capacity = |plan: &Value| number(&plan["limits"]["row_capacity"]);
        assert_eq!((capacity(&one), capacity(&three)), (64, 3 * 64));
        for (index, layer) in [(0, 0), (1, 1)] {
            let keys = |plan: &Value| {
                let buffers = plan["buffers"].as_array().unwrap();
                let keys: Vec<&Value> = buffers.iter().filter(|b| b["name"] == "k").collect();
                assert_eq!((keys.len(), &keys[index]["layer"]), (2, &layer.into()));
                number(&keys[index]["bytes"])
            };
            assert_eq!(keys(&three), 3 * keys(&one));
        }
    }
    let said = on(LLADA, "plan", "--rows 40 --sequences 3");
    assert!(said.text().contains("3 sequences of 40 rows"), "{}", said.text());
    assert!(on(LLADA, "plan", "--sequences 17").err.contains("--sequences is 17"));
}

#[test]
fn a_run_takes_what_was_planned() {
    let json = on(LLADA, "run", "--tokens 1,2,3 --max-tokens 40 --threads 2 --json").json();
    let args = "--prompt-tokens 3 --max-tokens 40 --threads 2 --json";
    let plan = on(LLADA, "plan", args).json();
    assert_eq!(plan["total_bytes"], json["arena_bytes"]);
    assert_eq!(plan["weight_bytes"], json["weight_bytes"]);
}

#[test]
fn people_read_a_table() {
    let ran = on(LLADA, "plan", "--threads 2");
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    for word in ["lm_head", "layer 0", "layer 1", "records", "arena", "available", "fits"] {
        assert!(ran.text().contains(word), "{word}");
    }
}

#[test]
fn inspect_shows_any_file() {
    let path = model(LLADA);
    let path = path.to_str().unwrap();
    let ran = run(["inspect", path]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    for word in ["llada.context_length = 4096", "Q4_K", "blk.1.ffn_down.weight", "[256, 2048]"] {
        assert!(ran.text().contains(word), "{word}");
    }
    let json = run(["inspect", path, "--json"]).json();
    assert_eq!(json["metadata"]["general.architecture"], "llada");
    let tensors = json["tensors"].as_array().unwrap();
    let of_types = json["types"].as_object().unwrap().values();
    let sum: u64 = of_types.map(|total| number(&total["tensors"])).sum();
    assert_eq!(sum, tensors.len() as u64);
}
