"""What a text costs a model: the loss of every token, from what stands before it."""

import pandas as pd

from gptviz.analysis.next_token import surprises
from gptviz.analysis.reads import reads
from gptviz.engine import forward
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace


@reads("final")
def losses(lm: LanguageModel, t: Trace, target: int | None = None) -> pd.DataFrame:
    """Return `surprises` of the text that `t` read, a row per token; the first has nothing before it: NaN.

    `target` is a token after the last one that has a row, too, as a training window's last target has.
    Columns: position, id, logit, log_sum, probability, nats (−ln of it: the loss), bits, rank.
    """
    ids = [token.id for token in t.tokens] + ([] if target is None else [target])
    with forward.alone():  # with GPT-2's vocabulary as much work as several passes
        return surprises(t["final"], lm.model.out_head.weight.detach(), ids)
