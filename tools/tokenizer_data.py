#!/usr/bin/env python3
"""tokenizer_data.py REFERENCE_FOLDER: writes tests/data/tokenizer.

REFERENCE_FOLDER/tokenizer holds *.gguf vocabularies and *.cases.json with (text, ids) cases.

vocab-*.json    reduced vocabularies: the real ids, but only tokens whose spelling occurs in some
                test text, and all merges that give one of those, so that merging meets every
                rival that it meets in the full vocabulary
cases.json      the reference's cases
chat.json       conversations with ids worked out here, by a tokenizer that shares no code with
                dllm-rt: each control token and each stretch of text is put down by hand, and
                their sum checked against what jinja2 renders
templates.json  Jinja features that published chat templates use, with what jinja2 renders

Needs the packages gguf, jinja2 and regex. The tokenizer is checked against every reference case
first.
"""
import json, os, sys

import gguf
import jinja2
import regex

from template_cases import environment

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "tests", "data", "tokenizer")

CONTRACTIONS = r"'(?:[sdmtSDMT]|[lL][lL]|[vV][eE]|[rR][eE])"
SPACES = r"|\s+(?!\S)|\s+"
RULES = {
    "gpt-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+" + SPACES,
    "qwen2": CONTRACTIONS
    + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    + SPACES,
    "llama-bpe": CONTRACTIONS
    + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    + SPACES,
    "bailingmoe": CONTRACTIONS
    + r"|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
    + SPACES,
}
FILES = {"gpt2": ["gpt-2", "llama-bpe", "bailingmoe"], "qwen2": ["qwen2"]}
CONTROL, USER_DEFINED = 3, 4


# ------------------------------------------------------------------ a tokenizer to compare with


SAME = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHER = [b for b in range(256) if b not in SAME]
SPELL = {b: chr(b) for b in SAME} | {b: chr(256 + i) for i, b in enumerate(OTHER)}


def spell(text):
    return "".join(SPELL[b] for b in text.encode())


class Tokenizer:
    def __init__(self, meta, pre):
        self.tokens = meta["tokenizer.ggml.tokens"]
        self.types = meta["tokenizer.ggml.token_type"]
        self.id_of = {t: i for i, t in reversed(list(enumerate(self.tokens)))}
        merges = [tuple(m.split(" ")) for m in meta["tokenizer.ggml.merges"]]
        self.rank = {pair: i for i, pair in reversed(list(enumerate(merges)))}
        self.rule = regex.compile(RULES[pre])
        self.whole = pre == "llama-bpe"
        self.control = [t for t, k in zip(self.tokens, self.types) if k == CONTROL]
        self.defined = [t for t, k in zip(self.tokens, self.types) if k == USER_DEFINED]

    def word(self, word):
        parts = spell(word)
        if self.whole and parts in self.id_of:
            return [self.id_of[parts]]
        parts = list(parts)
        while True:
            pairs = [(self.rank.get(p, 1 << 40), i) for i, p in enumerate(zip(parts, parts[1:]))]
            rank, i = min(pairs, default=(1 << 40, 0))
            if rank == 1 << 40:
                return [self.id_of[p] for p in parts]
            parts[i : i + 2] = [parts[i] + parts[i + 1]]

    def text(self, text, wanted):
        for token in sorted(wanted, key=len, reverse=True):
            if token in text:
                left, right = text.split(token, 1)
                return self.text(left, wanted) + [self.id_of[token]] + self.text(right, wanted)
        return [i for w in self.rule.findall(text) for i in self.word(w)]

    def encode(self, text, special):
        return self.text(text, self.defined + (self.control if special else []))


# ------------------------------------------------------------------ chat

LLADA = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}"
    "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'"
    "+ message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}"
    "{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
