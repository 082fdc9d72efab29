"""The Generate page in Python: token after token, each drawn by a number of the seed."""

from collections.abc import Mapping

import numpy as np
import torch

import gptviz
from gptviz.sampling import Sampling, distribution, draw


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
    """Write `count` tokens after the one at `position`; the probability of each, (count,).

    `put` are ids that stand at a step whatever is drawn: a branch. Of `step` the candidates are printed.
    """
    ids = lm.encode(text, special_tokens)[: lm.config.context_length][: position + 1]
    how = Sampling(temperature, top_k, top_p, seed)
    points = how.points(max(count, step + 1))
    written, log_p = [], 0.0
    for number, point in enumerate(points):
        t = lm.trace(
            ids[-lm.config.context_length :], keep=("final",)
        )  # the last ones, where they are too many
        chances = distribution(t.logits(), how)
        if number == step:
            say_how_drawn(lm, chances, point)
        if number == count:
            break  # not written yet
        token = (put or {}).get(number, draw(chances, point))
        written.append(float(chances.probabilities[token]))
        log_p += float(torch.log_softmax(t.logits().double(), dim=-1)[token])
        ids.append(token)
    if count:
        print(f"{lm.decode(ids)!r}: ln p {log_p:.4f}, perplexity {np.exp(-log_p / count):.4f}")
    return np.array(written)


def say_how_drawn(lm: gptviz.LanguageModel, chances: gptviz.sampling.Distribution, point: float) -> None:
    """The most probable tokens side by side on a bar from 0 to 1, and where the random number falls."""
    bar = torch.cumsum(chances.probabilities[chances.order], dim=0)  # (V,)
    print(f"the random number is {point:.6f}; it falls on {lm.decode([draw(chances, point)])!r}")
    for rank, token in enumerate(chances.order[:10].tolist()):
        start = bar[rank - 1] if rank else 0.0
        print(f"{rank + 1:3} {lm.decode([token])!r:14} from {start:.6f} to {bar[rank]:.6f}")
