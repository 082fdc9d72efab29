"""The portrait of a head: what it does over a sample of books, and where it is most itself.

Shapes in comments: T tokens of a window.

The idea of a head's portrait: Anthropic's HeadVis, 2025; Vig, A Multiscale Visualization of Attention, 2019.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz import disk_cache
from gptviz.analysis.head_formulas import SHARES, role_keys
from gptviz.analysis.head_general import distance_sums, kept_under, sample_windows
from gptviz.analysis.head_scores import is_mark
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress
from gptviz.engine.sample import Window

VERSION = 2  # of the formulas
PAIRS = 20
PASSAGES = 6
FEWEST_TIMES = 2  # a pair of tokens that stood together only once says little


@dataclass(frozen=True)
class Passage:
    """A place where the head is most itself: the row of one query.

    `ids` are the window's tokens up to the query, the last one; `weights` (T,) what it gives to each. `share`
    is what of it goes to its role's keys; without a role, to its one favourite key.
    """

    title: str
    ids: tuple[int, ...]
    weights: tuple[float, ...]
    share: float

    @property
    def query(self) -> int:
        return len(self.ids) - 1


@dataclass(frozen=True)
class Portrait:
    """What one head does over the sample.

    `pairs`: the tokens it ties together, a row a pair: query, key (texts), query_id, key_id, times (how often
    the key's token stood before the query's), mean (weight), total, excess (total less an even head's):
    the largest excess first, of pairs that stood together at least twice, without token 0 of a window as key.
    `distances` (N,): the share of its attention that goes so many tokens back, without token 0, which has
    `sink`; together 1. `mean_entropy` is of the `queries`' rows, in nats. `passages`: where the share of
    `role` is largest, one a window at most.
    """

    block: int
    head: int
    role: str | None
    pairs: pd.DataFrame
    distances: NDArray[np.float64]
    sink: float
    mean_entropy: float
    queries: int
    passages: tuple[Passage, ...]


def portrait(
    lm: LanguageModel,
    block: int,
    head: int,
    role: str | None = None,
    progress: Progress | None = None,
    disk: bool = True,
) -> Portrait:
    """A head over the sample; `role` (one of `head_formulas.SHARES`, or None) says what it is to be itself.

    `progress(done, of)` is called between passes, without a lock: what it raises stops the work. Kept on
    disk under the weights' hash, unless `disk` is False. Raises ValueError for a head or role that there is
    not, and a model that lacks the sample's characters.
    """
    config = lm.config
    if not (0 <= block < config.n_layers and 0 <= head < config.n_heads):
        raise ValueError(
            f"there is no head {head} in block {block}; {lm.name} has the blocks 0 to {config.n_layers - 1} "
            f"with the heads 0 to {config.n_heads - 1}"
        )
    if role is not None and role not in SHARES:
        raise ValueError(f"role is {role!r}; it must be one of {', '.join(SHARES)}, or None")
    sample = sample_windows(lm)
    if not sample:
        raise ValueError(f"{lm.name} lacks the characters of the sample, or reads one token at a time")
    named = (block, head, role, [window.ids for window in sample])
    key = kept_under(lm, "portrait", VERSION, *named) if disk else None
    if key is not None and (found := disk_cache.read(key)) is not None:
        return _from_json(found)
    sums = _Sums(lm)
    for number, window in enumerate(sample, 1):
        attn = lm.trace(window.ids, keep=[("attn", block)])["attn", block][head]
        sums.add(window, attn, role)
        if progress is not None:
            progress(number, len(sample))
    made = sums.portrait(block, head, role)
    if key is not None:
        disk_cache.write(key, _to_json(made))
    return made


class _Sums:
    def __init__(self, lm: LanguageModel) -> None:
        self.lm = lm
        self.codes: list[NDArray[np.int64]] = []  # of every query and key: query's id * V + key's id
        self.weights: list[NDArray[np.float64]] = []
        self.evens: list[NDArray[np.float64]] = []
        self.far: list[NDArray[np.float64]] = []
        self.entropies: list[NDArray[np.float64]] = []
        self.sink = 0.0
        self.passages: list[Passage] = []

    def add(self, window: Window, attn: torch.Tensor, role: str | None) -> None:
        """One window's weights, (T, T)."""
        ids, n_tokens = np.array(window.ids), len(window.ids)
        weights = attn.double()
        q, k = np.tril_indices(n_tokens)
        seen = k > 0  # and so q > 0
        q, k = q[seen], k[seen]
        self.codes.append(ids[q] * self.lm.config.vocab_size + ids[k])
        self.weights.append(weights.numpy()[q, k])
        self.evens.append(1.0 / (q + 1))
        self.far.append(distance_sums(attn[None])[0].double().numpy())
        self.entropies.append(torch.special.entr(weights[1:]).sum(dim=1).numpy())
        self.sink += float(weights[1:, 0].sum())
        self.passages.append(self._best(window, weights, role))

    def _best(self, window: Window, weights: torch.Tensor, role: str | None) -> Passage:
        """The query of a window whose share is largest; the later one of equals."""
        if role is None:
            given = weights[:, 1:].amax(dim=1) if len(window.ids) > 1 else weights[:, 0]
        else:
            marks = [is_mark(token.raw) for token in self.lm.tokens(window.ids)]
            keys = role_keys(window.ids, marks)[..., SHARES.index(role)]  # (T, T)
            given = (weights * keys).sum(dim=1)
        at = len(given) - 1 - int(given.flip(0).argmax())
        return Passage(
            window.title, window.ids[: at + 1], tuple(weights[at, : at + 1].tolist()), float(given[at])
        )

    def portrait(self, block: int, head: int, role: str | None) -> Portrait:
        entropies = np.concatenate(self.entropies)
        queries, longest = len(entropies), max(map(len, self.far))
        distances = np.sum([np.pad(part, (0, longest - len(part))) for part in self.far], axis=0) / queries
        best = sorted((p for p in self.passages if p.share > 0), key=lambda p: -p.share)
        return Portrait(
            *(block, head, role, self._pairs(), distances, self.sink / queries),
            *(float(entropies.mean()), queries, tuple(best[:PASSAGES])),
        )

    def _pairs(self) -> pd.DataFrame:
        codes, place = np.unique(np.concatenate(self.codes), return_inverse=True)
        times = np.bincount(place)
        total = np.bincount(place, np.concatenate(self.weights))
        excess = total - np.bincount(place, np.concatenate(self.evens))
        often = np.flatnonzero(times >= FEWEST_TIMES)
        order = often[np.argsort(-excess[often], kind="stable")][:PAIRS]
        query_id, key_id = np.divmod(codes[order], self.lm.config.vocab_size)
        return pd.DataFrame(
            {
                "query": [self.lm.decode([i]) for i in query_id.tolist()],
                "key": [self.lm.decode([i]) for i in key_id.tolist()],
                "query_id": query_id,
                "key_id": key_id,
                "times": times[order],
                "mean": total[order] / times[order],
                "total": total[order],
                "excess": excess[order],
            }
        )


def _to_json(made: Portrait) -> dict[str, object]:
    return vars(made) | {
        "pairs": made.pairs.to_dict("list"),
        "distances": made.distances.tolist(),
        "passages": [vars(passage) for passage in made.passages],
    }


def _from_json(found: dict[str, object]) -> Portrait:
    values = dict(found)
    passages = [
        Passage(p["title"], tuple(p["ids"]), tuple(p["weights"]), p["share"])
        for p in values["passages"]  # type: ignore[attr-defined]
    ]
    values |= {"pairs": pd.DataFrame(values["pairs"]), "passages": tuple(passages)}
    values["distances"] = np.array(values["distances"])
    return Portrait(**values)  # type: ignore[arg-type]
