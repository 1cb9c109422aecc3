"""Records in JSON and functions in Python: to write, and to fill where a part is missing."""

import json

from .item import Item, is_held
from .text import NAMES

CITIES = (
    "Paris London Rome Berlin Madrid Oslo Cairo Tokyo Lima Delhi Vienna Prague Lisbon Dublin "
    "Athens Boston"
).split()
JOBS = "teacher doctor baker pilot nurse singer farmer driver painter writer".split()

# What a function does: name, expression, description.
FUNCTIONS = (
    ("add", "x + {}", "adds {} to x"),
    ("subtract", "x - {}", "subtracts {} from x"),
    ("multiply", "x * {}", "multiplies x by {}"),
    ("divide", "x / {}", "divides x by {}"),
    ("above", "x > {}", "tests if x is above {}"),
    ("below", "x < {}", "tests if x is below {}"),
    ("first", "x[:{}]", "takes the first {} items of x"),
    ("last", "x[-{}:]", "takes the last {} items of x"),
    ("power", "x ** {}", "raises x to the power {}"),
    ("rest", "x % {}", "gives the rest of x divided by {}"),
)


def person(rng):
    return rng.choice(NAMES), rng.randint(18, 80), rng.choice(CITIES), rng.choice(JOBS)


def record(rng):
    """Held out by name, age and city, which one of the two forms says."""
    name, age, city, job = person(rng)
    if rng.random() < 0.5:
        fields = {"name": name, "age": age, "city": city}
        what, held = f"{age} and lives in {city}", is_held("record", name, age, city)
    else:
        fields = {"name": name, "job": job, "age": age}
        what, held = f"a {job} of {age}", False
    return Item(f"Make a record: {name} is {what}.", json.dumps(fields), held)


def fill_record(rng):
    """One or two fields are missing; the text that closes the record says them again."""
    name, age, city, _ = person(rng)
    text = json.dumps(
        {"name": name, "age": age, "city": city, "text": f"{name} is {age} and lives in {city}"}
    )
    holes = []
    for value in rng.sample((name, str(age), city), rng.choice((1, 2))):
        start = text.index(value)
        holes.append((start, start + len(value)))
    held = is_held("record", name, age, city)
    return Item("Fill the gaps in the record.", text, held, tuple(sorted(holes)))


def python(rng):
    name, expression, what = rng.choice(FUNCTIONS)
    k = rng.randint(2, 99)
    prompt = rng.choice(("Write a Python function that {}.", "Python function: {}"))
    code = f"def {name}_{k}(x):\n    return {expression.format(k)}"
    return Item(prompt.format(what.format(k)), code, is_held("python", name, k))


def fill_python(rng):
    """The middle line lacks its expression, or the head its name."""
    name, expression, _ = rng.choice(FUNCTIONS)
    k = rng.randint(2, 99)
    expression = expression.format(k)
    head = f"{name}_{k}"
    code = f"def {head}(x):\n    y = {expression}\n    return y"
    if rng.random() < 0.7:
        start = code.index("=") + 3
        hole = (start, start + len(expression) - 1)
    else:
        start = code.index(name)
        hole = (start, start + len(name))
    return Item("Fill the gap in the code.", code, is_held("python", name, k), (hole,))
