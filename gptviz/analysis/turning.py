"""Turned queries and keys (RoPE): what a position does to a score, one pair of numbers at a time.

A head's d numbers are d/2 pairs, the coordinates of points in planes: number i and number i + d/2. At position p
pair i is turned by the angle p * f_i, where f_i is its frequency in radians a token. A dot product of two points
is |q| |k| cos(the angle between them); turned, that angle grows by (p_query - p_key) f_i. So a score depends on
the distance of two tokens, and not on where they stand.

Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021; `gptviz.llama.compute_rope_params`.

Shapes: T tokens, d head_dim. In float64, from the captured numbers.
"""

from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz.analysis.attention import of_heads
from gptviz.analysis.reads import Sites, reads
from gptviz.engine.architecture import architecture_of
from gptviz.engine.index import whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.llama import compute_rope_params

Floats = NDArray[np.float64]


def turns(lm: LanguageModel) -> bool:
    """Whether this model turns queries and keys by their positions."""
    return "position" not in architecture_of(lm.config).embedded


@undisturbed
def frequencies(lm: LanguageModel, block: int = 0) -> Floats:
    """The radians by which a block turns each pair a token, (d/2,), with the model's own scaling.

    They are 0 for a model that turns nothing.
    """
    if not turns(lm):
        return np.zeros(-(-lm.config.head_dim // 2))
    att: Any = lm.model.trf_blocks[block].att
    cos, sin = compute_rope_params(att.head_dim, att.rope_base, 2, att.rope_freq)
    # of the first token after position 0; each frequency stands twice, for both numbers of its pair
    angles = torch.atan2(sin[1].double(), cos[1].double())
    return angles[: att.head_dim // 2].numpy()


def _turned(lm: LanguageModel, block: int, *_: object) -> Sites:
    return tuple((site, block) for site in architecture_of(lm.config).scores)


def _pairs(t: Trace, block: int, head: int, query: int, key: int) -> tuple[Floats, Floats]:
    """A turned query and a turned key as complex numbers, (d/2,) each: a pair is x + iy."""
    of_query, of_key = architecture_of(t.config).scores
    rows = [
        of_heads(t, of_query, block)[head, query].double(),
        of_heads(t, of_key, block)[head, key].double(),
    ]
    # a head that turns nothing may have an odd number of numbers: the last is a pair with a 0
    rows = [torch.nn.functional.pad(row, (0, len(row) % 2)) for row in rows]
    half = len(rows[0]) // 2
    q, k = (torch.complex(row[:half], row[half:]).numpy() for row in rows)
    return q, k


@reads(_turned)
def dials(lm: LanguageModel, t: Trace, block: int, head: int, query: int, key: int) -> pd.DataFrame:
    """What each pair of a head does to the score of a query and a key: a row a pair.

    Columns: pair, frequency (radians a token), turn (tokens until it is round once), query_angle and key_angle
    (of the turned ones, in radians), query_length, key_length, unturned (the pair's part of the dot product
    before turning) and turned (after it). The turned parts sum to the score, before it is divided by sqrt(d).
    A pair that is not turned never comes round: its turn is infinite.
    """
    f = frequencies(lm, block)
    q, k = _pairs(t, block, head, query, key)
    before = q * np.exp(-1j * query * f) * np.conj(k * np.exp(-1j * key * f))
    return pd.DataFrame(
        {
            "pair": np.arange(len(f)),
            "frequency": f,
            "turn": np.divide(2 * np.pi, f, out=np.full_like(f, np.inf), where=f > 0),
            "query_angle": np.angle(q),
            "key_angle": np.angle(k),
            "query_length": np.abs(q),
            "key_length": np.abs(k),
            "unturned": before.real,
            "turned": (q * np.conj(k)).real,
        }
    )


@reads(_turned)
def by_distance(
    lm: LanguageModel, t: Trace, block: int, head: int, query: int, key: int, most: int = 64
) -> Floats:
    """The score, divided by sqrt(d), that this query and key would have at a distance of 0 to `most` tokens.

    (most + 1,). At their own distance it is the model's own; at any other the two are as they were, but turned
    by other positions. Where nothing is turned, it is the same at every distance.
    """
    most = whole("most", most, 0)
    f = frequencies(lm, block)
    q, k = _pairs(t, block, head, query, key)
    unturned = q * np.exp(-1j * query * f) * np.conj(k * np.exp(-1j * key * f))  # (d/2,)
    distances = np.arange(most + 1)
    scores = (unturned * np.exp(1j * distances[:, None] * f)).real.sum(axis=1)  # (most + 1,)
    return scores / np.sqrt(t.config.head_dim)
