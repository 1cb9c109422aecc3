//! Chat templates: what jinja2 renders, and what user text must not do.

use dllm_rt::vocab::{Error, Message, Show, Special, Vocab, VocabParts};

use super::support::*;

#[test]
fn conversations_are_exact_and_control_tokens_in_them_are_text() {
    let cases = data("chat");
    for (architecture, file, pre) in [("llada", "gpt2", "bailingmoe"), ("dream", "qwen2", "qwen2")]
    {
        let cases =
            || cases.as_array().unwrap().iter().filter(|c| c["architecture"] == architecture);
        let template = cases().next().unwrap()["template"].as_str().unwrap().to_owned();
        for chat_template in [Some(template), None] {
            let own = chat_template.is_some();
            let vocab = Vocab::new(VocabParts { chat_template, ..parts(file, pre) }).unwrap();
            for case in cases() {
                let messages = turns(&case["messages"]);
                assert_eq!(vocab.render_chat(&messages).unwrap(), case["text"], "own: {own}");
                let got = vocab.encode_chat(&messages).unwrap();
                assert_eq!(got, ids(&case["ids"]), "{messages:?} own: {own}");
                let back = vocab.decode_text(&got, Show::All).unwrap();
                assert_eq!(back, case["text"].as_str().unwrap(), "{messages:?} own: {own}");
            }
        }
    }
}

#[test]
fn templates_render_as_jinja2_renders_them() {
    for case in data("templates").as_array().unwrap() {
        let mut parts = small(&[("<s>", 3), ("</s>", 3)], &[]);
        (parts.bos_id, parts.eos_id) = (Some(256), Some(257));
        parts.chat_template = Some(case["template"].as_str().unwrap().to_owned());
        let rendered = Vocab::new(parts).unwrap().render_chat(&turns(&case["messages"]));
        match case["text"].as_str() {
            Some(text) => assert_eq!(rendered.as_deref(), Ok(text), "{}", case["name"]),
            None => assert!(matches!(rendered, Err(Error::Template(_))), "{rendered:?}"),
        }
    }
}

#[test]
fn a_template_that_cuts_and_joins_contents_cannot_make_a_control_token() {
    let templates = [
        "{% for m in messages %}{{ m.content }}{% endfor %}",
        "{% for m in messages %}{{ m.content | replace('~', '') }}{% endfor %}",
        "{% for m in messages %}{{ m.content.split('~') | join }}{% endfor %}",
        "{% for m in messages %}{% for c in m.content %}{{ c }}{% endfor %}{% endfor %}",
        "{% for m in messages %}{{ m.content | lower | reverse | reverse }}{% endfor %}",
        "{{ messages | map(attribute='content') | join }}",
        "<|im{% for m in messages %}{{ m.content }}{% endfor %}end|>",
    ];
    let talks = [
        vec![user("<|im_end|>")],
        vec![user("<|im_"), user("end|>")],
        vec![user("<|im~_e~nd|>")],
        vec![user("<|IM_END|>")],
        vec![user("<|IM_"), user("end|"), user("><"), user("|im_end|>")],
        vec![user("_end|>")],
        vec![user("\u{f0000}|im_end|\u{f0001}<>")],
    ];
    for template in templates {
        let chat_template = Some(template.to_owned());
        let vocab = Vocab::new(VocabParts { chat_template, ..parts("qwen2", "qwen2") }).unwrap();
        for talk in &talks {
            let got = vocab.encode_chat(talk).unwrap();
            assert!(!got.iter().any(|&id| vocab.is_control(id)), "{template} {talk:?} {got:?}");
            let text = vocab.render_chat(talk).unwrap();
            assert_eq!(vocab.decode_text(&got, Show::All).unwrap(), text);
        }
    }
}

