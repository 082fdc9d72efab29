"""The prompt's tokens by how surprising each was: colours and sentences."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from gptviz.digits import fixed
from gptviz.figures.next_token import probability_text, surprise_color
from gptviz.figures.theme import Mode

FIRST = "is the first token: nothing stands before it that could have let one expect it."


def surprise_rows(
    table: pd.DataFrame, shown: Sequence[str], vocabulary: int, mode: Mode
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """A dict for each token of `analysis.next_token.surprises`, and the legend.

    `shown` are the tokens for the screen. The deepest colour is what a model that knows nothing, with
    every token of the vocabulary equally likely, has for each token.
    """
    most = math.log2(vocabulary)
    chips = []
    for (_, row), token in zip(table.iterrows(), shown, strict=True):
        bits = float(row["bits"])
        known = not math.isnan(bits)
        chips.append(
            {
                "token": token,
                "bits": bits if known else None,
                "rank": int(row["rank"]) if known else None,
                "bits_text": fixed(bits, 1) if known else "–",
                "color": surprise_color(bits, most, mode),
                "sentence": surprise_sentence(row) if known else FIRST,
            }
        )
    legend = {
        "from": surprise_color(0, most, mode),
        "to": surprise_color(most, most, mode),
        "low": "0 bits: certain",
        "high": f"{fixed(most, 1)} bits or more: a blind guess",
        "rest": "Point at a token; a click shows what the model expected in its place.",
    }
    return chips, legend


def surprise_sentence(row: pd.Series) -> str:
    """What stands after `·sat`: "came with 3.1 bits of surprise: the model gave it 0.117, rank 3." """
    bits = fixed(row["bits"], 1) if row["bits"] >= 0.05 else fixed(row["bits"], 3)
    return (
        f"came with {bits} bits of surprise: "
        f"the model gave it {probability_text(row['probability'])}, rank {int(row['rank']):,}."
    )
