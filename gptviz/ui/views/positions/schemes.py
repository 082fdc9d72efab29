"""The four ways to say where a token stands, as this page compares them, in a model's own sizes."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz import LanguageModel
from gptviz.lessons import positions as lesson

SCHEMES = {"learned": "Learned", "sinusoidal": "Sinusoidal", "rope": "RoPE", "none": "None"}

MOST_ROWS, MOST_COLUMNS = 128, 256  # that a picture shows; the numbers are of all


def rows_of(lm: LanguageModel, scheme: str) -> torch.Tensor:
    """(context_length, d): the model's own rows, the paper's, what RoPE makes of (1, 0, ...), or zeros."""
    n, d = lm.config.context_length, lm.config.emb_dim
    if scheme == "learned":
        return lm.model.pos_emb.weight.detach().double().cpu()
    if scheme == "sinusoidal":
        return lesson.sinusoidal(n, d)
    if scheme == "rope":  # in each head, of as many dimensions as a head has
        return lesson.rotations(n, lesson.even_part(d // lm.config.n_heads))
    return torch.zeros(n, d, dtype=torch.float64)


def distances(lm: LanguageModel, scheme: str) -> pd.DataFrame:
    """`products_by_distance` of a scheme's rows; those of a formula are worked out once."""
    if scheme == "learned":
        return lesson.products_by_distance(rows_of(lm, scheme))
    n, d = rows_of(lm, scheme).shape
    return _by_formula(scheme, n, d)


@lru_cache(maxsize=12)
def _by_formula(scheme: str, n: int, d: int) -> pd.DataFrame:
    made = {"sinusoidal": lesson.sinusoidal, "rope": lesson.rotations}
    rows = made[scheme](n, d) if scheme in made else torch.zeros(n, d, dtype=torch.float64)
    return lesson.products_by_distance(rows)


def shown(rows: torch.Tensor) -> tuple[NDArray[np.float64], list[int]]:
    """The first rows of a table and, where it is wide, pairs of dimensions evenly spread; and which."""
    d = rows.shape[1]
    step = -(-d // MOST_COLUMNS)
    dimensions = [i for i in range(d) if (i // 2) % step == 0]
    return rows[:MOST_ROWS, dimensions].numpy(), dimensions


def scores(
    lm: LanguageModel, query: int, key: int, head: int, distance: int
) -> Mapping[str, NDArray[np.float64]]:
    """For two tokens of the vocabulary, `distance` apart, one head's score in block 0 at every place."""
    block, table = lm.model.trf_blocks[0], lm.model.tok_emb.weight
    n, head_dim = lm.config.context_length, lm.config.emb_dim // lm.config.n_heads

    def along(rows: torch.Tensor | None, rotary: bool = False) -> NDArray[np.float64]:
        return lesson.scores_along(block, table[query], table[key], rows, head, distance, n, rotary)

    found = {
        SCHEMES["learned"]: along(lm.model.pos_emb.weight),
        SCHEMES["sinusoidal"]: along(rows_of(lm, "sinusoidal")),
    }
    if head_dim % 2 == 0:
        found[SCHEMES["rope"]] = along(None, rotary=True)
    return found | {SCHEMES["none"]: along(None)}


def properties(
    lm: LanguageModel, scores: Mapping[str, NDArray[np.float64]], known: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """A row a scheme: by how much a pair's products, and its score, differ over all places.

    `known` are the `distances` of schemes for which they have been worked out.

    Columns: scheme, product (of two equal rows, on average), product changes (most less least, at the
    distance where that is largest), score (on average), score changes.
    """
    rows = []
    for scheme, name in SCHEMES.items():
        if name not in scores:
            continue
        table = known[scheme] if scheme in known else distances(lm, scheme)
        rows.append(
            {
                "scheme": name,
                "product": float(table["mean"].iloc[0]),
                "product changes": float((table["most"] - table["least"]).max()),
                "score": float(scores[name].mean()),
                "score changes": float(np.ptp(scores[name])),
            }
        )
    return pd.DataFrame(rows)
