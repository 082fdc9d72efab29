"""The next token's distribution in words and pictures, and two of them; a prompt's tokens by surprise."""

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd

from gptviz.analysis.loss import perplexity, uniform_loss
from gptviz.digits import fixed, significant
from gptviz.figures import marks
from gptviz.figures.marks import Floats
from gptviz.figures.theme import LABEL, Figure, Mode, figure, mixed, palette

LOUD = 0.5  # how much of the colour of a loss a surprise has at most


def probability_text(p: float) -> str:
    """A probability with the digits that mean something, however small, and never 0 or 1 by rounding.

    >>> [probability_text(p) for p in (0.1172, 0.00412, 3.71e-6, 0.99996, 0.0, 1.0)]
    ['0.117', '0.00412', '3.71 × 10⁻⁶', '0.99996', '0', '1']
    """
    if p in (0, 1):
        return f"{p:.0f}"
    # as many nines as it has (a float's precision ends at the fifteenth), and one digit
    if p >= 0.99:
        nines = min(15, math.floor(-math.log10(max(1 - p, 1e-15))))
        return f"{p:.{max(3, nines + 1)}f}"
    return significant(p)


def loss_text(nats: float) -> tuple[str, str]:
    """A mean loss and its perplexity: four decimals, and the four digits that these still tell.

    So the second is e^(the first), as far as it is written.

    >>> loss_text(7.31784)
    ('7.3178', '1507')
    """
    return fixed(nats, 4), significant(perplexity(nats), 4)


def surprise_color(surprise: float, most: float, mode: Mode) -> str:
    """Paper for what was certain, pink for a surprise of `most` or more, in the same unit."""
    colors = palette(mode)
    # not all of it: the token's own letters must stay readable on it
    return mixed(colors.paper, mixed(colors.paper, colors.loss, LOUD), surprise / most)


def vocabulary_curve(
    table: pd.DataFrame,
    tokens: list[str],
    kept: int,
    mode: Mode,
    came: tuple[int, str] | None = None,
    unchanged: tuple[pd.DataFrame, list[str]] | None = None,
) -> Figure:
    """Probability by rank over the whole vocabulary, both axes logarithmic: the model's own, and as set.

    `table` is `analysis.next_token.curve` and `tokens` its tokens for the screen; `kept` is how many
    tokens the filters left; `came` is the rank and token that follows in the prompt, if one does. Both of
    the model without edits are `unchanged`: its line stands in the place of the one without settings.
    """
    colors = palette(mode)
    size = int(table["rank"].iloc[-1])  # a curve ends at the last rank of the vocabulary
    remaining = table[table["probability"] > 0]
    shapes = []
    notes = []

    def noted(x: float, words: str, height: float) -> None:
        ground = {"yref": "paper", "xshift": 6, "bgcolor": colors.paper}
        notes.append(
            marks.note(marks.safe(words), math.log10(x), height, colors.quiet, 13, **ground)
        )

    if kept < size:
        cut = marks.band(kept + 0.5, size * 1.2, colors.masked)
        shapes.append(cut | {"layer": "above", "opacity": 0.35})
        noted(kept + 0.5, f"rank {kept + 1:,} on: cut", 0.98)
    if came is not None:
        rank, token = came
        shapes.append(marks.upright(rank, marks.line(colors.accent, 2, "dot")))
        noted(rank, f"{token} came: rank {rank:,}", 0.1)
    lowest = max(float(table["model_probability"].min()), 1e-12)
    hovers = _says(table["rank"], table["model_probability"], tokens, "the model gives it")
    behind = _line(table["rank"], table["model_probability"], marks.line(colors.quiet, 2), hovers)
    if unchanged is not None:
        before, names = unchanged
        before_kept = before[before["probability"] > 0]
        lowest = min([lowest, *before_kept["probability"].clip(lower=1e-12)])
        old_hovers = _says(
            before_kept["rank"],
            before_kept["probability"],
            names[: len(before_kept)],
            "unchanged, it has",
        )
        behind = marks.ghost_curve(
            before_kept["rank"].to_numpy(), before_kept["probability"].to_numpy(), mode, old_hovers
        )
    hovers = _says(
        remaining["rank"],
        remaining["probability"],
        tokens[: len(remaining)],
        "with these settings it has",
    )
    chosen = _line(
        remaining["rank"], remaining["probability"], marks.line(colors.probability, 4), hovers
    )
    lines = [behind, chosen | {"name": marks.CHANGED}]
    log = {"type": "log", "dtick": 1}
    layout = ({} if unchanged is None else marks.GHOSTED) | {
        "shapes": shapes,
        "annotations": notes,
        "xaxis": log
        | {
            "title": {"text": "rank"},
            "range": [-0.08, math.log10(size * 1.2)],
            "exponentformat": "none",
        },
        "yaxis": log
        | {"title": {"text": "probability"}, "range": [math.log10(lowest) - 0.3, 0.2]}
        | {"dtick": 2, "tickfont": {"size": LABEL / 1.25}},  # Plotly enlarges it
    }
    return figure(lines, layout, mode, height=300)


def _says(rank: pd.Series, probability: pd.Series, tokens: list[str], verb: str) -> list[str]:
    return [
        f"`{token}` is rank {r}: {verb} {probability_text(p)}"
        for token, r, p in zip(tokens, rank, probability, strict=True)
    ]


