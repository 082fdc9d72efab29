"""A label is a claim about a head, so it is put to a test: what does the model lose without the head?

A head that is called an induction head must be missed where a text repeats, and not elsewhere. So its output
is replaced on passages that follow themselves, and on the same passages after another one: the same tokens
are predicted at the same positions, and only what stood before differs. Beside it the same is done to up to
five other heads of its block, drawn at random.

What stands in its place is zero, and then the head's mean over the sample (`sample_means`). A verdict
may turn with this baseline: zero takes the head's mean away as well, which later parts have learnt to expect.
(Without block 0's head 1 the bundled model breaks on any text. With zero in its place the loss rises less on
repeats than elsewhere, with the mean in its place it rises more.) So both must say the same; where they do
not, the trial is not decided.

Any label says where a head looks, so the head must keep at least half of its use when it looks there and
nowhere else. Its weights are replaced by even ones over just those keys, and the rise of the loss is compared
with the rise when the same queries look at all tokens alike. It is not compared with the rise without the
head: that depends on what stands in the head's place, and two patterns of the same head differ in nothing but
where they look.

A head that is not missed may look where its label says all the same: others may stand in for it (McGrath et
al., The Hydra Effect, 2023). So a label is never withdrawn because its head is not missed; the verdict is
then "not shown". A label is withdrawn where the head is needed, and where looking at the label's keys keeps
less than half of its use. ("first", a head at rest, need not be missed: only the second test counts.) Of the
bundled model's 27 labels 8 hold, 17 are not shown, 1 is withdrawn and 1 not decided.

Shapes in comments: P passages, n tokens of a passage, T = 2 n of a text, C changes, B of them in one batch,
H heads, D emb_dim, d = D / H.

Michel et al., Are Sixteen Heads Really Better than One?, 2019 (muting a head); Olsson et al., In-context
Learning and Induction Heads, 2022 (induction heads by ablation); Wang et al., Interpretability in the Wild,
2022 (mean ablation); Chan et al., Causal Scrubbing, 2022 (a claim holds if what it does not speak of can be
replaced).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from gptviz.analysis.attention import of_heads
from gptviz.analysis.head_formulas import ON_REPEATS, SHARES, role_keys
from gptviz.analysis.head_general import General, general, kept_under
from gptviz.analysis.head_scores import is_mark
from gptviz.engine.edits import Edit
from gptviz.engine.forward import logits_of
from gptviz.engine.index import index_of, one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.reader import ready
from gptviz.engine.sample import long_passages
from gptviz.engine.sample_means import sample_means
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.variants import variants
from gptviz.files import disk_cache

# to be raised with any change to what is measured or decided here (SURE and KEPT, too) or to the roles of heads
# in general: a trial kept on disk is found by it. Then `python -m gptviz.training heads` makes those that ship
VERSION = 3
# enough for standard errors, few enough for a trial of some seconds on the bundled model
PASSAGES = 10
LENGTH = 64  # tokens of a passage
OTHERS = 5  # heads of the same block that are tried for comparison
SHORTEST = 8  # tokens of a passage: below, there is hardly anything to predict
# standard errors from zero. Three and not two, since dozens of labels are tried and the passages are few
SURE = 3.0
# the part of the cost of looking at all tokens alike that is saved by looking only where the label says
KEPT = 0.5
# multiply-adds of a batch: about a tenth of a second, in which nobody else has the model
WORK = 2**32

TESTABLE = SHARES  # every label that says where a head looks
# what a head gives that is off: nothing, or its mean over the sample
BASELINES = ("zero", "sample")
VERDICTS = {"enough": "holds", "not enough": "withdrawn"}  # by reason; any other: "not shown"

Claim = tuple[int, int, str]  # block, head, label
Pairs = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]


@dataclass(frozen=True)
class Trial:
    """A label's test. `reasons` has for each baseline the first of these that is so:

    "not missed": without the head repeated passages cost no more than others ("induction", "copies"), or the
    loss is no more than with it, as far as can be told; a head at rest, "first", need not be missed;
    "as others": of "induction" and "copies", the head's `extra` (below) is no more than the mean of the other
    tried heads that have another label; not asked where there are none;
    "anywhere": looking at all tokens alike costs nothing that can be told from zero, and neither does looking
    where the label says and nowhere else;
    "not enough": looking where the label says costs more than half of looking at all tokens alike, or costs
    something where looking at all tokens alike costs nothing;
    "enough": looking where the label says costs at most that half.

    `table`, a row a change, those of the head on trial marked (on_trial): block, head, same_label (whether
    this head has in general the label on trial), change, and how much more than the model's own loss it costs
    in nats per token on repeated and on unrepeated passages (repeated_rise, unrepeated_rise), the first minus
    the second (extra), and the mean of both (rise), each as the mean over the passages with its standard
    error (..._se). The changes: the head gives "zero", or its mean over the "sample"; of the head on trial
    also: the queries that have a key of the label look at all tokens alike ("even"), or at these keys only
    ("label"). `repeated` and `unrepeated` are the model's own nats per token; `passages`, `tokens`: how many
    were read of each kind, how many tokens predicted in each.
    """

    block: int
    head: int
    label: str
    reasons: dict[str, str]
    table: pd.DataFrame
    repeated: float
    unrepeated: float
    passages: int
    tokens: int

    @property
    def verdict(self) -> str:
        """ "holds", "withdrawn", or "not shown" where both baselines say so, else "not decided"."""
        verdicts = {VERDICTS.get(reason, "not shown") for reason in self.reasons.values()}
        if len(verdicts) == 1:
            return verdicts.pop()
        return "not decided"

    @property
    def missed_by(self) -> str:
        """The column of the table that says whether the head is missed."""
        if self.label in ON_REPEATS:
            return "extra"
        return "rise"

    @property
    def looked_by(self) -> str:
        """The column that says what it costs to look elsewhere: where repeats help, or on all passages.

        Both costs that are compared are of the same passages, so there is nothing to subtract.
        """
        if self.label in ON_REPEATS:
            return "repeated_rise"
        return "rise"

    @cached_property
    def own(self) -> pd.DataFrame:
        """The rows of the head on trial, by their change."""
        return self.table[self.table["on_trial"]].set_index("change")

    def others(self, baseline: str) -> pd.DataFrame:
        """The rows of the other heads by a baseline."""
        return self.table[~self.table["on_trial"] & (self.table["change"] == baseline)]


@undisturbed
def trial(
    lm: LanguageModel,
    block: int,
    head: int,
    label: str,
    progress: Progress = ignore_progress,
    known: General | None = None,
    disk: bool = True,
) -> Trial:
    """Put a label (one of `TESTABLE`) of a head to the test.

    `known` are the heads in general, which say which heads have the same label; worked out if not given. The
    trial is kept on disk under the weights' hash, unless `disk` is False. The edits of `lm`, if it has any,
    are made in every pass.
    `progress(done, of)` is called between passes, without a lock: what it raises stops the work. Raises
    ValueError for a label without a test, a head that does not exist, and a model that cannot read the
    passages.
    """
    one_of("label", label, TESTABLE)
    config = lm.config
    block = index_of("block", block, config.n_layers)
    head = index_of("head", head, config.n_heads)
    pairs = passages_of(lm)
    key = None
    if disk:
        key = names(lm, pairs)(block, head, label)
    if key is not None and (stored := disk_cache.read(key)) is not None:
        return from_json(stored)
    if known is None:
        known = general(lm, progress, disk)
    heads = [head, *others(config.n_heads, block, head)]
    losses = _losses(lm, pairs, block, heads, label, progress)  # (P, 2, 1 + C)
    roles = known.table.set_index(["block", "head"])["role"]
    table = _table(block, heads, losses[..., 1:] - losses[..., :1])
    table.insert(3, "same_label", [bool(roles.loc[(block, h)] == label) for h in table["head"]])
    repeated, unrepeated = losses[..., 0].mean(axis=0).tolist()
    tokens = len(pairs[0][0]) // 2 - 1
    result = Trial(block, head, label, {}, table, repeated, unrepeated, len(pairs), tokens)
    result.reasons.update({baseline: _reason(result, baseline) for baseline in BASELINES})
    if key is not None:
        disk_cache.write(key, to_json(result))
    return result


def known_trials(lm: LanguageModel) -> dict[Claim, Trial]:
    """Return the trials of a model's labels that are on disk, or ship with it; nothing is measured.

    Raises ValueError for a model that cannot read the passages.
    """
    name = names(lm, passages_of(lm))
    heads = product(range(lm.config.n_layers), range(lm.config.n_heads), TESTABLE)
    stored = {claim: disk_cache.read(key) for claim in heads if (key := name(*claim)) is not None}
    return {claim: from_json(record) for claim, record in stored.items() if record is not None}


def to_json(made: Trial) -> dict[str, Any]:
    values = {field.name: getattr(made, field.name) for field in fields(made)}
    return values | {"table": made.table.to_dict("list")}


def from_json(found: dict[str, Any]) -> Trial:
    return Trial(**{**found, "table": pd.DataFrame(found["table"])})


def names(lm: LanguageModel, pairs: Pairs) -> Callable[..., str | None]:
    """A function that names a claim's trial on disk, or gives None: see `kept_under`.

    A function, since the hash of all weights is taken once for all claims.
    """
    model_key = kept_under(lm, "trial", VERSION, pairs)
    return lambda *claim: None if model_key is None else disk_cache.fingerprint([model_key, *claim])


def others(n_heads: int, block: int, head: int) -> list[int]:
    """Up to five other heads of a block, drawn at random, the same ones every time."""
    candidates = [h for h in range(n_heads) if h != head]
    return sorted(np.random.default_rng((block, head)).permutation(candidates)[:OTHERS].tolist())


def passages_of(lm: LanguageModel) -> Pairs:
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
    per_book = -(-PASSAGES // len(books))
    pieces = [
        [tuple(ids[i * n : (i + 1) * n]) for i in range(per_book) if len(ids) >= (i + 1) * n]
        for ids in books
    ]
    pairs = [
        ((*piece, *piece), (*before, *piece))
        for of_book, of_next in zip(pieces, [*pieces[1:], pieces[0]], strict=True)
        for piece, before in zip(of_book, of_next, strict=False)
        if max(*before, *piece) < lm.config.vocab_size
    ]
    if len(pairs) < 2:
        raise ValueError(
            f"{lm.name} lacks the characters of the sample: its heads cannot be put to the test"
        )
    return pairs[:PASSAGES]


def _losses(
    lm: LanguageModel,
    pairs: Pairs,
    block: int,
    heads: Sequence[int],
    label: str,
    progress: Progress,
) -> NDArray[np.float64]:
    """(P, 2, 1 + C): of each text the model's own loss, with each head off by each baseline, and with the
    first one looking at all tokens alike, and where the label says.
    """
    done = 0
    steps = len(pairs) * 2 * (1 + len(BASELINES) * len(heads) + 2)
    # what the edits with "sample" need, kept for them: made here, where progress can stop it
    sample_means(lm, lambda *_: progress(0, steps))
    # in the order of `_changes`, whose last two `_batches` adds
    mutings = [Edit("z", block, baseline, [h]) for baseline in BASELINES for h in heads]
    rows: list[list[float]] = []
    for text in (text for pair in pairs for text in pair):
        text_losses = []
        for losses in _batches(lm, text, block, heads[0], mutings, label):
            text_losses += losses
            done += len(losses)
            progress(done, steps)
        rows.append(text_losses)
    return np.array(rows).reshape(len(pairs), 2, -1)  # (2 P, 1 + C) -> (P, 2, 1 + C)


def _changes(heads: Sequence[int]) -> list[tuple[int, str]]:
    """(head, change) of each change that is tried, in the order of the losses; heads[0] is on trial."""
    off = [(h, baseline) for baseline in BASELINES for h in heads]
    return [*off, (heads[0], "even"), (heads[0], "label")]


def _even_and_label_keys(lm: LanguageModel, ids: Sequence[int], label: str) -> list[torch.Tensor]:
    """For the queries that have a key of the label, (T, T): all tokens that they see, and these keys."""
    marks = [is_mark(token.raw) for token in lm.tokens(ids)]
    keys = role_keys(ids, marks)[..., SHARES.index(label)]  # (T, T)
    return [keys.any(dim=1, keepdim=True) & torch.ones_like(keys).tril(), keys]


def _table(block: int, heads: list[int], rises: NDArray[np.float64]) -> pd.DataFrame:
    """`Trial.table` without the column of heads of the same label, from rises (P, 2, C)."""
    changed = _changes(heads)
    repeated = rises[:, 0]  # (P, C)
    unrepeated = rises[:, 1]  # (P, C)
    columns = {
        "repeated_rise": repeated,
        "unrepeated_rise": unrepeated,
        "extra": repeated - unrepeated,
        "rise": (repeated + unrepeated) / 2,
    }
    table = pd.DataFrame({"block": block, "head": [h for h, _ in changed]})
    table["on_trial"] = table["head"] == heads[0]
    table["change"] = [change for _, change in changed]
    for name, values in columns.items():
        table[name] = values.mean(axis=0)
        table[f"{name}_se"] = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return table


def _reason(trial: Trial, baseline: str) -> str:
    def surely(change: str, column: str) -> bool:
        row = trial.own.loc[change]
        return bool(row[column] > SURE * row[f"{column}_se"])

    if trial.label != "first" and not surely(baseline, trial.missed_by):
        return "not missed"
    if trial.label in ON_REPEATS:
        other_heads = trial.others(baseline)
        unlike = other_heads[~other_heads["same_label"]]
        if len(unlike) and trial.own["extra"][baseline] <= unlike["extra"].mean():
            return "as others"
    looked = trial.own[trial.looked_by]
    if not surely("even", trial.looked_by):
        if surely("label", trial.looked_by):
            return "not enough"
        return "anywhere"
    if looked["label"] <= (1 - KEPT) * looked["even"]:
        return "enough"
    return "not enough"


# ---- the passes ----


def _batches(
    lm: LanguageModel,
    ids: Sequence[int],
    block: int,
    head: int,
    mutings: Sequence[Edit],
    label: str,
) -> Iterator[list[float]]:
    """Yield nats per token of a text's second half. Its first token is left out: it is predicted from the last
    one of the first half, which differs between the two texts of a pair.

    First of the model as it is, [loss]; then, batch by batch, with each of the edits `mutings` of this block,
    and with the head looking evenly at the keys that `_even_and_label_keys` gives of this label.
    """
    trace = lm.trace(ids, keep=[("resid_pre", block), ("attn", block), ("v", block), "final"])
    yield _measured(lm, ids, trace["final"][None])
    key_sets = _even_and_label_keys(lm, ids, label)
    outputs = (_looking_evenly(lm, trace, block, head, keys) for keys in key_sets)
    edits = [*mutings, *(Edit("z", block, z, [head]) for z in outputs)]
    # a block's matrices have 12 D^2 weights: 4 of attention, 8 of the feed-forward
    weights = 12 * (lm.config.n_layers - block) * lm.config.emb_dim**2
    most = WORK // (weights * len(ids))
    for finals in variants(
        lm, trace["resid_pre", block], block, [[edit] for edit in edits], most=most
    ):
        yield _measured(lm, ids, finals)


def _measured(lm: LanguageModel, ids: Sequence[int], finals: torch.Tensor) -> list[float]:
    """(B, T, D) -> of each the mean over the predicted tokens of -ln of their probability."""
    half = len(ids) // 2
    wanted = torch.tensor(ids[half + 1 :])  # (n - 1,)
    return [
        float(F.cross_entropy(logits_of(lm.model, final), wanted)) for final in finals[:, half:-1]
    ]


def _looking_evenly(
    lm: LanguageModel, trace: Trace, block: int, head: int, keys: torch.Tensor
) -> torch.Tensor:
    """Return z (H, T, d) with the head looking evenly at these keys (T, T).

    Only this head's row means anything; an edit wants a tensor of the site's shape, and takes that row. The
    model's own edits of z come before the ones that are tried, so they would be lost here: they are made
    again. Its edits of earlier sites are in the trace.
    """
    asked = keys.sum(dim=1, keepdim=True)  # (T, 1)
    attn = trace["attn", block][head]  # (T, T)
    z = torch.where(asked > 0, keys / asked.clamp(min=1), attn) @ of_heads(
        trace, "v", block
    )  # (H, T, d)
    for edit in ready(lm, lm.edits):
        if (edit.site, edit.block) == ("z", block):
            z = edit.apply(z)
    return z
