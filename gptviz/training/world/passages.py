"""Passages of the small world, without end: a wording of a kind, filled with a cast of its own."""

import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gptviz.training.world.frames import framed
from gptviz.training.world.phrases import fill

TEXTS = Path(__file__).parent / "texts"

# of a thousand passages, how many are of a kind. A story is ten times as long as a sum
OF_A_THOUSAND = {
    "stories": 24,
    "short_stories": 16,
    "scenes": 14,
    "plain": 28,
    "runs": 39,
    "fact_scenes": 5,
    "names": 91,
    "holding": 28,
    "pronouns": 48,
    "agreement": 46,
    "dialogues": 23,
    "letters": 16,
    "lists": 22,
    "introductions": 20,
    "reasoning": 20,
    "causes": 28,
    "capitals": 32,
    "countries": 23,
    "animals": 41,
    "knowledge": 48,
    "questions": 61,
    "colours": 40,
    "opposites": 60,
    "calendar": 50,
    "jobs": 30,
    "foods": 26,
    "family": 23,
    "manners": 12,
    "sums": 30,
    "differences": 22,
    "products": 12,
    "counting": 11,
    "counting_in_words": 9,
    "counting_down": 5,
    "counting_down_in_words": 5,
    "steps": 10,
    "steps_in_words": 3,
    "ordinals": 6,
    "alphabet": 4,
    "pairs": 8,
    "number_scenes": 12,
}


@cache
def wordings() -> dict[str, list[str]]:
    """Every kind's wordings: the blocks of `texts/KIND.txt`. A line that begins with `#` is a comment."""
    kinds = {}
    for kind in OF_A_THOUSAND:
        lines = (TEXTS / f"{kind}.txt").read_text(encoding="utf-8").splitlines()
        text = "\n".join(line for line in lines if not line.startswith("#"))
        kinds[kind] = [" ".join(block.split()) for block in text.split("\n\n")]
    return kinds


def passage(kind: str, chance: random.Random) -> str:
    """One passage of a kind, now and then behind an opening or a sentence of setting."""
    text = fill(chance.choice(wordings()[kind]), chance)
    return framed(text, kind, plain_sentences(), chance)


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
