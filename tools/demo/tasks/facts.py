"""Capitals and continents, from the package countryinfo.

A fact that was never seen cannot be known, so here the pair of a country and a phrasing is held
out: each country lacks one phrasing in training.
"""

import re
import unicodedata

from countryinfo import all_countries

from .item import Item, is_held

# Inhabitants (in the package's count) of the countries taken: about a hundred, all well known.
POPULATION_MIN = 9_500_000
# Gone, listed twice, or with a capital that is disputed.
NOT_TAKEN = ("Burma", "Israel", "Serbia and Montenegro", "Sri Lanka", "Taiwan")
# Small and known all the same.
ALSO_TAKEN = (
    "Austria", "Bulgaria", "Croatia", "Denmark", "Finland", "Iceland", "Ireland", "Jamaica",
    "New Zealand", "Norway", "Qatar", "Serbia", "Singapore", "Slovakia", "Switzerland",
)
# Where the package is out of date, or unlike what people write.
CAPITALS = {
    "Burundi": "Gitega", "Kazakhstan": "Astana", "United States": "Washington", "Yemen": "Sanaa",
}
CONTINENTS = {"Americas": "America"}

# Family: which columns of `COUNTRIES` are the subject and the answer, and the phrasings.
QUESTIONS = {
    "capital": (
        0,
        1,
        "What is the capital of {}?",
        "Name the capital of {}.",
        "Which city is the capital of {}?",
        "Tell me the capital of {}.",
    ),
    "country": (
        1,
        0,
        "Which country has the capital {}?",
        "{} is the capital of which country?",
        "Of which country is {} the capital?",
    ),
    "continent": (
        0,
        2,
        "Which continent is {} in?",
        "On which continent is {}?",
        "Name the continent of {}.",
    ),
}


def load():
    """(country, capital, continent), sorted."""
    rows = {}
    for country in all_countries():
        info = country.info()
        capital = info.get("capital") or ""
        # A country with several has the seat of its government first.
        capital = ascii_of(capital[0] if isinstance(capital, list) else capital)
        name = ascii_of(info.get("name") or "")
        known = (info.get("population") or 0) >= POPULATION_MIN or name in ALSO_TAKEN
        if not known or name in NOT_TAKEN or not info.get("region"):
            continue
        capital = CAPITALS.get(name, capital)
        if re.fullmatch(r"[A-Z][A-Za-z -]{2,15}", name) and re.fullmatch(r"[A-Za-z -]+", capital):
            rows[name] = (capital, CONTINENTS.get(info["region"], info["region"]))
    return [(name, *rows[name]) for name in sorted(rows)]


def ascii_of(text):
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


COUNTRIES = load()


def ask(rng, family):
    subject, answer, *phrasings = QUESTIONS[family]
    row = rng.choice(COUNTRIES)
    subject, answer = row[subject], row[answer]
    index = rng.randrange(len(phrasings))
    held = next(i for i in range(99) if is_held(family, subject, i, percent=34)) % len(phrasings)
    return Item(phrasings[index].format(subject), answer, index == held)
