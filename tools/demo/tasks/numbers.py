"""Arithmetic with the working shown, comparing, sorting, and numbers in words.

Every number of the working has a fixed width, so that a digit's place in the answer depends on
its place in the prompt alone.
"""

from .item import Item, is_held

ADD = ("What is {} + {}?", "Add {} and {}.")
SUBTRACT = ("What is {} - {}?", "From {} take {}.")


def add(rng):
    return sum_of(rng, 2)


def add3(rng):
    return sum_of(rng, 3)


def subtract(rng):
    return difference_of(rng, 2)


def subtract3(rng):
    return difference_of(rng, 3)


def sum_of(rng, digits):
    """47 + 35: `7+5=12 4+3+1=08 = 82`, a column at a time with the carry as third summand."""
    a, b = number(rng, digits), number(rng, digits)
    columns, carry = [], 0
    for place, (x, y) in enumerate(zip(digits_of(a), digits_of(b))):
        total = x + y + carry
        third = f"+{carry}" if place else ""
        columns.append(f"{x}+{y}{third}={total:02d}")
        carry = total // 10
    answer = f"{' '.join(columns)} = {a + b}"
    return Item(rng.choice(ADD).format(a, b), answer, is_held("add", a, b))


def difference_of(rng, digits):
    """53 - 27: `13-7=6 05-2-1=2 = 26`; the first digit of a column is what it borrows."""
    a, b = number(rng, digits), number(rng, digits)
    a, b = max(a, b), min(a, b)
    columns, owed = [], 0
    for place, (x, y) in enumerate(zip(digits_of(a), digits_of(b))):
        borrow = int(x - y - owed < 0)
        third = f"-{owed}" if place else ""
        columns.append(f"{borrow}{x}-{y}{third}={10 * borrow + x - y - owed}")
        owed = borrow
    answer = f"{' '.join(columns)} = {a - b}"
    return Item(rng.choice(SUBTRACT).format(a, b), answer, is_held("subtract", a, b))


def compare(rng):
    """Two numbers of one width, often alike in their first digits."""
    digits = rng.choice((2, 3))
    a = number(rng, digits)
    shared = 10 ** rng.randrange(1, digits + 1)
    b = a - a % shared + rng.randrange(shared) if rng.random() < 0.5 else number(rng, digits)
    if b < 10 ** (digits - 1) or a == b:
        return compare(rng)
    word, pick = rng.choice((("larger", max), ("smaller", min)))
    prompt = rng.choice(("Which is {}, {} or {}?", "Take the {} of {} and {}."))
    return Item(prompt.format(word, a, b), str(pick(a, b)), is_held("compare", a, b))


def sort(rng):
    numbers = rng.sample(range(10, 100), 4)
    order, descending = rng.choice((("up", False), ("down", True)))
    given = " ".join(map(str, numbers))
    answer = " ".join(map(str, sorted(numbers, reverse=descending)))
    return Item(f"Sort {order}: {given}", answer, is_held("sort", *numbers))


def parity(rng):
    a = rng.randint(10, 999)
    return Item(f"Is {a} even or odd?", ("even", "odd")[a % 2], is_held("parity", a))


ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()


def words_of(n):
    """0 to 999 in words, without hyphens, so that every word is one token."""
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + (" " + ONES[n % 10] if n % 10 else "")
    return ONES[n // 100] + " hundred" + (" " + words_of(n % 100) if n % 100 else "")


def to_words(rng):
    n = number(rng, rng.choice((2, 3)))
    prompt = rng.choice(("Write {} in words.", "Say the number {} in words."))
    return Item(prompt.format(n), words_of(n), is_held("words", n))


def to_digits(rng):
    n = number(rng, rng.choice((2, 3)))
    prompt = rng.choice(("Write in digits: {}", "Which number is this: {}"))
    return Item(prompt.format(words_of(n)), str(n), is_held("words", n))


def number(rng, digits):
    return rng.randrange(10 ** (digits - 1), 10**digits)


def digits_of(n):
    """The digits from the last to the first."""
    return [int(digit) for digit in reversed(str(n))]
