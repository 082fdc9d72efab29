"""A sum of many parts as a person reads it: what its parts are called, and which stand alone."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def label_of(part: str, block: object, head: object) -> str:
    """Return "block 5 · head 3", "block 5 · feed-forward", "embedding"."""
    if pd.isna(block):
        return part
    return f"block {block} · {part if pd.isna(head) else f'head {head}'}"


def waterfall(values: NDArray[np.float64], count: int = 12) -> list[NDArray[np.intp]]:
    """Which of the values (n,) each bar sums: the `count` largest alone, all others together in the last one.

    What raises most comes first, what lowers most last of those that stand alone.
    """
    order = np.argsort(-np.abs(values), kind="stable")
    alone = order[:count][np.argsort(-values[order[:count]], kind="stable")]
    return [*alone[:, None], *([order[count:]] if len(values) > count else [])]
