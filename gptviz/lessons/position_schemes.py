"""Ways to say where a token stands, each made for a model's own sizes and weights, to be compared.

The rows and rotations themselves are in `gptviz.lessons.positions`.
"""

from functools import lru_cache

import numpy as np
import pandas as pd
import torch

from gptviz.engine.language_model import LanguageModel
from gptviz.lessons.positions import even_part, products_by_distance, rotations, scores_along, sinusoidal

SCHEMES = {"learned": "Learned", "sinusoidal": "Sinusoidal", "rope": "RoPE", "none": "None"}


def position_rows(lm: LanguageModel, scheme: str) -> torch.Tensor:
    """(context_length, d): the model's own rows, sines, what RoPE makes of (1, 0, 1, 0, ...), or zeros.

    d is emb_dim; of RoPE, which turns queries and keys, a head's dimensions. ValueError for another scheme.
    """
    if scheme == "learned":
        return lm.model.pos_emb.weight.detach().double().cpu()
    n, d = lm.config.context_length, lm.config.emb_dim
    return _by_formula(scheme, n, even_part(d // lm.config.n_heads) if scheme == "rope" else d)


def products(lm: LanguageModel, scheme: str) -> pd.DataFrame:
    """`products_by_distance` of a scheme's rows; those of a formula are worked out once."""
    rows = position_rows(lm, scheme)
    return products_by_distance(rows) if scheme == "learned" else _products(scheme, *rows.shape)


def _by_formula(scheme: str, n: int, d: int) -> torch.Tensor:
    if scheme not in SCHEMES:
        raise ValueError(f"there is no scheme {scheme!r}; there are {', '.join(SCHEMES)}")
    made = {"sinusoidal": sinusoidal, "rope": rotations}
    return made[scheme](n, d) if scheme in made else torch.zeros(n, d, dtype=torch.float64)


@lru_cache(maxsize=12)
def _products(scheme: str, n: int, d: int) -> pd.DataFrame:
    return products_by_distance(_by_formula(scheme, n, d))


def pair_scores(lm: LanguageModel, query: int, key: int, head: int, distance: int) -> pd.DataFrame:
    """The score of one token's query for another's key, `distance` before it, at every place of a text.

    `query` and `key` are ids; the head is one of block 0. A column per scheme, by its name on the screen (no
    RoPE where a head has an odd number of dimensions), and a row per place of the query.
    """
    block, table, n = lm.model.trf_blocks[0], lm.model.tok_emb.weight, lm.config.context_length

    def along(rows: torch.Tensor | None, rotary: bool = False) -> np.ndarray:
        return scores_along(block, table[query], table[key], rows, head, distance, n, rotary)

    found = {"learned": along(lm.model.pos_emb.weight), "sinusoidal": along(position_rows(lm, "sinusoidal"))}
    if lm.config.emb_dim // lm.config.n_heads % 2 == 0:
        found["rope"] = along(None, rotary=True)
    found["none"] = along(None)
    places = pd.RangeIndex(distance, n, name="query at")
    return pd.DataFrame({SCHEMES[scheme]: values for scheme, values in found.items()}, index=places)


def compared(lm: LanguageModel, scores: pd.DataFrame) -> pd.DataFrame:
    """A row per scheme: what depends on where a pair of tokens stands, and not on its distance alone.

    `scores` are `pair_scores`. Columns: scheme, product (of a row with itself, on average), product changes
    (the largest minus the least of all pairs at one distance, at the worst distance), score (on average),
    score changes (over all places).
    """
    rows = []
    for scheme, name in SCHEMES.items():
        if name in scores:
            table, along = products(lm, scheme), scores[name]
            moved = float((table["most"] - table["least"]).max())
            rows.append((name, float(table["mean"].iloc[0]), moved, along.mean(), np.ptp(along)))
    return pd.DataFrame(rows, columns=["scheme", "product", "product changes", "score", "score changes"])
