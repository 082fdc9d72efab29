"""Passages of the small world, without end: a wording of a kind, filled with a cast of its own, or a drill."""

import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gptviz.training.world.drills import drill
from gptviz.training.world.frames import framed, written_otherwise
from gptviz.training.world.phrases import fill, first_more_often

TEXTS = Path(__file__).parent / "texts"

DRILLS = "drills"  # the kind that has no wordings
# of a thousand passages, how many are of a kind. A story is ten times as long as a sum, a drill four times
OF_A_THOUSAND = {
    "stories": 10,
    "short_stories": 10,
    "scenes": 7,
    "plain": 15,
    "runs": 10,
    "fact_scenes": 12,
    "names": 80,
    "giving": 80,
    "holding": 23,
    "pronouns": 45,
    "agreement": 33,
    "dialogues": 12,
    "letters": 7,
    "lists": 8,
    "introductions": 7,
    "reasoning": 14,
    "causes": 10,
    "capitals": 50,
    "countries": 10,
    "animals": 60,
    "knowledge": 45,
    "questions": 62,
    "colours": 58,
    "opposites": 62,
    "calendar": 48,
    "jobs": 35,
    "foods": 20,
    "family": 15,
    "manners": 5,
    "sums": 45,
    "differences": 30,
    "products": 12,
    DRILLS: 70,
    "counting": 10,
    "counting_in_words": 7,
    "counting_down": 5,
    "counting_down_in_words": 5,
    "steps": 10,
    "steps_in_words": 4,
    "ordinals": 6,
    "alphabet": 8,
    "pairs": 7,
    "number_scenes": 18,
}


@cache
def wordings() -> dict[str, list[str]]:
    """Every kind's wordings: the blocks of `texts/KIND.txt`. A line that begins with `#` is a comment."""
    kinds = {}
    for path in sorted(TEXTS.glob("*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        text = "\n".join(line for line in lines if not line.startswith("#"))
        kinds[path.stem] = [" ".join(block.split()) for block in text.split("\n\n")]
    return kinds


def passage(kind: str, chance: random.Random) -> str:
    """One passage of a kind, now and then behind an opening or a sentence of setting."""
    if kind == DRILLS:
        text = drill(chance)
    else:
        text = fill(first_more_often(wordings()[kind], chance), chance)
        text = framed(text, kind, plain_sentences(), chance)
    return written_otherwise(text, chance)


@cache
def plain_sentences() -> list[str]:
    """The sentences of the plain prose that has no slots: what may stand before anything."""
    sentences = []
    for wording in wordings()["plain"]:
        if "{" not in wording and "[" not in wording and '"' not in wording and "¶" not in wording:
            sentences.extend(re.findall(r"[A-Z][^.!?]*\.", wording))
    return sentences


def passages(seed: int) -> Iterator[str]:
    """Passages without end, of each kind as often as `OF_A_THOUSAND` says; the same for the same seed."""
    chance = random.Random(seed)
    kinds = list(OF_A_THOUSAND)
    weights = list(OF_A_THOUSAND.values())
    while True:
        [kind] = chance.choices(kinds, weights)
        yield passage(kind, chance)
