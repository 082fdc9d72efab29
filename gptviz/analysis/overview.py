"""The numbers of the Overview's small pictures: the whole way of one prompt, at a glance."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.analysis.embeddings import embedding_lengths, embedding_parts, shared_scale
from gptviz.engine.config import GPTConfig
from gptviz.engine.trace import Token, Trace

SITES = ("tok_emb", "pos_emb", "embed", "resid_pre", "resid_mid", "resid_post")
FEED_FORWARD = ("mlp_pre", "mlp_act", "mlp_out")  # of the last block


def sites(config: GPTConfig) -> list[str | tuple[str, int]]:
    """What the Overview reads of a trace, but for attention, of which it draws every head small."""
    return [*SITES, *((site, config.n_layers - 1) for site in FEED_FORWARD)]


@dataclass(frozen=True)
class Glance:
    """What the small pictures show, for one prompt and one selected token.

    parts (3, T, D): token, position and summed embedding; limit: their common scale, -limit to limit.
    before, after (N,): the selected token's standard deviation before and after each of the N LayerNorms,
    in the order of the network. units (2, 4D): the selected token's numbers before and after GELU in the last
    block's feed-forward; added (D,): what that adds to its stream. following: the most probable next tokens
    after the selected one.
    """

    parts: NDArray[np.float32]
    limit: float
    norms: list[str]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    units: NDArray[np.float32]
    added: NDArray[np.float32]
    following: pd.DataFrame


def glance(trace: Trace, position: int, k: int = 5) -> Glance:
    """Needs `sites(config)` in the trace. ValueError for a position that does not exist."""
    parts = embedding_parts(trace)
    last = trace.config.n_layers - 1
    before, after, added = (trace[site, last][position].numpy() for site in FEED_FORWARD)
    following, norms = trace.next_tokens(k=k, position=position), trace.norm_statistics()
    return Glance(
        parts=parts,
        limit=shared_scale(parts, share=0.95).limit,
        norms=norms.names,
        before=np.sqrt(norms.variance[:, position].astype(np.float64)),
        after=np.sqrt(norms.variance_after[:, position].astype(np.float64)),
        units=np.stack([before, after]),
        added=added.copy(),  # not a view, which would hold on to all the text's
        following=following,
    )


def folded(values: NDArray[np.float32], per_row: int = 4) -> NDArray[np.float32]:
    """A long row of numbers as a block of up to 16 rows, `per_row` times as wide as high or more.

    (n,) -> (r, n / r): row after row from the left, for the largest such r that divides n.
    """
    n = len(values)
    most = max(1, min(16, int((n / per_row) ** 0.5)))
    rows = next(r for r in range(most, 0, -1) if n % r == 0)
    return values.reshape(rows, n // rows)  # (n,) -> (r, n / r)


def around(tokens: list[Token], position: int, most: int = 6) -> list[Token]:
    """At most `most` neighbouring tokens that have `position` among them, as late as the text allows."""
    start = max(0, min(position - most + 2, len(tokens) - most))
    return tokens[start : start + most]


def token_table(trace: Trace) -> pd.DataFrame:
    """One row a token: its id, its embeddings' lengths, its variance before the first and the last norm.

    Columns: position, token, id, token_norm, position_norm, sum_norm, cosine, first_variance,
    last_variance. Needs `SITES`.
    """
    table = embedding_lengths(trace)
    table.insert(2, "id", [token.id for token in trace.tokens])
    variance = trace.norm_statistics().variance  # (N, T)
    table["first_variance"], table["last_variance"] = variance[0], variance[-1]
    return table


def spread_table(glance: Glance) -> pd.DataFrame:
    """The selected token's spread at every LayerNorm: norm, before, after."""
    return pd.DataFrame({"norm": glance.norms, "before": glance.before, "after": glance.after})
