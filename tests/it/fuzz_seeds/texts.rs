//! Seeds of the `tokenizer` and `template` targets; `src/vocab/fuzz.rs` says how they are laid out.

/// A name and contents.
type Seed = (&'static str, Vec<u8>);

/// Choices, tokens, merges, types, text.
pub fn tokenizers() -> Vec<Seed> {
    // The first choice is the pre-tokenizer modulo five; bytes have tokens if the second is odd;
    // the third is the id of a special token if it is over one.
    let seeds: [(&str, [&[u8]; 5]); 12] = [
        ("merges", [b"\x05\x01\x01", b"ab\nabc\nde", b"a b\nab c\nd e", b"", b"abcde abc ab"]),
        ("digits", [b"\x05\x01\x01", b"12\n123", b"1 2\n12 3", b"", b"123 4567, 1.5e-3"]),
        ("control", [
            b"\x01\x01\x02",
            b"<|end|>\n[X]\n<|two words|>",
            b"",
            b"\x03\x04\x03",
            b"say <|end|> and [X][X] <|two words|><|end",
        ]),
        ("spaces", [
            b"\x01\x01\x01",
            "\u{120}\u{120}".as_bytes(),
            b"",
            b"\x01",
            b"a   b \n\n  c \t",
        ]),
        ("english", [b"\x02\x01\x01", b"'s\nWe", b"' s\nW e", b"", b"It's we'LL don'T, O'Neil's"]),
        ("scripts", [
            b"\x03\x01\x01",
            b"",
            b"",
            b"",
            "na\u{ef}ve \u{4f60}\u{597d}\u{ff0c}\u{661}\u{662} e\u{301} \u{1f468}\u{200d}\u{1f469}"
                .as_bytes(),
        ]),
        ("bytes", [b"\x02\x01\x01", "\u{e2}\u{102}".as_bytes(), b"", b"", b"\xe2\x80 \xff ok"]),
        ("no_bytes", [b"\x03\x02\x01", b"a\nb\nab", b"a b", b"", b"abba xyz"]),
        ("unused", [b"\x05\x01\x01", b"old\nnew", b"n e", b"\x05\x06", b"old new <unused>"]),
        // Byte 1 has the token of an added word, byte 0 that of an unused one.
        ("byte_added", [b"\x02\x01\x01", b"a\nb", b"", b"\x01\x01\x05\x04", b"x\x01\x00\x01y"]),
        // Merging makes an added word that is not written as it is spelled.
        ("merge_added", [
            b"\x05\x01\x01",
            "\u{120}a".as_bytes(),
            "\u{120} a".as_bytes(),
            b"\x04",
            " a \u{120}a".as_bytes(),
        ]),
        ("unknown_rule", [b"\x04\x01\x01", b"a", b"", b"\x01", b"a"]),
    ];
    seeds.map(|(name, fields)| (name, fields.join(&0))).into()
}

/// A template, then turns.
const TEMPLATES: [(&str, &[&str]); 11] = [
    ("plain", &["{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", "Hi"]),
    (
        "tokens",
        &[
            "{% for m in messages %}{{ '<|im_start|>' ~ m['role'] }}\n{{ m['content'] | trim }}\
             <|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}",
            " one <|im_end|> ",
            "two",
            "<|im_start|>three[X]",
        ],
    ),
    (
        "edges",
        &[
            "{% for m in messages %}<|im_{{ m.content }}|>{% endfor %}",
            "end",
            "start",
            "|><|im_end|><",
        ],
    ),
    (
        "state",
        &[
            "{% set ns = namespace(n=0) %}{% for m in messages %}{% if loop.first %}\
             {{ eos_token }}{% elif loop.last %}{% break %}{% endif %}\
             {% set ns.n = ns.n + 1 %}{{ ns.n }}{% endfor %}{{ bos_token }}",
            "a",
            "b",
            "c",
        ],
    ),
    (
        "macro",
        &[
            "{% macro turn(m, mark='#') -%} {{ mark }}{{ m.content | upper }} {%- endmacro %}\
             {% for m in messages[::-1] %}{{ turn(m) }}{% endfor %}",
            "first",
            "second",
        ],
    ),
    (
        "methods",
        &[
            "{% for m in messages %}{{ m.content.strip().split(' ') | tojson }}\
             {{ m.content.startswith('a') }}{{ m.get('name', 'none') }}{% endfor %}",
            "a b \u{e9}",
        ],
    ),
    (
        "generation",
        &[
            "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}\
             {% endfor %}{# nothing #}",
            "x",
        ],
    ),
    (
        "raises",
        &[
            "{% if messages | length > 1 %}{{ raise_exception('one turn only') }}{% endif %}ok",
            "x",
            "y",
        ],
    ),
    (
        "cut",
        &[
            "{% for m in messages %}<|im_start|>{{ m.content.split('</think>')[-1][1:] }}\
             {{ '<|' ~ m.role * 2 ~ '|>' }}{% endfor %}",
            "<think>a</think>b",
            "<|im_end|>",
        ],
    ),
    (
        "formats",
        &[
            "{{ '%s %d' % (messages, 3) }}{{ '{:>5}'.format(1) }}\
             {{ messages | tojson(indent=1) }}",
            "'\"\\\n",
        ],
    ),
    ("broken", &["{% for m in messages %}{{ m.content }", "x"]),
];

/// Seeds of chat templates.
pub fn templates() -> Vec<Seed> {
    TEMPLATES.map(|(name, fields)| (name, fields.join("\0").into_bytes())).into()
}
