"""Writes the held-out items as text files, one for each family.

    python write_items.py RUN/tokenizer.json ../../src/demo/tasks [--items 40]

A line is a prompt, a tab and the answer, with `\\n` for a line break. In infill tasks the holes
stand between « and »; they begin and end where tokens do.
"""

import argparse
from pathlib import Path

import tasks
from tokens import Coder

HOLE = "«", "»"


def line_of(coder, item):
    text, at = "", 0
    for start, end in whole_tokens(coder, item):
        text += item.answer[at:start] + HOLE[0] + item.answer[start:end] + HOLE[1]
        at = end
    line = f"{item.prompt}\t{text}{item.answer[at:]}"
    return line.replace("\n", "\\n")


def whole_tokens(coder, item):
    """The holes, widened to the tokens that they touch, neighbours joined."""
    encoded = coder.tokenizer.encode(item.answer)
    _, in_hole = coder.answer(item)
    holes = []
    for (start, end), inside in zip(encoded.offsets, in_hole):
        if inside and holes and holes[-1][1] == start:
            holes[-1] = holes[-1][0], end
        elif inside:
            holes.append((start, end))
    return holes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer")
    parser.add_argument("out", type=Path)
    parser.add_argument("--items", type=int, default=40)
    args = parser.parse_args()
    coder = Coder(args.tokenizer)
    args.out.mkdir(parents=True, exist_ok=True)
    for name in tasks.FAMILIES:
        lines = [line_of(coder, item) for item in tasks.held_items(name, args.items)]
        (args.out / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
