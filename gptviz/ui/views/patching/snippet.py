"""The page "Patching" in Python: every place of one text's pass patched with another text's value."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

import gptviz
from gptviz.analysis import patching
from gptviz.analysis.activation_patching import Ends, ends_of
from gptviz.analysis.patches import Patch


def effects(
    lm: gptviz.LanguageModel,
    clean: str,
    corrupt: str,
    target: tuple[int, int] | None = None,
    direction: str = "denoising",
    position: int = -1,
    sites: Sequence[str] = ("resid_pre",),
    special_tokens: bool = False,
) -> np.ndarray:
    """The effect of each patch of the first of these sites: a row a block, a column a position or a head.

    Shares of the two texts' distance; changes in logits where that is below `patching.SHARES_FROM`.
    """
    texts = [lm.encode(text, special_tokens)[: lm.config.context_length] for text in (clean, corrupt)]
    traces = [lm.trace(ids, keep=[]) for ids in texts]
    ends = ends_of(lm, traces[0].logits(position), traces[1].logits(position), target)
    for name, trace, logit in zip(("clean", "corrupt"), traces, (ends.clean, ends.corrupt), strict=True):
        print(
            f"after the {name} text:",
            trace.next_tokens(k=3, position=position).to_string(index=False),
            sep="\n",
        )
        print(f"the logit of token {ends.token} less that of token {ends.against}: {logit:.4f}")

    table = patching(lm, texts[0], texts[1], (ends.token, ends.against), sites, direction, position)
    table = table.sort_values("effect", key=abs, ascending=False, kind="stable")
    print(table.head(20).to_string(index=False))
    own, source = texts if direction == "noising" else texts[::-1]
    one_pass(lm, own, source, table.iloc[0], ends, position)
    table = table[table["site"] == sites[0]].sort_index()
    drawn = table["effect"].to_numpy().reshape(lm.config.n_layers, -1)
    return drawn if ends.tells_shares else drawn * ends.distance  # in logits, where a share says little


def one_pass(
    lm: gptviz.LanguageModel,
    own: Sequence[int],
    source: Sequence[int],
    row: pd.Series,
    ends: Ends,
    position: int,
) -> None:
    """One row of the table once more, as an edit of a pass: what a click on its cell makes."""
    head, place = (None if pd.isna(row[name]) else int(row[name]) for name in ("head", "position"))
    edit = Patch(row["site"], int(row["block"]), head, place).edit(source)
    logits = lm.trace(own, keep=[], edits=[edit]).logits(position).double()
    logit = float(logits[ends.token] - logits[ends.against])
    print(f"{edit}: the difference is {logit:.4f}, and {ends.metric(logit):.4f} on the scale")
    assert abs(logit - row["logit"]) < (1e-3 if lm.dtype == "float32" else 0.5)
