"""A head's portrait: how far back it looks, and how spread out its rows are."""

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import fixed, significant
from gptviz.figures.figure import Figure
from gptviz.figures.marks import SHARES
from gptviz.figures.theme import Mode, figure, palette

Floats = NDArray[np.floating]
FAR = 24  # tokens back that have a bar of their own


def distances(shares: Floats, mode: Mode) -> Figure:
    """How far back a head looks: of all its attention the share that goes 0, 1, 2 ... tokens back, (D,).

    What goes `FAR` tokens back or farther is one bar, the last.
    """
    colors = palette(mode)
    shares = np.append(shares[:FAR], shares[FAR:].sum()) if len(shares) > FAR + 1 else shares
    n = len(shares)
    names = ["itself", *map(str, range(1, n - 1)), f"{n - 1}+"]  # a longer one would run over the edge
    far = ["to the token itself", *(f"{d} back" for d in range(1, n - 1)), f"{n - 1} or more back"]
    bars = {
        "type": "bar",
        "x": np.arange(n),
        "y": shares,
        "marker": {"color": colors.output},
        "customdata": [
            f"{significant(100 * float(s), 2)} % goes {f}" for s, f in zip(shares, far, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    every = max(1, -(-n // 10))
    ticks = [i for i in range(n) if i % every == 0 and n - 1 - i >= every] + [n - 1]
    layout = {
        "xaxis": {
            "title": {"text": "tokens back"},
            "tickvals": ticks,
            "ticktext": [names[i] for i in ticks],
            "fixedrange": True,
            "showgrid": False,
        },
        "yaxis": SHARES | {"title": {"text": "share of its attention"}},
        "bargap": 0.15,
    }
    return figure([bars], layout, mode, height=260)


def entropies(counts: NDArray[np.integer], most: float, mode: Mode) -> Figure:
    """How many rows have which entropy: (bins,) equal parts from 0 to `most` nats."""
    colors, n, rows = palette(mode), len(counts), max(1, int(counts.sum()))
    edges = np.linspace(0, most, n + 1)
    bars = {
        "type": "bar",
        "x": (edges[:-1] + edges[1:]) / 2,
        "y": counts / rows,
        "width": np.diff(edges) * 0.9,
        "marker": {"color": colors.output},
        "customdata": [
            f"{significant(100 * count / rows, 2)} % of its rows have an entropy from "
            f"{fixed(low, 1)} to {fixed(high, 1)} nats"
            for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "entropy of a row, in nats"}, "fixedrange": True, "showgrid": False},
        "yaxis": SHARES | {"title": {"text": "share of its rows"}},
    }
    return figure([bars], layout, mode, height=260)