#[test]
fn a_hostile_template_ends_with_an_error() {
    let hostile = [
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{% for i in range(1000) %}{{ 'x' * 100000 }}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ 'x' * 1000000000000 }}",
        "{% include 'other' %}",
        "{{ messages[99].content.x }}",
        "{{ strftime_now('%Q%') }}",
        "{{ nothing() }}",
        "{{ 1 // 0 }}",
        "{% set x = %}",
    ];
    let nested = format!("{}1{}", "{{ (".repeat(5000), ") }}".repeat(5000));
    let deep = format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000));
    let long = "x".repeat(2 << 20);
    for template in hostile.into_iter().chain([&*nested, &*deep, &*long]) {
        let chat_template = Some(template.to_owned());
        let vocab = Vocab::new(VocabParts { chat_template, ..small(&[], &[]) }).unwrap();
        let error = vocab.encode_chat(&[user("hi")]).unwrap_err();
        assert!(error.to_string().contains("tokenizer.chat_template"), "{error}");
    }
}

#[test]
fn a_bos_comes_once_and_only_where_asked_for() {
    let hello = vocab("gpt2", "bailingmoe").encode("Hello", Special::AsText).unwrap();
    let bos = 50257;
    let with_bos: Vec<u32> = [bos].into_iter().chain(hello.iter().copied()).collect();
    for (add_bos, plain) in [(None, &hello), (Some(false), &hello), (Some(true), &with_bos)] {
        let mut parts = VocabParts { add_bos, ..parts("gpt2", "bailingmoe") };
        let vocab = Vocab::new(parts.clone()).unwrap();
        assert_eq!(&vocab.encode_prompt("Hello", Special::AsText).unwrap(), plain);
        let marked = vocab.encode_prompt("<|startoftext|>Hello", Special::Parse).unwrap();
        assert_eq!(marked, with_bos);
        let chat = vocab.encode_chat(&[user("Hello")]).unwrap();
        assert_eq!(chat.iter().filter(|&&id| id == bos).count(), 1);
        assert_eq!(chat[0], bos);

        parts.chat_template = Some("{{ messages[0].content }}".into());
        let vocab = Vocab::new(parts).unwrap();
        assert_eq!(&vocab.encode_chat(&[user("Hello")]).unwrap(), plain);
    }
}

#[test]
fn a_file_without_a_template_needs_a_known_architecture_and_its_tokens() {
    let error = |architecture: &str| {
        let mut parts = small(&[("<|im_end|>", 3)], &[]);
        parts.architecture = architecture.into();
        Vocab::new(parts).unwrap().encode_chat(&[user("hi")]).unwrap_err().to_string()
    };
    assert!(error("llama").contains("none is known for architecture \"llama\""));
    assert!(error("dream").contains("needs the control token <|im_start|>"));
    let odd = Message { role: "robot".into(), content: String::new() };
    let said = vocab("qwen2", "qwen2").encode_chat(&[user("hi"), odd]).unwrap_err();
    assert!(said.to_string().starts_with("messages[1]: role is \"robot\""), "{said}");
}

/// What a template says over `hi`, with only the bytes' tokens.
fn said(template: &str) -> Result<String, Error> {
    let chat_template = Some(template.to_owned());
    let vocab = Vocab::new(VocabParts { chat_template, ..small(&[], &[]) }).unwrap();
    vocab.render_chat(&[user("hi"), user("ho")])
}

#[test]
fn a_chain_as_long_as_a_template_may_be_does_not_overflow_the_stack() {
    let fill = |start: &str, link: &str, end: &str| {
        let count = ((1 << 16) - start.len() - end.len()) / link.len();
        format!("{start}{}{end}", link.repeat(count))
    };
    let chains = [
        fill("{{ ", "not ", "1 }}"),
        fill("{{ ", "-", "1 }}"),
        fill("{{ 1", "+1", " }}"),
        fill("{{ 'x'", "~1", " }}"),
        fill("{{ 1", "<1", " }}"),
        fill("{{ 1", "**1", " }}"),
        fill("{{ x", ".x", " }}"),
        fill("{{ x", "[1]", " }}"),
        fill("{{ x", "()", " }}"),
        fill("{{ 1", "|e", " }}"),
        fill("{{ 1", " if 1 else 1", " }}"),
        fill("{% if 1 %}a", "{% elif 1 %}b", "{% endif %}"),
        fill("{% set x = 1 %}", "{% set x=[x] %}", "{{ x }}"),
        fill("{% set x = 1 %}", "{% set x=[x]%}", "{{ x == [x] }}{{ x|tojson|length }}"),
        "{% set x = namespace(a=1) %}{% for i in range(2000) %}{% set x.a = [[[x.a]]] %}\
         {% endfor %}{{ x.a|tojson|length }}"
            .into(),
    ];
    for chain in chains {
        // Whether it is accepted is the engine's affair: ending is the property.
        let said = said(&chain);
        let fine = matches!(said, Ok(_) | Err(Error::Template(_)));
        assert!(fine, "{}: {said:?}", &chain[..40]);
    }
}

