"""What every head does in general: on random tokens that repeat, on a sample of books, and by its weights.

The formulas are those of a typed text (`gptviz.analysis.head_formulas`); only the texts are others. Looking
for what repeats is measured on random tokens (`random_repeats`), all else on the sample, where a text is a
text. It is worked out once for a model and kept on disk under the weights' hash (`gptviz.files.disk_cache`);
the bundled model's ships with it. `MEASURES` says what each column is, with its formula: any two of them make
a picture of all heads, in which one finds the heads that stand out.

Shapes in comments: L blocks, H heads, T tokens, N the longest distance and 1, C the columns of
`block_scores`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch

from gptviz.analysis.attention import mean_writes
from gptviz.analysis.copying import ALONE_AT, TOP, copying_scores, ordinary_tokens
from gptviz.analysis.head_formulas import ON_REPEATS, ROLES, SHARES
from gptviz.analysis.head_roles import kind_of, lifts_of, rests_of
from gptviz.analysis.head_scores import COLUMNS, ENTROPY, RESTS, HeadScores
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.reduction import Reduction
from gptviz.engine.sample import Window, long_passages, windows
from gptviz.engine.undisturbed import undisturbed
from gptviz.files import disk_cache

VERSION = 3  # of the formulas: a change makes what was kept on disk another model's
MOST_WINDOWS = 64
# `ON_REPEATS` are measured on texts that repeat themselves, the others on books; of these some on both
ON_BOTH = ("first", "previous")
LENGTH = 192  # tokens, or the context
SHORTEST = 8  # a context below this has no room for a passage twice
SEQUENCES = 16


@dataclass(frozen=True)
class General:
    """Measurements of every head in general.

    `table`, a row a head: block, head, role (as in `HeadRole.kind`, from "induction" and "copies" on random
    tokens and all else on the sample), share (of its role; not a number for "even" and "mixed"), rest (what
    the queries of this share leave on token 0), share_of_rest (share of what is then left), and the
    columns of `MEASURES`. `key` is its name on disk, None where an edit by a Python function forbids one;
    `known` says whether it came from the disk.
    """

    table: pd.DataFrame
    sequences: int
    random_tokens: int
    windows: int
    sample_tokens: int
    key: str | None
    known: bool = False

    def row(self, block: int, head: int) -> pd.Series:
        """A head's row of the table."""
        place = (self.table["block"] == block) & (self.table["head"] == head)
        return self.table[place].iloc[0]  # half of what an index of both takes


