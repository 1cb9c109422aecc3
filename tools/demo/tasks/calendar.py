"""Weekdays and months, counted on through two rounds so that nothing need wrap around."""

from .item import Item, is_held

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()


def weekday(rng):
    return count_on(rng, "day", DAYS)


def month(rng):
    return count_on(rng, "month", MONTHS)


def count_on(rng, unit, names):
    """3 days after Monday: `01+3=04 Thursday`. Counting back starts in the second round."""
    start, step = rng.randrange(len(names)), rng.randrange(2, min(10, len(names)))
    way, sign = rng.choice((("after", 1), ("before", -1)))
    first = start + 1 if sign > 0 else start + 1 + len(names)
    last = first + sign * step
    working = f"{first:02d}{'+' if sign > 0 else '-'}{step}={last:02d}"
    prompt = f"Which {unit} is {step} {unit}s {way} {names[start]}?"
    return Item(
        prompt,
        f"{working} {names[(last - 1) % len(names)]}",
        is_held(unit, start, step, sign, percent=12),
    )