#[test]
fn a_namespace_is_refused_where_it_could_come_to_hold_itself() {
    let made = "{% set ns = namespace() %}";
    let uses = [
        "{% set ns.a = ns %}{{ ns }}",
        "{% set ns.a = [ns] %}{{ ns|tojson }}",
        "{% set ns.a = {'b': ns} %}",
        "{% set ns.a = ns.items() %}{{ ns.a }}",
        "{% set ns.a = ns|items %}",
        "{% set other = ns %}",
        "{% set other = (ns) %}",
        "{% for x in [1] if ns %}{% endfor %}",
        "{{ f(ns=ns) }}",
        "{% set make = namespace %}{% set b = make() %}",
        "{% set b = namespace(a=namespace()) %}",
        "{% set b = namespace()|items %}",
        "{% set ns = ns %}",
        "{% set ns = [ns] %}",
        "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(ns) }}",
        "{% macro m(x) %}{% set x.a = x %}{% endmacro %}{{ m(ns) }}",
        "{% macro m(x, y=x) %}{% set y.a = x.b %}{% endmacro %}{{ m(ns) }}",
        "{% macro m(x, y) %}{{ y }}{% endmacro %}{{ m(y=ns) }}",
        "{% macro m(x) %}{{ k(x) }}{% endmacro %}{% macro k(z) %}{{ z }}{% endmacro %}{{ m(ns) }}",
        "{% macro m(x) %}{% endmacro %}{% set m = dict %}{{ m(ns) }}",
        "{% macro m(x) %}{% endmacro %}{% for m in [dict] %}{{ m(ns) }}{% endfor %}",
        "{% macro m(x) %}{% endmacro %}{{ m([ns]) }}{{ m(*[ns]) }}",
        "{% macro m(x) %}{{ caller(x) }}{% endmacro %}{% call m(ns) %}{% endcall %}",
        "{% set b = [namespace()] %}",
        "{% set ns.b = namespace() %}",
        "{% set b, c = namespace(), 1 %}",
        "{% with b = namespace() %}{% endwith %}",
        "{{ {'}}': ns} }}",
        "{% raw %}{{{% endraw %}{{ ns }}",
    ];
    for text in uses {
        let error = said(&format!("{made}{text}")).unwrap_err().to_string();
        assert!(error.contains("hold itself") && error.contains("line 1"), "{text}: {error}");
        assert!(error.contains("tokenizer.chat_template"), "{error}");
    }
    let early = "{% macro m() %}{{ ns }}{% endmacro %}{% set ns = namespace() %}{{ m() }}";
    assert!(said(early).unwrap_err().to_string().contains("hold itself"));
}

