"""Which heads look at the answer: their attention from the last token to the tokens that are the answer.

In Wang et al., Interpretability in the Wild, 2022, a *name mover* looks from the end at the name that is the
answer and copies it; an *S-inhibition head* looks at the name that is not. Looking is not yet doing: what a head
adds to the answer is its contribution, what it is needed for a knock-out's.
"""

from dataclasses import dataclass

import pandas as pd
import torch

from gptviz.analysis.ablation import Target, check
from gptviz.analysis.names import groups_of
from gptviz.analysis.prompts import Texts, averaged, is_many, of_one_text, over
from gptviz.engine.given import ids_of
from gptviz.engine.index import index_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.reduction import Reduction
from gptviz.engine.undisturbed import undisturbed

LOOKS = ("to_answer", "to_against")


@dataclass(frozen=True)
class _Row:
    """The weights of one query, by every head: (H, T, T) -> (H, T)."""

    query: int

    def __call__(self, attn: torch.Tensor) -> torch.Tensor:
        return attn[:, self.query]


@undisturbed
def answer_looks(
    lm: LanguageModel,
    text: Texts,
    target: Target | list[Target] | None = None,
    position: int = -1,
    progress: Progress = ignore_progress,
) -> pd.DataFrame:
    """Return a row a head: the attention that it gives, from `position`, to the target's own tokens.

    `to_answer` is the sum over all positions, up to there, that hold the token; `to_against` the same of the
    token that it is compared with: 0 where the text does not have it, or there is none. A text and its target
    (None: what the model says first), or a list of each: then means over them, with `_se` for their standard
    errors and n, as `knock_out` has it. Raises ValueError as `knock_out` does.
    """
    if is_many(text):
        tables = over(answer_looks, lm, text, target, progress, position=position)
        return averaged(tables, LOOKS, groups=groups_of(lm, text, target))
    ids_read = ids_of(lm, text)
    index = index_of("position", position, len(ids_read))
    # of each block's weights only one query's are kept
    row_of_query = Reduction("a query's weights", "attn", _Row(index))
    trace = lm.trace(ids_read, keep=["final"], reduce=[row_of_query])
    aim = of_one_text(target)
    ids = check(lm, int(trace.logits(index).argmax()) if aim is None else aim, "zero")
    seen = [token.id for token in trace.tokens[: index + 1]]
    all_weights = trace.reduced(row_of_query)
    rows = []
    for block in range(lm.config.n_layers):
        weights = all_weights[block][:, : index + 1]  # (H, T)
        sums = [
            weights[:, [at for at, token in enumerate(seen) if token == wanted]].sum(dim=1)  # (H,)
            for wanted in ids
        ]
        for head, (to_answer, to_against) in enumerate(zip(*sums, strict=True)):
            rows.append((block, head, float(to_answer), float(to_against)))
    progress(1, 1)
    return pd.DataFrame(rows, columns=["block", "head", *LOOKS])