def _line(
    x: pd.Series, y: pd.Series, drawn: dict[str, Any], sentences: list[str]
) -> dict[str, Any]:
    mode = "lines"
    if len(x) < 3:
        mode = "lines+markers"
    hovers = marks.says(map(marks.safe, sentences))
    return marks.stroke(x.to_numpy(), y.to_numpy(), drawn, mode=mode, **hovers)


# ---- two distributions, back to back: the left side's blue, the right side's orange ----

# of a side's name: on a phone there is no room for more
LETTERS = 20
LINES = 3
WHOLE = 1.3  # a side's width, as a probability: beyond 1 is room for the number at a bar's end
MIDDLE = (0.4, 0.6)  # of the width: between these stand the tokens


def back_to_back(
    tokens: Sequence[str], left: Floats, right: Floats, sides: tuple[str, str], mode: Mode
) -> Figure:
    """The probabilities of the same n tokens, (n,) each: NaN where a side's vocabulary does not have one.

    From 0 to 1 on either side, the tokens in between. `sides` are the two sides' names.
    """
    colors = palette(mode)
    places = np.arange(len(tokens), dtype=np.int32)
    names = [*map(marks.safe, tokens)]
    wrapped = [wrap(side, LETTERS, max_lines=LINES, placeholder=" …") or [side] for side in sides]
    heads = ["<b>" + "<br>".join(map(marks.safe, lines)) + "</b>" for lines in wrapped]
    above = 18 * (max(map(len, wrapped)) - 1)  # pixels of their further lines
    plain = marks.BARE | {"showticklabels": False}
    layout: dict[str, Any] = {
        "bargap": 0.3,
        "annotations": [
            marks.heading(heads[0], MIDDLE[0], 1, xanchor="right", align="right"),
            marks.heading(heads[1], MIDDLE[1], 1),
            *(
                {
                    "text": name,
                    "x": sum(MIDDLE) / 2,
                    "xref": "paper",
                    "xanchor": "center",
                    "y": place,
                }
                | {"yref": "y", "yanchor": "middle"}
                for place, name in enumerate(names)
            ),
        ],
    }
    traces = []
    for number, side, color, values, domain, room in (
        (1, sides[0], colors.negative, left, [0, MIDDLE[0]], [WHOLE, 0]),
        (2, sides[1], colors.positive, right, [MIDDLE[1], 1], [0, WHOLE]),
    ):
        (x, y), (xaxis, yaxis) = marks.axis_names(number)
        texts = ["not in its vocabulary" if p != p else probability_text(p) for p in values]
        layout[xaxis] = plain | {"domain": domain, "range": room, "anchor": y}
        layout[yaxis] = plain | {"range": marks.names_down(len(tokens))["range"], "anchor": x}
        bar = marks.bar(np.nan_to_num(values), places, {"color": color}, orientation="h")
        outside = {"text": texts, "textposition": "outside", "cliponaxis": False}
        hovers = marks.says(
            f"`{a}`, {marks.safe(side)}: {b}" for a, b in zip(names, texts, strict=True)
        )
        traces.append(bar | outside | marks.on(number) | hovers)
    return figure(traces, layout, mode, height=44 + above + 26 * len(tokens), t=30 + above)


# ---- what came ----

FIRST = "is the first token: nothing stands before it that could have let one expect it."


def surprise_rows(
    table: pd.DataFrame,
    shown: Sequence[str],
    vocabulary: int,
    mode: Mode,
    unchanged: pd.DataFrame | None = None,
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """A dict for each token of `analysis.next_token.surprises`, and the legend.

    `unchanged` is the same table of the model without edits: it becomes the chips' ghosts.

    `shown` are the tokens for the screen. The deepest colour is what a model that knows nothing, with
    every token of the vocabulary equally likely, has for each token. The chips say it in nats.
    """
    most = uniform_loss(vocabulary)

    def cost(row: pd.Series) -> dict[str, Any]:
        nats = float(row["nats"])
        return {
            "bits": float(row["bits"]),
            "text": fixed(nats, 1),
            "color": surprise_color(nats, most, mode),
        }

    chips: list[dict[str, Any]] = []
    for (position, row), token in zip(table.iterrows(), shown, strict=True):
        if math.isnan(row["nats"]):
            nothing = {"bits": None, "text": "–", "color": palette(mode).masked}
            chips.append({"token": token, "rank": None, "sentence": FIRST} | nothing)
            continue
        chip = cost(row) | {
            "token": token,
            "rank": int(row["rank"]),
            "sentence": surprise_sentence(row),
        }
        if unchanged is not None:
            unchanged_row = unchanged.loc[position]
            chip["ghost"] = cost(unchanged_row)
            chip["sentence"] += f" Unchanged, it {surprise_sentence(unchanged_row)}"
        chips.append(chip)
    legend = {
        "from": surprise_color(0, most, mode),
        "to": surprise_color(most, most, mode),
        "low": "0 nats: certain",
        "high": f"{fixed(most, 1)} nats or more: a blind guess",
        "rest": "Point at a token; a click shows what the model expected in its place.",
    }
    if unchanged is not None:
        legend["ghost"] = f"{marks.CHANGED} above, {marks.UNCHANGED} below"
    return chips, legend


def surprise_sentence(row: pd.Series) -> str:
    """The words after `·sat`: "came with 2.1 nats of surprise: the model gave it 0.117 ..."."""
    if row["nats"] >= 0.05:
        amount = fixed(row["nats"], 1)
    else:
        amount = fixed(row["nats"], 3)
    return (
        f"came with {amount} nats of surprise: "
        f"the model gave it {probability_text(row['probability'])}, rank {int(row['rank']):,}."
    )
