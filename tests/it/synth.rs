//! Synthetic files are read back, loaded and run; impossible ones are refused by name.

use dllm_rt::denoise::{RequestParameters, TokenFacts};
use dllm_rt::gguf::Gguf;
use dllm_rt::model::Architecture;
use dllm_rt::model::Network;
use dllm_rt::sample::Kind;
use dllm_rt::synth::{Recipe, Shape, SyntheticFile, Types};
use dllm_rt::vocab::{Special, Vocab, parts_from_gguf};
use dllm_rt::{Engine, GenerationParameters, Limits, Options};

/// Small, and divisible by every type's blocks.
const SMALL: Shape =
    Shape { layers: 3, width: 256, heads: 8, kv_heads: 2, ff_width: 512, vocab: 304, context: 64 };
const TYPES: [&str; 6] = ["Q4_K_M", "q4_k", "Q6_K", "Q8_0", "Q5_K", "f16"];

fn recipe(architecture: Architecture, types: &str) -> Recipe {
    Recipe { architecture, shape: SMALL, types: types.parse().unwrap(), seed: 5 }
}

fn bytes(recipe: Recipe) -> Vec<u8> {
    let file = SyntheticFile::new(recipe).unwrap();
    let mut bytes = Vec::new();
    file.write(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, file.bytes());
    bytes
}

fn engine(gguf: &Gguf) -> Engine {
    let limits = Limits { logits: true, ..Limits::new(40, 40, 2) };
    Engine::load(gguf, limits, &Options::default(), &mut |_, _| ()).unwrap()
}

#[test]
fn every_architecture_and_type_is_read_back_and_runs() {
    for architecture in Architecture::ALL {
        for types in TYPES {
            let gguf = Gguf::from_bytes(bytes(recipe(architecture, types))).unwrap();
            let config = Network::from_gguf(&gguf).unwrap().config;
            let Shape { layers, width, heads, kv_heads, ff_width, vocab, context } = SMALL;
            assert_eq!(config.architecture, architecture);
            assert_eq!((config.layers, config.width, config.heads), (layers, width, heads));
            assert_eq!((config.kv_heads, config.ff_width), (kv_heads, ff_width));
            assert_eq!((config.vocab, config.context), (vocab, context));
            let has_bias = gguf.tensor("blk.2.attn_k.bias").is_some();
            assert_eq!(has_bias, architecture == Architecture::Dream);
            let mut engine = engine(&gguf);
            let ids: Vec<u32> = (0..40).map(|i| i * 7 % 300).collect();
            let logits = engine.logits(&ids, &[0, 17, 39]).unwrap();
            let rows: Vec<&[f32]> = logits.rows().collect();
            for row in &rows {
                let size = (row.iter().map(|x| x * x).sum::<f32>() / row.len() as f32).sqrt();
                assert!((0.3..3.0).contains(&size), "{architecture:?} {types}: {size}");
            }
            assert_ne!(rows[0], rows[1], "{architecture:?} {types}");
        }
    }
}

