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
    special_tokens: bool = False,
) -> np.ndarray:
    """Of the greedy text, the share that repeats, after each token; the other text's is printed."""
    prompt = lm.encode(text, special_tokens)[: position + 1]
    drawn = [step.id for step in lm.generate(prompt, count, temperature, top_k, top_p, seed)]
    print(f"temperature {temperature:g}: {share_along([*prompt, *drawn], len(prompt), n)[-1]:.0%} repeats")

    greedy = [step.id for step in lm.generate(prompt, count, temperature=0)]
    ids = [*prompt, *greedy]
    found = share_along(ids, len(prompt), n)
    print(f"temperature 0: {found[-1]:.0%} repeats, and in the end:", loop(ids))

    ids = ids[-lm.config.context_length :]
    reduction = followed(lm.tokens(ids))
    given = lm.trace(ids, keep=[], reduce=[reduction]).reduced(reduction.name)[block][head]  # (T,)
    print(f"block {block}, head {head} gives {given.nanmean():.2f} to what followed before")
    for heads in ((), tuple(muted)):
        print("without", heads, without_heads(lm, ids, heads)[-len(greedy) :].mean().round(3))
    return found
