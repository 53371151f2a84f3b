"""Generates short film reviews with their sentiment, so that the example needs no data set."""

import random

PEOPLE = "actors cast director writer hero villain crew lead producers ensemble".split()
THINGS = (
    "film movie story plot ending script music dialogue pacing acting picture scene sequel opening camera work humor "
    "soundtrack costume design romance mystery"
).split()
GOOD = (
    "great wonderful brilliant moving funny charming clever beautiful superb gripping delightful fresh warm stunning "
    "excellent touching honest witty memorable masterful"
).split()
BAD = (
    "dull awful boring terrible clumsy predictable weak tedious bland messy lifeless hollow forgettable annoying cheap "
    "tiresome pointless wooden dreadful lazy"
).split()
PRAISE = ["i loved it", "see it twice", "worth every minute", "i laughed and cried", "highly recommended", "what a joy"]
BLAME = ["i fell asleep", "avoid it", "a waste of time", "i want my money back", "two hours i will never get back"]
FILLER = ["we went on a rainy evening", "it runs for two hours", "my friends came along", "it is set in a town", ""]
PATTERNS = [
    "the {thing} is {very} {word}",
    "{word} {thing} and {word} {thing}",
    "a {word} {thing} by the {people}",
    "the {people} made a {word} {thing}",
    "what a {word} {thing}",
    "the {thing} was {word} , the {people} {very} {word}",
]


def review(rng, is_good):
    words, remarks = (GOOD, PRAISE) if is_good else (BAD, BLAME)
    parts = [rng.choice(PATTERNS) for _ in range(rng.randint(1, 3))]
    parts = [part.replace("{very}", rng.choice(["", "very", "so", "really"])) for part in parts]
    for name, choices in (("{word}", words), ("{thing}", THINGS), ("{people}", PEOPLE)):
        parts = [fill(part, name, choices, rng) for part in parts]
    parts += [rng.choice(FILLER)] + ([rng.choice(remarks)] if rng.random() < 0.5 else [])
    rng.shuffle(parts)
    return " . ".join(" ".join(part.split()) for part in parts if part)


def fill(text, name, choices, rng):
    while name in text:
        text = text.replace(name, rng.choice(choices), 1)
    return text


def reviews(count, seed):
    """Returns texts and labels, 0 negative and 1 positive."""
    rng = random.Random(seed)
    labels = [rng.random() < 0.5 for _ in range(count)]
    return [review(rng, label) for label in labels], [int(label) for label in labels]
