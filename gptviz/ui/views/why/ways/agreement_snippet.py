"""Do the ways to say which token counts agree? In Python, with the real passes."""

import pandas as pd

import gptviz
from gptviz.analysis.agreement import measures, rank_correlations, ranks, to_mute, with_muting
from gptviz.analysis.muting import muted


def side_by_side(
    lm: gptviz.LanguageModel,
    text: str,
    token: int,
    against: int | None = None,
    position: int = -1,
    special_tokens: bool = False,
) -> pd.DataFrame:
    """Each way's rank of the tokens before `position`, 1 the largest."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    table = measures(lm.trace(ids), lm.model, token, against, position)
    places = to_mute(table)
    table = table[table["position"].isin(places)]
    table = with_muting(table, list(muted(lm, ids, places, token, against, position)))
    print(rank_correlations(table).round(2).to_string())

    found = ranks(table)
    n = len(found)  # ranks 1 to n, however many share one
    assert (abs(found.drop(columns="position").sum() - n * (n + 1) / 2) < 1e-6).all()
    return found