#[test]
fn the_mix_is_that_of_the_quantizer() {
    let gguf = Gguf::from_bytes(bytes(recipe(Architecture::Llada, "Q4_K_M"))).unwrap();
    let of = |name: &str| gguf.tensor(name).unwrap().type_name().to_owned();
    for (name, expected) in [
        ("token_embd.weight", "Q4_K"),
        ("output.weight", "Q6_K"),
        ("output_norm.weight", "F32"),
        ("blk.0.attn_v.weight", "Q4_K"),
        ("blk.0.ffn_down.weight", "Q4_K"),
        ("blk.2.attn_v.weight", "Q6_K"),
        ("blk.2.ffn_down.weight", "Q6_K"),
        ("blk.2.ffn_up.weight", "Q4_K"),
        ("blk.2.attn_norm.weight", "F32"),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
}

#[test]
fn the_seed_decides_the_bytes() {
    let recipe = recipe(Architecture::Llada, "Q4_K_M");
    let first = bytes(recipe);
    assert_eq!(first, bytes(recipe));
    let other = bytes(Recipe { seed: 6, ..recipe });
    let differ = first.iter().zip(&other).filter(|(a, b)| a != b).count();
    assert!(differ > first.len() / 2, "{differ} of {} bytes differ", first.len());
}

#[test]
fn a_synthetic_model_generates_and_one_of_llama_says_that_it_does_not() {
    for architecture in Architecture::ALL {
        let gguf = Gguf::from_bytes(bytes(recipe(architecture, "Q4_K_M"))).unwrap();
        let vocab = Vocab::new(parts_from_gguf(&gguf).unwrap()).unwrap();
        assert_eq!(vocab.token_count(), SMALL.vocab);
        let prompt = vocab.encode("the hen", Special::AsText).unwrap();
        assert!(prompt.len() < 7, "nothing was merged: {prompt:?}");
        let kind = if architecture == Architecture::Dream { Kind::Dream } else { Kind::Llada };
        let request =
            RequestParameters { max_tokens: 8, early_stop: false, ..RequestParameters::default() };
        let parameters = GenerationParameters::new(kind, &request).unwrap();
        let mut engine = engine(&gguf);
        let facts = TokenFacts {
            mask_token: vocab.mask_id().unwrap_or(0),
            vocab_size: SMALL.vocab as u32,
            shift_logits: engine.config().shift_logits,
            end_of_text: vec![],
            end_of_turn: vec![],
        };
        let sequence = engine.sequence(&prompt, &parameters, &facts);
        if architecture == Architecture::Llama {
            let said = sequence.unwrap_err().to_string();
            assert!(said.contains("llama") && said.contains("bench"), "{said}");
            continue;
        }
        let mut sequence = sequence.unwrap();
        while !sequence.canvas().is_done() {
            engine.step_one(&mut sequence).unwrap();
        }
        let canvas = sequence.canvas();
        assert!(!canvas.ids().contains(&facts.mask_token), "{:?}", canvas.ids());
    }
}

#[test]
fn impossible_sizes_are_refused_by_name() {
    let cases: [(&str, Shape); 10] = [
        ("layers is 0", Shape { layers: 0, ..SMALL }),
        ("layers is 9999", Shape { layers: 9999, ..SMALL }),
        ("width is 100", Shape { width: 100, ..SMALL }),
        ("heads is 3", Shape { heads: 3, ..SMALL }),
        ("heads is 0", Shape { heads: 0, ..SMALL }),
        ("kv_heads is 3", Shape { kv_heads: 3, ..SMALL }),
        ("ff_width is 8", Shape { ff_width: 8, ..SMALL }),
        ("vocab is 10", Shape { vocab: 10, ..SMALL }),
        ("context is 0", Shape { context: 0, ..SMALL }),
        ("blk.0.ffn_down.weight` would have 528 columns: Q4_K", Shape { ff_width: 528, ..SMALL }),
    ];
    for (words, shape) in cases {
        let recipe = Recipe { shape, ..recipe(Architecture::Llada, "Q4_K") };
        let said = SyntheticFile::new(recipe).unwrap_err().to_string();
        assert!(said.contains(words), "{words:?} is not in {said:?}");
    }
    let said = "q9_k".parse::<Types>().unwrap_err().to_string();
    assert!(said.contains("q9_k") && said.contains("Q4_K_M") && said.contains("IQ4_XS"), "{said}");
}

#[test]
fn published_sizes_give_files_of_published_bytes() {
    let bytes = |architecture, shape, types| {
        SyntheticFile::new(Recipe { architecture, shape, types, seed: 0 }).unwrap().bytes()
    };
    // Weights times bits: 8.02e9 of LLaDA, 7.62e9 of Dream, at about 4.9 bits; Q8_0 has 8.5.
    let llada = bytes(Architecture::Llada, Shape::LLADA_8B, Types::Q4KM);
    assert!((4.7e9..5.1e9).contains(&(llada as f64)), "{llada}");
    let dream = bytes(Architecture::Dream, Shape::DREAM_7B, Types::Q4KM);
    assert!((4.5e9..4.9e9).contains(&(dream as f64)), "{dream}");
    let finer = bytes(Architecture::Llada, Shape::LLADA_8B, "Q8_0".parse().unwrap());
    assert!((8.4e9..8.7e9).contains(&(finer as f64)), "{finer}");
}
