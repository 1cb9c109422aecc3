"""What a task is: a prompt, its answer, and the value by which it is held out."""

import hashlib
from dataclasses import dataclass

# Percent of the values that training never sees.
HELD_PERCENT = 10


@dataclass(frozen=True)
class Item:
    """A question and the one answer that counts.

    An infill task has `holes`, the (start, end) characters of the answer that are to be filled
    in; the rest of the answer is given. `steps` are the (start, end) characters of what has to be
    worked out, in the order in which one follows from those before it; the rest of the answer can
    be read off the prompt.
    """

    prompt: str
    answer: str
    held: bool
    holes: tuple = ()
    steps: tuple = ()


class Writer:
    """Writes an answer and notes which of it are steps."""

    def __init__(self):
        self.text, self.steps = "", []

    def add(self, text):
        self.text += text

    def step(self, text):
        self.steps.append((len(self.text), len(self.text) + len(text)))
        self.text += text

    def item(self, prompt, held):
        return Item(prompt, self.text, held, steps=tuple(self.steps))


def is_held(*value, percent=HELD_PERCENT):
    """Whether a value is held out: settled by the value alone, so on every run the same way."""
    digest = hashlib.sha1("|".join(map(str, value)).encode()).digest()
    return int.from_bytes(digest[:4], "big") % 100 < percent
