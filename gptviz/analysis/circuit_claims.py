"""Claims about heads, each with its tests: the mechanism of every story that is told of a circuit.

A story is told of a `Task`: texts of one form, in each of which the places that matter are known, and the roles
that heads may have in it. A role is a claim, so each has its tests, over many texts:

    it passes something on   path patching: by how much the difference of two words' logits falls when the
                             receivers alone read what the head writes at one position as it is in another text.
                             For a role that stands in for others: by how much more of the difference the head
                             itself writes when those are muted
    it looks where it says   its attention from that position to one place, less that to each of some others;
                             and at least `LOOKS` of its attention goes there
    it copies                (some roles) what it takes from a place changes a word's logit
    its weights copy         (those) of at least `COPIES` of the task's words, each looked at alone

The first three must be more than `SURE` standard errors from 0, and what a head passes on must be at least that of
nine of ten heads. Where no head passes all tests, the role is *not shown*: it may be there, or spread over many
heads. A role that passes something to heads with another role is tested only where that one is shown: what reaches
a head that nobody knows the work of is no step of a circuit. The effects that are told come from the same texts
that chose the heads, so they are rather too large.

Whether a head's label holds in books is another question, with other texts: see `gptviz.analysis.head_trial`. A head
may look where its label says, and be missed there, and pass nothing on in the task's texts.

Beside the claims stand what is lost with a role's heads muted together; faithfulness, completeness and minimality
of all of them; and random circuits of as many heads.

Wang et al., Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 small, 2022.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.analysis.ablation import BASELINES, GIVES
from gptviz.analysis.against import difference
from gptviz.analysis.circuit_passes import Head, Passes, all_heads
from gptviz.analysis.circuit_search import ROUNDING, score, subsets, written
from gptviz.analysis.copying import copies_of
from gptviz.analysis.logit_attribution import heads_along, reader, source_tokens
from gptviz.analysis.names import groups_of
from gptviz.analysis.patched_paths import LOGITS, Receiver, changes
from gptviz.analysis.patches import value_of
from gptviz.analysis.prompts import OF_OTHER, standard_error
from gptviz.digits import fixed, percent
from gptviz.engine.edits import Edit
from gptviz.engine.index import one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.sites import sites_of
from gptviz.engine.undisturbed import undisturbed

LEAST = 12  # texts: fewer say too little of a standard error
SURE = 3.0  # standard errors from 0: dozens of heads are tried
STRONGER_THAN = 0.9  # the share of all heads that pass on less than a head of the story
LOOKS = 0.1  # the share of its attention that a head gives, on average, to where it is said to look
COPIES = 0.5  # the share of the task's words that a head's weights copy by themselves
STAND_IN = 3  # heads that pass most on to the logits, measured as a circuit where no role is shown
RANDOM_CIRCUITS = 20
NOTHING = 0.1  # of the way from no head to the model: a circuit that keeps no more explains nothing

Values = NDArray[np.float64]
Places = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Role:
    """A role that the field knows, and what a head must do to have it.

    `sign` is 1 where it must help the answer, -1 where it must help the other word. It passes that on at `at`, to
    what heads with one of the roles `to` read ("q", "k", "v"), or to the logits. `other` names the text that it is
    taken from. It looks at the place `looks`, and more than at each of `rather_than`. `copied` is the place whose
    word's logit what it takes from there must raise, or lower where `copies` is -1. A role with `stands_in_for`
    passes nothing on until heads with these roles are muted. It is tested only where a role of `to`, or of
    `stands_in_for`, is shown. A role that is not `is_classical` is told only where it is shown.
    """

    name: str
    meaning: str
    sign: int
    at: str
    other: str
    looks: str
    rather_than: tuple[str, ...]
    to: tuple[str, ...] = ()
    reads: str = ""
    copied: str = ""
    copies: int = 1
    stands_in_for: tuple[str, ...] = ()
    is_classical: bool = True


@dataclass(frozen=True)
class Task:
    """What a story is about: the roles in the order of their tests, and how places and other texts are called.

    `words` are the tokens that are tried by weights alone. With the baseline "other" a head outside the circuit
    gives what it gives in the other text called `outside`, and a muted head of a role what it gives in the role's
    own one.
    """

    roles: tuple[Role, ...]
    places: Mapping[str, str]
    others: Mapping[str, str]
    words: tuple[int, ...]
    outside: str

    def gives(self, baseline: str, other: str) -> str:
        """What a muted head gives, in words; `other` names the text that it is taken from where it is from one."""
        if baseline == OF_OTHER:
            return f"its value in {self.others[other]}"
        return GIVES[baseline]


@dataclass(frozen=True)
class TaskText:
    """A text of a task: ids, the answer, the other word, the places by name, and the other texts by name.

    `copied` has the token that stands at a place from which heads may copy.
    """

    ids: tuple[int, ...]
    answer: int
    instead: int
    places: Places
    others: Mapping[str, tuple[int, ...]]
    copied: Mapping[str, int]

    @property
    def words(self) -> tuple[int, int]:
        """The answer, and the other word."""
        return self.answer, self.instead


@dataclass(frozen=True)
class Claim:
    """A role, the heads that passed its tests, and how it was tested.

    `effect` is the sum of what each of these heads passes on alone, in logits of the answer minus the other word:
    by how much the difference falls (below 0: rises) where `changed` is as in `baseline`. `effect_se` is its
    standard error over `n` texts. Where the role is not `shown` they are of the `strongest` head, whose effect is
    the largest. `reason` says which test decided. `copy_scores` are the shares of the task's words that these heads
    copy by their weights, for a role that copies. `lost` is by how much the difference falls with the heads of a
    shown role muted together, each giving what `gives` says; `lost_se` its standard error. What was not measured
    is None, and of a role that was not tested so is everything but `reason`.
    """

    role: Role
    shown: bool
    heads: tuple[Head, ...]
    reason: str
    strongest: Head | None = None
    effect: float | None = None
    effect_se: float | None = None
    n: int | None = None
    changed: str | None = None
    baseline: str | None = None
    copy_scores: tuple[float, ...] = ()
    lost: float | None = None
    lost_se: float | None = None
    gives: str = ""

    @property
    def measured(self) -> tuple[Head, ...]:
        """The heads that the numbers are of: those that have the role, or the strongest one, or none."""
        if self.strongest is None or self.heads:
            return self.heads
        return (self.strongest,)

    @property
    def how(self) -> str:
        """What was changed to measure the effect, in words: the beginning of a sentence."""
        if self.role.stands_in_for:
            return f"With {self.changed} ({self.baseline})"
        return f"With {self.changed}, taken from {self.baseline},"

    @property
    def amount(self) -> str:
        """The effect in words: "the difference falls by 0.25 ± 0.10 logits (24 texts)"; "" where none was measured."""
        if self.effect is None or self.effect_se is None:
            return ""
        over = f"{self.n} texts"
        if len(self.heads) > 1:
            over += ", the sum of what each does alone"
        if self.role.stands_in_for:
            size = f"{fixed(abs(self.effect), 2)} ± {fixed(self.effect_se, 2)} logits"
            more = "less" if self.effect < 0 else "more"
            return f"it writes {size} {more} for the answer ({over})"
        return f"the difference {_falls(self.effect, self.effect_se)} logits ({over})"

    @property
    def copying(self) -> str:
        """The copy scores in a sentence with a blank before it; "" for a role that copies nothing."""
        if not self.copy_scores:
            return ""
        pairs = sorted(zip(self.measured, self.copy_scores, strict=True))
        scores = [f"{written([head])} {percent(score)}" for head, score in pairs]
        name = "Copy score"
        if self.role.copies < 0:
            name = "Copy score, of the opposite of what it writes"
        return f" {name}: {', '.join(scores)}."

    @property
    def muted(self) -> str:
        """What is lost with the heads of a shown role muted, in a sentence with a blank before it; else ""."""
        if self.lost is None or self.lost_se is None:
            return ""
        amount = _falls(self.lost, self.lost_se)
        if len(self.heads) == 1:
            return f" With it off ({self.gives} instead) the difference {amount}."
        every = f"all {len(self.heads)}"
        if len(self.heads) == 2:
            every = "both"
        return f" With {every} off (each gives {self.gives}) the difference {amount}."

    @property
    def sentence(self) -> str:
        """The claim in words."""
        rest = f"{self.how} {self.amount}. {self.reason}{self.copying}{self.muted}"
        if self.shown:
            return f"{written(self.heads)}: {self.role.name}. {rest}"
        if self.strongest is None:
            return f"{self.role.name}: not shown. {self.reason}"
        return f"{self.role.name}: not shown. The largest effect is that of {written([self.strongest])}. {rest}"


def _falls(amount: float, error: float) -> str:
    """By how much the difference falls, or rises: "falls by 0.25 ± 0.10"."""
    verb = "rises" if amount < 0 else "falls"
    return f"{verb} by {fixed(abs(amount), 2)} ± {fixed(error, 2)}"


@dataclass(frozen=True)
class Worth:
    """How good the story's heads are as a circuit: F is the difference of logits, a mean over the texts.

    `whole` is that of the model, `circuit` with the story's heads alone, `empty` without any head, and `random`
    with as many heads drawn at random. Embeddings, feed-forwards and the biases of attention always stay; with the
    baseline "mean" so does each other head's mean over the text, which carries its words. `completeness` is the
    largest |F(C without K) - F(M without K)| over the sets K that were tried, the worst is `without` ("": no head
    is taken out). `minimality` is |F(C) - F(C without the head)| of each head: with K empty, a lower bound of the
    paper's. `gives` says what a head that is left out gives.
    """

    heads: tuple[Head, ...]
    whole: float
    circuit: float
    empty: float
    random: tuple[float, ...]
    completeness: float
    without: str
    minimality: tuple[float, ...]
    gives: str

    @property
    def faithfulness(self) -> float:
        """|F(M) - F(C)|: 0 is best."""
        return abs(self.whole - self.circuit)

    @property
    def share(self) -> float | None:
        """The share of the way from no head to the whole model that the circuit goes.

        None where that is less than `ROUNDING` logits long.
        """
        way = self.whole - self.empty
        if abs(way) < ROUNDING:
            return None
        return (self.circuit - self.empty) / way

    @property
    def explains(self) -> bool:
        """Whether the circuit keeps more than `NOTHING` of the difference that heads make."""
        return self.share is not None and self.share > NOTHING

    @property
    def better_than_random(self) -> float:
        """The share of the random circuits that are further from the model."""
        return float(
            np.mean([abs(self.whole - value) > self.faithfulness for value in self.random])
        )


@dataclass(frozen=True)
class Story:
    """What was found over `n` texts: their mean difference of logits, in how many the answer is ahead, claims.

    `first` is in how many the answer is the model's first choice of all tokens. `independent` is the number of texts,
    with two that are each other's with their words exchanged as one: the standard errors are over so many.
    """

    n: int
    difference: float
    difference_se: float
    right: int
    first: int
    claims: tuple[Claim, ...]
    worth: Worth
    independent: int

    def claim(self, role: str) -> Claim:
        """The claim about a role. Raises ValueError for a name that no role has."""
        one_of("role", role, [claim.role.name for claim in self.claims])
        return next(claim for claim in self.claims if claim.role.name == role)

    @property
    def table(self) -> pd.DataFrame:
        """A row a claim: role, shown, heads, strongest, effect, effect_se, n, copy_score, changed, baseline, reason,
        lost, lost_se.

        `strongest` is the head of the numbers where none has the role, `copy_score` the mean of the heads'. What was
        not measured is missing.
        """
        rows = [
            {"role": claim.role.name, "shown": claim.shown, "heads": written(claim.heads) or None}
            | {"strongest": None if claim.shown else written(claim.measured) or None}
            | {"effect": claim.effect, "effect_se": claim.effect_se, "n": claim.n}
            | {"copy_score": float(np.mean(claim.copy_scores)) if claim.copy_scores else None}
            | {"changed": claim.changed, "baseline": claim.baseline, "reason": claim.reason}
            | {"lost": claim.lost, "lost_se": claim.lost_se}
            for claim in self.claims
        ]
        measured = ["effect", "effect_se", "copy_score", "lost", "lost_se"]
        return pd.DataFrame(rows).astype({"n": "Int64"} | dict.fromkeys(measured, float))


@undisturbed
def tell(
    lm: LanguageModel,
    task: Task,
    texts: Sequence[TaskText],
    baseline: str = "sample",
    progress: Progress = ignore_progress,
) -> Story:
    """Put all roles of a task to their tests over these texts, and measure the heads that are shown as a circuit.

    `baseline` is what muted heads give: those outside the circuit in `Story.worth`, those of a role in `Claim.lost`,
    and those that others stand in for. With "other" it is what they give in another text: see `Task`. What a head
    passes on is tested against other texts, whatever the baseline.
    `progress(done, of)` is called after every text, without a lock: what it raises stops the work. Raises ValueError
    for an unknown baseline.
    """
    one_of("baseline", baseline, (*BASELINES, OF_OTHER))
    read = _Read(lm, task, texts, baseline)
    read.count_steps(progress)
    read.look()
    claims: dict[str, Claim] = {}
    for role in task.roles:
        claims[role.name] = _test(read, role, claims)
    members = {head for claim in claims.values() for head in claim.heads}
    chosen = tuple(sorted(members)) or read.strongest()
    told = [claim for claim in claims.values() if claim.shown or claim.role.is_classical]
    worth, told = _worth(read, chosen, told)
    progress(1, 1)
    differences = read.differences
    return Story(
        len(differences),
        float(differences.mean()),
        float(standard_error(differences, read.groups)),
        int((differences > 0).sum()),
        int(read.is_first.sum()),
        tuple(told),
        worth,
        len(set(read.groups)),
    )


# ---- what is measured ----


@dataclass
class _Seen:
    """What all heads do in the texts: their attention from place to place, what they take, what they write.

    Arrays of (n texts, L blocks, H heads); `writes` is what a head writes at the last token for the answer and
    against the other word.
    """

    looks: dict[tuple[str, str], Values]
    taken: dict[str, Values]
    writes: Values


class _Read:
    """The texts, and what all heads do in them. Shapes: n texts, L blocks, H heads."""

    def __init__(self, lm: LanguageModel, task: Task, texts: Sequence[TaskText], baseline: str):
        self.lm = lm
        self.task = task
        self.texts = texts
        self.baseline = baseline
        self.groups = groups_of(lm, [text.ids for text in texts], [text.words for text in texts])
        self.shape = (len(texts), lm.config.n_layers, lm.config.n_heads)
        self.differences: Values = np.zeros(len(texts))
        self.is_first = np.zeros(len(texts), dtype=np.bool_)
        self._paths: dict[tuple[Any, ...], Values] = {}
        self._copies: dict[int, Values] = {}
        self._progress: Callable[[int], object] = lambda done: None
        self._done = 0

    def count_steps(self, progress: Progress) -> None:
        """Count texts: rounds of looking, one of circuits, and one for each path that is measured."""
        roles = self.task.roles
        rounds = 2 + len({(role.to, role.reads, role.at, role.other) for role in roles})
        total = rounds * len(self.texts)
        self._progress = lambda done: progress(min(done, total), total)

    def told(self, texts: int = 1) -> None:
        """Report so many more texts; 0 in the middle of other work, which a stop may end."""
        self._done += texts
        self._progress(self._done)

    def muted(self, text: TaskText, other: str) -> str:
        """What muted heads give in a text, as passes take it; `other` names the other text that it may be from."""
        if self.baseline == OF_OTHER:
            return value_of(text.others[other])
        return self.baseline

    def look(self) -> None:
        """One pass a text."""
        self.seen = self._seen(())

    def without(self, heads: Sequence[Head]) -> tuple[_Seen, Values]:
        """The same with these heads muted, and how much more each head writes then, (n, L, H).

        Both passes are read through the final LayerNorm of the first, so that nothing grows only because it divides
        by less. Of the muted heads it is 0.
        """
        seen = self._seen(heads)
        more = seen.writes - self.seen.writes
        for block, head in heads:
            more[:, block, head] = 0
        return seen, more

    def _seen(self, muted: Sequence[Head]) -> _Seen:
        """One pass a text with these heads muted."""
        roles = self.task.roles
        pairs = {(role.at, key) for role in roles for key in (role.looks, *role.rather_than)}
        copied = {role.copied for role in roles if role.copied}
        seen = _Seen(
            {pair: np.zeros(self.shape) for pair in pairs},
            {place: np.zeros(self.shape) for place in copied},
            np.zeros(self.shape),
        )
        for number, text in enumerate(self.texts):
            whole = self.lm.trace(text.ids)
            logits = whole.logits(-1)
            self.differences[number] = float(difference(logits, text.answer, text.instead))
            self.is_first[number] = int(logits.argmax()) == text.answer
            towards = reader(whole, self.lm, text.answer, text.instead).direction
            trace = whole
            if muted:
                value = self.muted(text, self.task.outside)
                edits = [Edit("z", block, value, [head]) for block, head in muted]
                trace = self.lm.trace(text.ids, edits=edits)
            attention = trace["attn"].double().numpy()  # (L, H, T, T)
            for query, key in pairs:
                looked = attention[:, :, text.places[query][0], list(text.places[key])]
                seen.looks[query, key][number] = looked.sum(axis=-1)
            for place in copied:
                taken = source_tokens(trace, self.lm, text.copied[place]).numpy()  # (L, H, T)
                # a muted head takes nothing from any token
                taken = np.nan_to_num(taken[..., list(text.places[place])])
                seen.taken[place][number] = taken.sum(axis=-1)
            seen.writes[number] = heads_along(trace, self.lm, towards).numpy()
            self.told()
        return seen

    def copies(self, sign: int) -> Values:
        """The share of the task's words that each head copies by its weights, (L, H); with -1, writes against.

        Of the plain model: no edit changes weights.
        """
        if sign not in self._copies:
            self._copies[sign] = copies_of(
                self.lm.plain, self.task.words, sign, lambda *_: self.told(0)
            )
        return self._copies[sign]

    def passed_on(self, role: Role, receivers: Sequence[Receiver]) -> Values:
        """What every head passes on to the receivers, (n, L, H), alone.

        By how much the difference falls when the receivers read the head as it is in the role's other text. Where
        that one asks for the other word, a head that alone makes the difference turns it round there, not to 0.
        No head of a receiver's block or later passes anything.
        """
        key = (tuple(receivers), role.at, role.other)
        if key not in self._paths:
            effects = np.zeros(self.shape)
            for number, text in enumerate(self.texts):
                table = changes(
                    self.lm,
                    text.ids,
                    text.others[role.other],
                    (text.answer, text.instead),
                    receivers or LOGITS,
                    text.places[role.at][0],
                )
                effects[number, table["block"], table["head"]] = -table["change"]
                self.told()
            self._paths[key] = effects
        return self._paths[key]

    def strongest(self) -> tuple[Head, ...]:
        """The heads that pass most on to the logits, whatever they do."""
        effects = np.abs(self.passed_on(self.task.roles[0], ()).mean(axis=0))  # (L, H)
        order = np.argsort(-effects, axis=None)[:STAND_IN]
        return tuple(sorted(divmod(int(i), self.shape[2]) for i in order))


def _in_errors(values: Values, groups: Sequence[int]) -> Values:
    """Means over texts, (n, ...), in standard errors; infinite where all values are the same, 0 where they are 0."""
    means = values.mean(axis=0)
    errors = standard_error(values, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(means) > ROUNDING, means / errors, 0.0)


# ---- the tests ----


def _receivers(read: _Read, role: Role, claims: dict[str, Claim]) -> list[Receiver]:
    """The reads that a role's heads must reach; none for the logits, and where no role of `to` is shown."""
    shown = [head for name in role.to for head in claims[name].heads]
    if not shown:
        return []
    site = sites_of(read.lm.config)[role.reads]
    reads = [(role.reads, block, site.of_head(head, read.lm.config)) for block, head in shown]
    return list(dict.fromkeys(reads))


