"""The feed-forward of a block, unit by unit: its input, each unit's activation, and each unit's contribution.

A unit is one of the 4D numbers between the two linear layers. Its number before GELU is the dot product of
the input with a row of the first weight matrix; the number after GELU times a column of the second matrix is
the unit's "write", a vector (D,). The output of the feed-forward is the sum of all writes and the bias. A
unit "fires" if its number before GELU is above 0.

With SwiGLU a unit has two such numbers, of two matrices side by side: `before` is its gate, which goes through
SiLU, and `times` the other, its up, which the gate is multiplied with. A unit fires if its gate is above 0.

Shapes: T tokens, D emb_dim, U units (GPT-2: 4D), V vocabulary. Numbers are computed in float64 from the pass's
float32.

Geva et al., Transformer Feed-Forward Layers Are Key-Value Memories, 2021, and Transformer Feed-Forward Layers
Build Predictions by Promoting Concepts in the Vocabulary Space, 2022; the book's section 4.3. Shazeer, GLU
Variants Improve Transformer, 2020.
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
from gptviz.engine.architecture import architecture_of
from gptviz.engine.index import whole
from gptviz.engine.kinds import Model
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.model import GELU

Floats = NDArray[np.float64]

# by how much the sum of shares may differ from 1: a pass in bfloat16 rounds to three digits
ROUNDING = 0.01
# An edit has replaced the output if it differs from the sum of all writes by more than this part of its
# largest number; rounding alone, even in bfloat16, makes a smaller difference.
REPLACED = 0.1


def sites(lm: LanguageModel, block: int) -> tuple[tuple[str, int], ...]:
    """The sites of a trace that `units` reads."""
    kind = architecture_of(lm.config)
    names = ("resid_mid", *kind.hidden, kind.active, "mlp_out")
    return tuple((site, block) for site in names)


def _second(model: Model, block: int) -> Any:
    """The linear layer of a block that takes its units: (T, U) -> (T, D)."""
    return model.get_submodule(f"trf_blocks.{block}.{architecture_of(model).down}")


@dataclass(frozen=True)
class Units:
    """All units of one block at one token. Sizes are Euclidean norms.

    A unit's share is the dot product of its write with `written`, divided by the squared size of `written`:
    how much of the output the write makes up, in the output's own direction.
    """

    given: Floats  # (D,) the input of the feed-forward: the output of norm2
    before: Floats  # (U,) each unit's number before GELU, or its gate before SiLU
    bent: Floats  # (U,) GELU, or SiLU, of it
    after: Floats  # (U,) and after it; of a gate, times `times`
    columns: Floats  # (U,) the size of each unit's column of the second matrix
    writes: Floats  # (U,) the size of each unit's write: |after| * columns
    written: Floats  # (D,) the output of the feed-forward
    shares: Floats  # (U,) with `bias_share` they sum to 1
    bias_share: float
    quiet: float  # the size of the sum of the writes of all units that do not fire
    # the largest |sum of all writes + bias - written|: rounding, if there is no edit
    difference: float
    # (U,) the up of each unit, with which its gate is multiplied; None where there are no gates
    times: Floats | None = None

    @property
    def fires(self) -> NDArray[np.bool_]:
        """Whether each unit fires, (U,): whether its number before GELU is above 0."""
        return self.before > 0

    @property
    def size(self) -> float:
        """The size of the output."""
        return float(np.linalg.norm(self.written))

    @property
    def is_replaced(self) -> bool:
        """Whether an edit replaced the sum of all contributions."""
        return self.difference > REPLACED * max(float(np.abs(self.written).max()), self.difference)

    @property
    def adds_up(self) -> bool:
        """Whether the shares of all units and of the bias sum to 1, as they do without an edit."""
        return abs(float(self.shares.sum()) + self.bias_share - 1) < ROUNDING

    def largest(self, count: int) -> list[int]:
        """The numbers of the `count` units with the largest contributions, the largest first."""
        return [int(u) for u in np.argsort(-self.writes, kind="stable")[:count]]

    def half(self) -> int:
        """The smallest number of units that make up half of the sum of all sizes; 0 if all are 0."""
        total = np.cumsum(np.sort(self.writes)[::-1])  # (U,)
        if total[-1] > 0:
            return int(np.searchsorted(total, total[-1] / 2)) + 1
        return 0


@reads(lambda lm, block, position: sites(lm, block))
def units(lm: LanguageModel, t: Trace, block: int, position: int) -> Units:
    """All units of one block at the token at `position`.

    In a trace with edits, the writes may not sum to the output: see `Units.difference`.
    """
    before, *times, after, written = (
        t[site, block][position].numpy().astype(np.float64) for site, _ in sites(lm, block)[1:]
    )
    second = _second(lm.model, block)
    matrix = _numbers(second.weight)  # (D, U): a column for each unit
    if second.bias is None:
        bias = np.zeros(len(matrix))
    else:
        bias = _numbers(second.bias)
    columns = np.sqrt(np.einsum("du,du->u", matrix, matrix))  # (D, U) -> (U,)
    square = float(written @ written)
    if square:
        shares = after * np.einsum("d,du->u", written, matrix) / square  # (D,) x (D, U) -> (U,)
    else:
        shares = np.zeros_like(after)
    return Units(
        given=inside(lm, t, f"block {block} · norm2", position).after,
        before=before,
        bent=_bent(lm.model, block, before),
        after=after,
        columns=columns,
        writes=np.abs(after) * columns,
        written=written,
        shares=shares,
        bias_share=float(bias @ written) / square if square else 0.0,
        quiet=float(np.linalg.norm(_times(matrix, np.where(before > 0, 0, after)))),
        difference=float(np.abs(_times(matrix, after) + bias - written).max()),
        times=times[0] if times else None,
    )


def unit_table(found: Units) -> pd.DataFrame:
    """A table with one row per unit, the largest contribution first.

    Columns: unit, before, after, fires, column, writes, share. They are the fields of `Units`. Of units with
    gates "gate", "silu" of the gate, and "up" are in the place of "before".
    """
    order = found.largest(len(found.writes))
    columns: dict[str, Any] = {"before": found.before}
    if found.times is not None:
        columns = {"gate": found.before, "silu": found.bent, "up": found.times}
    columns |= {
        "after": found.after,
        "fires": found.fires,
        "column": found.columns,
    }
    columns |= {"writes": found.writes, "share": found.shares}
    return pd.DataFrame({"unit": order} | {name: values[order] for name, values in columns.items()})


# ---- what a unit's write adds to the logits ----


@dataclass(frozen=True)
class Moved:
    """The tokens whose logits a vector (D,) raises and lowers most: (id, by how much), the largest first."""

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
    """The k tokens whose logits, minus the mean of all, each chosen unit's contribution raises and lowers most.

    `activations` are the units' numbers after GELU. This is the direct effect, as in
    `gptviz.analysis.attribution`: the divisor of the final LayerNorm at this position is kept, and what later
    blocks make of the write is left out. Raises ValueError for k < 1 and for a position out of range.
    """
    second = _second(lm.model, block)
    columns = second.weight.detach()[:, list(chosen)].T.contiguous()  # (D, n) -> (n, D)
    times = torch.tensor(list(activations), dtype=torch.float32)[:, None]  # (n, 1)
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
    """The model's activation function at P points: GELU, or of a gate SiLU."""

    x: Floats  # (P,)
    y: Floats  # (P,)
    tanh: bool  # whether it is the book's GELU, which uses tanh; else it is torch's exact one, or SiLU


