"""A sum of many parts, made ready to read: the names of its parts, and which of them are shown alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.both import Both
from gptviz.digits import fixed, percent, significant

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


_SPOKEN = {
    "embedding": "the token's embedding",
    "position": "the position's embedding",
    "final shift": "the final LayerNorm's shift",
    "edit": "the change itself",
}
_INSIDE = {
    "heads": "the heads",
    "attention": "the attention",
    "attention bias": "the attention's bias",
    "feed-forward": "the feed-forward layer",
}


def spoken(part: str, block: object, head: object) -> str:
    """A part's name in a sentence: "head 5·3", "the feed-forward layer of block 5", "the token's embedding".

    "heads" are all heads of a block.
    """
    if pd.isna(block):
        return _SPOKEN.get(part, part)
    if not pd.isna(head):
        return f"head {block}·{head}"
    return f"{_INSIDE.get(part, part)} of block {block}"


def portion(part: float, whole: float) -> str | None:
    """How much of a sum one of its terms is, in words: "about half"; None if it is no part between 0 and all."""
    if whole == 0 or not 0 < part / whole <= 1:
        return None
    share = part / whole
    for least, says in _PORTIONS:
        if share >= least:
            return says or percent(share)
    return percent(share)


# from which share on; an empty text is a percentage
_PORTIONS = (
    (1.0, "all"),
    (0.9, "almost all"),
    (0.75, "most"),
    (0.55, "more than half"),
    (0.45, "about half"),
    (0.37, ""),
    (0.30, "about a third"),
    (0.28, ""),
    (0.22, "about a quarter"),
)


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
