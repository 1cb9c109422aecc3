"""What a task is: a prompt, its answer, and the value by which it is held out."""

import hashlib
from dataclasses import dataclass

# Percent of the values that training never sees.
HELD_PERCENT = 10


@dataclass(frozen=True)
class Item:
    """A question and the one answer that counts.

    An infill task has `holes`, the (start, end) characters of the answer that are to be filled
    in; the rest of the answer is given.
    """

    prompt: str
    answer: str
    held: bool
    holes: tuple = ()


def is_held(*value, percent=HELD_PERCENT):
    """Whether a value is held out: settled by the value alone, so on every run the same way."""
    digest = hashlib.sha1("|".join(map(str, value)).encode()).digest()
    return int.from_bytes(digest[:4], "big") % 100 < percent