def _test(read: _Read, role: Role, claims: dict[str, Claim]) -> Claim:
    """Put a role to its tests."""
    if role.stands_in_for:
        return _test_of_stand_in(read, role, claims)
    receivers = _receivers(read, role, claims)
    if role.to and not receivers:
        reason = f"Not tested: no {_any_of(role.to)} is shown that it could reach."
        return Claim(role, False, (), reason)
    if role.to and not any(block > 0 for _, block, _ in receivers):
        reason = "Not tested: no head stands before those that it would have to reach."
        return Claim(role, False, (), reason)
    how = _changed(read, role, receivers), read.task.others[role.other]
    return _tried(read, role, how, read.seen, role.sign * read.passed_on(role, receivers))


def _test_of_stand_in(read: _Read, role: Role, claims: dict[str, Claim]) -> Claim:
    """The same for a role of heads that stand in for others: with those muted."""
    muted = [head for name in role.stands_in_for for head in claims[name].heads]
    if not muted:
        reason = (
            f"Not tested: no {_any_of(role.stands_in_for)} is shown that could be switched off."
        )
        return Claim(role, False, (), reason)
    gives = read.task.gives(read.baseline, read.task.outside)
    how = f"{written(muted)} off", f"each gives {gives}"
    seen, more = read.without(muted)
    return _tried(read, role, how, seen, role.sign * more)


