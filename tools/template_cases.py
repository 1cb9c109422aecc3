#!/usr/bin/env python3
"""template_cases.py: writes tests/data/tokenizer/jinja.json from jinja.txt beside it.

What jinja2 renders, set up as transformers' apply_chat_template sets it up, for single constructs
and for whole templates in the style of published ones. All were written for this test. A case
whose `text` is null is one that jinja2 refuses.

Needs the package jinja2 (3.1).
"""
import datetime, json, os

import jinja2, jinja2.ext, jinja2.sandbox

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "..", "tests", "data", "tokenizer")
BOS, EOS = "<s>", "</s>"

SHORT = [("user", "Hi")]
TALK = [
    ("system", "You are terse."),
    ("user", " A question, isn't it?\n"),
    ("assistant", "<think>one\ntwo</think>\n\nAn \"answer\" é中."),
    ("user", "a-b-c  d\\e"),
]
CONVERSATIONS = {
    "one turn": SHORT,
    "several turns": [("user", "1 + 1?"), ("assistant", "<think>\n</think>2"), ("user", "[x] <b>")],
    "system": TALK,
    "only system": [("system", "Be kind.")],
    "ends with the assistant": [("user", "say\tit"), ("assistant", "it  ")],
}


def templates():
    """Constructs, one a line, and whole templates by name, each below a line `=== NAME`."""
    with open(os.path.join(FOLDER, "jinja.txt")) as f:
        constructs, *whole = f.read().removesuffix("\n").split("\n=== ")
    return constructs.split("\n"), dict(part.split("\n", 1) for part in whole)


CONSTRUCTS, TEMPLATES = templates()

# ------------------------------------------------------------------ rendering


class Generation(jinja2.ext.Extension):
    """The tag with which templates mark what the assistant says; it writes what it holds."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("held"), [], [], body).set_lineno(line)

    def held(self, caller):
        return caller()


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def raise_exception(message):
    raise jinja2.TemplateError(message)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return env


ENV = environment()


def render(template, turns):
    messages = [{"role": role, "content": content} for role, content in turns]
    try:
        return ENV.from_string(template).render(
            messages=messages, tools=None, documents=None, add_generation_prompt=True,
            bos_token=BOS, eos_token=EOS,
        )
    except (jinja2.TemplateError, TypeError, ValueError, KeyError, IndexError, AttributeError):
        return None


def cases():
    for construct in CONSTRUCTS:
        for turns in (SHORT, TALK):
            text = render(construct, turns)
            yield {"name": construct, "template": construct, "messages": turns, "text": text}
            if "messages" not in construct:
                break
    for name, template in TEMPLATES.items():
        for talk, turns in CONVERSATIONS.items():
            text = render(template, turns)
            yield {"name": f"{name}: {talk}", "template": template, "messages": turns, "text": text}


def main():
    assert len(CONSTRUCTS) >= 60 and len(TEMPLATES) >= 20, (len(CONSTRUCTS), len(TEMPLATES))
    with open(os.path.join(FOLDER, "jinja.json"), "w") as f:
        json.dump(list(cases()), f, ensure_ascii=True, indent=None, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