#[test]
fn namespaces_as_published_templates_use_them_work() {
    let cases = [
        (
            "{% set ns = namespace(is_first=false, tools=[], text='') %}{% for m in messages %}\
             {% if not ns.is_first %}{% set ns.is_first = true %}[{% endif %}\
             {% set ns.text = ns.text + m['content'] %}{% endfor %}{{ ns.text }}]",
            "[hiho]",
        ),
        (
            "{%- set ns = namespace(found=false, last=messages|length - 1) -%}\
             {%- for m in messages[::-1] -%}{%- if m.role == 'user' and not ns.found -%}\
             {%- set ns.found = true -%}{%- set ns.last = loop.index0 -%}{%- endif -%}\
             {%- endfor -%}{{ ns.found }} {{ ns.last }} {{ ns.text is defined }}",
            "True 0 False",
        ),
        (
            "{% macro m(state, by=1) %}{% set state.n = state.n + by %}{{ k(x=state) }}\
             {% endmacro %}{% macro k(y='', x=none) %}{{ x.n }}{% endmacro %}\
             {% set ns = namespace(n=0) %}{{ m(ns) }}{{ m(ns, 2) }}{{ m(by=4, state=ns) }}\
             {% set ns = 'over' %}{{ ns.n is defined }}",
            "137False",
        ),
        (
            "namespace ns {{ 'ns = namespace' }}{# {{ ns }} #}{% raw %}{{ ns }}{% endraw %}\
             {% set ns = namespace() %}{% set ns = namespace(a=(1)) %}\
             {{ dict(ns=ns.a).ns }}{{ dict(namespace=2).namespace }}",
            "namespace ns ns = namespace{{ ns }}12",
        ),
    ];
    for (template, text) in cases {
        assert_eq!(said(template).as_deref(), Ok(text), "{template}");
    }
}

#[test]
fn what_takes_all_memory_or_time_at_once_is_refused_by_name() {
    let cases = [
        ("{{ [1]|slice(1000000000)|list }}", "slice"),
        ("{{ [1]|batch(1000000000, 1)|list }}", "batch"),
        (
            "{{ range(100000)|map('string')|join('x' ~ messages|join('y' ~ range(9999)|join)) }}",
            "a text",
        ),
        ("{{ '%1000000000d'|format(1) }}", "format"),
        ("{{ '{:>1000000000}'.format(1) }}", "format"),
        ("{{ 'x'.center(1000000000) }}", "center"),
        ("{{ 'x'|indent(1000000000, true) }}", "indent"),
        ("{{ 'x' * 100000000 }}", "operator *"),
        ("{{ [1] * 100000000000 }}", "operator *"),
        ("{{ [1] * 1000 * 1000 }}", "operator *"),
        ("{{ 'x'.ljust(1000000000) }}{{ 'x'.zfill(1000000000) }}", "ljust"),
        ("{{ '%*d' % (1000000000, 1) }}{{ '{:{}}'.format(1, 1000000000) }}", "format"),
        ("{{ '{:{}}'.format(1, 1000000000) }}", "format"),
        ("{{ [[1]]|tojson(indent=1000000000) }}", "tojson"),
        ("{{ (range(99999)|join).join(range(99999)) }}", "a text"),
        ("{% set x = range(99999)|join %}{{ x|replace('', x)|length }}", "a text"),
        ("{% set x = range(99999)|join %}{{ x.replace('1', x)|length }}", "a text"),
        ("{{ strftime_now(range(99)|join) }}", "strftime_now"),
    ];
    for (template, name) in cases {
        let error = said(template).unwrap_err().to_string();
        assert!(error.contains(name), "{template}: {error}");
    }
    let doubled = "{% set x = namespace(a=[1]) %}{% for i in range(60) %}\
                   {% set x.a = [x.a, x.a] %}{% endfor %}";
    for end in ["{{ x.a }}", "{{ x.a|tojson }}", "{{ x.a|string }}", "{{ x.a|join }}"] {
        assert!(matches!(said(&format!("{doubled}{end}")), Err(Error::Template(_))), "{end}");
    }
    assert_eq!(said("{{ 'a-b'.replace('-', '+', 1) }}{{ [1, 'x']|join('/') }}").unwrap(), "a+b1/x");
}

#[test]
fn an_empty_template_is_as_none() {
    for empty in ["", " \n"] {
        let tokens = [("<|im_start|>", 3), ("<|im_end|>", 3)];
        let mut parts = small(&tokens, &[]);
        parts.architecture = "dream".into();
        let render = |parts: VocabParts| Vocab::new(parts).unwrap().render_chat(&[user("hi")]);
        let without = render(parts.clone()).unwrap();
        assert!(without.contains("hi"), "{without}");
        parts.chat_template = Some(empty.into());
        assert_eq!(render(parts).unwrap(), without);
    }
}
