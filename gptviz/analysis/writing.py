"""Text generation, token by token: how each token is drawn, and the probability that the model gives it.

V is the size of the vocabulary.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from gptviz.engine.given import Text, ids_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sampling import Sampling, distribution, draw
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer import named_bytes, show_token


@dataclass(frozen=True)
class WrittenStep:
    """One token that was written, or was put there by a person (`forced`).

    The probabilities of all tokens stand side by side on a bar from 0 to 1, the most probable first; this
    token has the stretch from `start` to `stop`. A `point` is the random number in [0, 1) that fell on it,
    None where nothing was drawn: at temperature 0, and where a person chose.
    """

    id: int
    probability: float  # after temperature and filters; 0 for a forced one that the filters cut
    model_probability: float  # the model's own: temperature 1, nothing filtered
    rank: int  # of its logit, from 1
    point: float | None
    start: float
    stop: float
    forced: bool = False

    @property
    def ln(self) -> float:
        """The logarithm of the probability that the model itself gives it."""
        if self.model_probability > 0:
            return math.log(self.model_probability)
        return -math.inf


def next_step(
    logits: torch.Tensor, sampling: Sampling, point: float, put: int | None = None
) -> WrittenStep:
    """Return the token that `point` draws from (V,) logits, or the one that a person `put` there."""
    chances = distribution(logits, sampling)
    if put is not None or sampling.greedy:
        drawn = None
    else:
        drawn = point
    if put is None:
        token = draw(chances, drawn or 0.0)
    else:
        token = put
    # (V,): where each rank's stretch ends
    bar = torch.cumsum(chances.probabilities[chances.order], dim=0)
    rank = int(chances.rank[token])
    p = float(chances.probabilities[token])
    if sampling.changes_nothing:
        model_probability = p
    else:
        model_probability = float(logits.double().softmax(0)[token])
    start = float(bar[rank - 1]) if rank else 0.0
    return WrittenStep(
        token, p, model_probability, rank + 1, drawn, start, float(bar[rank]), put is not None
    )


@undisturbed
def write_on(
    lm: LanguageModel,
    prompt: Text,
    count: int,
    sampling: Sampling,
    put: Mapping[int, int] | None = None,
) -> pd.DataFrame:
    """Write `count` tokens after a prompt (or ids), one a forward pass: `table_of` the steps.

    `put` are ids that stand at a step (from 0) whatever is drawn there. The i-th number of the seed draws the
    i-th token. The model reads the last `context_length` tokens.
    """
    ids = ids_of(lm, prompt)
    steps = []
    for number, point in enumerate(sampling.points(count)):
        logits = lm.trace(ids[-lm.config.context_length :], keep=()).logits(-1)  # (V,)
        steps.append(next_step(logits, sampling, point, (put or {}).get(number)))
        ids.append(steps[-1].id)
    return table_of(lm, steps)


def table_of(lm: LanguageModel, steps: Sequence[WrittenStep]) -> pd.DataFrame:
    """Return a row per step: number (from 1), token, id, by whom, how it was drawn, and ln p of the model."""
    tokens = [show_token(named_bytes(lm.tokenizer, step.id)) for step in steps]
    written_by = ["you" if step.forced else "the model" for step in steps]
    table = pd.DataFrame({"number": range(1, len(steps) + 1), "token": tokens, "by": written_by})
    table.insert(2, "id", [step.id for step in steps])
    for name in ("probability", "point", "start", "stop", "rank", "model_probability", "ln"):
        kind = int if name == "rank" else float
        table[name] = pd.Series([getattr(step, name) for step in steps], dtype=kind)
    return table.rename(columns={"ln": "ln p"})
