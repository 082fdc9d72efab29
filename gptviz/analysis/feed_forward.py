"""The feed-forward of a block, unit by unit: what it is given, what fires, and what each unit writes.

A unit is one of the 4D numbers between the two matrices: it reads a row of the first, and writes along a
column of the second. Shapes: T tokens, D emb_dim, U = 4D units, V vocabulary. Worked out in float64 on
the captured float32 values.

Geva et al., Transformer Feed-Forward Layers Are Key-Value Memories, 2021, and Transformer Feed-Forward Layers
Build Predictions by Promoting Concepts in the Vocabulary Space, 2022; the book's section 4.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz.analysis.logit_attribution import direct_effects
from gptviz.analysis.norms import inside
from gptviz.analysis.reads import reads
from gptviz.engine.index import whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.model import GELU, GPTModel

Floats = NDArray[np.float64]

SITES = ("resid_mid", "mlp_pre", "mlp_act", "mlp_out")

ROUNDING = 0.01  # by which shares may miss their sum: a pass in bfloat16 rounds to three digits
REPLACED = 0.1  # of the largest number that comes out: what rounding leaves is less, in bfloat16 too


def sites(block: int) -> tuple[tuple[str, int], ...]:
    """The sites of a trace that `units` reads."""
    return tuple((site, block) for site in SITES)


@dataclass(frozen=True)
class Units:
    """All units of one block at one token.

    `given` (D,): what norm2 hands over. `before`, `after` (U,): each unit's number before and after GELU.
    `columns` (U,): the size of each unit's output column; `writes` (U,): |after| * columns, the size of what
    it writes. `written` (D,): what comes out. `shares` (U,): what each unit gave of that, along its own
    direction; with `bias_share` they sum to 1. `quiet`: the size of what the units that do not fire write
    together. `difference`: the largest |sum of all writes + bias - written|, which is what rounding leaves.
    """

    given: Floats
    before: Floats
    after: Floats
    columns: Floats
    writes: Floats
    written: Floats
    shares: Floats
    bias_share: float
    quiet: float
    difference: float

    @property
    def fires(self) -> NDArray[np.bool_]:
        """(U,): a unit fires if its number before GELU is above 0."""
        return self.before > 0

    @property
    def size(self) -> float:
        """The length of what comes out."""
        return float(np.linalg.norm(self.written))

    @property
    def is_replaced(self) -> bool:
        """Whether a change put something else in place of what the units write together."""
        return self.difference > REPLACED * max(float(np.abs(self.written).max()), self.difference)

    @property
    def adds_up(self) -> bool:
        """Whether the shares of all units and of the bias sum to 1, as they do unless a change interferes."""
        return abs(float(self.shares.sum()) + self.bias_share - 1) < ROUNDING

    def largest(self, count: int) -> list[int]:
        """The units that write most, the largest first; of equal ones that with the lower number."""
        return [int(u) for u in np.argsort(-self.writes, kind="stable")[:count]]

    def half(self) -> int:
        """The fewest units that make up half of the sum of all sizes; 0 if none writes."""
        total = np.cumsum(np.sort(self.writes)[::-1])
        if total[-1] > 0:
            return int(np.searchsorted(total, total[-1] / 2)) + 1
        return 0


@reads(lambda lm, block, position: sites(block))
def units(lm: LanguageModel, t: Trace, block: int, position: int) -> Units:
    """All units of one block at one token. In a trace with edits the sum may not hold: see `difference`."""
    before, after, written = (t[site, block][position].numpy().astype(np.float64) for site in SITES[1:])
    second: Any = lm.model.get_submodule(f"trf_blocks.{block}.ff.layers.2")
    matrix = _numbers(second.weight)  # (D, U): a column a unit
    if second.bias is None:
        bias = np.zeros(len(matrix))
    else:
        bias = _numbers(second.bias)
    columns = np.sqrt(np.einsum("du,du->u", matrix, matrix))
    square = float(written @ written)
    if square:
        shares = after * np.einsum("d,du->u", written, matrix) / square
    else:
        shares = np.zeros_like(after)
    return Units(
        given=inside(lm, t, f"block {block} · norm2", position).after,
        before=before,
        after=after,
        columns=columns,
        writes=np.abs(after) * columns,
        written=written,
        shares=shares,
        bias_share=float(bias @ written) / square if square else 0.0,
        quiet=float(np.linalg.norm(_times(matrix, np.where(before > 0, 0, after)))),
        difference=float(np.abs(_times(matrix, after) + bias - written).max()),
    )


def unit_table(found: Units) -> pd.DataFrame:
    """A row a unit, the one that writes most first.

    Columns: unit, before, after, fires, column (the size of its output column), writes, share (of what comes
    out, along its own direction; with the bias's they sum to 1).
    """
    order = found.largest(len(found.writes))
    columns = {"before": found.before, "after": found.after, "fires": found.fires, "column": found.columns}
    columns |= {"writes": found.writes, "share": found.shares}
    return pd.DataFrame({"unit": order} | {name: values[order] for name, values in columns.items()})


# ---- what a unit's write adds to the tokens ----


@dataclass(frozen=True)
class Moved:
    """The tokens that a row raises and lowers most: (id, by how much), the largest first."""

    raises: list[tuple[int, float]]
    lowers: list[tuple[int, float]]


@reads(lambda lm, *_: (("resid_post", lm.config.n_layers - 1),))
def readings(
    lm: LanguageModel,
    t: Trace,
    block: int,
    chosen: Sequence[int],
    activations: Sequence[float],
    k: int,
    position: int = -1,
) -> list[Moved]:
    """What each unit's write at a position adds to each logit minus the mean of all logits.

    The direct effect, as in `gptviz.analysis.attribution`: the final LayerNorm's divisor is held as it is at
    this position, and what later blocks make of the write is not in it.
    ValueError for k < 1, and for a position that there is not.
    """
    second: Any = lm.model.get_submodule(f"trf_blocks.{block}.ff.layers.2")
    columns = second.weight.detach()[:, list(chosen)].T.contiguous()  # (D, n) -> (n, D)
    times = torch.tensor(list(activations), dtype=torch.float32)[:, None]
    effects = direct_effects(t, lm.model, columns, position) * times  # (n, V)
    k = min(whole("k", k, 1), effects.shape[1])
    high = effects.topk(k)
    low = effects.topk(k, largest=False)

    def pairs(top: torch.return_types.topk, row: int) -> list[tuple[int, float]]:
        return list(zip(top.indices[row].tolist(), top.values[row].tolist(), strict=True))

    return [Moved(pairs(high, row), pairs(low, row)) for row in range(len(effects))]


# ---- GELU ----


@dataclass(frozen=True)
class Curve:
    """The model's own activation function at some points: `x`, `y` (P,); `tanh`: it is the book's GELU."""

    x: Floats
    y: Floats
    tanh: bool


@undisturbed
def activation_curve(model: GPTModel, block: int, low: float, high: float, points: int = 200) -> Curve:
    """The block's activation from `low` to `high`, closely about 0, where it differs from ReLU."""
    layer = model.get_submodule(f"trf_blocks.{block}.ff.layers.1")
    x = np.unique(np.concatenate([np.linspace(low, high, points), np.linspace(-4, 4, points)]))
    with torch.no_grad():
        y = layer(torch.from_numpy(x).float()).double().numpy()
    return Curve(x, y, isinstance(layer, GELU))


# ---- what excites a unit ----


@reads(lambda lm, block, unit: (("mlp_act", block),))
def excites(lm: LanguageModel, t: Trace, block: int, unit: int) -> NDArray[np.float32]:
    """A unit's activation at every token: (T,)."""
    return t["mlp_act", block][:, unit].numpy()


@dataclass(frozen=True)
class Peaks:
    """Every unit of a block in one text: its largest activation, where that is, how often it fires; (U,)."""

    value: NDArray[np.float32]
    position: NDArray[np.int16]
    fired: NDArray[np.int16]


def peaks_of(act: torch.Tensor) -> Peaks:
    """(T, U) -> `Peaks`, without the first token: nothing stands before it, and many models treat it apart.

    ValueError for a text of a single token.
    """
    if len(act) < 2:
        raise ValueError("a text of one token has no token with another before it")
    value, position = act[1:].max(dim=0)
    counts = (position + 1, (act[1:] > 0).sum(dim=0))
    return Peaks(value.numpy().copy(), *(count.numpy().astype(np.int16) for count in counts))


PEAKS = Reduction("feed-forward peaks", "mlp_act", peaks_of)


def _times(matrix: Floats, row: Floats) -> Floats:
    """(D, U) x (U,) -> (D,). Not by BLAS, whose threads go on spinning long after they are done."""
    return np.einsum("du,u->d", matrix, row)


def _numbers(weight: torch.Tensor) -> Floats:
    # not by torch, whose threads would take ten times as long
    return weight.detach().float().cpu().numpy().astype(np.float64)