@undisturbed
def activation_curve(model: Model, block: int, low: float, high: float, points: int = 200) -> Curve:
    """The block's activation from `low` to `high`, with more points around 0, where it differs from ReLU."""
    # (P,), P up to 2 * points
    x = np.unique(np.concatenate([np.linspace(low, high, points), np.linspace(-4, 4, points)]))
    layer = architecture_of(model).bend(model.trf_blocks[block])
    return Curve(x, _bent(model, block, x), isinstance(layer, GELU))


# ---- where a unit is active ----


@reads(lambda lm, block, unit: (("mlp_act", block),))
def excites(lm: LanguageModel, t: Trace, block: int, unit: int) -> NDArray[np.float32]:
    """A unit's number after GELU, or its gate's SiLU times its up, at every token: (T,)."""
    return t["mlp_act", block][:, unit].numpy()


@reads(lambda lm, block, unit: tuple((site, block) for site in architecture_of(lm.config).hidden))
def factors(lm: LanguageModel, t: Trace, block: int, unit: int) -> NDArray[np.float64]:
    """What a unit's number is the product of, at every token.

    Its gate after SiLU, and its up: (2, T). Without a gate what it is after GELU, alone: (1, T).
    """
    hidden = [
        t[site, block][:, unit].numpy().astype(np.float64)
        for site in architecture_of(lm.config).hidden
    ]
    return np.stack([_bent(lm.model, block, hidden[0]), *hidden[1:]])


@dataclass(frozen=True)
class Peaks:
    """The largest activation of every unit of a block in one text, without the first token."""

    value: NDArray[np.float32]  # (U,) the largest activation
    position: NDArray[np.int16]  # (U,) where that is
    # (U,) at how many tokens it is above 0: there a unit without a gate fires
    fired: NDArray[np.int16]


def peaks_of(act: torch.Tensor) -> Peaks:
    """Find the peaks in the activations `act`, (T, U).

    The first token is left out: no token stands before it, and in many models its numbers are unlike all
    others. Raises ValueError for a text of a single token.
    """
    if len(act) < 2:
        raise ValueError("a text of one token has no token with another before it")
    value, position = act[1:].max(dim=0)
    counts = (position + 1, (act[1:] > 0).sum(dim=0))  # GELU keeps the sign, so > 0 is to fire
    return Peaks(value.numpy().copy(), *(count.numpy().astype(np.int16) for count in counts))


PEAKS = Reduction("feed-forward peaks", "mlp_act", peaks_of)


def _bent(model: Model, block: int, before: Floats) -> Floats:
    """The block's GELU of some numbers, or their SiLU if it has gates: an array of the same shape."""
    layer = architecture_of(model).bend(model.trf_blocks[block])
    with torch.no_grad():
        return layer(torch.from_numpy(before).float()).double().numpy()


def _times(matrix: Floats, row: Floats) -> Floats:
    """The product (D, U) x (U,) -> (D,).

    einsum is used instead of @, which calls BLAS: its threads keep a core busy long after the product is
    done.
    """
    return np.einsum("du,u->d", matrix, row)


def _numbers(weight: torch.Tensor) -> Floats:
    """A weight as a NumPy array of float64."""
    # NumPy converts to float64, as starting torch's threads for it takes ten times as long
    return weight.detach().float().cpu().numpy().astype(np.float64)
