"""Spelling and reversing words, copying and editing sentences, and short stories.

Words to spell are in capitals: the tokenizer has no token of two capitals, so they come as
letters, and a word that was never seen can be spelled.
"""

import string
from pathlib import Path

from .item import Item, is_held

WORDS = (Path(__file__).parent / "words.txt").read_text().split()
# Longest and shortest word to spell.
LETTERS = range(3, 9)

ADJECTIVES = (
    "red blue green old new big small happy sad fast slow kind brave quiet young tall warm cold "
    "clever lazy"
).split()
NOUNS = (
    "cat dog bird horse fox bear car boat house tree river book chair table girl boy king queen "
    "owl duck"
).split()
VERBS = "sees likes finds follows helps knows wants calls paints draws".split()
NAMES = (
    "Anna Ben Carla David Emma Felix Grace Henry Iris Jack Kate Leo Maria Nina Omar Paul Rosa "
    "Sam Tina Victor"
).split()
PLACES = "forest city desert village garden castle mountain harbor".split()
ANIMALS = "fox bear owl cat dog mouse rabbit horse lion duck".split()
PLOTS = {
    "brave": "One night a storm came, but {} led all home.",
    "kind": "A hungry bird came, and {} shared the bread.",
    "clever": "The gate was locked, but {} found the key.",
    "lazy": "All day {} slept and missed the feast.",
    "curious": "A light shone far away, and {} went to look.",
}


def word(rng, known):
    """A word of the list, or letters at random: with those alone copying is what is learned."""
    if known or rng.random() < 0.3:
        return rng.choice(WORDS).upper()
    return "".join(rng.choice(string.ascii_uppercase) for _ in range(rng.choice(LETTERS)))


def spell(rng, known=False):
    w = word(rng, known)
    prompt = rng.choice(("Spell {}.", "How do you spell {}?"))
    return Item(prompt.format(w), "-".join(w), is_held("word", w))


def reverse(rng, known=False):
    w = word(rng, known)
    prompt = rng.choice(("Reverse {}.", "Spell {} backwards."))
    return Item(prompt.format(w), "-".join(reversed(w)), is_held("word", w))


def sentence(rng):
    one, two = rng.sample(ADJECTIVES, 2)
    who, whom = rng.sample(NOUNS, 2)
    return ["the", one, who, rng.choice(VERBS), "the", two, whom]


def copy(rng):
    words = sentence(rng)
    text = " ".join(words)
    return Item(f"Repeat: {text}", text, is_held("sentence", text))


def edit(rng):
    """One word replaced by another of its kind."""
    words = sentence(rng)
    text = " ".join(words)
    place = rng.choice((1, 2, 3, 5, 6))
    kind = {1: ADJECTIVES, 5: ADJECTIVES, 3: VERBS}.get(place, NOUNS)
    new = rng.choice([w for w in kind if w not in words])
    prompt = f"Replace {words[place]} with {new}: {text}"
    words[place] = new
    return Item(prompt, " ".join(words), is_held("sentence", text))


def story(rng):
    trait, animal = rng.choice(list(PLOTS)), rng.choice(ANIMALS)
    place, name = rng.choice(PLACES), rng.choice(NAMES)
    prompt = rng.choice(("Tell a story of {}, a {} {} in the {}.", "Story: {}, a {} {} in the {}"))
    plot = PLOTS[trait].format(name)
    return Item(
        prompt.format(name, trait, animal, place),
        f"{name} was a {trait} {animal} in the {place}. {plot}",
        is_held("story", trait, animal, place, name),
    )
