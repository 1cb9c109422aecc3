"""Arithmetic with the working shown, comparing, sorting, and numbers in words.

Every number of the working has a fixed width, so that a digit's place in the answer depends on
its place in the prompt alone. What is worked out comes as a word: it grows with the summands, where
a last digit says nothing of any one of them, and is learned in a tenth of the time.
"""

from .item import Item, Writer, is_held

ADD = ("What is {} + {}?", "Add {} and {}.")
# Columns of an exercise: as many as an answer of the other families is long.
COLUMNS = 6
# Of these, columns with a carry or something owed, and sums: differences are learned later.
THIRD_SHARE = 0.6
SUM_SHARE = 0.4
SUBTRACT = ("What is {} - {}?", "From {} take {}.")


def add(rng, digits):
    """47 + 35: `7+5 twelve 4+3+1 eight = 82`, a column at a time, the carry as third summand."""
    a, b = number(rng, digits), number(rng, digits)
    out, carry = Writer(), 0
    for place, (x, y) in enumerate(zip(digits_of(a), digits_of(b))):
        total = x + y + carry
        out.add(f"{x}+{y}")
        if place:
            out.add("+")
            out.step(f"{carry}")
        out.step(f" {words_of(total)}")
        out.add(" ")
        carry = total // 10
    out.add("= ")
    out.step(f"{a + b}")
    return out.item(rng.choice(ADD).format(a, b), pair_is_held("add", a, b))


def subtract(rng, digits):
    """53 - 27: `thirteen-7 six five-2-1 two = 26`, a column at a time, less what the last owes."""
    a, b = number(rng, digits), number(rng, digits)
    a, b = max(a, b), min(a, b)
    out, owed = Writer(), 0
    for place, (x, y) in enumerate(zip(digits_of(a), digits_of(b))):
        borrow = int(x - y - owed < 0)
        out.step(words_of(x + 10 * borrow))
        out.add(f"-{y}")
        if place:
            out.add("-")
            out.step(f"{owed}")
        out.step(f" {words_of(10 * borrow + x - y - owed)}")
        out.add(" ")
        owed = borrow
    out.add("= ")
    out.step(f"{a - b}")
    return out.item(rng.choice(SUBTRACT).format(a, b), is_held("subtract", a, b))


def pair_is_held(family, a, b):
    """In whichever order they come."""
    return is_held(family, a, b) and is_held(family, b, a)


def columns(rng):
    """Columns of sums and differences whose results are holes: `7+5 twelve fifteen-8-1 six`."""
    out = Writer()
    for column in range(COLUMNS):
        out.add(" " if column else "")
        third = rng.randrange(2)
        # The first column of a sum has no third number.
        has_third = rng.random() < THIRD_SHARE
        third *= has_third
        if rng.random() < SUM_SHARE:
            x, y = rng.randrange(10), rng.randrange(10)
            out.add(f"{x}+{y}" + (f"+{third}" if has_third else ""))
            out.step(f" {words_of(x + y + third)}")
        else:
            y, result = rng.randrange(10), rng.randrange(10)
            out.add(f"{words_of(y + third + result)}-{y}" + (f"-{third}" if has_third else ""))
            out.step(f" {words_of(result)}")
    return Item("Fill the gaps in the sums.", out.text, False, holes=tuple(out.steps))


def compare(rng):
    """482 and 517: `4<5 8>1 2<7 = 517`; two numbers of one width, often alike in what leads."""
    digits = rng.choice((2, 3))
    a = number(rng, digits)
    shared = 10 ** rng.randrange(1, digits + 1)
    b = a - a % shared + rng.randrange(shared) if rng.random() < 0.5 else number(rng, digits)
    if b < 10 ** (digits - 1) or a == b:
        return compare(rng)
    word, pick = rng.choice((("larger", max), ("smaller", min)))
    prompt = rng.choice(("Which is {}, {} or {}?", "Take the {} of {} and {}."))
    out = Writer()
    for x, y in zip(str(a), str(b)):
        out.add(x)
        out.step("<" if x < y else ">" if x > y else "=")
        out.add(f"{y} ")
    out.add("= ")
    out.step(str(pick(a, b)))
    return out.item(prompt.format(word, a, b), pair_is_held("compare", a, b))


def sort(rng):
    """Four digits, all different."""
    numbers = rng.sample(range(10), 4)
    order, descending = rng.choice((("up", False), ("down", True)))
    given = " ".join(map(str, numbers))
    out = Writer()
    for n in sorted(numbers, reverse=descending):
        out.add(" " if out.text else "")
        out.step(str(n))
    return out.item(f"Sort {order}: {given}", is_held("sort", *numbers))


def parity(rng):
    a = rng.randint(10, 999)
    return Item(f"Is {a} even or odd?", ("even", "odd")[a % 2], is_held("parity", a))


# Of zero as people say it in numbers: a single token, as the others are.
ONES = (
    "o one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
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
