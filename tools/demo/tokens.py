"""Trains the tokenizer and turns conversations into tokens.

    python tokens.py OUT/tokenizer.json

A byte-level BPE with LLaDA's control tokens and the words of the pre-tokenizer `bailingmoe`,
which takes digits one by one. No merge joins a capital to what stands before it: capitals in a
row stay letters (so that words can be spelled), and a name is the same token after a space, a
quote or at the start, so that writing it down is copying.
"""

import random
import re
import sys

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import tasks

VOCAB = 2048
# In the order of their ids.
CONTROLS = (
    "<|startoftext|>",
    "<|endoftext|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|mdm_mask|>",
)
START, END_OF_TEXT, HEADER, HEADER_END, END_OF_TURN, MASK = range(len(CONTROLS))

# The rule `bailingmoe`, as the model's file names it.
WORDS = (
    r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
CORPUS_ITEMS = 30_000
CORPUS_SEED = 7
# Joined to a letter by the answers of the families that spell.
LETTER_PIECES = [f"-{chr(letter)}" for letter in range(ord("A"), ord("Z") + 1)]


def prompt_text(prompt):
    """LLaDA's chat template up to where the answer begins."""
    return (
        f"<|startoftext|><|start_header_id|>user<|end_header_id|>\n\n{prompt}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )


def pieces_of(text):
    """What merges may join: a piece never begins in front of a capital and goes on behind it."""
    return [piece for piece in re.split(r"(?<=[^A-Z])(?=[A-Z])", text) if piece]


def corpus():
    """Texts of all families but those that spell, and words for everything else."""
    rng = random.Random(CORPUS_SEED)
    names = [name for name in tasks.FAMILIES if name not in tasks.WORD_FAMILIES]
    weights = [1] * len(names)
    splitter = pre_tokenizers.Split(Regex(WORDS), "isolated")
    for _ in range(CORPUS_ITEMS):
        _, item = tasks.training_item(rng, names, weights)
        for text in (item.prompt, item.answer):
            for word, _ in splitter.pre_tokenize_str(text):
                yield from pieces_of(word)
    yield from LETTER_PIECES * 1000
    yield from ["user", "assistant", "\n\n"] * CORPUS_ITEMS
    yield from ["Spell", " backwards", "Reverse", "How", " do", " you", " spell"] * 1000
    # Whole words come after everything that the families need.
    yield from [f" {word}" for word in tasks.text.WORDS] * 3


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=list(CONTROLS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


class Coder:
    """Encodes items and decodes answers with one tokenizer file."""

    def __init__(self, path):
        self.tokenizer = Tokenizer.from_file(str(path))
        assert self.tokenizer.get_vocab_size() == VOCAB, "the vocabulary was trained otherwise"

    def prompt(self, prompt):
        # Alone: the answer must not change how the end of the prompt is cut.
        return self.tokenizer.encode(prompt_text(prompt)).ids

    def answer(self, item):
        """Ids of the answer, and for each whether it belongs to a hole."""
        encoded = self.tokenizer.encode(item.answer)
        in_hole = [any(start < b and a < end for a, b in item.holes)
                   for start, end in encoded.offsets]
        return encoded.ids, in_hole

    def steps(self, item):
        """For each token of the answer the number of its step, from 1, or 0."""
        offsets = self.tokenizer.encode(item.answer).offsets
        number = lambda start, end: next(
            (k for k, (a, b) in enumerate(item.steps, 1) if start < b and a < end), 0
        )
        return [number(start, end) for start, end in offsets]

    def text(self, ids):
        """The text in front of the first token that ends it."""
        ends = [i for i, token in enumerate(ids) if token in (END_OF_TURN, END_OF_TEXT)]
        return self.tokenizer.decode(ids[: ends[0]] if ends else ids)


if __name__ == "__main__":
    train().save(sys.argv[1])
