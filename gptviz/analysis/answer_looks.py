"""Which heads look at the answer: their attention from the last token to the tokens that are the answer.

In Wang et al., Interpretability in the Wild, 2022, a *name mover* looks from the end at the name that is the
answer and copies it; an *S-inhibition head* looks at the name that is not. Looking is not yet doing: what a head
adds to the answer is its contribution, what it is needed for a knock-out's. Both together are the paper's figure
3c: over many texts, a head that copies a name writes the more of it, the more it looks at it. A negative name mover
writes the less of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from gptviz.analysis.ablation import Target, check
from gptviz.analysis.logit_attribution import heads_along, reader
from gptviz.analysis.names import groups_of
from gptviz.analysis.prompts import Texts, averaged, is_many, of_one_text, over
from gptviz.engine.given import ids_of
from gptviz.engine.index import index_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.reduction import Reduction
from gptviz.engine.sites import Key
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed

LOOKS = ("to_answer", "to_against")
NAMES = ("answer", "instead")


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
    read = _read(lm, text, target, position)
    rows = []
    for block in range(lm.config.n_layers):
        sums = [read.given_to(wanted)[block].tolist() for wanted in read.ids]
        for head, (to_answer, to_against) in enumerate(zip(*sums, strict=True)):
            rows.append((block, head, to_answer, to_against))
    progress(1, 1)
    return pd.DataFrame(rows, columns=["block", "head", *LOOKS])


@undisturbed
def attention_and_projection(
    lm: LanguageModel,
    text: Texts,
    target: Target | list[Target] | None = None,
    position: int = -1,
    progress: Progress = ignore_progress,
) -> pd.DataFrame:
    """Return a row a text, name and head: the attention that the head gives the name, and what it writes for it.

    A target is a pair (answer, instead), or the answer alone (None: what the model says first), as `answer_looks`
    has it; the texts are numbered from 0, in the column text. `name` is one of `NAMES`, and `token` its text.
    `attention` is that from `position` to all `places` up to there that hold the token, summed: 0 where there are
    none. `projection` is what the head writes at `position` along the token's row of the output head: its direct
    contribution to that logit minus the mean of all logits, with the final LayerNorm's divisor held at its value
    (`attribution` of the token alone; TransformerLens' with `center_unembed`). So the answer's minus the other's is
    the head's contribution to the difference of the two logits. The bias of the values is in it, that of out_proj,
    which belongs to no head, is not. Raises ValueError as `knock_out` does.
    """
    if is_many(text):
        tables = over(attention_and_projection, lm, text, target, progress, position=position)
        numbered = [table.assign(text=number) for number, table in enumerate(tables)]
        return pd.concat(numbered, ignore_index=True)
    last = ("resid_post", lm.config.n_layers - 1)
    read = _read(lm, text, target, position, ["z", last])
    blocks, heads = np.indices((lm.config.n_layers, lm.config.n_heads))  # (L, H) each
    tables = []
    for name, wanted in zip(NAMES, read.ids, strict=True):
        if wanted is None:
            continue
        towards = reader(read.trace, lm, wanted, position=read.index).direction  # (D,)
        columns = {
            "text": 0,
            "name": name,
            "token": lm.decode([wanted]),
            # (L, H) -> (L H,)
            "block": blocks.ravel(),
            "head": heads.ravel(),
            "places": read.seen.count(wanted),
            "attention": read.given_to(wanted).double().ravel().numpy(),
            "projection": heads_along(read.trace, lm, towards, read.index).ravel().numpy(),
        }
        tables.append(pd.DataFrame(columns))
    progress(1, 1)
    return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True)
class _Read:
    """A pass over a text: the tokens `seen` from the query at `index`, its weights (L, H, T), and the two words."""

    trace: Trace
    index: int
    seen: list[int]
    weights: torch.Tensor
    ids: tuple[int, int | None]

    def given_to(self, wanted: int | None) -> torch.Tensor:
        """The weight of all places that hold a token, by each head: (L, H)."""
        places = [at for at, token in enumerate(self.seen) if token == wanted]
        return self.weights[..., places].sum(dim=-1)


def _read(
    lm: LanguageModel,
    text: Any,
    target: Target | list[Target] | None,
    position: int,
    keep: Sequence[str | Key] = (),
) -> _Read:
    """Read a text, and keep of each block's weights only one query's."""
    ids_read = ids_of(lm, text)
    index = index_of("position", position, len(ids_read))
    row_of_query = Reduction("a query's weights", "attn", _Row(index))
    trace = lm.trace(ids_read, keep=["final", *keep], reduce=[row_of_query])
    aim = of_one_text(target)
    ids = check(lm, int(trace.logits(index).argmax()) if aim is None else aim, "zero")
    seen = [token.id for token in trace.tokens[: index + 1]]
    weights = torch.stack(trace.reduced(row_of_query))[..., : index + 1]  # (L, H, T)
    return _Read(trace, index, seen, weights, ids)
