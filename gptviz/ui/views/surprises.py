"""The loss of every token of the prompt, and the logits of one, as several pages show them."""

import pandas as pd
import torch

from gptviz import Run
from gptviz.analysis.next_token import surprises
from gptviz.engine import forward
from gptviz.ui import runs
from gptviz.ui.runs import per_run


@per_run
def logits_at(run: Run, position: int) -> torch.Tensor:
    """(V,): the only row of logits that the bars need."""
    return runs.get(run, ("final",)).logits(position)


@per_run
def prompt_surprises(run: Run) -> pd.DataFrame:
    """`analysis.next_token.surprises` of the prompt: the output head at every position, once per text."""
    trace, head = runs.get(run, ("final",)), runs.model(run).model.out_head.weight.detach()
    with forward.alone():  # with GPT-2's vocabulary as much work as several forward passes
        return surprises(trace["final"], head, run.ids)


def mean_loss(run: Run) -> float:
    """Return the mean of `prompt_surprises` over all tokens but the first, in nats: NaN for one token."""
    return float(prompt_surprises(run)["nats"].mean())
