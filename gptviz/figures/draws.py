"""How one token is drawn: the rows of its candidates, and the bar on which a random number falls."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gptviz.analysis.next_token import KEPT, Candidates
from gptviz.digits import fixed
from gptviz.engine.sampling import Sampling
from gptviz.figures.candidates import ghost_of, ghost_of_rest, row_sentence
from gptviz.figures.next_token import probability_text


@dataclass(frozen=True)
class Draw:
    """What the picture of a draw is given; `start` and `stop` are places on the bar, from 0 to 1.

    `rows` are the candidates, `segments` the whole bar from left to right, `rest` what stands for all
    tokens without a row (None where there are none).
    """

    rows: list[dict[str, Any]]
    segments: list[dict[str, Any]]
    rest: dict[str, Any] | None


def draw_rows(
    found: Candidates,
    sampling: Sampling,
    standing: int | None,
    how: str,
    name: Callable[[int], str],
    unchanged: Candidates | None = None,
) -> Draw:
    """The picture's numbers; `standing` is the id of the token that stands in the text, `how` says why.

    `unchanged` are the candidates of the model without edits: see `candidates.ghost_of`.
    """
    chances = found.chosen
    bar = torch.cumsum(chances.probabilities[chances.order], dim=0)  # (V,): where each rank ends
    rows = []
    for _, row in found.table.iterrows():
        rank = int(row["rank"])
        start, stop = (float(bar[rank - 2]) if rank > 1 else 0.0), float(bar[rank - 1])
        rows.append(
            {
                "id": int(row["id"]),
                "rank": rank,
                "shown": name(int(row["id"])),
                "probability": float(row["probability"]),
                "model_probability": float(row["model_probability"]),
                "start": start,
                "stop": stop,
                "p_text": probability_text(float(row["probability"])),
                "place": ""
                if row["filter"] != KEPT
                else f"{place_text(start, stop - start)} to {place_text(stop, stop - start)}",
                "drawn": int(row["id"]) == standing,
                "standing": how,
                "cut": row["filter"] != KEPT,
                "sentence": f"{name(int(row['id']))} {row_sentence(row, found, sampling, unchanged)}",
            }
            | ghost_of(row, sampling, unchanged)
        )
    return Draw(rows, _segments(rows, found.rest), _rest(found, unchanged))


def _segments(rows: list[dict[str, Any]], others: int) -> list[dict[str, Any]]:
    """The rows' stretches and the gaps between them: together the whole bar."""
    segments: list[dict[str, Any]] = []
    at = 0.0
    for index, row in [*enumerate(rows), (None, None)]:
        start = 1.0 if row is None else row["start"]
        if start - at > 1e-9:
            words = f"{others:,} others" if others > 1 else "1 other"
            segments.append({"index": None, "start": at, "stop": start, "shown": words, "kind": "rest"})
        if row is not None and row["stop"] > row["start"]:
            part = {"index": index, "start": row["start"], "stop": row["stop"], "shown": row["shown"]}
            segments.append(part | {"kind": "candidate"})
            at = row["stop"]
    return segments


def _rest(found: Candidates, unchanged: Candidates | None) -> dict[str, Any] | None:
    if not found.rest:
        return None
    ghost = None if unchanged is None else ghost_of_rest(found, unchanged)
    shown = f"{found.rest:,} others" if found.rest > 1 else "1 other"
    probability = found.rest_probability
    return {
        "shown": shown,
        "probability": probability,
        "p_text": probability_text(probability),
        "place": "",
        "ghost": ghost,
        "ghost_text": "" if ghost is None else probability_text(ghost),
    }


def place_text(place: float, width: float) -> str:
    """A place on the bar, with the digits that tell the ends of a stretch so wide; 0 and 1 as they are."""
    if place in (0, 1):
        return fixed(place, 0)
    return fixed(place, 3 if width >= 0.002 else min(12, 1 - math.floor(math.log10(max(width, 1e-11)))))
