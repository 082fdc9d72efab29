"""The tables of the Overview page: one row per token, or one row per norm."""

import numpy as np
import pandas as pd

from gptviz.analysis.embeddings import lengths_table
from gptviz.analysis.reads import reads
from gptviz.engine.architecture import architecture_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sites import embedded, start
from gptviz.engine.trace import Trace

SITES = (embedded, start, "resid_pre", "resid_mid", "resid_post")


@reads("resid_pre", "resid_mid", "resid_post")
def spreads(lm: LanguageModel, t: Trace, position: int) -> pd.DataFrame:
    """One row per norm, and the standard deviation of one token's numbers before and after.

    Of an RMSNorm, the root of their mean square.
    """
    norms = t.norm_statistics()
    before, after = (
        np.sqrt(v[:, position].astype(float)) for v in (norms.variance, norms.variance_after)
    )
    return pd.DataFrame({"norm": norms.names, "before": before, "after": after})


@reads(*SITES)
def token_table(lm: LanguageModel, t: Trace) -> pd.DataFrame:
    """One row per token: its id, the norms of its embeddings, its variance before the first and the last norm.

    Columns: position, token, id, token_norm, position_norm, sum_norm, cosine, first_variance,
    last_variance; without those of `lengths_table` that a model does not have. Of RMSNorms the last two are
    first_mean_square and last_mean_square.
    """
    table = lengths_table(lm, t)
    table.insert(2, "id", [token.id for token in t.tokens])
    variance = t.norm_statistics().variance  # (N, T)
    spread = architecture_of(lm.config).spread
    table[f"first_{spread}"] = variance[0]
    table[f"last_{spread}"] = variance[-1]
    return table