CHATML = (
    "{% for message in messages %}"
    "{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# Python's strip() and Unicode's White_Space agree on the characters used below.
CONVERSATIONS = [
    [("user", "Hi there")],
    [("user", "  two  spaces  ")],
    [("user", "\n\n\nend\n")],
    [
        ("system", "You are a helpful assistant."),
        ("user", "I'm 25 years old"),
        ("assistant", " leading"),
        ("user", "x"),
    ],
    [("user", "")],
    [
        ("user", "<|im_end|>"),
        ("assistant", "<|eot_id|>"),
        ("user", "<|eot_id|> plain <|endoftext|>"),
    ],
    [("user", "<|im_start|>user\nHi<|im_end|>")],
    [
        ("user", "Hi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"),
        ("user", "text<|mdm_mask|> text"),
    ],
    [("user", "text<|mask|>text<|mdm_mask|> text")],
    [("user", "<|im_"), ("assistant", "end|>"), ("user", "start|>")],
    [("user", "<"), ("user", "|"), ("user", "<|"), ("user", "|>"), ("user", ">")],
    [("user", "\U000f0000<|im_end|>\U000f0001"), ("user", "\U00100000 \U0010fffd<|eot_id|>")],
    [("user", "  <|im_end|>  "), ("user", "\n<|eot_id|>\n")],
]


def llada(turns):
    parts = [["<|startoftext|>"]]
    for role, content in turns:
        parts += [["<|start_header_id|>"], role, ["<|end_header_id|>"]]
        parts += ["\n\n" + content.strip(), ["<|eot_id|>"]]
    return parts + [["<|start_header_id|>"], "assistant", ["<|end_header_id|>"], "\n\n"]


def dream(turns):
    if turns[0][0] != "system":
        turns = [("system", "You are a helpful assistant.")] + turns
    parts = []
    for role, content in turns:
        parts += [["<|im_start|>"], role + "\n" + content, ["<|im_end|>"], "\n"]
    return parts + [["<|im_start|>"], "assistant\n"]


def render(template, turns, bos, eos):
    return environment().from_string(template).render(
        messages=[{"role": r, "content": c} for r, c in turns],
        add_generation_prompt=True,
        bos_token=bos,
        eos_token=eos,
        tools=None,
        documents=None,
    )


def chat_cases(tokenizer, name, make, template, bos):
    for turns in CONVERSATIONS:
        ids, text = [], ""
        for part in make(turns):
            control = isinstance(part, list)
            text += part[0] if control else part
            ids += [tokenizer.id_of[part[0]]] if control else tokenizer.encode(part, False)
        assert text == render(template, turns, bos, ""), (name, turns)
        case = {"architecture": name, "template": template, "messages": turns}
        yield {**case, "text": text, "ids": ids}


TEMPLATES = {
    "line layout": """{%- for message in messages %}
    {%- if message.role == 'user' %}
U: {{ message.content }}
    {% else %}
  {{ message.role }}: {{ message['content'] }}
    {%- endif %}
{% endfor %}
{% if add_generation_prompt %}
A:
{%- endif %}
""",
    "namespace and loop controls": "{% set ns = namespace(n=0, system='') %}"
    "{% for m in messages %}{% if m.role == 'system' %}"
    "{% set ns.system = m.content %}{% continue %}{% endif %}"
    "{% if ns.n > 1 %}{% break %}{% endif %}"
    "{% set ns.n = ns.n + 1 %}{{ ns.n ~ ':' ~ m.content }}|{% endfor %}{{ ns.system }}",
    "string methods": "{% for m in messages %}{{ m.content.strip() }}/"
    "{{ m.content.split(' ')[0] }}/{{ m.content.upper() }}/"
    "{{ 'y' if m.content.startswith('You') else 'n' }}/"
    "{{ m.content.replace('e', '3') }}/{{ m.content.rstrip('\\n').lower() }}/"
    "{{ m.role.title() }};{% endfor %}",
    "filters": "{% for m in messages %}{{ m.content | trim | length }} "
    "{{ m.content | upper | replace('A', 'b') }} {{ m | tojson }} {{ m.role | capitalize }}"
    "{{ ', ' if not loop.last else '.' }}{% endfor %}"
    "{{ messages | map(attribute='role') | join('+') }}",
    "slices and tests": "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}"
    "{% else %}{% set rest = messages %}{% endif %}{% for m in rest %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{{ m.content[:3] }}{{ rest[-1].content[-2:] }}{% endfor %}"
    "{% if tools is not none and tools %}T{% endif %}"
    "{% if custom is not defined %}U{% endif %}{% if bos_token is string %}S{% endif %}",
    "macros": "{% macro turn(role, text='none') %}[{{ role }}: {{ text }}]{% endmacro %}"
    "{% for m in messages %}{{ turn(m.role, m.content) }}{% endfor %}"
    "{{ turn('assistant') }}{{ bos_token }}{{ eos_token }}",
    "generation": "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}"
    "{{ m.content }}{{ eos_token }}{% endgeneration %}"
    "{%- else %}{{ m.content }}{% endif %}{% endfor %}",
    "raise": "{{ raise_exception('no system turn, please') }}",
    "attribute of nothing": "{{ messages[0].missing.deeper }}",
    "no end": "{% for m in messages %}",
}
TEMPLATE_TURNS = [
    [("user", "Hello there, friend\n")],
    [
        ("system", "You are terse."),
        ("user", " a question? "),
        ("assistant", "aé中"),
        ("user", 'He said "x" <b>'),
    ],
    [("user", "one"), ("user", "two"), ("user", "three")],
]


def template_cases():
    for name, template in TEMPLATES.items():
        for turns in TEMPLATE_TURNS:
            try:
                text = render(template, turns, "<s>", "</s>")
            except jinja2.TemplateError:
                text = None
            yield {"name": name, "template": template, "messages": turns, "text": text}


# ------------------------------------------------------------------ files


def reduced(meta, texts):
    spelled = [spell(t) for t in texts]
    occurs = lambda token: any(token in s for s in spelled)
    tokens, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    kept = {i for i, t in enumerate(tokens) if types[i] != 1 or len(t) == 1 or occurs(t)}
    names = {tokens[i] for i in kept}
    merges = [m for m in meta["tokenizer.ggml.merges"] if m.replace(" ", "") in names]
    names.update(side for m in merges for side in m.split(" "))
    kept = [i for i, t in enumerate(tokens) if t in names]
    unused = [i for i in kept if types[i] == 5]
    kept = [i for i in kept if types[i] != 5 or i == unused[0]]
    keys = ["bos_token_id", "eos_token_id", "eot_token_id", "mask_token_id", "padding_token_id"]
    ids = {k: meta[f"tokenizer.ggml.{k}"] for k in keys if f"tokenizer.ggml.{k}" in meta}
    rows = [[i, tokens[i], types[i]] for i in kept]
    return {"count": len(tokens), **ids, "tokens": rows, "merges": merges}


def write(name, value):
    with open(os.path.join(OUT, name), "w") as f:
        json.dump(value, f, ensure_ascii=True, separators=(",", ":"), indent=None)
        f.write("\n")


def main():
    folder = os.path.join(sys.argv[1], "tokenizer")
    fields = {pre: gguf.GGUFReader(f"{folder}/{pre}.gguf").fields for pre in RULES}
    metas = {pre: {key: f.contents() for key, f in fields[pre].items()} for pre in RULES}
    cases = {pre: json.load(open(f"{folder}/{pre}.cases.json"))["cases"] for pre in RULES}
    tokenizers = {pre: Tokenizer(metas[pre], pre) for pre in RULES}
    for pre, tokenizer in tokenizers.items():
        for case in cases[pre]:
            assert tokenizer.encode(case["text"], case["special"]) == case["ids"], (pre, case)
    chats = [
        *chat_cases(tokenizers["bailingmoe"], "llada", llada, LLADA, "<|startoftext|>"),
        *chat_cases(tokenizers["qwen2"], "dream", dream, CHATML, ""),
    ]
    for file, pres in FILES.items():
        texts = [c["text"] for pre in pres for c in cases[pre]]
        texts += [c["text"] for c in chats if (c["architecture"] == "dream") == (file == "qwen2")]
        texts += [c for turns in CONVERSATIONS for _, c in turns]
        write(f"vocab-{file}.json", reduced(metas[pres[0]], texts))
    write("cases.json", cases)
    write("chat.json", chats)
    write("templates.json", list(template_cases()))


main()
