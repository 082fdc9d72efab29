"""The logit lens: which next token would the model predict if it stopped at this depth?

The residual stream is the tensor to which every block adds the output of its attention and its feed-forward.
The model applies the final LayerNorm and the output head to it once, after the last block. The logit lens
applies them after every attention and every feed-forward. What comes out must be read with care: they were
trained for the last depth only, and early rows may not show what the model "thinks" there.

Shapes: R rows (1 + 2 for each block), P positions, D emb_dim, V vocabulary, k most probable tokens, N =
several rows at several positions. A row's number is its depth: 0 is the embedding, then come for each block
the stream after attention and after the feed-forward. The last row is the model's own output.

Sources, and what follows them here:
  nostalgebraist, interpreting GPT: the logit lens, 2020: the final LayerNorm is applied at every depth.
  Belrose et al., Eliciting Latent Predictions from Transformers with the Tuned Lens, 2023: in the
  `tuned-lens` package, too, the last row is the model's own output. Its "forward KL" is KL(final || row), in
  nats; here it is in bits. Rows in the middle of a block were proposed in its issue 104. logitlenskit (Bau):
  the top k tokens of every cell; tokens are worth following if a row has them in its top k. ndif issues 161
  and 162: tokens are listed by the highest probability that they have at any depth; the lines that are drawn
  at first are those of tokens that are the most probable in some row.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gptviz.analysis.reads import of_model, reads
from gptviz.engine.architecture import architecture_of
from gptviz.engine.forward import logits_of, running
from gptviz.engine.index import whole
from gptviz.engine.kinds import Config, Model
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sites import Key, start
from gptviz.engine.trace import Trace

TOP = 10  # the number of most probable tokens that are shown for a row and a position
# the number of logits that are computed at once: these fit into the processor's cache
AT_ONCE = 2**19
# `top_ids` splits the logits into groups of this size. The k-th largest of the groups' maxima is at most the
# k-th largest of all logits, so only logits that are no smaller need to be sorted.
GROUP = 64
KEEP = (start, "resid_mid", "resid_post", "final")  # the sites that the lens reads

# what a lens makes of the residual stream at a row before the final LayerNorm reads it: (n, D) -> (n, D)
Carry = Callable[[Key, torch.Tensor], torch.Tensor]


def as_it_is(row: Key, stream: torch.Tensor) -> torch.Tensor:
    """The stream unchanged: the logit lens."""
    return stream


@dataclass(frozen=True)
class Cells:
    """The predictions at every row: `...` in the shapes is (R,) for one position, (R, P) for several.

    Of equally probable tokens the one with the lower id comes first, as in `Trace.next_tokens`.
    """

    ids: NDArray[np.int32]  # (..., k), the most probable first
    probabilities: NDArray[np.float32]  # (..., k)
    entropy: NDArray[np.float32]  # (...), bits
    # (...), bits: KL(final || row), how far the row is from the model's own output
    kl: NDArray[np.float32]


@dataclass(frozen=True)
class Followed:
    """The probabilities and ranks of n chosen tokens at every row, in the order in which they were given."""

    probabilities: NDArray[np.float32]  # (..., n), where ... is as in `Cells`
    # (..., n), from 1; of equally probable tokens the lower id comes first
    ranks: NDArray[np.int64]


def row_keys(config: Config) -> list[Key]:
    """The places at which the lens is applied to the residual stream: R (site, block) pairs, in order."""
    halves = [(site, b) for b in range(config.n_layers) for site in ("resid_mid", "resid_post")]
    return [(architecture_of(config).start, None), *halves]


def row_names(config: Config) -> list[str]:
    """The names of the R rows: "embedding", "block 0 · attention", "block 0 · feed-forward", ..."""
    written = {"resid_mid": "attention", "resid_post": "feed-forward"}
    return [
        "embedding",
        *(f"block {block} · {written[site]}" for site, block in row_keys(config)[1:]),
    ]


@of_model
def logit_lens(trace: Trace, model: Model, position: int = -1) -> torch.Tensor:
    """The logits of the next token after `position` at each depth, (R, V) float32; `row_names` has the names.

    The last row is exactly `trace.logits(position)`, edits included. Raises ValueError for a position that
    does not exist, a trace without the embedding, resid_mid and resid_post, and another model's trace.
    """
    return logits_by(as_it_is, trace, model, position)


def logits_by(carry: Carry, trace: Trace, model: Model, position: int) -> torch.Tensor:
    """What `logit_lens` gives, (R, V), with each row but the last carried before it is read."""
    trace.of(model)
    last = trace.logits(position)
    index = trace.place_of(position)
    keys = row_keys(trace.config)[:-1]
    stream = torch.cat([carry(key, trace[key][index][None]) for key in keys])  # (R - 1, D)
    return torch.cat([_read(stream, model), last[None]])  # (R - 1, V) and (1, V) -> (R, V)


@reads(*KEEP)
def cells(lm: LanguageModel, t: Trace, start: int, stop: int, k: int = TOP) -> Cells:
    """The predictions of every row at the positions from `start` to before `stop`: (R, P).

    Of all logits, only some rows (`AT_ONCE` logits, or one row) and the last row are in memory at a time.
    """
    return cells_by(as_it_is, lm, t, start, stop, k)


def cells_by(
    carry: Carry, lm: LanguageModel, t: Trace, start: int, stop: int, k: int = TOP
) -> Cells:
    """What `cells` gives, with each row but the last carried before it is read."""
    t.of(lm.model)
    final = torch.log_softmax(logits_of(lm.model, t["final"][start:stop]), dim=-1)  # (P, V)
    rows = _rows(carry, t, lm.model, start, stop)
    return Cells(*_by_row([reading_of(logits, final, k) for logits in rows], stop - start))


@reads(*KEEP)
def followed_cells(
    lm: LanguageModel, t: Trace, start: int, stop: int, ids: Sequence[int]
) -> Followed:
    """The n tokens `ids` in every row, at the positions from `start` to before `stop`: (R, P, n)."""
    return followed_by(as_it_is, lm, t, start, stop, ids)


def followed_by(
    carry: Carry, lm: LanguageModel, t: Trace, start: int, stop: int, ids: Sequence[int]
) -> Followed:
    """What `followed_cells` gives, with each row but the last carried before it is read."""
    t.of(lm.model)
    rows = [followed(logits, ids) for logits in _rows(carry, t, lm.model, start, stop)]
    return Followed(*_by_row(rows, stop - start))


@dataclass(frozen=True)
class Depths:
    """The predictions after one position at every depth."""

    logits: torch.Tensor  # (R, V), see `logit_lens`
    reading: Cells  # with the shapes (R,) and (R, k)
    # the ids in the top ten of some row, by the highest probability in any row
    contenders: list[int]

    @property
    def top(self) -> NDArray[np.int32]:
        """The most probable token of each row, (R,)."""
        return self.reading.ids[:, 0]

    @property
    def settled(self) -> int:
        """The first row from which on the model's final token is the most probable one."""
        return settled_from(self.top)


