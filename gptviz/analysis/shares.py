"""A sum of many parts as a person reads it: what its parts are called, and which stand alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.both import Both
from gptviz.digits import fixed, significant

Floats = NDArray[np.floating]


def label_of(part: str, block: object, head: object) -> str:
    """Return "block 5 · head 3", "block 5 · feed-forward", "embedding"."""
    if pd.isna(block):
        return part
    if pd.isna(head):
        inside = part
    else:
        inside = f"head {head}"
    return f"block {block} · {inside}"


@dataclass(frozen=True)
class Waterfall:
    """Parts as bars, each beginning where the one before it ends, and their sum: B bars.

    `rows` are the parts of each bar but the sum's, `names` and `says` (of both runs) stand for all; `values`
    (B,) of both runs, `base` (B,) where they begin.
    """

    rows: list[NDArray[np.intp]]
    names: list[str]
    values: Both[Floats]
    base: Floats
    says: Both[Sequence[str]]

    @classmethod
    def of(cls, names: Sequence[str], values: Both[NDArray[np.float64]]) -> "Waterfall":
        """Build the bars of named parts; the last of `values` is their sum."""
        rows = waterfall(values.now[:-1])
        called = [
            names[indices[0]] if len(indices) == 1 else f"{len(indices)} other parts"
            for indices in rows
        ]
        bars: Both[Floats] = values.map(
            lambda v: np.array([*(v[indices].sum() for indices in rows), v[-1]])
        )
        base = np.array([0.0, *np.cumsum(bars.now[:-1])[:-1], 0.0])

        def says(shares: Floats) -> Sequence[str]:
            sentences = []
            for name, share in zip(called, shares[:-1], strict=True):
                verb = "lowers"
                if share >= 0:
                    verb = "raises"
                sentences.append(f"{name}: {verb} it by {significant(abs(share))}")
            sentences.append(f"all parts: {fixed(shares[-1], 4)}")
            return sentences

        return cls(rows, [*called, "sum"], bars, base, bars.map(says))

    @property
    def written(self) -> list[str]:
        """The number at each bar's end."""
        *parts, total = self.values.now.tolist()
        return [*(fixed(x, 2) for x in parts), fixed(total, 4)]


def waterfall(values: NDArray[np.float64], count: int = 12) -> list[NDArray[np.intp]]:
    """The indices of the values (n,) that each bar sums: the `count` largest alone, all others in the last.

    Of the bars of one value the one that raises most comes first, the one that lowers most last.
    """
    order = np.argsort(-np.abs(values), kind="stable")
    alone = order[:count][np.argsort(-values[order[:count]], kind="stable")]
    return [*alone[:, None], *([order[count:]] if len(values) > count else [])]
