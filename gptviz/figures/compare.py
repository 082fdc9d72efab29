"""Two distributions of the next token, back to back: the left side's blue, the right side's orange."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np

from gptviz.figures.marks import BARE, Floats, axis_names, heading, names_down, on, safe, says
from gptviz.figures.next_token import probability_text
from gptviz.figures.theme import Figure, Mode, figure, palette

LETTERS, LINES = 20, 3  # of a side's name: on a phone there is no room for more
WHOLE = 1.3  # a side's width, as a probability: beyond 1 is room for the number at a bar's end
MIDDLE = (0.4, 0.6)  # of the width: between these stand the tokens


def back_to_back(
    tokens: Sequence[str], left: Floats, right: Floats, sides: tuple[str, str], mode: Mode
) -> Figure:
    """The probabilities of the same n tokens, (n,) each: NaN where a side's vocabulary does not have one.

    From 0 to 1 on either side, the tokens in between. `sides` are the two sides' names.
    """
    colors, places = palette(mode), np.arange(len(tokens), dtype=np.int32)
    names = [*map(safe, tokens)]
    wrapped = [wrap(side, LETTERS, max_lines=LINES, placeholder=" …") or [side] for side in sides]
    heads = ["<b>" + "<br>".join(map(safe, lines)) + "</b>" for lines in wrapped]
    above = 18 * (max(map(len, wrapped)) - 1)  # pixels of their further lines
    plain = BARE | {"showticklabels": False}
    layout: dict[str, Any] = {
        "bargap": 0.3,
        "annotations": [
            heading(heads[0], MIDDLE[0], 1, xanchor="right", align="right"),
            heading(heads[1], MIDDLE[1], 1),
            *(
                {"text": name, "x": sum(MIDDLE) / 2, "xref": "paper", "xanchor": "center", "y": place}
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
        (x, y), (xaxis, yaxis) = axis_names(number)
        written = ["not in its vocabulary" if p != p else probability_text(p) for p in values]
        layout[xaxis] = plain | {"domain": domain, "range": room, "anchor": y}
        layout[yaxis] = plain | {"range": names_down(len(tokens))["range"], "anchor": x}
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": np.nan_to_num(values),
                "y": places,
                "marker": {"color": color},
                "text": written,
                "textposition": "outside",
                "cliponaxis": False,
            }
            | on(number)
            | says(f"`{a}`, {safe(side)}: {b}" for a, b in zip(names, written, strict=True))
        )
    return figure(traces, layout, mode, height=44 + above + 26 * len(tokens), t=30 + above)
