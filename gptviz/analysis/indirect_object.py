"""The indirect object: "When Mary and John went to the store, John gave a drink to" - to Mary, not to John.

Sentences made of a frame, two names, a place and a thing, in which the name that stands once is the answer.
The other text has the other name a second time, so that the answer is the other one; both have as many
tokens, since only names, places and things are used that are one token of the model.

Wang et al., Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 small, 2022.
"""

import numpy as np

from gptviz.analysis.prompts import Prompt
from gptviz.engine.language_model import LanguageModel

NAMES = (
    "Mary", "John", "Tom", "James", "Peter", "Alice", "George", "Henry", "Jane", "William", "Charles", "Emma",
    "Anna", "Sarah", "David", "Robert", "Elizabeth", "Paul", "Laura", "Jack", "Kate", "Lucy", "Martha",
    "Edward", "Arthur", "Frank", "Harry", "Helen", "Margaret", "Joseph",
)  # fmt: skip
PLACES = ("store", "park", "school", "garden", "church", "house", "station", "market", "office", "library")
THINGS = ("drink", "book", "letter", "key", "ring", "flower", "kiss", "cup", "hat", "present", "box")
FRAMES = (
    "When {0} and {1} went to the {2}, {3} gave a {4} to",
    "After {0} and {1} went to the {2}, {3} gave a {4} to",
    "While {0} and {1} were at the {2}, {3} gave a {4} to",
)


def indirect_objects(lm: LanguageModel, count: int = 24, seed: int = 0) -> list[Prompt]:
    """So many sentences, drawn at random; in every other one the giver is named first.

    The token is the name that is the answer, `against` the other one. None where `left_out` leaves too few.
    """
    out = left_out(lm)
    names, places, things = ([word for word in words if word not in out] for words in (NAMES, PLACES, THINGS))
    if len(names) < 2 or not places or not things:
        return []
    rng, found = np.random.default_rng(seed), []
    for number in range(count):
        answer, giver = (str(name) for name in rng.choice(names, 2, replace=False))
        first, second = (giver, answer) if number % 2 else (answer, giver)
        frame, place, thing = (str(rng.choice(words)) for words in (FRAMES, places, things))
        text, other = (frame.format(first, second, place, one, thing) for one in (giver, answer))
        found.append(Prompt(text, f" {answer}", f" {giver}", other))
    return found


def left_out(lm: LanguageModel) -> dict[str, int]:
    """The words that are no single token of this model, and of how many they are."""
    tokens = {word: lm.encode(f" {word}") for word in (*NAMES, *PLACES, *THINGS)}
    return {word: len(ids) for word, ids in tokens.items() if len(ids) != 1 or ids[0] >= lm.config.vocab_size}
