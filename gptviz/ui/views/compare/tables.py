"""The tables of the Compare page's In numbers."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.ui.views.compare.sides import Sides


def heads_table(apart: NDArray[np.float64]) -> pd.DataFrame:
    """(L, H) -> a row a head, the one that differs most first."""
    blocks, heads = np.indices(apart.shape)
    table = pd.DataFrame({"block": blocks.ravel(), "head": heads.ravel(), "elsewhere": apart.ravel()})
    return table.sort_values("elsewhere", ascending=False, kind="stable", ignore_index=True)


def streams_table(distances: NDArray[np.float64], sides: Sides) -> pd.DataFrame:
    """(L + 1, P) -> a row a depth and pair; the last depth is the end, after all blocks."""
    depths, pairs = distances.shape
    return pd.DataFrame(
        {
            "before_block": np.repeat(np.arange(depths), pairs),
            "left_position": sides.pairs.left * depths,
            "right_position": sides.pairs.right * depths,
            "left_token": [sides.tokens[i].text for i in sides.pairs.left] * depths,
            "right_token": [sides.other_tokens[i].text for i in sides.pairs.right] * depths,
            "one_less_cosine": distances.ravel(),
        }
    )
