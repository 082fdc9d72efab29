"""The logit lens: what would the model say next if it stopped at this depth?

The final LayerNorm and the output head, which the model applies once, after the last block, are applied to
the residual stream after every half of a block. It is a reading: the norm was trained for the last
depth only, so that early rows say more about the head than about what the model "thinks" there.

Shapes: R rows (1 + 2 a block), P positions, V vocabulary, k most probable tokens. A row's number is its
depth: 0 the embedding, then for each block the stream after attention, and after the feed-forward. The last
row is no reading: it is the model's own output.

Sources and conventions:
  nostalgebraist, interpreting GPT: the logit lens, 2020 (the final LayerNorm is applied at every depth)
  Belrose et al., Eliciting Latent Predictions from Transformers with the Tuned Lens, 2023: the `tuned-lens`
  package ends in a row of the model's own output, and its "forward KL" is KL(final || row) as here, in nats
  there, in bits here. Rows in the middle of a block are its issue 104.
  logitlenskit (Bau): top-k of every cell, and the tokens to follow are those that any row has among its top k
  ndif issues 161 and 162: a token's place in a list is the highest probability that it has at any depth,
  and the lines that are drawn at first are those of tokens that some row has on top
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gptviz.analysis.reads import of_model, reads
from gptviz.engine.config import GPTConfig
from gptviz.engine.forward import logits_of, running
from gptviz.engine.index import whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sites import Key
from gptviz.engine.trace import Trace
from gptviz.model import GPTModel

TOP = 10  # tokens of a cell
AT_ONCE = 2**19  # logits that are looked at together: so many stay in the cache
GROUP = 64  # logits of whose largest ones the k-th is at most the k-th of all
KEEP = ("embed", "resid_mid", "resid_post", "final")  # the sites that the lens reads


@dataclass(frozen=True)
class Cells:
    """What is told of distributions over V tokens; `...` are (R,) at one position, (R, P) at several.

    Of equally probable tokens the one with the lower id comes first, as in `Trace.next_tokens`.
    """

    ids: NDArray[np.int32]  # (..., k), the most probable first
    probabilities: NDArray[np.float32]  # (..., k)
    entropy: NDArray[np.float32]  # (...), bits
    kl: NDArray[np.float32]  # (...), bits: KL(final || row), what the row lacks of the final answer


@dataclass(frozen=True)
class Followed:
    """Some tokens in distributions: (..., n) for n tokens, in the order in which they were given."""

    probabilities: NDArray[np.float32]
    ranks: NDArray[np.int64]  # from 1; of equally probable tokens the one with the lower id comes first


def row_keys(config: GPTConfig) -> list[Key]:
    """The places at which the lens reads the stream: R (site, block) pairs, in order."""
    halves = [(site, b) for b in range(config.n_layers) for site in ("resid_mid", "resid_post")]
    return [("embed", None), *halves]


def row_names(config: GPTConfig) -> list[str]:
    """ "embedding", "block 0 · attention", "block 0 · feed-forward", ...: the last part that has written."""
    written = {"resid_mid": "attention", "resid_post": "feed-forward"}
    return ["embedding", *(f"block {block} · {written[site]}" for site, block in row_keys(config)[1:])]


@of_model
def logit_lens(trace: Trace, model: GPTModel, position: int = -1) -> torch.Tensor:
    """(R, V) float32 logits: what each depth says comes after `position`, names in `row_names`.

    The last row is `trace.logits(position)`, bit for bit, edits of the run included. ValueError for a
    position that does not exist, a trace without embed, resid_mid and resid_post, and another model's trace.
    """
    last = trace.logits(position)
    at = trace.place_of(position)
    stream = torch.stack([trace[key][at] for key in row_keys(trace.config)[:-1]])  # (R - 1, D)
    return torch.cat([_read(stream, model), last[None]])


@reads(*KEEP)
def cells(lm: LanguageModel, t: Trace, start: int, stop: int, k: int = TOP) -> Cells:
    """Every row at the positions from `start` to before `stop`, (R, P).

    So many rows' logits are in memory at a time as `AT_ONCE` says, or one row's, and the final ones.
    """
    final = torch.log_softmax(logits_of(lm.model, t["final"][start:stop]), dim=-1)  # (P, V)
    rows = _rows(t, lm.model, start, stop)
    return Cells(*_by_row([reading_of(one, final, k) for one in rows], stop - start))


@reads(*KEEP)
def followed_cells(lm: LanguageModel, t: Trace, start: int, stop: int, ids: Sequence[int]) -> Followed:
    """Some tokens in every row at the positions from `start` to before `stop`: (R, P, n)."""
    rows = [followed(logits, ids) for logits in _rows(t, lm.model, start, stop)]
    return Followed(*_by_row(rows, stop - start))


@dataclass(frozen=True)
class Depths:
    """One position through the depth: `logit_lens`, what each row says (R,), and who is worth following.

    `contenders` are the tokens that some row has among its ten, by their highest probability.
    """

    logits: torch.Tensor
    reading: Cells
    contenders: list[int]

    @property
    def top(self) -> NDArray[np.int32]:
        """The token on top of each row, (R,)."""
        return self.reading.ids[:, 0]

    @property
    def settled(self) -> int:
        """The first row from which on the final token is on top."""
        return settled_from(self.top)


@reads(*KEEP)
def depths(lm: LanguageModel, t: Trace, position: int) -> Depths:
    """What each depth of the model says comes after `position`."""
    logits = logit_lens(t, lm.model, position)
    return Depths(logits, reading(logits), contenders(logits))


def reading(logits: torch.Tensor, k: int = TOP) -> Cells:
    """Compare each row of `logit_lens` with the last row: (R, V) -> (R,) for each quantity."""
    return reading_of(logits, torch.log_softmax(logits[-1:], dim=-1), k)


def reading_of(logits: torch.Tensor, final: torch.Tensor, k: int = TOP) -> Cells:
    """(N, V) float32 logits, each P against the final log-probabilities (P, V): (N,). k is at least 1."""
    log_p = torch.log_softmax(logits, dim=-1)  # (N, V)
    p = log_p.exp()
    entropy = -torch.linalg.vecdot(p, log_p)  # 0 x a large negative number is 0
    kl = torch.linalg.vecdot(final.exp(), final - log_p.unflatten(0, (-1, len(final)))).flatten()
    ids = torch.from_numpy(top_ids(logits, whole("k", k, 1)))
    return Cells(ids.to(torch.int32).numpy(), p.gather(-1, ids).numpy(), _bits(entropy), _bits(kl))


def followed(logits: torch.Tensor, ids: Sequence[int]) -> Followed:
    """(N, V) float32 logits -> (N, n). ValueError for a token that is not in the vocabulary."""
    vocabulary = logits.shape[-1]
    wrong = [i for i in ids if not 0 <= i < vocabulary]
    if wrong:
        raise ValueError(f"there is no token {wrong[0]}; the vocabulary has ids 0 to {vocabulary - 1}")
    values = logits.numpy()  # so little work for each token that torch's threads cost more than they bring
    ranks = np.empty((len(values), len(ids)), dtype=np.int64)
    for n, token in enumerate(ids):
        mine = values[:, token : token + 1]
        ahead = np.count_nonzero(values > mine, axis=1)
        ranks[:, n] = 1 + ahead + np.count_nonzero(values[:, :token] == mine, axis=1)
    return Followed(_probabilities(logits, ids), ranks)


def top_ids(logits: torch.Tensor, k: int) -> NDArray[np.int64]:
    """The ids of the k largest of each row, (N, V) -> (N, k), or all V where there are not so many.

    `torch.topk` orders equal logits as it likes, and bfloat16 has many: of equal ones the lower id is first.
    """
    k = min(k, logits.shape[-1])
    grouped = logits
    if k * GROUP <= logits.shape[-1]:  # sooner by half: a group's largest is found without sorting
        grouped = logits[:, : logits.shape[-1] // GROUP * GROUP].unflatten(-1, (-1, GROUP)).amax(dim=-1)
    least = grouped.topk(k, dim=-1).values[:, -1:]  # (N, 1): whatever is among the k is no smaller
    row, token = (logits >= least).nonzero().numpy().T
    value = logits[row, token].numpy()
    order = np.lexsort((token, -value, row))
    first = np.searchsorted(row[order], np.arange(len(logits)))  # where each row's tokens begin
    return token[order][first[:, None] + np.arange(k)]


def settled_from(top: NDArray[np.integer]) -> int:
    """The first row from which on the most probable token, (R,), is the last row's and stays it."""
    other = np.flatnonzero(top != top[-1])
    if len(other):
        return int(other[-1]) + 1
    return 0


