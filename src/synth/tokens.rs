//! A byte-level vocabulary of any size: bytes, three merges, padding, control tokens.

use crate::model::Architecture;

/// `tokenizer.ggml.token_type` values, as in the GGUF specification.
const TYPE_NORMAL: i32 = 1;
const TYPE_CONTROL: i32 = 3;
const TYPE_UNUSED: i32 = 5;

/// Merges, as some readers refuse a vocabulary without one; each joins two tokens to a third.
pub(super) const MERGES: [&str; 3] = ["h e", "i n", "\u{120} t"];

/// A vocabulary as the keys of a file hold it.
pub(super) struct Tokens {
    pub texts: Vec<String>,
    pub types: Vec<i32>,
    pub bos: u32,
    pub eos: u32,
    pub eot: u32,
    pub mask: Option<u32>,
    /// The pre-tokenizer.
    pub pre: &'static str,
}

/// The control tokens of an architecture, those of its chat template among them, and their parts.
struct Controls {
    texts: &'static [&'static str],
    bos: &'static str,
    eos: &'static str,
    eot: &'static str,
    mask: Option<&'static str>,
    pre: &'static str,
}

fn controls(architecture: Architecture) -> Controls {
    match architecture {
        Architecture::Llada => Controls {
            texts: &[
                "<|startoftext|>",
                "<|endoftext|>",
                "<|start_header_id|>",
                "<|end_header_id|>",
                "<|eot_id|>",
                "<|mdm_mask|>",
            ],
            bos: "<|startoftext|>",
            eos: "<|endoftext|>",
            eot: "<|eot_id|>",
            mask: Some("<|mdm_mask|>"),
            pre: "bailingmoe",
        },
        Architecture::Dream => Controls {
            texts: &["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>"],
            bos: "<|endoftext|>",
            eos: "<|endoftext|>",
            eot: "<|im_end|>",
            mask: Some("<|mask|>"),
            pre: "qwen2",
        },
        Architecture::Llama => Controls {
            texts: &["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"],
            bos: "<|begin_of_text|>",
            eos: "<|end_of_text|>",
            eot: "<|eot_id|>",
            mask: None,
            pre: "llama-bpe",
        },
    }
}

/// Tokens that every vocabulary of the architecture has.
pub(super) fn vocab_min(architecture: Architecture) -> usize {
    256 + MERGES.len() + controls(architecture).texts.len()
}

/// A vocabulary of `vocab` tokens, [`vocab_min`] at least: the control tokens come last.
pub(super) fn tokens(architecture: Architecture, vocab: usize) -> Tokens {
    let controls = controls(architecture);
    let mut texts: Vec<String> = (0..=255u8).map(|byte| byte_char(byte).to_string()).collect();
    texts.extend(MERGES.map(|merge| merge.replace(' ', "")));
    let mut types = vec![TYPE_NORMAL; texts.len()];
    let padding = vocab.saturating_sub(vocab_min(architecture));
    texts.extend((0..padding).map(|index| format!("[PAD{index}]")));
    types.resize(texts.len(), TYPE_UNUSED);
    let first = texts.len() as u32;
    texts.extend(controls.texts.iter().map(|text| (*text).to_owned()));
    types.resize(texts.len(), TYPE_CONTROL);
    // Every name is one of the texts.
    let id = |name| (first..).zip(controls.texts).find(|(_, t)| **t == name).map_or(0, |(i, _)| i);
    Tokens {
        bos: id(controls.bos),
        eos: id(controls.eos),
        eot: id(controls.eot),
        mask: controls.mask.map(id),
        pre: controls.pre,
        texts,
        types,
    }
}

/// The character that stands for a byte in GPT-2's alphabet: itself if it prints in Latin-1, else
/// the next one from U+0100 on.
fn byte_char(byte: u8) -> char {
    let prints = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if prints(&byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|other| !prints(other)).count() as u32;
    char::from_u32(0x100 + before).unwrap_or('?')
}