def _any_of(roles: Sequence[str]) -> str:
    """Roles in a sentence: "name mover or mover of the other name", "induction head"."""
    names = [name if "mover" in name else f"{name} head" for name in roles]
    return " or ".join(names)


def _tried(read: _Read, role: Role, how: tuple[str, str], seen: _Seen, effects: Values) -> Claim:
    """The claim about a role whose heads pass on `effects`, (n, L, H), above 0 as it says: who passes all tests."""
    if not effects.any():
        return Claim(role, False, (), "No head passes anything on this way.", n=read.shape[0])
    tests = _tests(read, role, seen, effects)
    passed = np.logical_and.reduce(list(tests.values()))
    order = np.argsort(-effects.mean(axis=0), axis=None)
    ranked: list[Head] = [divmod(int(i), read.shape[2]) for i in order]
    heads = tuple(head for head in ranked if passed[head])
    measured = heads or (ranked[0],)
    together = role.sign * np.sum([effects[:, b, h] for b, h in measured], axis=0)  # (n,)
    if heads:
        reason = _looked(read.task, role, seen, heads)
    else:
        failed = [words for words, passes in tests.items() if not passes[ranked[0]]]
        reason = f"It {' and '.join(failed)}."
    error = float(standard_error(together, read.groups))
    numbers = float(together.mean()), error, read.shape[0]
    scores: tuple[float, ...] = ()
    if role.copied:
        by_weights = read.copies(role.copies)
        scores = tuple(float(by_weights[head]) for head in measured)
    return Claim(role, bool(heads), heads, reason, ranked[0], *numbers, *how, scores)


