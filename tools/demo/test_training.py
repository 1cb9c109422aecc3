"""Tests of tokens, batches, sampling and formats: python test_training.py (a few seconds)."""

import random
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

    def test_from_a_step_on_all_steps_are_masked(self):
        talk = batches.conversation(self.coder, random.Random(1), ["add"], [1], (32,))
        talk.by_steps = True
        steps = np.array(talk.step)
        self.assertEqual(max(steps), 4)
        first = set()
        for seed in range(60):
            weight = batches.weights_of(talk, 0.3, np.random.default_rng(seed))
            answer = weight[talk.prompt_len : talk.tail] > 0
            masked = steps[answer & (steps > 0)]
            first.add(int(masked.min()))
            self.assertTrue(answer[steps >= masked.min()].all())
            self.assertFalse(answer[(steps > 0) & (steps < masked.min())].any())
            self.assertTrue((weight[talk.tail :] > 0).all())
            self.assertFalse((weight[: talk.prompt_len] > 0).any())
        self.assertEqual(first, set(range(1, 5)))

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
