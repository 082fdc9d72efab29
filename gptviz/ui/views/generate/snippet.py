"""The Generate page in Python: token after token, each drawn by a number of the seed."""

from collections.abc import Mapping

import numpy as np
import torch

import gptviz
from gptviz.engine.sampling import Sampling, distribution, draw


def write_on(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    count: int,
    step: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    put: Mapping[int, int] | None = None,
    special_tokens: bool = False,
) -> np.ndarray:
    """Write `count` tokens after the one at `position`; how token `step` (from 0) is drawn, (10, 2).

    Its ten most probable candidates: where the stretch of each begins and ends on the bar from 0 to 1. `put`
    are ids that stand at a step whatever is drawn: a branch. Of a model with edits, then of it without them.
    """
    ids = lm.encode(text, special_tokens)[: lm.config.context_length][: position + 1]
    how = Sampling(temperature, top_k, top_p, seed)
    drawn, log_p = np.empty((0, 2)), 0.0
    for number, point in enumerate(how.points(max(count, step + 1))):
        read = ids[-lm.config.context_length :]  # where they are too many, the last
        t = lm.trace(read, keep=("final",))
        chances = distribution(t.logits(), how)
        if number == step:
            drawn = stretches(lm, chances, point)
        if number < count:  # else it is not written yet
            token = (put or {}).get(number, draw(chances, point))
            own = float(torch.log_softmax(t.logits().double(), dim=-1)[token])  # without any settings
            p = float(chances.probabilities[token])
            print(f"{lm.decode([token])!r:14} p {p:.6g}, point {point:.6f}, ln p of the model {own:.4f}")
            if lm.edits:
                was = distribution(lm.plain.trace(read, keep=("final",)).logits(), how)
                p, rank = float(was.probabilities[token]), int(was.rank[token]) + 1
                would = lm.decode([draw(was, point)])
                print(f"{'':14} unchanged p {p:.6g}, rank {rank}, would write {would!r}")
            log_p += own
            ids.append(token)
    if count:
        print(f"{lm.decode(ids)!r}: ln p {log_p:.4f}, perplexity {np.exp(-log_p / count):.4f}")
    if lm.edits:
        print("unchanged:")
        write_on(lm.plain, text, position, count, step, temperature, top_k, top_p, seed, put, special_tokens)
    return drawn


def stretches(
    lm: gptviz.LanguageModel, chances: gptviz.engine.sampling.Distribution, point: float
) -> np.ndarray:
    """The most probable tokens side by side on a bar from 0 to 1, and where the random number falls."""
    ids = chances.order  # (V,): from the most probable down
    stop = torch.cumsum(chances.probabilities[ids], dim=0)
    start = stop - chances.probabilities[ids]
    fell = int(chances.rank[draw(chances, point)])
    for rank in [*range(10), *([fell] if fell >= 10 else [])]:
        if rank < len(ids):
            token = lm.decode([int(ids[rank])])
            print(f"rank {rank + 1:4} {token!r:14} from {start[rank]:.6f} to {stop[rank]:.6f}")
    print(f"{point:.6f} falls on rank {fell + 1}")
    return torch.stack([start, stop], dim=1)[:10].numpy()