def _tests(read: _Read, role: Role, seen: _Seen, effects: Values) -> dict[str, NDArray[np.bool_]]:
    """Which heads pass each test of a role, (L, H), by what is said of one that does not."""
    sizes = np.abs(effects.mean(axis=0))
    passes_on = (_in_errors(effects, read.groups) > SURE) & (
        sizes >= np.quantile(sizes, STRONGER_THAN)
    )
    looks = seen.looks[role.at, role.looks]  # (n, L, H)
    more = [
        _in_errors(looks - seen.looks[role.at, than], read.groups) > SURE
        for than in role.rather_than
    ]
    tests = {
        "passes on too little": passes_on,
        f"does not look at {read.task.places[role.looks]}": np.logical_and.reduce(
            [looks.mean(axis=0) >= LOOKS, *more]
        ),
    }
    if role.copied:
        copies = _in_errors(role.copies * seen.taken[role.copied], read.groups) > SURE
        by_weights = read.copies(role.copies) >= COPIES
        if role.copies > 0:
            tests["does not copy it"] = copies
            tests["does not copy by its weights"] = by_weights
        else:
            tests["does not write against it"] = copies
            tests["does not write against words by its weights"] = by_weights
    return tests


def _changed(read: _Read, role: Role, receivers: Sequence[Receiver]) -> str:
    """What path patching puts in the place of what, in words."""
    task = read.task
    if not role.to:
        reached = "the logits alone"
    else:
        names = written([(block, head) for _, block, head in receivers])
        kinds = {"q": "queries", "k": "keys", "v": "values"}
        if receivers and sites_of(read.lm.config)[role.reads].part == "group":
            part = "group" if len(receivers) == 1 else "groups"
            names = f"{part} {names}"
        reached = f"the {kinds[role.reads]} of {names} alone"
    return f"what the head writes at {task.places[role.at]}, as {reached} read it"


