"""The prompt's tokens by how surprising each was: colours and sentences."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import pandas as pd

from gptviz.digits import fixed
from gptviz.figures.marks import CHANGED, UNCHANGED
from gptviz.figures.next_token import probability_text, surprise_color
from gptviz.figures.theme import Mode

Unit = Literal["bits", "nats"]

FIRST = "is the first token: nothing stands before it that could have let one expect it."


def surprise_rows(
    table: pd.DataFrame,
    shown: Sequence[str],
    vocabulary: int,
    mode: Mode,
    unit: Unit = "bits",
    unchanged: pd.DataFrame | None = None,
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """A dict for each token of `analysis.next_token.surprises`, and the legend.

    `unchanged` is the same table of the model without edits: it becomes the chips' ghosts.

    `shown` are the tokens for the screen. The deepest colour is what a model that knows nothing, with
    every token of the vocabulary equally likely, has for each token. The chips say it in this `unit`.
    """
    most = math.log2(vocabulary) if unit == "bits" else math.log(vocabulary)
    chips: list[dict[str, Any]] = []
    for (place, row), token in zip(table.iterrows(), shown, strict=True):
        amount = float(row[unit])
        known = not math.isnan(amount)
        chips.append(
            {
                "token": token,
                "bits": float(row["bits"]) if known else None,
                "rank": int(row["rank"]) if known else None,
                "bits_text": fixed(amount, 1) if known else "–",
                "color": surprise_color(amount, most, mode),
                "sentence": surprise_sentence(row, unit) if known else FIRST,
            }
        )
        if unchanged is not None and known:
            chips[-1] |= _ghost(unchanged.loc[place], most, mode, unit)
            chips[-1]["sentence"] += f" Unchanged, it {surprise_sentence(unchanged.loc[place], unit)}"
    legend = {
        "from": surprise_color(0, most, mode),
        "to": surprise_color(most, most, mode),
        "low": f"0 {unit}: certain",
        "high": f"{fixed(most, 1)} {unit} or more: a blind guess",
        "rest": "Point at a token; a click shows what the model expected in its place.",
    }
    if unchanged is not None:
        legend["ghost"] = f"{CHANGED} above, {UNCHANGED} below"
    return chips, legend


def _ghost(row: pd.Series, most: float, mode: Mode, unit: Unit) -> dict[str, Any]:
    """The part of a chip that is the unchanged model's."""
    amount = float(row[unit])
    color = surprise_color(amount, most, mode)
    return {"ghost": {"bits": float(row["bits"]), "text": fixed(amount, 1), "color": color}}


def surprise_sentence(row: pd.Series, unit: Unit = "bits") -> str:
    """Return what stands after `·sat`: "came with 3.1 bits of surprise: the model gave it 0.117, rank 3." """
    amount = fixed(row[unit], 1) if row[unit] >= 0.05 else fixed(row[unit], 3)
    return (
        f"came with {amount} {unit} of surprise: "
        f"the model gave it {probability_text(row['probability'])}, rank {int(row['rank']):,}."
    )
