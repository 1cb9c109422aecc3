"""Tests of the demonstration model's tools: python test_demo.py (a few seconds)."""

import random
import re
import tempfile
import unittest
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf.quants import dequantize

import batches
import evaluate
import tasks
import tokens
from model import Config, Model
from quantize import Q4K, Q6K

ITEMS = 200


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
                a, b = (b, a) if item.prompt.startswith("From") and a < b else (a, b)
                *columns, said = re.split(" = | ", item.answer)
                self.assertEqual(int(said), a + sign * b, item)
                for column in columns:
                    left, right = column.split("=")
                    terms = [int(t) for t in re.findall(r"[+-]?\d+", left)]
                    self.assertEqual(sum(terms), int(right), item)

    def test_order(self):
        for item in items("compare"):
            pick = max if "larger" in item.prompt else min
            self.assertEqual(int(item.answer), pick(map(int, re.findall(r"\d+", item.prompt))))
        for item in items("sort"):
            given = sorted(re.findall(r"\d+", item.prompt), reverse="down" in item.prompt)
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
                place = start + step if "after" in item.prompt else start - step
                self.assertTrue(item.answer.endswith(names[place % len(names)]), item)

    def test_words(self):
        self.assertEqual(tasks.numbers.words_of(905), "nine hundred five")
        for item in items("reverse"):
            word = max(re.findall("[A-Z]+", item.prompt), key=len)
            self.assertEqual(item.answer.replace("-", "")[::-1], word)


class HeldOut(unittest.TestCase):
    def test_training_has_none_of_it(self):
        rng = random.Random(3)
        names = list(tasks.FAMILIES)
        held = {(n, i.prompt) for n in names for i in tasks.held_items(n, 40) if not i.holes}
        for _ in range(5000):
            name, item = tasks.training_item(rng, names, [1] * len(names))
            self.assertNotIn((name, item.prompt), held)

    def test_every_country_keeps_a_phrasing_for_training(self):
        seen = {i.answer for i in items("country", 8000) if not i.held}
        self.assertEqual(seen, {name for name, _, _ in tasks.facts.COUNTRIES})


class Batches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tokens.CORPUS_ITEMS = 3000
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = Path(folder.name) / "tokenizer.json"
        tokens.train().save(str(path))
        cls.coder = tokens.Coder(path)

    def test_letters_and_digits_are_single_tokens(self):
        self.assertEqual(
            self.coder.tokenizer.encode("Spell ZEBRA 42").tokens[1:],
            ["Ġ", "Z", "E", "B", "R", "A", "Ġ", "4", "2"],
        )

    def test_only_answers_are_masked_and_targets_are_the_truth(self):
        batch = batches.make(self.coder, 1, 7, 1024)
        again = batches.make(self.coder, 1, 7, 1024)
        self.assertTrue(torch.equal(batch.ids, again.ids))
        masked = batch.ids == tokens.MASK
        self.assertTrue(torch.equal(masked, batch.weight > 0))
        self.assertTrue(torch.equal(batch.ids[~masked], batch.targets[~masked]))
        self.assertFalse((batch.targets == tokens.MASK).any())
        text = self.coder.tokenizer.decode(batch.targets[0].tolist(), skip_special_tokens=False)
        first = batch.group[0] == batch.group[0, 0]
        header = (batch.targets[0] == tokens.HEADER_END).nonzero()[1, 0]
        self.assertFalse((masked[0] & first)[: header + 2].any(), text)

    def test_a_conversation_sees_itself_alone(self):
        torch.manual_seed(1)
        model = Model(Config(layers=2, ff=256)).eval()
        batch = batches.make(self.coder, 1, 0, 256)
        with torch.no_grad():
            before = model(batch.ids, batch.attention_mask())
            other = batch.group[0] == batch.group[0].max()
            batch.ids[0, other] = 9
            after = model(batch.ids, batch.attention_mask())
        self.assertTrue(torch.allclose(before[0, ~other], after[0, ~other], atol=1e-5))
        self.assertFalse(torch.allclose(before[0, other], after[0, other], atol=1e-2))

    def test_sampling_fills_the_canvas_up_to_the_end(self):
        torch.manual_seed(2)
        model = Model(Config(layers=1, ff=256)).eval()
        talks = [([1, 2, 3], [tokens.MASK] * 8), ([1], [7, tokens.MASK, 9])]
        filled, passes = evaluate.generate(model, talks)
        self.assertEqual((filled[1][0], filled[1][2], passes[1]), (7, 9, 1))
        ends = (tokens.END_OF_TURN, tokens.END_OF_TEXT)
        end = next((i for i, t in enumerate(filled[0]) if t in ends), 8)
        self.assertNotIn(tokens.MASK, filled[0][:end])


class Formats(unittest.TestCase):
    def test_the_gguf_package_reads_what_was_packed(self):
        torch.manual_seed(4)
        weights = torch.randn(16, 512) * 0.05
        weights[3], weights[4] = 0, weights[4].abs()
        for kind, name, error in ((Q4K, "Q4_K", 0.08), (Q6K, "Q6_K", 0.02)):
            blocks = kind.of(weights)
            values = blocks.values().view_as(weights)
            data = blocks.packed().view(16, -1).numpy()
            found = dequantize(data, gguf.GGMLQuantizationType[name])
            np.testing.assert_allclose(found, values.numpy(), rtol=3e-7)
            self.assertLess((values - weights).norm() / weights.norm(), error)


if __name__ == "__main__":
    unittest.main()