def _looked(task: Task, role: Role, seen: _Seen, heads: Sequence[Head]) -> str:
    """Where these heads look, as means over the texts."""
    at_first, *shares = (
        float(np.mean([seen.looks[role.at, key][:, b, h].mean() for b, h in heads]))
        for key in (role.looks, *role.rather_than)
    )
    rather = [
        f"to {task.places[than]} {share:.2f}"
        for than, share in zip(role.rather_than, shares, strict=True)
    ]
    return (
        f"From {task.places[role.at]} the attention to {task.places[role.looks]} is {at_first:.2f}, "
        f"{' and '.join(rather)}."
    )


# ---- the story's heads as a circuit ----


def _worth(
    read: _Read, heads: tuple[Head, ...], claims: Sequence[Claim]
) -> tuple[Worth, list[Claim]]:
    """Measure the circuit of these heads on every text, random ones of as many, and the model without a role."""
    lm = read.lm
    everyone = all_heads(lm)
    chance = np.random.default_rng(len(heads))
    drawn = [
        [everyone[i] for i in chance.choice(len(everyone), len(heads), replace=False)]
        for _ in range(RANDOM_CIRCUITS)
    ]
    left = [[head for head in everyone if head not in claim.heads] for claim in claims]
    taken = [claim.role.other or read.task.outside for claim in claims]
    others = []
    scores = []
    lost = []
    for text in read.texts:
        pair = text.answer, text.instead
        passes = Passes(lm, text.ids, pair, read.muted(text, read.task.outside))
        others.append(passes.of([(), *drawn]))
        scores.append(score(passes, heads)[["circuit", "model"]].to_numpy())
        remains = np.zeros(len(claims))
        for value, which in _alike([read.muted(text, name) for name in taken]).items():
            muting = passes if value == passes.baseline else Passes(lm, text.ids, pair, value)
            remains[which] = muting.of([left[i] for i in which])
        lost.append(passes.whole - remains)
        read.told()
    values = np.mean(others, axis=0)  # (1 + random circuits,)
    both = np.mean(scores, axis=0)  # (sets, 2)
    names = [written(k) for k in subsets(sorted(heads))[0]]
    gaps = np.abs(both[:, 0] - both[:, 1])
    worst = int(gaps.argmax())
    alone = [names.index(written([head])) for head in heads]
    worth = Worth(
        heads,
        float(read.differences.mean()),
        float(both[0, 0]),
        float(values[0]),
        tuple(values[1:].tolist()),
        float(gaps[worst]),
        names[worst],
        tuple(float(abs(both[0, 0] - both[place, 0])) for place in alone),
        read.task.gives(read.baseline, read.task.outside),
    )
    measured = []
    for claim, fall, name in zip(claims, np.array(lost).T, taken, strict=True):  # (n,) each
        numbers: dict[str, Any] = {}
        if claim.shown:
            gives = read.task.gives(read.baseline, name)
            error = float(standard_error(fall, read.groups))
            numbers = {"lost": float(fall.mean()), "lost_se": error, "gives": gives}
        measured.append(replace(claim, **numbers))
    return worth, measured


def _alike(values: Sequence[str]) -> dict[str, list[int]]:
    """The places of each value."""
    places: dict[str, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(value, []).append(place)
    return places
