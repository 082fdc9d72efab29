"""The next token's distribution in words and pictures."""

import math
from html import escape
from typing import Any

import pandas as pd

from gptviz.analysis.loss import perplexity
from gptviz.digits import fixed, significant
from gptviz.figures.marks import CHANGED, GHOSTED, ghost_curve
from gptviz.figures.theme import Figure, Mode, Palette, figure, mixed, palette


def probability_text(p: float) -> str:
    """A probability with the digits that mean something, however small, and never 0 or 1 by rounding.

    >>> [probability_text(p) for p in (0.1172, 0.00412, 3.71e-6, 0.99996, 0.0, 1.0)]
    ['0.117', '0.00412', '3.71 × 10⁻⁶', '0.99996', '0', '1']
    """
    if p in (0, 1):
        return f"{p:.0f}"
    if p >= 0.99:  # as many nines as it has (a float's precision ends at the fifteenth), and one digit
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


def surprise_color(bits: float, most: float, mode: Mode) -> str:
    """Paper for what was certain, orange for `most` bits or more; flat grey for what nobody could expect."""
    colors = palette(mode)
    if math.isnan(bits):
        return colors.masked
    _, orange = colors.signed[3]  # not the deepest one: the token's own letters must stay readable on it
    return mixed(colors.paper, orange, bits / most)


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
    left = table[table["probability"] > 0]
    shapes, notes = [], []
    if kept < size:
        band = {"x0": kept + 0.5, "x1": size * 1.2, "y0": 0, "y1": 1, "yref": "paper", "line": {"width": 0}}
        shapes.append(band | {"type": "rect", "fillcolor": colors.masked, "opacity": 0.35})
        notes.append(_note(kept + 0.5, f"rank {kept + 1:,} on: cut", 0.98, colors))
    if came is not None:
        rank, token = came
        stroke = {"color": colors.accent, "width": 2, "dash": "dot"}
        shapes.append(
            {"type": "line", "x0": rank, "x1": rank, "y0": 0, "y1": 1, "yref": "paper", "line": stroke}
        )
        notes.append(_note(rank, f"{token} came: rank {rank:,}", 0.1, colors))
    lowest = max(float(table["model_probability"].min()), 1e-12)
    behind = _line(table["rank"], table["model_probability"], tokens, "the model gives it") | {
        "line": {"color": colors.quiet, "width": 2}
    }
    chosen = _line(left["rank"], left["probability"], tokens[: len(left)], "with these settings it has")
    if unchanged is not None:
        before, names = unchanged
        given = before[before["probability"] > 0]
        lowest = min([lowest, *given["probability"].clip(lower=1e-12)])
        says = _says(given["rank"], given["probability"], names[: len(given)], "unchanged, it has")
        behind = ghost_curve(given["rank"].to_numpy(), given["probability"].to_numpy(), mode, says)
    lines = [behind, chosen | {"name": CHANGED, "line": {"color": colors.output, "width": 4}}]
    layout = ({} if unchanged is None else GHOSTED) | {
        "shapes": shapes,
        "annotations": notes,
        "xaxis": {
            "type": "log",
            "title": {"text": "rank"},
            "range": [-0.08, math.log10(size * 1.2)],
            "dtick": 1,
        },
        "yaxis": {
            "type": "log",
            "title": {"text": "probability"},
            "range": [math.log10(lowest) - 0.3, 0.2],
            "dtick": 2,
            "exponentformat": "power",
        },
    }
    return figure(lines, layout, mode, height=300)


def _says(rank: pd.Series, probability: pd.Series, tokens: list[str], verb: str) -> list[str]:
    return [
        f"`{token}` is rank {r}: {verb} {probability_text(p)}"
        for token, r, p in zip(tokens, rank, probability, strict=True)
    ]


def _line(rank: pd.Series, probability: pd.Series, tokens: list[str], verb: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": rank.to_numpy(),
        "y": probability.to_numpy(),
        "mode": "lines+markers" if len(rank) < 3 else "lines",
        "text": [escape(sentence) for sentence in _says(rank, probability, tokens, verb)],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _note(x: float, words: str, height: float, colors: Palette) -> dict[str, Any]:
    """Words to the right of a vertical line."""
    return {
        "x": math.log10(x),
        "y": height,
        "yref": "paper",
        "text": escape(words),
        "xanchor": "left",
        "xshift": 6,
        "bgcolor": colors.paper,
        "font": {"color": colors.quiet, "size": 13},
    }
