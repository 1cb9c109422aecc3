"""Tests of the tasks, with nothing but countryinfo installed: python test_tasks.py."""

import json
import random
import re
import unittest
from pathlib import Path

import tasks

ITEMS = 200
NUMBERS = [tasks.numbers.words_of(n) for n in range(20)]
COMMITTED = Path(__file__).parents[2] / "src" / "demo" / "tasks"


def items(name, count=ITEMS):
    rng = random.Random(name)
    return [tasks.FAMILIES[name][0](rng) for _ in range(count)]


class Answers(unittest.TestCase):
    """Right by another way than the one that made them."""

    def test_arithmetic(self):
        for name in ("add", "add3", "subtract", "subtract3"):
            sign = 1 if name.startswith("add") else -1
            for item in items(name):
                a, b = map(int, re.findall(r"\d+", item.prompt))
                working, said = item.answer.split(" = ")
                self.assertEqual(int(said), a + sign * b, item)
                self.check_columns(working, 3 if name.endswith("3") else 2)

    def test_columns(self):
        rng = random.Random(5)
        for _ in range(ITEMS):
            item = tasks.numbers.columns(rng)
            self.check_columns(item.answer, len(item.holes))

    def check_columns(self, working, count):
        digits = re.sub("[a-z]+", lambda word: str(NUMBERS.index(word[0])), working)
        columns = re.findall(r"(\S+) (\d+)", digits)
        self.assertEqual(len(columns), count, working)
        for left, right in columns:
            self.assertEqual(eval(left), int(right), working)

    def test_steps_are_parts_of_the_answer_in_order(self):
        for name in tasks.FAMILIES:
            for item in items(name):
                places = [place for step in item.steps for place in step]
                self.assertEqual(places, sorted(places), item)
                self.assertTrue(all(item.answer[a:b] for a, b in item.steps), item)

    def test_order(self):
        for item in items("compare"):
            pick = max if "larger" in item.prompt else min
            a, b = re.findall(r"\d+", item.prompt)
            signs = ["<" if x < y else ">" if x > y else "=" for x, y in zip(a, b)]
            working = " ".join(x + sign + y for x, sign, y in zip(a, signs, b))
            self.assertEqual(item.answer, f"{working} = {pick(int(a), int(b))}")
        for item in items("sort"):
            given = sorted(re.findall(r"\d", item.prompt), reverse="down" in item.prompt)
            self.assertEqual(item.answer.split(), given)

    def test_python(self):
        for item in items("python"):
            k = int(re.search(r"\d+", item.answer)[0])
            names = {}
            exec(item.answer, names)
            function = next(v for n, v in names.items() if n.endswith(f"_{k}"))
            x = list(range(120)) if "items" in item.prompt else 100
            want = {
                "adds": lambda: x + k, "subtracts": lambda: x - k, "multiplies": lambda: x * k,
                "divides": lambda: x / k, "raises": lambda: x**k, "rest": lambda: x % k,
                "above": lambda: x > k, "below": lambda: x < k,
                "first": lambda: x[:k], "last": lambda: x[-k:],
            }
            word = next(w for w in want if w in item.prompt)
            self.assertEqual(function(x), want[word](), item)

    def test_calendar(self):
        for name, names in (("weekday", tasks.calendar.DAYS), ("month", tasks.calendar.MONTHS)):
            for item in items(name):
                step = int(re.search(r"\d+", item.prompt)[0])
                start = next(i for i, n in enumerate(names) if item.prompt.endswith(f"{n}?"))
                sign = 1 if "after" in item.prompt else -1
                passed = [names[(start + sign * k) % len(names)] for k in range(1, step + 1)]
                self.assertEqual(item.answer, " ".join(passed))

    def test_texts(self):
        for item in items("parity"):
            n = int(re.search(r"\d+", item.prompt)[0])
            self.assertEqual(item.answer, "odd" if n % 2 else "even")
        for item in items("spell"):
            self.assertIn(item.answer.replace("-", ""), item.prompt)
        for item in items("copy"):
            self.assertEqual(item.prompt, f"Repeat: {item.answer}")
        for item in items("edit"):
            old, new, text = re.fullmatch(r"Replace (\w+) with (\w+): (.*)", item.prompt).groups()
            self.assertEqual(item.answer, re.sub(rf"\b{old}\b", new, text))
        for item in items("record"):
            values = map(str, json.loads(item.answer).values())
            self.assertTrue(all(value in item.prompt for value in values), item)
        for item in items("fill_record"):
            fields = json.loads(item.answer)
            said = "{name} is {age} and lives in {city}".format(**fields)
            self.assertEqual(fields["text"], said)

    def test_words(self):
        self.assertEqual(tasks.numbers.words_of(905), "nine hundred five")
        for item in items("reverse"):
            word = max(re.findall("[A-Z]+", item.prompt), key=len)
            self.assertEqual(item.answer.replace("-", "")[::-1], word)


class HeldOut(unittest.TestCase):
    def test_training_has_none_of_it(self):
        for name in tasks.FAMILIES:
            held = {(item.prompt, item.answer) for item in tasks.held_items(name, 40)}
            self.assertTrue(held, name)
            trained = {(i.prompt, i.answer) for i in items(name, 20_000) if not i.held}
            self.assertFalse(held & trained, name)

    def test_the_order_of_a_sum_is_no_way_around(self):
        rng = random.Random(4)
        held = {tuple(sorted(re.findall(r"\d+", i.prompt))) for i in tasks.held_items("add", 40)}
        for _ in range(20_000):
            _, item = tasks.training_item(rng, ["add"], [1])
            self.assertNotIn(tuple(sorted(re.findall(r"\d+", item.prompt))), held)

    def test_every_country_keeps_a_phrasing_for_training(self):
        seen = {i.answer for i in items("country", 8000) if not i.held}
        self.assertEqual(seen, {name for name, _, _ in tasks.facts.COUNTRIES})


class Committed(unittest.TestCase):
    def test_files_hold_what_the_generator_gives(self):
        names = {path.stem for path in COMMITTED.glob("*.txt")}
        self.assertEqual(names, set(tasks.FAMILIES))
        for name in sorted(names):
            text = (COMMITTED / f"{name}.txt").read_text()
            held = tasks.held_items(name, 40)
            self.assertEqual(len(text.splitlines()), len(held), name)
            for line, item in zip(text.splitlines(), held):
                prompt, marked = line.replace("\\n", "\n").split("\t")
                self.assertEqual((prompt, re.sub("[«»]", "", marked)), (item.prompt, item.answer))
                marks = [len(re.sub("[«»]", "", marked[: m.start()]))
                         for m in re.finditer("[«»]", marked)]
                spans = list(zip(marks[::2], marks[1::2]))
                within = lambda hole: any(a <= hole[0] and hole[1] <= b for a, b in spans)
                self.assertTrue(all(map(within, item.holes)), item)
                touched = lambda a, b: any(a < end and start < b for start, end in item.holes)
                self.assertTrue(all(touched(a, b) for a, b in spans), item)


if __name__ == "__main__":
    unittest.main()
