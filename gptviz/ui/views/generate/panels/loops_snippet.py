"""Loops and dull text in Python: greedy against temperature, and the head that looks at what followed."""

from collections.abc import Sequence

import numpy as np

import gptviz
from gptviz.analysis.repetition import followed, loop, share_along, without_heads


def shares(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    count: int,
    n: int,
    temperature: float,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    block: int = 0,
    head: int = 0,
    muted: Sequence[tuple[int, int]] = (),
    others: Sequence[Sequence[tuple[int, int]]] = (),
    special_tokens: bool = False,
) -> np.ndarray:
    """Of the greedy text, the share that repeats, after each token; all else is printed.

    The probability of the greedy text's tokens without the heads of `muted`, and without each of `others`.
    Of a model with edits, then of it without them.
    """
    prompt = lm.encode(text, special_tokens)[: position + 1]
    ways = {"": lm} | ({"unchanged, ": lm.plain} if lm.edits else {})
    greedy: list[list[int]] = []
    for name, one in ways.items():
        drawn = [step.id for step in one.generate(prompt, count, temperature, top_k, top_p, seed)]
        repeats = share_along([*prompt, *drawn], len(prompt), n)[-1]
        print(f"{name}temperature {temperature:g}: {repeats:.0%} repeats")
        greedy.append([*prompt, *(step.id for step in one.generate(prompt, count, temperature=0))])
        repeats = share_along(greedy[-1], len(prompt), n)[-1]
        print(f"{name}temperature 0: {repeats:.0%} repeats, and in the end:", loop(greedy[-1]))

    ids = greedy[0][-lm.config.context_length :]
    reduction, written = followed(lm.tokens(ids)), min(len(greedy[0]) - len(prompt), len(ids) - 1)
    for name, one in ways.items():
        given = one.trace(ids, keep=[], reduce=[reduction]).reduced(reduction.name)[block][head]  # (T,)
        print(f"{name}block {block}, head {head} gives {given.nanmean():.2f} to what followed before")
        for heads in ((), tuple(muted), *others):
            print(f"{name}without", heads, without_heads(one, ids, heads)[-written:].mean().round(3))
    return share_along(greedy[0], len(prompt), n)