def leaders(top: NDArray[np.integer], count: int = 3) -> list[int]:
    """Distinct tokens that a row has on top, (R,), at most `count`: the final one, then from the end up."""
    return list(dict.fromkeys(int(i) for i in top[::-1]))[:count]


def contenders(logits: torch.Tensor, k: int = TOP) -> list[int]:
    """Every token that a row of (R, V) has among its k largest, by the highest probability it reaches."""
    ids = np.unique(top_ids(logits, k))
    peak = _probabilities(logits, ids.tolist()).max(axis=0)
    return [int(i) for i in ids[np.argsort(-peak, kind="stable")]]


def _probabilities(logits: torch.Tensor, ids: Sequence[int]) -> NDArray[np.float32]:
    """Of n tokens, (N, V) -> (N, n)."""
    whole = logits.logsumexp(dim=-1, keepdim=True).numpy()  # (N, 1)
    return np.exp(logits.numpy()[:, list(ids)] - whole)


def _read(stream: torch.Tensor, model: GPTModel) -> torch.Tensor:
    """The final LayerNorm anew, and the output head: (N, D) -> (N, V), in the model's own precision."""
    norm = model.final_norm
    with running(model):
        return logits_of(model, norm(stream.to(norm.scale)))


def _rows(trace: Trace, model: GPTModel, start: int, stop: int) -> Iterator[torch.Tensor]:
    """The logits of some rows after the other, (n * P, V) each; the last is the model's own output."""
    if not 0 <= start < stop <= len(trace):
        raise ValueError(f"there are no positions {start} to {stop - 1}; they go from 0 to {len(trace) - 1}")
    keys = row_keys(trace.config)[:-1]
    some = max(1, AT_ONCE // ((stop - start) * trace.config.vocab_size))
    for i in range(0, len(keys), some):
        yield _read(torch.cat([trace[key][start:stop] for key in keys[i : i + some]]), model)
    yield logits_of(model, trace["final"][start:stop])  # what the pass itself made of it, edits included


def _by_row(found: Sequence[Cells | Followed], positions: int) -> Iterator[Any]:
    """Each of their arrays as one, (R * P, ...) -> (R, P, ...)."""
    for arrays in zip(*(vars(one).values() for one in found), strict=True):
        whole = np.concatenate(arrays)
        yield whole.reshape(-1, positions, *whole.shape[1:])


def _bits(nats: torch.Tensor) -> NDArray[np.float32]:
    """Neither entropy nor KL is below 0: what is, is rounding."""
    return (nats / math.log(2)).clamp(min=0).numpy()
