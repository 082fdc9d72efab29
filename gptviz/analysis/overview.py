"""The numbers of the Overview's small pictures: the whole way of one prompt, at a glance."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.analysis.embeddings import embedding_rows, lengths_table
from gptviz.analysis.reads import Sites, reads
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Token, Trace

SITES = ("tok_emb", "pos_emb", "embed", "resid_pre", "resid_mid", "resid_post")
FEED_FORWARD = ("mlp_pre", "mlp_act", "mlp_out")  # of the last block


def _feed_forward(lm: LanguageModel, *asked: object) -> Sites:
    return tuple((site, lm.config.n_layers - 1) for site in FEED_FORWARD)


@dataclass(frozen=True)
class Glance:
    """What the small pictures show, for one prompt and one selected token.

    parts (3, T, D): token, position and summed embedding. norms: the selected token's standard deviation
    before and after each LayerNorm, in the order of the network. units (2, 4D): its numbers before and after
    GELU in the last block's feed-forward; added (D,): what that adds to its stream. following: the most
    probable next tokens after it.
    """

    parts: NDArray[np.float32]
    norms: pd.DataFrame
    units: NDArray[np.float32]
    added: NDArray[np.float32]
    following: pd.DataFrame


@reads(*SITES, _feed_forward)
def glance(lm: LanguageModel, t: Trace, position: int, k: int = 5) -> Glance:
    """Return what the six pictures show but for attention, of which each head's is `t["attn", block][head]`.

    ValueError for a position that does not exist.
    """
    following, norms = t.next_tokens(k=k, position=position), t.norm_statistics()
    before, after = (np.sqrt(v[:, position].astype(float)) for v in (norms.variance, norms.variance_after))
    given, fired, added = (t[key][position].numpy() for key in _feed_forward(lm))
    return Glance(
        parts=embedding_rows(lm, t),
        norms=pd.DataFrame({"norm": norms.names, "before": before, "after": after}),
        units=np.stack([given, fired]),
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


@reads(*SITES)
def token_table(lm: LanguageModel, t: Trace) -> pd.DataFrame:
    """One row a token: its id, its embeddings' lengths, its variance before the first and the last norm.

    Columns: position, token, id, token_norm, position_norm, sum_norm, cosine, first_variance,
    last_variance.
    """
    table = lengths_table(lm, t)
    table.insert(2, "id", [token.id for token in t.tokens])
    variance = t.norm_statistics().variance  # (N, T)
    table["first_variance"], table["last_variance"] = variance[0], variance[-1]
    return table
