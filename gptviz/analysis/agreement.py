"""Do they agree? Five ways to say which earlier tokens count, side by side, and how alike they rank them.

    attention     what the selected token looks at: the mean over the heads of the last block
    rollout       attention multiplied through all blocks (`gptviz.analysis.rollout`)
    contribution  nearness multiplied through all blocks (`gptviz.analysis.flow`)
    attribution   what all heads wrote for the word from it, against the mean (`source_tokens`): signed
    muting        what the word loses if nobody later may look at it (`gptviz.analysis.muting`): signed

The first three know no word: they are the same whatever is explained. Attention and attribution are about
what stands at a position when it is read; the other three go down to the token that was typed. Signed
ones rank by size. The rank correlation is Spearman's, The Proof and Measurement of Association, 1904.
"""

from collections.abc import Sequence

import pandas as pd

from gptviz.analysis.against import MEAN, Against
from gptviz.analysis.flow import token_flow
from gptviz.analysis.logit_attribution import position_of, source_tokens
from gptviz.analysis.rollout import means, rollout
from gptviz.engine.trace import Trace
from gptviz.model import GPTModel
from gptviz.tokenizer.one import OneToken

WITHOUT_PASSES = ("attention", "rollout", "contribution", "attribution")
MUTING = "muting"
WAYS = (*WITHOUT_PASSES, MUTING)

MOST_MUTED = 32  # tokens of a long text: each is a pass


def measures(
    trace: Trace, model: GPTModel, token: OneToken, against: Against = MEAN, position: int = -1
) -> pd.DataFrame:
    """A row for each token before `position`: position, and the four ways that need no further pass.

    Needs what `source_tokens`, `rollout` and `token_flow` need. No rows where nothing stands before.
    """
    at = position_of(trace, position)
    sources = source_tokens(trace, model, token, against, at)  # (L, H, T)
    found = {
        "attention": means(trace)[-1][at],
        "rollout": rollout(trace, at)[0],
        "contribution": token_flow(trace, model, at)[0][0],
        "attribution": sources.sum(dim=(0, 1)),
    }
    columns = {name: values[:at].double().numpy() for name, values in found.items()}
    return pd.DataFrame({"position": range(at), **columns})


def to_mute(table: pd.DataFrame, most: int = MOST_MUTED) -> list[int]:
    """The positions to mute: all of at most `most`, else those that the ways rank first, in turn."""
    if len(table) <= most:
        return [int(p) for p in table["position"]]
    ranked = ranks(table)
    best = ranked[list(WITHOUT_PASSES)].min(axis=1)
    order = pd.DataFrame({"position": table["position"], "best": best}).sort_values(
        ["best", "position"], kind="stable"
    )
    return sorted(int(p) for p in order["position"][:most])


def with_muting(table: pd.DataFrame, losses: Sequence[tuple[int, float]]) -> pd.DataFrame:
    """The table with the column "muting": NaN for tokens that were not muted."""
    return table.assign(**{MUTING: table["position"].map(dict(losses)).astype("float64")})


def ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Position, and each way's rank of it by size, from 1 on; equal ones share the mean of their ranks."""
    return pd.concat([table[["position"]], _sizes(table).rank(ascending=False)], axis=1)


def rank_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation of each two ways, from -1 to 1, over the tokens that both have.

    NaN for fewer than three tokens, and for a way to which all are equal.
    """
    return _sizes(table).corr(method="spearman", min_periods=3)


def _sizes(table: pd.DataFrame) -> pd.DataFrame:
    """Rounded to five digits: what is equal but for float32's last ones would rank by noise."""
    ways = [way for way in WAYS if way in table]
    return table[ways].abs().map(lambda value: float(f"{value:.5g}"))
