"""Families of instruction data with checkable answers.

A family is a function of a random generator that gives an `Item`. What it gives depends on the
generator alone, so a seed settles all data.
"""

import random
from functools import partial

from . import calendar, code, facts, numbers, text
from .item import Item, is_held

# Family: share of the items at the start of training and later. Copying comes first: what it
# teaches (looking up a token by place or by neighbour) all others build on.
FAMILIES = {
    "capital": (partial(facts.ask, family="capital"), 2, 3),
    "country": (partial(facts.ask, family="country"), 1, 8),
    "continent": (partial(facts.ask, family="continent"), 1, 2),
    "add": (partial(numbers.add, digits=2), 2, 8),
    "add3": (partial(numbers.add, digits=3), 1, 8),
    "subtract": (partial(numbers.subtract, digits=2), 2, 10),
    "subtract3": (partial(numbers.subtract, digits=3), 1, 10),
    "compare": (numbers.compare, 2, 10),
    "sort": (numbers.sort, 1, 5),
    "parity": (numbers.parity, 1, 1),
    "to_words": (numbers.to_words, 2, 3),
    "to_digits": (numbers.to_digits, 2, 3),
    "spell": (text.spell, 10, 5),
    "reverse": (text.reverse, 4, 5),
    "weekday": (partial(calendar.count_on, unit="day", names=calendar.DAYS), 1, 8),
    "month": (partial(calendar.count_on, unit="month", names=calendar.MONTHS), 1, 4),
    "copy": (text.copy, 10, 2),
    "edit": (text.edit, 8, 8),
    "story": (text.story, 4, 2),
    "python": (code.python, 4, 4),
    "record": (code.record, 8, 2),
    "fill_record": (code.fill_record, 6, 4),
    "fill_python": (code.fill_python, 4, 4),
}
# Exercises: trained beside them and not scored.
EXERCISES = {"columns": (numbers.columns, 1, 10)}
TRAINED = FAMILIES | EXERCISES
# Steps over which the shares go from the first to the second.
CURRICULUM_STEPS = 800
# Families whose words are letters at random in training and real words in the evaluation.
WORD_FAMILIES = ("spell", "reverse")


def shares(step):
    """The shares of `TRAINED` at a step of training."""
    late = min(1.0, step / CURRICULUM_STEPS)
    return [a + late * (b - a) for _, a, b in TRAINED.values()]


def training_item(rng, names, weights):
    """(family, item), never a held-out one."""
    while True:
        (name,) = rng.choices(names, weights)
        item = TRAINED[name][0](rng)
        if not item.held:
            return name, item


def held_items(name, count, seed=0):
    """Up to `count` held-out items of a family, all different, always the same ones."""
    rng = random.Random(f"held-out {name} {seed}")
    found = {}
    for _ in range(2000 * count):
        known = {"known": True} if name in WORD_FAMILIES else {}
        item = FAMILIES[name][0](rng, **known)
        if item.held:
            found.setdefault((item.prompt, item.answer, item.holes), item)
        if len(found) == count:
            break
    return list(found.values())
