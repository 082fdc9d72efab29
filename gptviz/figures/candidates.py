"""The rows of the next-token picture: numbers as they are read, and each row's arithmetic in a sentence."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import torch

from gptviz.analysis.next_token import KEPT, Candidates, rest_of
from gptviz.digits import fixed
from gptviz.engine.sampling import Sampling
from gptviz.figures.ghosts import CHANGED, UNCHANGED
from gptviz.figures.next_token import probability_text


def column_heads(sampling: Sampling, compared: bool = False) -> dict[str, str]:
    """What stands above each column, with the values that the sliders have; `compared`: and the unchanged."""
    heads = {
        "rank": "rank",
        "token": "token",
        "logit": "logit",
        "scaled": "÷ 0" if sampling.temperature == 0 else f"÷ {sampling.temperature:g}",
        "filter": "filters",
        "p": "probability",
    }
    return heads | {"before": UNCHANGED, "p": CHANGED} if compared else heads


def candidate_rows(
    found: Candidates,
    sampling: Sampling,
    name: Callable[[int], str],
    whole: Callable[[int], bool],
    came: int | None = None,
    unchanged: Candidates | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """A dict for each row, and one for the rest of the vocabulary (None if there is no rest).

    `name` gives a token for the screen; `whole` says whether a text can end in it (a piece of a
    character cannot be appended). `came` is the id of the token that follows in the prompt.

    A row's `ghost` is what it is compared with: its probability in `unchanged`, those of the model without
    edits under the same settings; else, where settings change something, the model's own; else None.
    """
    rows = [
        _row(row, found, sampling, name(int(row["id"])), unchanged)
        | {"whole": whole(int(row["id"])), "came": int(row["id"]) == came}
        for _, row in found.table.iterrows()
    ]
    return rows, _rest(found, sampling, unchanged) if found.rest else None


def _row(
    row: pd.Series, found: Candidates, sampling: Sampling, token: str, unchanged: Candidates | None
) -> dict[str, Any]:
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
        "rest": False,
        "sentence": row_sentence(row, found, sampling, unchanged),
    } | ghost_of(row, sampling, unchanged)


def ghost_of(row: pd.Series, sampling: Sampling, unchanged: Candidates | None) -> dict[str, Any]:
    """What a row of a `Candidates` table is compared with (see `candidate_rows`), and how it is written.

    `was_first`: it is the most probable token of the unchanged model alone.
    """
    if unchanged is None:
        own = None if sampling.changes_nothing else float(row["model_probability"])
        return {"ghost": own, "ghost_text": "", "was_first": False}
    p, rank = _unchanged(unchanged, int(row["id"]))
    first = rank == 1 and int(row["rank"]) > 1
    return {"ghost": p, "ghost_text": probability_text(p), "was_first": first}


def ghost_of_rest(found: Candidates, unchanged: Candidates) -> float:
    """What all tokens without a row share in `unchanged`."""
    return rest_of(unchanged.chosen.probabilities, torch.tensor(found.table["id"].tolist()))


def _unchanged(unchanged: Candidates, token: int) -> tuple[float, int]:
    """A token's probability, and its rank from 1."""
    chosen = unchanged.chosen
    return float(chosen.probabilities[token]), int(chosen.rank[token]) + 1


def _rest(found: Candidates, sampling: Sampling, unchanged: Candidates | None) -> dict[str, Any]:
    mark, kept = "✓", "none of them cut"
    if found.rest_kept < found.rest:
        mark = f"{found.rest_kept:,} ✓" if found.rest_kept else "✕"
        kept = f"{found.rest_kept:,} of them kept"
    said = (
        f"The other {found.rest:,} tokens of the vocabulary, {kept}, share "
        f"{probability_text(found.rest_probability)}."
    )
    ghost = None
    if unchanged is not None:
        ghost = ghost_of_rest(found, unchanged)
        said += f" Unchanged, these tokens share {probability_text(ghost)}."
    if unchanged is None or not sampling.changes_nothing:
        said += f" Without these settings they share {probability_text(found.rest_model_probability)}."
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
        "rest": True,
        "ghost": ghost,
        "ghost_text": "" if ghost is None else probability_text(ghost),
        "was_first": False,
        "sentence": said,
    }


def row_sentence(
    row: pd.Series, found: Candidates, sampling: Sampling, unchanged: Candidates | None = None
) -> str:
    """From the logit to the probability, with this row's numbers; the token stands before it.

    With `unchanged`, also what the model without edits gives it under the same settings.
    """
    said = _steps(row, found, sampling, "model" if unchanged is None else "changed model")
    if unchanged is None:
        return said
    p, rank = _unchanged(unchanged, int(row["id"]))
    return f"{said} Unchanged, it has {probability_text(p)}, rank {rank:,}."


def _steps(row: pd.Series, found: Candidates, sampling: Sampling, model: str) -> str:
    logit = fixed(row["logit"], 2)
    own = f" The {model} itself gives it {probability_text(row['model_probability'])}."
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
