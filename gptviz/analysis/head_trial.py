"""A label is a claim about a head, so it is put to a test: what does the model lose without the head?

A head that is called an induction head must be missed where a text repeats, and not elsewhere. So it is
muted (its z is zero) on passages that follow themselves, and on the same passages after another one: the same
tokens are predicted at the same positions, and only what stood before differs. Beside it the same is done to
other heads of its block, drawn at random.

Any label says where a head looks, so it must do nearly as well when it looks there and nowhere else: its
weights are replaced by even ones over just those keys, and what is lost so is compared with what is lost when
the same queries look at all tokens alike. Not with what is lost without the head: a head that is off takes
its mean away as well, which any pattern gives back. (Of 309 labels that are not theirs, the bundled model's
heads kept 79 by that comparison, and keep 15 by this one; the untrained model's, of 336, 54 and none.)

Shapes in comments: P passages, n tokens of a passage.

Michel et al., Are Sixteen Heads Really Better than One?, 2019 (muting a head); Olsson et al., In-context
Learning and Induction Heads, 2022 (induction heads by ablation); Wang et al., Interpretability in the Wild,
2022; Chan et al., Causal Scrubbing, 2022 (a claim holds if what it does not speak of can be replaced).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz import disk_cache
from gptviz.analysis.head_formulas import ROLES, SHARES, role_keys
from gptviz.analysis.head_general import General, general, kept_under
from gptviz.analysis.head_scores import is_mark
from gptviz.analysis.trial_passes import Change
from gptviz.analysis.trial_passes import losses as losses_of
from gptviz.language_model import LanguageModel
from gptviz.progress import Progress
from gptviz.sample import long_passages

VERSION = 2  # of the formulas
PASSAGES, LENGTH, OTHERS = 10, 64, 5
SHORTEST = 8  # tokens of a passage: below, there is hardly anything to predict
SURE = 3.0  # standard errors from zero: then it is no accident of these passages
KEPT = 0.5  # of what looking at all tokens alike costs, when a head looks only where its label says

ON_REPEATS = ("induction", "copies")
TESTABLE = (*ON_REPEATS, *(name for name in ROLES if name not in ON_REPEATS))


@dataclass(frozen=True)
class Trial:
    """A label's test. `holds` is its verdict, `reason` the first of these that is so:

    "not missed": without the head repeated passages cost no more than others ("induction", "copies"), or the
    loss is no more than with it, as far as can be told; a head at rest, "first", need not be missed;
    "as others": of "induction" and "copies", so they do without the block's other heads;
    "anywhere": to look at all tokens alike costs nothing that can be told from zero;
    "not enough": looking where the label says and nowhere else does not keep half of that;
    "enough": it does, and the label holds.

    `table`, a row a head, the one on trial first: block, head, on_trial, same_label (in general, too), and
    nats a token with it off: repeated, unrepeated, each with what it is more than the model's own
    (repeated_rise, unrepeated_rise), the difference of these (extra), their mean (rise); and of the head on
    trial, when the queries that have a key of the label look at all tokens alike (even_rise), and at these
    keys only (forced_rise), for "induction" and "copies" on repeated passages, else on both kinds together;
    each with its standard error over the passages (..._se). `repeated` and `unrepeated` are the model's own
    nats a token; `passages`, `tokens`: how many were read of each kind, how many tokens predicted in each.
    """

    block: int
    head: int
    label: str
    holds: bool
    reason: str
    table: pd.DataFrame
    repeated: float
    unrepeated: float
    passages: int
    tokens: int

    @property
    def verdict(self) -> str:
        return "holds" if self.holds else "withdrawn"


def trial(
    lm: LanguageModel,
    block: int,
    head: int,
    label: str,
    progress: Progress | None = None,
    known: General | None = None,
    disk: bool = True,
) -> Trial:
    """Put a label (one of `TESTABLE`) of a head to the test.

    `known` are the heads in general, which tell who bears the same label; worked out if not given. What is
    found is kept on disk under the weights' hash, unless `disk` is False. The edits of `lm`, if it has any,
    are made in every pass.
    `progress(done, of)` is called between passes, without a lock: what it raises stops the work. Raises
    ValueError for a label without a test, a head that does not exist, and a model that cannot read the
    passages.
    """
    if label not in TESTABLE:
        raise ValueError(f"label is {label!r}; those that can be put to a test are {', '.join(TESTABLE)}")
    config = lm.config
    if not (0 <= block < config.n_layers and 0 <= head < config.n_heads):
        raise ValueError(
            f"there is no head {head} in block {block}; {lm.name} has the blocks 0 to {config.n_layers - 1} "
            f"with the heads 0 to {config.n_heads - 1}"
        )
    pairs = passages_of(lm)
    key = kept_under(lm, "trial", VERSION, block, head, label, pairs) if disk else None
    if key is not None and (found := disk_cache.read(key)) is not None:
        return Trial(**{**found, "table": pd.DataFrame(found["table"])})
    known = general(lm, disk=disk) if known is None else known
    heads = [head, *others(config.n_heads, block, head)]
    measured = _losses(lm, pairs, block, heads, label, progress)  # (P, 2, 1 + changes)
    own, off = measured[..., 0], np.moveaxis(measured[..., 1:-2], -1, 0)  # (P, 2), (heads, P, 2)
    looking = measured[..., -2:] - own[..., None]  # (P, 2, 2): at all tokens alike, and as the label says
    looking = looking[:, 0] if label in ON_REPEATS else looking.mean(axis=1)
    table = _table(block, heads, off - own, looking)
    table.insert(3, "repeated", off[..., 0].mean(axis=1))
    table.insert(4, "unrepeated", off[..., 1].mean(axis=1))
    roles = known.table.set_index(["block", "head"])["role"]
    table.insert(3, "same_label", [bool(roles.loc[(block, h)] == label) for h in heads])
    holds, reason = _verdict(table, label)
    repeated, unrepeated = own.mean(axis=0).tolist()
    tokens = len(pairs[0][0]) // 2 - 1
    made = Trial(block, head, label, holds, reason, table, repeated, unrepeated, len(pairs), tokens)
    if key is not None:
        disk_cache.write(key, vars(made) | {"table": table.to_dict("list")})
    return made


def others(n_heads: int, block: int, head: int) -> list[int]:
    """Up to five other heads of a block, drawn at random, the same ones every time."""
    rest = [h for h in range(n_heads) if h != head]
    drawn = np.random.default_rng((block, head)).permutation(rest)[:OTHERS]
    return sorted(drawn.tolist())


def passages_of(lm: LanguageModel) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of texts, 2 n tokens each: a passage after itself, and the same passage after another book's.

    Raises ValueError where the model's context or its characters do not allow it.
    """
    n = min(LENGTH, lm.config.context_length // 2)
    if n < SHORTEST:
        raise ValueError(
            f"{lm.name} reads at most {lm.config.context_length} tokens; a trial needs {2 * SHORTEST}: "
            "a passage of the sample, twice"
        )
    books = [lm.encode(passage.text) for passage in long_passages()]
    each = -(-PASSAGES // len(books))
    pieces = [
        [tuple(ids[i * n : (i + 1) * n]) for i in range(each) if len(ids) >= (i + 1) * n] for ids in books
    ]
    found = []
    for number, of_book in enumerate(pieces):
        other = pieces[(number + 1) % len(pieces)]
        found += [
            ((*piece, *piece), (*before, *piece)) for piece, before in zip(of_book, other, strict=False)
        ]
    found = [pair for pair in found if max(pair[1]) < lm.config.vocab_size]
    if len(found) < 2:
        raise ValueError(f"{lm.name} lacks the characters of the sample: its heads cannot be put to the test")
    return found[:PASSAGES]


def _losses(
    lm: LanguageModel,
    pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    block: int,
    heads: Sequence[int],
    label: str,
    progress: Progress | None,
) -> NDArray[np.float64]:
    """(P, 2, 1 + heads + 2): of each text the model's own loss, with each head off, and with the first one
    looking at all tokens alike, and where the label says.
    """
    changes = [Change(h) for h in heads]
    done, steps = 0, len(pairs) * 2 * (1 + len(heads) + 2)
    found: list[list[float]] = []
    for text in (text for pair in pairs for text in pair):
        made = []
        for losses in losses_of(lm, text, block, [*changes, *_looking(lm, text, heads[0], label)]):
            made += losses
            done += len(losses)
            if progress is not None:
                progress(done, steps)
        found.append(made)
    return np.array(found).reshape(len(pairs), 2, -1)


def _looking(lm: LanguageModel, ids: Sequence[int], head: int, label: str) -> list[Change]:
    """The queries that have a key of the label look at all tokens alike, and at these keys."""
    marks = [is_mark(token.raw) for token in lm.tokens(ids)]
    keys = role_keys(ids, marks)[..., SHARES.index(label)]  # (T, T)
    every = keys.any(dim=1, keepdim=True) & torch.ones_like(keys).tril()
    return [Change(head, every), Change(head, keys)]


def _table(
    block: int, heads: list[int], rises: NDArray[np.float64], looking: NDArray[np.float64]
) -> pd.DataFrame:
    """What each head costs when off, on every passage of both kinds, (heads, P, 2), and the first one when it
    looks at all tokens alike, and where its label says, (P, 2).
    """
    nothing = np.full((len(heads) - 1, len(looking)), np.nan)
    columns = {
        "repeated_rise": rises[..., 0],
        "unrepeated_rise": rises[..., 1],
        "extra": rises[..., 0] - rises[..., 1],
        "rise": rises.mean(axis=-1),
        "even_rise": np.vstack([looking[:, 0], nothing]),
        "forced_rise": np.vstack([looking[:, 1], nothing]),
    }  # (heads, P)
    table = pd.DataFrame({"block": block, "head": heads, "on_trial": [h == heads[0] for h in heads]})
    for name, values in columns.items():
        table[name] = values.mean(axis=1)
        table[f"{name}_se"] = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    return table


def _verdict(table: pd.DataFrame, label: str) -> tuple[bool, str]:
    row, rest = table.iloc[0], table.iloc[1:]
    if label in ON_REPEATS:
        if row["extra"] <= SURE * row["extra_se"]:
            return False, "not missed"
        unlike = rest[~rest["same_label"]]
        if len(unlike) and row["extra"] <= unlike["extra"].mean():
            return False, "as others"
    elif label != "first" and row["rise"] <= SURE * row["rise_se"]:
        return False, "not missed"
    if row["even_rise"] <= SURE * row["even_rise_se"]:
        return False, "anywhere"
    enough = row["forced_rise"] <= (1 - KEPT) * row["even_rise"]
    return bool(enough), "enough" if enough else "not enough"
