"""A circuit told as a story: which head passes what to which, each claim with its test.

The story is that of Wang et al.: in "When Mary and John went to the store, John gave a drink to" a *duplicate
token* head sees that John has come before, an *S-inhibition* head tells the last token to look away from him,
and a *name mover* copies the name that is left. A name is a claim, so each has its tests, over many sentences:

    it passes something on   path patching: by how much the difference of the two names' logits falls when the
                             receivers alone read what the head writes at one position as it is in another
                             sentence: the same with the answer's name at the second mention, so that it asks for
                             the other name. For previous token: with a third name at the first mention
    it looks where it says   its attention from that position to one place, less that to each of some others;
                             and at least `LOOKS` of its attention goes there
    it copies                (movers, negative ones too) what it takes from a name changes that name's logit
    its weights copy         (movers only) of at least `COPIES` of sampled tokens, as in the paper

The first three must be more than `SURE` standard errors from 0, and what a head passes on must be at least that of
nine of ten heads. Where no head passes all tests, the role is *not shown*: it may be there, or spread over many
heads. The effects that are told come from the same sentences that chose the heads, so they are rather too large.
Beside the story stand faithfulness, completeness and minimality of its heads, and random circuits of as many heads.

Positions: "end", the last token; "answer", the name that stands once; "first" and "second", the two mentions of
the other name; "after", the token behind its first mention; "behind", the one behind the answer's name.

Wang et al., Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 small, 2022.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.analysis.ablation import BASELINES
from gptviz.analysis.against import difference
from gptviz.analysis.circuit_passes import Head, Passes, all_heads
from gptviz.analysis.circuit_search import ROUNDING, score, subsets, written
from gptviz.analysis.copying import copying_scores
from gptviz.analysis.head_general import known_general
from gptviz.analysis.logit_attribution import source_tokens
from gptviz.analysis.patched_paths import LOGITS, Receiver, changes
from gptviz.analysis.prompts import NAMES, Prompt, indirect_objects
from gptviz.engine.given import ids_of
from gptviz.engine.index import one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer.one import one_token

COUNT = 24  # sentences
LEAST = 12  # fewer say too little of a standard error
SURE = 3.0  # standard errors from 0: dozens of heads are tried
STRONGER_THAN = 0.9  # the share of all heads that pass on less than a head of the story
LOOKS = 0.1  # the share of its attention that a head gives, on average, to where it is said to look
COPIES = 0.5  # the share of sampled tokens that a mover's weights copy by themselves
STAND_IN = 3  # heads whose reads are followed where no role is shown that could be followed
RANDOM_CIRCUITS = 20

Values = NDArray[np.float64]
Places = dict[str, int]

PLACES = {
    "end": "the last token",
    "answer": "the name that stands once",
    "first": "the first mention of the other name",
    "second": "the second mention",
    "after": "the token behind the first mention",
    "behind": "the token behind the name that stands once",
    "twice": "the name that stands twice",
}


@dataclass(frozen=True)
class Role:
    """A role that the field knows, and what a head must do to have it.

    `sign` is 1 where it must help the answer, -1 where it must help the other name. It passes that on at `at`, to
    what heads with one of the roles `to` read ("q", "k", "v"), or to the logits. It looks at the place `looks`, and
    more than at each of `rather_than`. `copied` is the name whose logit what it takes from there must raise
    ("answer", "twice"), or lower where `copies` is -1.
    """

    name: str
    meaning: str
    sign: int
    at: str
    looks: str
    rather_than: tuple[str, ...]
    to: tuple[str, ...] = ()
    reads: str = ""
    copied: str = ""
    copies: int = 1
    is_classical: bool = True


NAME_MOVER = Role(
    *("name mover", "looks at the name that stands once, and copies it", 1),
    *("end", "answer", ("twice",)),
    copied="answer",
)
NEGATIVE = Role(
    *("negative name mover", "looks at the name that stands once, and writes against it", -1),
    *("end", "answer", ("twice",)),
    copied="answer",
    copies=-1,
)
WRONG_MOVER = Role(
    *("mover of the other name", "looks at the name that stands twice, and copies that one", -1),
    *("end", "twice", ("answer",)),
    copied="twice",
    is_classical=False,
)
MOVERS = (NAME_MOVER.name, WRONG_MOVER.name)
INHIBITION = Role(
    *("S-inhibition", "tells the movers' queries to look away from the name that stands twice", 1),
    *("end", "second", ("answer",)),
    to=MOVERS,
    reads="q",
)
DUPLICATE = Role(
    *("duplicate token", "looks from a name's second mention back at its first", 1),
    *("second", "first", ("after", "answer")),
    to=(INHIBITION.name,),
    reads="v",
)
INDUCTION = Role(
    *("induction", "looks from a name's second mention at what came after the first", 1),
    *("second", "after", ("first", "behind")),
    to=(INHIBITION.name,),
    reads="v",
)
PREVIOUS = Role(
    *("previous token", "looks one token back, so that an induction head can find the place", 1),
    *("after", "first", ("after",)),
    to=(INDUCTION.name,),
    reads="k",
)
ROLES = (NAME_MOVER, NEGATIVE, WRONG_MOVER, INHIBITION, DUPLICATE, INDUCTION, PREVIOUS)


@dataclass(frozen=True)
class Claim:
    """A role, the heads that passed its tests, and how it was tested.

    `effect` is the sum of what each of these heads passes on alone, in logits of the answer minus the other name:
    by how much the difference falls where `changed` is as in `baseline`. `effect_se` is its standard error over
    `n` sentences. Where the role is not `shown` they are of the `nearest` head, which passes on most. `reason`
    says which test decided.
    """

    role: Role
    shown: bool
    heads: tuple[Head, ...]
    nearest: Head | None
    effect: float
    effect_se: float
    n: int
    changed: str
    baseline: str
    reason: str

    @property
    def sentence(self) -> str:
        """The claim in words."""
        number = f"{self.effect:+.2f} ± {self.effect_se:.2f} logits over {self.n} sentences"
        if len(self.heads) > 1:
            number += ", the sum of what each passes on alone"
        how = f"So much the difference falls with {self.changed}, taken from {self.baseline}."
        if self.shown:
            return f"{written(self.heads)}: {self.role.name}, {number}. {how} {self.reason}"
        if self.nearest is None:
            return f"{self.role.name}: not shown. {self.reason}"
        return f"{self.role.name}: not shown. Nearest: {written([self.nearest])}, {number}. {how} {self.reason}"


@dataclass(frozen=True)
class Worth:
    """How good the story's heads are as a circuit: F is the difference of logits, a mean over the sentences.

    `whole` is that of the model, `circuit` with the story's heads alone, `empty` without any head, and `random`
    with as many heads drawn at random. Embeddings, feed-forwards and the biases of attention always stay; with the
    baseline "mean" so does each other head's mean over the sentence, which carries its names. `completeness` is the
    largest |F(C without K) - F(M without K)| over the sets K that were tried, the worst is `without`. `minimality`
    is |F(C) - F(C without the head)| of each head: with K empty, a lower bound of the paper's.
    """

    heads: tuple[Head, ...]
    whole: float
    circuit: float
    empty: float
    random: tuple[float, ...]
    completeness: float
    without: str
    minimality: tuple[float, ...]

    @property
    def faithfulness(self) -> float:
        """|F(M) - F(C)|: 0 is best."""
        return abs(self.whole - self.circuit)

    @property
    def better_than_random(self) -> float:
        """The share of the random circuits that are further from the model."""
        return float(
            np.mean([abs(self.whole - value) > self.faithfulness for value in self.random])
        )


@dataclass(frozen=True)
class Story:
    """What was found over `n` sentences: their mean difference of logits, in how many the answer is ahead, claims."""

    n: int
    difference: float
    difference_se: float
    right: int
    claims: tuple[Claim, ...]
    worth: Worth

    def claim(self, role: str) -> Claim:
        """The claim about a role. Raises ValueError for a name that no role has."""
        one_of("role", role, [claim.role.name for claim in self.claims])
        return next(claim for claim in self.claims if claim.role.name == role)

    @property
    def table(self) -> pd.DataFrame:
        """A row a claim: role, shown, heads, effect, effect_se, n, changed, baseline, reason."""
        rows = [
            {"role": claim.role.name, "shown": claim.shown, "heads": written(claim.heads)}
            | {"effect": claim.effect, "effect_se": claim.effect_se, "n": claim.n}
            | {"changed": claim.changed, "baseline": claim.baseline, "reason": claim.reason}
            for claim in self.claims
        ]
        return pd.DataFrame(rows)


@undisturbed
def story(
    lm: LanguageModel,
    prompts: Sequence[Prompt] | None = None,
    baseline: str = "sample",
    progress: Progress = ignore_progress,
) -> Story:
    """Tell the circuit of sentences with two names: every role with its test, shown or not shown.

    Args:
        prompts: sentences, each with the name that is meant as `token` and the one that stands twice as
            `against`; without them, `COUNT` of `indirect_objects`.
        baseline: what the heads outside the circuit give in `Story.worth`: their mean over a "sample", "zero",
            or their "mean" over the sentence, which still carries its names. The roles are tested against
            other sentences: the same one with another name in the place of one mention.
        progress: `progress(done, of)` is called after every sentence, without a lock: what it raises stops
            the work.

    Raises ValueError for fewer than `LEAST` sentences, for one whose names are no single tokens that stand once
    and twice, and where no third name is one token of the model.
    """
    one_of("baseline", baseline, BASELINES)
    if prompts is None:
        prompts = indirect_objects(lm, COUNT)
    if len(prompts) < LEAST:
        raise ValueError(
            f"{len(prompts)} sentences with two names given; a story needs {LEAST}, whose names are one token "
            "each in this model"
        )
    names = _single_names(lm)
    read = _Read(lm, [_sentence(lm, *numbered, names) for numbered in enumerate(prompts)])
    read.count_steps(progress)
    copying = _copying(lm.plain)  # by its weights, which no edit changes
    read.look()
    claims: dict[str, Claim] = {}
    for role in ROLES:
        claims[role.name] = _test(read, role, claims, copying)
    members = {head for claim in claims.values() for head in claim.heads}
    chosen = tuple(sorted(members)) or read.strongest()
    worth = _worth(read, chosen, baseline)
    progress(1, 1)
    told = [claim for claim in claims.values() if claim.shown or claim.role.is_classical]
    differences = read.differences
    return Story(
        len(differences),
        float(differences.mean()),
        _error(differences),
        int((differences > 0).sum()),
        tuple(told),
        worth,
    )


# ---- the sentences ----


@dataclass(frozen=True)
class _Sentence:
    """Ids, the two names (answer, the other one), where they stand, and a name that does not."""

    ids: tuple[int, ...]
    answer: int
    instead: int
    third: int
    places: Places

    def with_another(self, place: str) -> tuple[int, ...]:
        """The ids with another name at a mention: the answer at the second one, at the first a third name."""
        new = self.answer if place == "second" else self.third
        at = self.places[place]
        return (*self.ids[:at], new, *self.ids[at + 1 :])


def _single_names(lm: LanguageModel) -> list[int]:
    """The ids of the names that are one token of this model."""
    ids = [lm.encode(f" {name}") for name in NAMES]
    return [name[0] for name in ids if len(name) == 1 and 0 <= name[0] < lm.config.vocab_size]


def _sentence(lm: LanguageModel, number: int, prompt: Prompt, names: Sequence[int]) -> _Sentence:
    """The sentence of a prompt, and one of the names that it has not: not the same one in all sentences.

    Raises ValueError unless its names stand once and twice, a token each, and if there is no third name.
    """
    ids = ids_of(lm, prompt.text)
    if prompt.token is None or prompt.against is None:
        raise ValueError(f"sentence {number}, {prompt.text!r}, has no two names: give both")
    answer, instead = (
        one_token(lm.tokenizer, lm.config.vocab_size, name, f"a name of sentence {number}")
        for name in (prompt.token, prompt.against)
    )
    counts = [ids.count(name) for name in (answer, instead)]
    if counts != [1, 2]:
        raise ValueError(
            f"sentence {number}, {prompt.text!r}, has {prompt.token!r} {counts[0]} times and "
            f"{prompt.against!r} {counts[1]} times; a story needs one token once and the other one twice"
        )
    free = [name for name in names if name not in ids]
    if not free:
        raise ValueError(
            f"sentence {number}, {prompt.text!r}, needs a third name for its first mention, and none of the "
            f"{len(NAMES)} known names ({', '.join(NAMES[:3])} ...) that it has not is one token of {lm.name}"
        )
    third = free[number % len(free)]
    first = ids.index(instead)
    second = ids.index(instead, first + 1)
    places = {
        "end": len(ids) - 1,
        "answer": ids.index(answer),
        "first": first,
        "second": second,
        "after": first + 1,
        "behind": min(ids.index(answer) + 1, len(ids) - 1),
    }
    return _Sentence(tuple(ids), answer, instead, third, places)


# ---- what is measured ----


class _Read:
    """The sentences, and what all heads do in them: attention, copying, what they pass on.

    Shapes: n sentences, L blocks, H heads.
    """

    def __init__(self, lm: LanguageModel, sentences: Sequence[_Sentence]):
        self.lm = lm
        self.sentences = sentences
        self.shape = (len(sentences), lm.config.n_layers, lm.config.n_heads)
        self.looks: dict[tuple[str, str], Values] = {}
        self.copied: dict[str, Values] = {}
        self.differences: Values = np.zeros(len(sentences))
        self._paths: dict[tuple[Any, ...], Values] = {}
        self.told: Callable[[], object] = lambda: None

    def count_steps(self, progress: Progress) -> None:
        """Count sentences: one round of looking, one of circuits, and one for each path that is measured."""
        rounds = 2 + len({(role.to, role.reads, role.at) for role in ROLES})
        steps = count(1)
        total = rounds * len(self.sentences)
        self.told = lambda: progress(next(steps), total)

    def look(self) -> None:
        """One pass a sentence: the attention between all places, and what is taken from both names."""
        keys = ("answer", "first", "second", "after", "behind")
        pairs = [(at, key) for at in ("end", "second", "after") for key in keys]
        self.looks = {pair: np.zeros(self.shape) for pair in pairs}
        self.copied = {name: np.zeros(self.shape) for name in ("answer", "twice")}
        for number, sentence in enumerate(self.sentences):
            trace = self.lm.trace(sentence.ids)
            at = sentence.places
            self.differences[number] = float(
                difference(trace.logits(-1), sentence.answer, sentence.instead)
            )
            attention = trace["attn"].double().numpy()  # (L, H, T, T)
            for query, key in pairs:
                self.looks[query, key][number] = attention[:, :, at[query], at[key]]
            taken = source_tokens(trace, self.lm, sentence.answer).numpy()  # (L, H, T)
            self.copied["answer"][number] = taken[..., at["answer"]]
            taken = source_tokens(trace, self.lm, sentence.instead).numpy()
            self.copied["twice"][number] = taken[..., at["first"]] + taken[..., at["second"]]
            self.told()
        for query in ("end", "second", "after"):
            self.looks[query, "twice"] = self.looks[query, "first"] + self.looks[query, "second"]

    def passed_on(self, role: Role, receivers: Sequence[Receiver]) -> Values:
        """What every head passes on to the receivers, (n, L, H), alone.

        By how much the difference falls when the receivers read the head as it is in the sentence with the
        answer's name at the second mention; for "after" with a third name at the first one. The first of these
        asks for the other name: a head that alone makes the difference turns it round there, not to 0.
        No head of a receiver's block or later passes anything.
        """
        # the keys at the first mention are not reached from the second one
        place = "first" if role.at == "after" else "second"
        key = (tuple(receivers), role.at, place)
        if key not in self._paths:
            effects = np.zeros(self.shape)
            for number, sentence in enumerate(self.sentences):
                table = changes(
                    self.lm,
                    sentence.ids,
                    sentence.with_another(place),
                    (sentence.answer, sentence.instead),
                    receivers or LOGITS,
                    sentence.places[role.at],
                )
                effects[number, table["block"], table["head"]] = -table["change"]
                self.told()
            self._paths[key] = effects
        return self._paths[key]

    def strongest(self) -> tuple[Head, ...]:
        """The heads that pass most on to the logits, whatever they do."""
        effects = np.abs(self.passed_on(NAME_MOVER, ()).mean(axis=0))  # (L, H)
        order = np.argsort(-effects, axis=None)[:STAND_IN]
        return tuple(sorted(divmod(int(i), self.shape[2]) for i in order))


def _copying(lm: LanguageModel) -> Values:
    """The share of sampled tokens that each head copies by its weights, (L, H): `copies_top5`."""
    known = known_general(lm)
    if known is None:
        table = copying_scores(lm)
    else:
        table = known.table
    scores = np.zeros((lm.config.n_layers, lm.config.n_heads))
    scores[table["block"], table["head"]] = table["copies_top5"]
    return scores


def _error(values: Values) -> float:
    """The standard error of a mean over the first axis."""
    return float(values.std(ddof=1) / len(values) ** 0.5)


def _in_errors(values: Values) -> Values:
    """Means over the first axis in standard errors; infinite where all values are the same, 0 where they are 0."""
    means = values.mean(axis=0)
    errors = values.std(axis=0, ddof=1) / len(values) ** 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(means) > ROUNDING, means / errors, 0.0)


# ---- the tests ----


def _receivers(read: _Read, role: Role, claims: dict[str, Claim]) -> list[Receiver]:
    """The reads that a role's heads must reach.

    Where no such role is shown, those of the nearest heads; for movers, of those that pass most on to the logits.
    """
    shown = [head for name in role.to for head in claims[name].heads]
    if not shown and role.to == MOVERS:
        shown = [*read.strongest()]
    nearest = [claims[name].nearest for name in role.to]
    if not shown:
        shown = [head for head in nearest if head is not None]
    return [(role.reads, block, head) for block, head in dict.fromkeys(shown)]


def _test(read: _Read, role: Role, claims: dict[str, Claim], copying: Values) -> Claim:
    """Put a role to its tests."""
    receivers = _receivers(read, role, claims)
    changed = _changed(role, receivers)
    place = "first" if role.at == "after" else "second"
    other = "a third name" if place == "first" else "the answer's name"
    against = f"the sentence with {other} at {PLACES[place]}"
    claim = partial(Claim, role=role, n=read.shape[0], changed=changed, baseline=against)
    nothing = partial(claim, shown=False, heads=(), nearest=None, effect=0.0, effect_se=0.0)
    if role.to and not any(block > 0 for _, block, _ in receivers):
        return nothing(reason="No head stands before those that it would have to reach.")
    effects = role.sign * read.passed_on(role, receivers)  # (n, L, H)
    sizes = np.abs(effects.mean(axis=0))
    passes_on = (_in_errors(effects) > SURE) & (sizes >= np.quantile(sizes, STRONGER_THAN))
    looks = read.looks[role.at, role.looks]  # (n, L, H)
    more = [_in_errors(looks - read.looks[role.at, than]) > SURE for than in role.rather_than]
    tests = {
        "passes on too little": passes_on,
        f"does not look at {PLACES[role.looks]}": np.logical_and.reduce(
            [looks.mean(axis=0) >= LOOKS, *more]
        ),
    }
    if role.copied:
        says = "does not copy it"
        if role.copies < 0:
            says = "does not write against it"
        tests[says] = _in_errors(role.copies * read.copied[role.copied]) > SURE
    if role.copied and role.copies > 0:
        tests["does not copy by its weights"] = copying >= COPIES
    passed = np.logical_and.reduce(list(tests.values()))
    order = np.argsort(-effects.mean(axis=0), axis=None)
    ranked: list[Head] = [divmod(int(i), read.shape[2]) for i in order]
    heads = tuple(head for head in ranked if passed[head])
    measured = heads or (ranked[0],)
    together = role.sign * np.sum([effects[:, b, h] for b, h in measured], axis=0)  # (n,)
    measure = partial(claim, effect=float(together.mean()), effect_se=_error(together))
    if heads:
        reason = _looked(read, role, heads)
        return measure(shown=True, heads=heads, nearest=ranked[0], reason=reason)
    if not effects.any():
        return nothing(reason="No head passes anything on this way.")
    failed = [words for words, passes in tests.items() if not passes[ranked[0]]]
    reason = f"It {' and '.join(failed)}."
    return measure(shown=False, heads=(), nearest=ranked[0], reason=reason)


def _changed(role: Role, receivers: Sequence[Receiver]) -> str:
    """What path patching puts in the place of what, in words."""
    if not role.to:
        reached = "the logits alone"
    else:
        names = written([(block, head) for _, block, head in receivers])
        kinds = {"q": "queries", "k": "keys", "v": "values"}
        reached = f"the {kinds[role.reads]} of {names} alone"
    return f"what the head writes at {PLACES[role.at]}, as {reached} read it"


def _looked(read: _Read, role: Role, heads: Sequence[Head]) -> str:
    """Where these heads look, as means over the sentences."""
    at_first, *shares = (
        float(np.mean([read.looks[role.at, key][:, b, h].mean() for b, h in heads]))
        for key in (role.looks, *role.rather_than)
    )
    rather = [
        f"to {PLACES[than]} {share:.2f}"
        for than, share in zip(role.rather_than, shares, strict=True)
    ]
    return (
        f"From {PLACES[role.at]} the attention to {PLACES[role.looks]} is {at_first:.2f}, "
        f"{' and '.join(rather)}."
    )


# ---- the story's heads as a circuit ----


def _worth(read: _Read, heads: tuple[Head, ...], baseline: str) -> Worth:
    """Measure the circuit of these heads on every sentence, and random ones of as many."""
    lm = read.lm
    everyone = all_heads(lm)
    chance = np.random.default_rng(len(heads))
    drawn = [
        [everyone[i] for i in chance.choice(len(everyone), len(heads), replace=False)]
        for _ in range(RANDOM_CIRCUITS)
    ]
    others = []
    scores = []
    for sentence in read.sentences:
        passes = Passes(lm, sentence.ids, (sentence.answer, sentence.instead), baseline)
        others.append(passes.of([(), *drawn]))
        scores.append(score(passes, heads)[["circuit", "model"]].to_numpy())
        read.told()
    values = np.mean(others, axis=0)  # (1 + random circuits,)
    both = np.mean(scores, axis=0)  # (sets, 2)
    names = [written(k) for k in subsets(sorted(heads))[0]]
    gaps = np.abs(both[:, 0] - both[:, 1])
    worst = int(gaps.argmax())
    alone = [names.index(written([head])) for head in heads]
    return Worth(
        heads,
        float(read.differences.mean()),
        float(both[0, 0]),
        float(values[0]),
        tuple(values[1:].tolist()),
        float(gaps[worst]),
        names[worst],
        tuple(float(abs(both[0, 0] - both[place, 0])) for place in alone),
    )