@reads(*KEEP)
def depths(lm: LanguageModel, t: Trace, position: int) -> Depths:
    """The predictions of the next token after `position` at each depth of the model."""
    return depths_of(logit_lens(t, lm.model, position))


def depths_of(logits: torch.Tensor) -> Depths:
    """The predictions of a lens by its logits after one position, (R, V)."""
    return Depths(logits, reading(logits), contenders(logits))


def reading(logits: torch.Tensor, k: int = TOP) -> Cells:
    """Compute `Cells` from the (R, V) logits of `logit_lens`, with its last row as the final prediction."""
    return reading_of(logits, torch.log_softmax(logits[-1:], dim=-1), k)


def reading_of(logits: torch.Tensor, final: torch.Tensor, k: int = TOP) -> Cells:
    """Compute the numbers of `Cells`, (N,) and (N, k), from (N, V) float32 logits of N / P rows.

    `final` are the log probabilities of the last row at the same P positions, (P, V). k is at least 1.
    """
    log_p = torch.log_softmax(logits, dim=-1)  # (N, V)
    p = log_p.exp()
    entropy = -torch.linalg.vecdot(p, log_p)  # (N,); log_p is finite, so a p of 0 gives 0, not NaN
    # (P, V) against (N / P, P, V) -> (N / P, P) -> (N,)
    kl = torch.linalg.vecdot(final.exp(), final - log_p.unflatten(0, (-1, len(final)))).flatten()
    ids = torch.from_numpy(top_ids(logits, whole("k", k, 1)))
    return Cells(ids.to(torch.int32).numpy(), p.gather(-1, ids).numpy(), _bits(entropy), _bits(kl))


def followed(logits: torch.Tensor, ids: Sequence[int]) -> Followed:
    """The probabilities and ranks of n tokens in (N, V) float32 logits: (N, n) each.

    Raises ValueError for a token that is not in the vocabulary.
    """
    vocabulary = logits.shape[-1]
    wrong = [i for i in ids if not 0 <= i < vocabulary]
    if wrong:
        raise ValueError(
            f"there is no token {wrong[0]}; the vocabulary has ids 0 to {vocabulary - 1}"
        )
    values = logits.numpy()  # NumPy, since for so little work starting torch's threads takes longer
    ranks = np.empty((len(values), len(ids)), dtype=np.int64)
    for n, token in enumerate(ids):
        own_logit = values[:, token : token + 1]
        ahead = np.count_nonzero(values > own_logit, axis=1)
        # equal logits with a lower id come before it, too
        ranks[:, n] = 1 + ahead + np.count_nonzero(values[:, :token] == own_logit, axis=1)
    return Followed(_probabilities(logits, ids), ranks)


