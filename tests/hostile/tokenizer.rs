//! Files whose GGUF layer is sound but whose vocabulary or chat template is not.

use crate::case::Case;
use crate::common::gguf_writer::{Field, GgufWriter, value_type as ty};
use crate::common::tiny::{self, VOCAB};

const TOKENS: &str = "tokenizer.ggml.tokens";
const MERGES: &str = "tokenizer.ggml.merges";
const TYPES: &str = "tokenizer.ggml.token_type";
const TEMPLATE: &str = "tokenizer.chat_template";

pub fn cases() -> Vec<Case> {
    let mut cases = keys();
    cases.extend(ids());
    cases.extend(merges());
    cases.extend(templates());
    cases
}

fn changed(change: impl Fn(&mut GgufWriter)) -> Vec<u8> {
    let mut file = tiny::vocabulary("llada", "bailingmoe");
    change(&mut file);
    file.bytes()
}

fn case(name: &str, expected: &str, change: impl Fn(&mut GgufWriter)) -> Case {
    Case::tokenize(name, changed(change), expected)
}

fn keys() -> Vec<Case> {
    let (model, pre) = ("tokenizer.ggml.model", "tokenizer.ggml.pre");
    let mut cases = Vec::new();
    for key in [model, TOKENS, MERGES] {
        cases.push(case(&format!("{key} is missing"), key, |file| {
            file.remove(key);
        }));
    }
    for key in [model, pre, TOKENS, MERGES, TYPES, TEMPLATE] {
        cases.push(case(&format!("{key} is a number"), key, |file| {
            file.u32(key, 1);
        }));
    }
    cases.extend([
        case("a model that is not BPE", model, |file| {
            file.str(model, "llama");
        }),
        case("an unknown pre-tokenizer", "no-such-pre", |file| {
            file.str(pre, "no-such-pre");
        }),
        case("no tokens", TOKENS, |file| {
            file.strs::<&str>(TOKENS, &[]).i32s(TYPES, &[]);
        }),
        case("tokens of numbers", TOKENS, |file| {
            file.i32s(TOKENS, &[1; VOCAB as usize]);
        }),
        case("a token type too few", TYPES, |file| {
            file.i32s(TYPES, &[1; VOCAB as usize - 1]);
        }),
        case("a token type too many", TYPES, |file| {
            file.i32s(TYPES, &[1; VOCAB as usize + 1]);
        }),
        case("token types of floats", TYPES, |file| {
            file.f32s(TYPES, &[1.0; VOCAB as usize]);
        }),
    ]);
    cases
}

fn ids() -> Vec<Case> {
    let names = ["bos_token_id", "eos_token_id", "eot_token_id", "mask_token_id"];
    let mut cases = Vec::new();
    for name in names {
        let key = format!("tokenizer.ggml.{name}");
        cases.push(case(&format!("{name} beyond the vocabulary"), &key, |file| {
            file.u32(&key, VOCAB as u32);
        }));
        cases.push(case(&format!("{name} below zero"), &key, |file| {
            file.set(&key, Field { ty: ty::I32, bytes: vec![0xff; 4] });
        }));
    }
    cases
}

/// Merges that make nothing, make what is no token, or go round in a circle.
fn merges() -> Vec<Case> {
    let merged = |name: &str, merges: &'static [&'static [u8]]| {
        case(name, MERGES, |file| {
            file.strs(MERGES, merges);
        })
    };
    vec![
        merged("a merge of one word", &[b"ab"]),
        merged("a merge without a right side", &[b"a "]),
        merged("a merge without a left side", &[b" b"]),
        merged("a merge of nothing", &[b""]),
        merged("a merge of a space", &[b" "]),
        merged("a merge of no token", &[b"a b", b"zz y"]),
        merged("a merge that makes no token", &[b"a b", b"x y"]),
        merged("a merge that is its own part", &[b"a b", b"abc "]),
        merged("merges in a circle", &[b"abc a", b"bca b", b"cab c"]),
        merged("a merge that is not UTF-8", &[b"a b", b"\xff\xfe \xfd"]),
    ]
}

fn templates() -> Vec<Case> {
    let template = |name: &str, text: &str| {
        case(name, TEMPLATE, |file| {
            file.str(TEMPLATE, text);
        })
    };
    let elifs = format!("{{% if 1 %}}a{}{{% endif %}}", "{% elif 1 %}b".repeat(10_000));
    vec![
        template("a template that is too long", &elifs),
        template("a namespace in itself", "{% set ns=namespace() %}{% set ns.a=ns %}{{ ns }}"),
        template("a template that slices finely", "{{ [1]|slice(1000000000)|list }}"),
        template("a template that pads widely", "{{ '{:>1000000000}'.format(1) }}"),
        template("a template that repeats", "{{ 'x' * 100000000 }}"),
        template("a template that does not parse", "{% for m in messages %}"),
        template("a template with an unknown filter", "{{ messages | no_such_filter }}"),
        template("a template that raises", "{{ raise_exception('not this way') }}"),
        template("a template that includes a file", "{% include '/etc/passwd' %}"),
        template(
            "a template that never ends",
            "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}x\
             {% endfor %}{% endfor %}{% endfor %}",
        ),
        template("a template that calls itself", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
    ]
}
