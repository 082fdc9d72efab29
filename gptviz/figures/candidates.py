"""The rows of the next-token picture: numbers as they are read, and each row's arithmetic in a sentence."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from gptviz.analysis.next_token import KEPT, Candidates
from gptviz.digits import fixed
from gptviz.figures.next_token import probability_text
from gptviz.sampling import Sampling


def column_heads(sampling: Sampling) -> dict[str, str]:
    """What stands above each column, with the values that the sliders have."""
    return {
        "rank": "rank",
        "token": "token",
        "logit": "logit",
        "scaled": "÷ 0" if sampling.temperature == 0 else f"÷ {sampling.temperature:g}",
        "filter": "filters",
        "p": "probability",
    }


def candidate_rows(
    found: Candidates,
    sampling: Sampling,
    name: Callable[[int], str],
    whole: Callable[[int], bool],
    came: int | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """A dict for each row, and one for the rest of the vocabulary (None if there is no rest).

    `name` gives a token for the screen; `whole` says whether a text can end in it (a piece of a
    character cannot be appended). `came` is the id of the token that follows in the prompt.
    """
    changed = not sampling.changes_nothing
    rows = [
        _row(row, found, sampling, name(int(row["id"])), changed)
        | {"whole": whole(int(row["id"])), "came": int(row["id"]) == came}
        for _, row in found.table.iterrows()
    ]
    return rows, _rest(found, changed) if found.rest else None


def _row(row: pd.Series, found: Candidates, sampling: Sampling, token: str, changed: bool) -> dict[str, Any]:
    cut = row["filter"] != KEPT
    return {
        "key": str(row["id"]),
        "id": int(row["id"]),
        "rank": int(row["rank"]),
        "token": token,
        "logit": float(row["logit"]),
        "scaled": float(row["scaled"]),
        "filter": row["filter"],
        "probability": float(row["probability"]),
        "model_probability": float(row["model_probability"]),
        "rank_text": f"{row['rank']:,}",
        "logit_text": fixed(row["logit"], 2),
        "scaled_text": "" if sampling.temperature == 0 else fixed(row["scaled"], 2),
        "filter_text": f"✕ {row['filter']}" if cut else "✓",
        "p_text": probability_text(row["probability"]),
        "first": int(row["rank"]) == 1,
        "out": cut,
        "moved": changed,
        "rest": False,
        "sentence": row_sentence(row, found, sampling),
    }


def _rest(found: Candidates, changed: bool) -> dict[str, Any]:
    mark, kept = "✓", "none of them cut"
    if found.rest_kept < found.rest:
        mark = f"{found.rest_kept:,} ✓" if found.rest_kept else "✕"
        kept = f"{found.rest_kept:,} of them kept"
    return {
        "key": "rest",
        "id": None,
        "rank": 0,
        "token": f"{found.rest:,} others",
        "probability": found.rest_probability,
        "model_probability": found.rest_model_probability,
        "rank_text": "",
        "logit_text": "",
        "scaled_text": "",
        "filter_text": mark,
        "p_text": probability_text(found.rest_probability),
        "first": False,
        "came": False,
        "whole": False,
        "out": not found.rest_kept,
        "moved": changed,
        "rest": True,
        "sentence": f"The other {found.rest:,} tokens of the vocabulary, {kept}, share "
        f"{probability_text(found.rest_probability)}. Without these settings they share "
        f"{probability_text(found.rest_model_probability)}.",
    }


def row_sentence(row: pd.Series, found: Candidates, sampling: Sampling) -> str:
    """From the logit to the probability, with this row's numbers; the token stands before it."""
    logit = fixed(row["logit"], 2)
    own = f" The model itself gives it {probability_text(row['model_probability'])}."
    start = f"(rank {row['rank']:,}): logit {logit}"
    if sampling.temperature == 0:
        takes = "the largest: temperature 0 gives it everything" if row["rank"] == 1 else "not the largest"
        return f"{start}, {takes}. Probability {probability_text(row['probability'])}.{own}"
    scaled = fixed(row["scaled"], 2)
    if sampling.temperature != 1:
        start += f" ÷ temperature {sampling.temperature:g} = {scaled}"
    if row["filter"] != KEPT:
        value = sampling.top_k if row["filter"] == "top-k" else sampling.top_p
        return f"{start}, and {row['filter']} {value:g} cuts it: probability 0.{own}"
    log_sum = fixed(found.log_sum, 2)
    power = f"e^({scaled} − {log_sum})" if found.log_sum >= 0 else f"e^({scaled} + {log_sum[1:]})"
    many = f"the {found.kept:,} tokens that are left" if found.kept > 1 else "the one token that is left"
    if found.kept == len(found.chosen.kept):
        many = f"all {found.kept:,} tokens"
    softmax = (
        f"{start}. Softmax: {power} = {probability_text(row['probability'])}, "
        f"where {log_sum} is the logarithm of the sum of e^x over {many}."
    )
    return softmax + (own if not sampling.changes_nothing else "")