@undisturbed
def general(lm: LanguageModel, progress: Progress = ignore_progress, disk: bool = True) -> General:
    """Measure all heads of a model in general: from the disk, or by some 60 short passes.

    `progress(done, of)` is called between passes, without a lock: what it raises stops the work, and
    nothing is kept. The edits of `lm`, if it has any, are made in every pass; `copies_top5`, in which there
    is no text to make them in, is then not a number.
    """
    texts = random_repeats(lm)
    sample = sample_windows(lm)
    key = _name(lm, texts, sample)
    if disk and key is not None and (stored := _from_disk(key)) is not None:
        return stored
    work = len(texts) + len(sample)
    total = work + max(1, work // 4)  # about what the weights cost
    progress(0, total)
    repeated = _Means.of(lm, texts, lambda done: progress(done, total))
    sampled = _Means.of(
        lm, [window.ids for window in sample], lambda done: progress(len(texts) + done, total)
    )
    weights = copying_scores(
        lm, lambda done, steps: progress(work + (total - work) * done // steps, total)
    )
    table = _table(lm, repeated, sampled).merge(weights, on=["block", "head"])
    counts = (
        len(texts),
        sum(map(len, texts)),
        len(sample),
        sum(len(window.ids) for window in sample),
    )
    measured = General(table, *counts, key=key)
    if disk and key is not None:
        disk_cache.write(key, to_json(measured))
    return measured


def known_general(lm: LanguageModel) -> General | None:
    """The measurement of a model's heads that ships or is on disk; None if there is none."""
    key = _name(lm, random_repeats(lm), sample_windows(lm))
    if key is None:
        return None
    return _from_disk(key)


def sample_windows(lm: LanguageModel) -> list[Window]:
    """The windows of the sample that this model can read; none if its vocabulary lacks their tokens."""
    all_windows, _ = windows(lm.encode, lm.config.context_length, long_passages(), MOST_WINDOWS)
    return [window for window in all_windows if max(window.ids) < lm.config.vocab_size]


@undisturbed
def random_repeats(
    lm: LanguageModel, sequences: int = SEQUENCES, seed: int = 0
) -> list[tuple[int, ...]]:
    """Token ids, as many sequences as asked for; none where the context is shorter than `SHORTEST`.

    Olsson et al., In-context Learning and Induction Heads, 2022. Where the passage stands, how long it is,
    and how many other tokens come before it returns are drawn at random: a head that always looks the same
    number of tokens back is then no induction head.

    Each is: some random tokens, a passage of random tokens, others, the passage again, others. Evenly drawn
    from the ordinary tokens, each at most once where the vocabulary has enough, so that nothing else repeats.
    """
    length = min(LENGTH, lm.config.context_length)
    if length < SHORTEST:
        return []
    ordinary = ordinary_tokens(lm)
    texts = []
    for number in range(sequences):
        rng = np.random.default_rng((seed, number))
        passage = int(rng.integers(max(2, length // 8), length // 3 + 1))
        filler = length - 2 * passage
        before = int(rng.integers(1, filler + 1))
        between = int(rng.integers(0, filler - before + 1))
        ids = rng.choice(ordinary, length - passage, replace=ordinary < length - passage).tolist()
        again = before + passage + between
        texts.append((*ids[:again], *ids[before : before + passage], *ids[again:]))
    return texts


def kept_under(lm: LanguageModel, *parts: object) -> str | None:
    """The name on disk of what depends on a model's weights, sizes and edits, and on these parts.

    None if an edit's value is a Python object: it has no name to tell it from another on disk.
    """
    if any(edit.named is None for edit in lm.edits):
        return None
    written = [str(edit) for edit in lm.edits]
    return disk_cache.fingerprint(
        [disk_cache.weights_hash(lm.model), lm.config, lm.dtype, written, *parts]
    )


def _name(
    lm: LanguageModel, texts: Sequence[tuple[int, ...]], sample: Sequence[Window]
) -> str | None:
    return kept_under(lm, "general", VERSION, texts, [window.ids for window in sample])


@undisturbed
def distance_sums(attn: torch.Tensor) -> torch.Tensor:
    """(H, T, T) -> (H, T): the attention of queries and keys from 1 on, summed by distance in tokens."""
    n_tokens = attn.shape[-1]
    sums = torch.zeros(len(attn), n_tokens)
    # weights (H, T-1, T-1) -> (H, (T-1)^2), each added to the column of its distance
    return sums.index_add_(1, _back(n_tokens).flatten(), attn[:, 1:, 1:].flatten(1))


DISTANCES = Reduction("distances", "attn", distance_sums)


@lru_cache(maxsize=2)
def _back(n_tokens: int) -> torch.Tensor:
    """(T-1, T-1): how far back a key is, for queries and keys from 1 on; 0 for keys that are hidden."""
    position = torch.arange(1, n_tokens)
    return (position[:, None] - position[None, :]).clamp(min=0)


@dataclass(frozen=True)
class _Means:
    """The means of all heads' numbers over some texts; every query counts alike, whatever its text.

    `own` (L, H, C) and `even` (C,), of a head that looks at all tokens alike, as `block_scores` has them, but
    no favourite; `writes` (L, H). NaN: nothing was asked. `distances` (L, H, N) are sums over all queries.
    """

    own: torch.Tensor
    even: torch.Tensor
    distances: torch.Tensor
    writes: torch.Tensor

    @classmethod
    def of(
        cls, lm: LanguageModel, texts: Sequence[Sequence[int]], told: Callable[[int], object]
    ) -> "_Means":
        """One pass per text; `told` how many are done after each."""
        heads = lm.config.n_layers, lm.config.n_heads
        sums = torch.zeros(*heads, COLUMNS)
        even = torch.zeros(COLUMNS)
        asked = torch.zeros(COLUMNS)
        longest = max(map(len, texts), default=1)
        tokens = sum(map(len, texts))
        by_distance = torch.zeros(*heads, longest)
        writes = torch.zeros(heads)
        for number, ids in enumerate(texts, 1):
            scores = HeadScores.of(lm.tokens(ids))
            reduction = Reduction("head scores", "attn", scores)
            targets = scores.targets
            trace = lm.trace(ids, keep=["z"], reduce=[reduction, DISTANCES])
            of_text = torch.zeros(COLUMNS)  # how many queries each column asks
            queries = torch.tensor([float(len(targets.rows[name])) for name in SHARES])
            of_text[: len(SHARES)] = of_text[RESTS : RESTS + len(SHARES)] = queries
            of_text[ENTROPY] = len(ids) - 1
            sums += (
                torch.nan_to_num(torch.stack(trace.reduced(reduction))) * of_text
            )  # L of (H, C) -> (L, H, C)
            even += torch.nan_to_num(targets.even) * of_text
            asked += of_text
            # L of (H, T) -> (L, H, T)
            by_distance[..., : len(ids)] += torch.stack(trace.reduced(DISTANCES))
            writes += mean_writes(trace, lm.model) * len(ids)
            told(number)
        return cls(sums / asked, even / asked, by_distance, writes / tokens)  # 0 / 0 is NaN


def _table(lm: LanguageModel, repeated: _Means, sampled: _Means) -> pd.DataFrame:
    """A row a head: all of `General.table` but what the weights say."""
    of_random = torch.zeros(COLUMNS, dtype=torch.bool)  # what repeats is asked of the random tokens
    for name in ON_REPEATS:
        of_random[[SHARES.index(name), RESTS + SHARES.index(name)]] = True
    scores = torch.where(of_random, repeated.own, sampled.own)
    even_scores = torch.where(of_random, repeated.even, sampled.even).tolist()
    by_distance = sampled.distances.double().numpy()
    rows = []
    for b, h in product(range(lm.config.n_layers), range(lm.config.n_heads)):
        of_head = scores[b, h].tolist()
        mass = by_distance[b, h]
        shares = dict(zip(SHARES, of_head, strict=False))
        rests = rests_of(of_head)
        role = kind_of(
            lifts_of(of_head, even_scores), rests["mixed"], of_head[ENTROPY] / even_scores[ENTROPY]
        )
        share = shares.get(role, math.nan)
        rest = rests[role]
        total = mass.sum() or math.nan  # 0: of a head that never looks at anything but token 0
        elsewhere = {f"{name}_random": repeated.own[b, h, SHARES.index(name)] for name in ON_BOTH}
        elsewhere |= {
            f"{name}_sample": sampled.own[b, h, SHARES.index(name)] for name in ON_REPEATS
        }
        rows.append(
            {"block": b, "head": h, "role": role, "share": share, "rest": rest}
            | {"share_of_rest": share / (1 - rest)}
            | shares
            | {name: float(value) for name, value in elsewhere.items()}
            | {"entropy": of_head[ENTROPY], "spread": math.exp(of_head[ENTROPY])}
            | {"distance": float((mass * np.arange(len(mass))).sum() / total)}
            | {"write": float(sampled.writes[b, h])}
        )
    return pd.DataFrame(rows)


def to_json(made: General) -> dict[str, Any]:
    counts = [made.sequences, made.random_tokens, made.windows, made.sample_tokens]
    return {"table": made.table.to_dict("list"), "counts": counts}


def _from_disk(key: str) -> General | None:
    stored = disk_cache.read(key)
    if stored is None:
        return None
    counts: tuple[int, int, int, int] = tuple(stored["counts"])
    return General(pd.DataFrame(stored["table"]), *counts, key, known=True)


# ---- what is measured ----

SHARE = "mean over the queries that have such a key, of their attention to it; "
RANDOM = ": random tokens"  # in which a passage comes back
SAMPLE = ": sample"  # of books


@dataclass(frozen=True)
class Measure:
    """A number that all heads have, its formula and source; `unit` may be empty."""

    name: str
    title: str
    unit: str
    formula: str
    source: str


def _share(column: str, role: str, suffix: str) -> Measure:
    role_words = ROLES[role]
    return Measure(
        column, role_words.label + suffix, "", SHARE + role_words.keys, role_words.source
    )


_HEAD = "Elhage et al., A Mathematical Framework for Transformer Circuits, 2021"

MEASURES = {
    measure.name: measure
    for measure in (
        *(_share(role, role, RANDOM) for role in ON_REPEATS),
        *(_share(role, role, SAMPLE) for role in (*ON_BOTH, "itself", "nearby", "marks")),
        *(_share(f"{role}_random", role, RANDOM) for role in ON_BOTH),
        *(_share(f"{role}_sample", role, SAMPLE) for role in ON_REPEATS),
        Measure(
            *("entropy", "entropy in nats" + SAMPLE, "nats"),
            "mean over the queries of - sum over keys of a ln a, a the attention weights",
            "Clark et al., What Does BERT Look At?, 2019",
        ),
        Measure(
            *("distance", "tokens back" + SAMPLE, "tokens"),
            "sum over queries and keys of a (q - k) / sum of a, without token 0",
            "Vig and Belinkov, Analyzing the Structure of Attention, 2019",
        ),
        Measure(
            *("write", "length written" + SAMPLE, ""),
            "mean over the tokens of |z W_O|, the head's part of the attention's output",
            _HEAD,
        ),
        Measure(
            *("ov_copying", "copying by its weights (OV)", ""),
            "sum of e / sum of |e|, e the eigenvalues of U n2 P W_O W_V n1 P E^T",
            _HEAD,
        ),
        Measure(
            *("qk_matching", "likeness by its weights (QK)", ""),
            "sum of e / sum of |e|, e the eigenvalues of E P n1 W_Q^T W_K n1 P E^T",
            _HEAD,
        ),
        Measure(
            *("copies_top5", "copying by itself", ""),
            f"share of sampled tokens, each alone at position {ALONE_AT} through block 0 and this head, "
            f"whose own logit is among the {TOP} largest",
            "Wang et al., Interpretability in the Wild, 2022",
        ),
    )
}