def top_ids(logits: torch.Tensor, k: int) -> NDArray[np.int64]:
    """The ids of the k largest logits of each row, (N, V) -> (N, k), or (N, V) if k is larger than V.

    Of equal logits, which bfloat16 models have many of, the lower id comes first. `torch.topk` alone would
    return them in any order.
    """
    k = min(k, logits.shape[-1])
    grouped = logits
    # takes half the time: topk on the maxima of groups, not on all logits
    if k * GROUP <= logits.shape[-1]:
        # (N, groups * GROUP) -> (N, groups, GROUP) -> (N, groups)
        grouped = (
            logits[:, : logits.shape[-1] // GROUP * GROUP].unflatten(-1, (-1, GROUP)).amax(dim=-1)
        )
    least = grouped.topk(k, dim=-1).values[:, -1:]  # (N, 1): each of the k largest is at least this
    row, token = (logits >= least).nonzero().numpy().T
    value = logits[row, token].numpy()
    order = np.lexsort((token, -value, row))
    first = np.searchsorted(row[order], np.arange(len(logits)))  # where each row's tokens begin
    return token[order][first[:, None] + np.arange(k)]


def settled_from(top: NDArray[np.integer]) -> int:
    """The first row from which on the most probable token is that of the last row. `top` (R,): their ids."""
    other = np.flatnonzero(top != top[-1])
    if len(other):
        return int(other[-1]) + 1
    return 0


def leaders(top: NDArray[np.integer], count: int = 3) -> list[int]:
    """At most `count` different ids of `top`, (R,), the rows' most probable tokens, from the last row up."""
    return list(dict.fromkeys(int(i) for i in top[::-1]))[:count]


def contenders(logits: torch.Tensor, k: int = TOP) -> list[int]:
    """The ids in the top k of some row of (R, V) logits, by their highest probability in any row."""
    ids = np.unique(top_ids(logits, k))
    peak = _probabilities(logits, ids.tolist()).max(axis=0)
    return [int(i) for i in ids[np.argsort(-peak, kind="stable")]]


def _probabilities(logits: torch.Tensor, ids: Sequence[int]) -> NDArray[np.float32]:
    """The probabilities of n tokens: logits (N, V) -> (N, n)."""
    log_sum = logits.logsumexp(dim=-1, keepdim=True).numpy()  # (N, 1)
    return np.exp(logits.numpy()[:, list(ids)] - log_sum)


def _read(stream: torch.Tensor, model: Model) -> torch.Tensor:
    """Apply the final LayerNorm and the output head: (N, D) -> (N, V), in the model's own precision."""
    norm = model.final_norm
    with running(model):
        return logits_of(model, norm(stream.to(norm.scale)))


def _rows(
    carry: Carry, trace: Trace, model: Model, start: int, stop: int
) -> Iterator[torch.Tensor]:
    """Yield the logits of n rows at a time, (n * P, V), and in the end the model's own output, (P, V)."""
    if not 0 <= start < stop <= len(trace):
        raise ValueError(
            f"there are no positions {start} to {stop - 1}; they go from 0 to {len(trace) - 1}"
        )
    keys = row_keys(trace.config)[:-1]
    rows_at_once = max(1, AT_ONCE // ((stop - start) * trace.config.vocab_size))
    for i in range(0, len(keys), rows_at_once):
        # n of (P, D) -> (n * P, D)
        stream = torch.cat(
            [carry(key, trace[key][start:stop]) for key in keys[i : i + rows_at_once]]
        )
        yield _read(stream, model)
    # from the pass itself, so with edits of `final`
    yield logits_of(model, trace["final"][start:stop])


def _by_row(readings: Sequence[Cells | Followed], positions: int) -> Iterator[Any]:
    """Join each field of the readings into one array: (n * P, ...) each -> (R, P, ...)."""
    for arrays in zip(*(vars(row).values() for row in readings), strict=True):
        joined = np.concatenate(arrays)  # (R * P, ...)
        yield joined.reshape(-1, positions, *joined.shape[1:])  # (R * P, ...) -> (R, P, ...)


def _bits(nats: torch.Tensor) -> NDArray[np.float32]:
    """Convert nats to bits. Numbers below 0 become 0: for an entropy or a KL they can only be rounding."""
    return (nats / math.log(2)).clamp(min=0).numpy()
