"""The tables under *In numbers* of the Logit lens page."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from gptviz.analysis.lens import Cells, Followed
from gptviz.figures.lens import Bar, Trail
from gptviz.ui.views.both import both
from gptviz.ui.views.logit_lens.derived import Part

Show = Callable[[int], str]


def rows_table(
    found: Cells, names: Sequence[str], show: Show, unchanged: Cells | None = None
) -> pd.DataFrame:
    """One position, (R,): a row a depth."""
    if unchanged is not None:
        own = rows_table(unchanged, names, show)
        return both(rows_table(found, names, show), own, list(own)[2:])
    return pd.DataFrame(
        {
            "depth": range(len(names)),
            "after": list(names),
            "token": [show(int(i)) for i in found.ids[:, 0]],
            "id": found.ids[:, 0],
            "probability": found.probabilities[:, 0],
            "entropy_bits": found.entropy,
            "kl_bits": found.kl,
        }
    )


def lines_table(
    lines: Sequence[Trail], names: Sequence[str], unchanged: Sequence[Trail] = ()
) -> pd.DataFrame:
    """The curves: a row a token and depth."""
    if unchanged:
        return both(lines_table(lines, names), lines_table(unchanged, names), ["probability", "rank"])
    return pd.DataFrame(
        [
            {
                "token": line.shown,
                "id": line.id,
                "depth": depth,
                "after": name,
                "probability": p,
                "rank": rank,
            }
            for line in lines
            for depth, (name, p, rank) in enumerate(zip(names, line.probabilities, line.ranks, strict=True))
        ]
    )


def bars_table(bars: Sequence[Bar]) -> pd.DataFrame:
    """A depth beside the end."""
    return pd.DataFrame(
        [
            {
                "token": bar.shown,
                "id": bar.id,
                "probability": bar.here,
                "rank": bar.here_rank,
                "final_probability": bar.final,
                "final_rank": bar.final_rank,
            }
            | ({} if bar.was is None else dict(zip(UNCHANGED_BAR, bar.was, strict=True)))
            for bar in bars
        ]
    )


UNCHANGED_BAR = ("unchanged probability", "unchanged final_probability")


def grid_table(
    found: Cells,
    parts: Sequence[Part],
    names: Sequence[str],
    tokens: Sequence[str],
    show: Show,
    followed: tuple[str, Followed] | None,
) -> pd.DataFrame:
    """The cells that have been read, (R, K): column after column, from the first depth to the last."""
    positions = np.concatenate([np.arange(*part) for part in parts])
    rows, columns = found.entropy.shape
    flat = lambda values: values.T.reshape(rows * columns)  # noqa: E731  (R, K) -> (K * R,)
    shown = {int(i): show(int(i)) for i in np.unique(found.ids[..., 0])}
    top = flat(found.ids[..., 0])
    table = pd.DataFrame(
        {
            "position": np.repeat(positions, rows),
            "token": [tokens[p] for p in positions for _ in range(rows)],
            "depth": np.tile(np.arange(rows), columns),
            "after": list(names) * columns,
            "says": [shown[int(i)] for i in top],
            "id": top,
            "probability": flat(found.probabilities[..., 0]),
            "entropy_bits": flat(found.entropy),
            "kl_bits": flat(found.kl),
        }
    )
    if followed is not None:
        label, own = followed
        table[f"probability of {label}"] = flat(own.probabilities)
        table[f"rank of {label}"] = flat(own.ranks)
    return table
