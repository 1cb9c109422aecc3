"""Weekdays and months, counted on or back."""

from .item import Writer, is_held

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
# More than these take too long to say.
STEPS_MAX = 6


def count_on(rng, unit, names):
    """3 days after Monday: `Tuesday Wednesday Thursday`, one by one."""
    start, steps = rng.randrange(len(names)), rng.randint(2, STEPS_MAX)
    way, sign = rng.choice((("after", 1), ("before", -1)))
    out = Writer()
    for step in range(1, steps + 1):
        out.add(" " if step > 1 else "")
        out.step(names[(start + sign * step) % len(names)])
    prompt = f"Which {unit} is {steps} {unit}s {way} {names[start]}?"
    held = is_held(unit, start, steps, sign, percent=12)
    return out.item(prompt, held)
