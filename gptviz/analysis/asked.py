"""The question that a text asks of a model: which word comes next, and which other word could have come.

Where a text has a question that the field knows, its two words are the answer and what stands against it: the
name that is meant and the other one, the word that came last time, the next of a sequence, the capital of a
country. Any other text asks for the model's first choice instead of its second.

Wang et al., Interpretability in the Wild, 2022 (two names: "names"); Olsson et al., In-context Learning and
Induction Heads, 2022 ("copied"); Gould et al., Successor Heads, 2023 ("sequence"); Meng et al., Locating and
Editing Factual Associations in GPT, 2022 ("fact").
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from gptviz.analysis.lens import top_ids
from gptviz.analysis.names import once_and_again
from gptviz.analysis.word_classes import CAPITALS, LETTERS, ORDERED, Ordered
from gptviz.engine.given import Text, ids_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.undisturbed import undisturbed

LIKELY = 12  # the first choices of a model among which a name is expected
COPIED = 2  # tokens that stand there twice, where the model says first what came after them
SURELY = 6  # and so many, whatever the model says
ITEMS = 3  # of a sequence

# after these words a person may follow
_BEFORE_A_PERSON = re.compile(
    r"\b(?:to|for|with|from|at|by|of|and|but|than|near|beside|behind|about|towards?|an|mit|von|zu|und)\s*$"
)
_PRONOUNS = (("he", "she"), ("him", "her"), ("his", "her"), ("himself", "herself"))
# "Anna is a good friend, isn't"
_TAG = re.compile(r",\s*(?:is|was|does|did|has|had|can|could|will|would|should)n[’']t$")

_ORDERED = (*ORDERED, Ordered("letter", tuple(letter.lower() for letter in LETTERS)))
_ITEM = re.compile(r"[A-Za-z]+|[0-9]+")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")  # one that is written as `str` writes it
_BETWEEN = re.compile(r"[\s,;]+(?:and\s+)?")

_Pair = tuple[int, int]

_CAPITAL_IS = re.compile(
    r"\b[Tt]he capital (?:city )?of ([A-Z][a-z]+) (?:is|was)(?: called| named)?$"
)
_IS_CAPITAL = re.compile(r"\b([A-Z][a-z]+) (?:is|was) the capital (?:city )?of$")


@dataclass(frozen=True)
class Asked:
    """What a text asks: one of `KINDS`, the id of the answer, and that of the word that stands against it.

    A name, or another word, of several tokens is asked for by its first. The two ids are never the same.
    """

    kind: str
    answer: int
    instead: int


@undisturbed
def asked_of(lm: LanguageModel, text: Text, position: int = -1) -> Asked:
    """Return the question that a text asks after the token at `position`: see `asked_after`.

    One pass of the model, with its own edits. Raises ValueError as `lm.trace` does.
    """
    trace = lm.trace(text, keep=())
    index = trace.place_of(position)
    return asked_after(lm, ids_of(lm, text)[: index + 1], trace.logits(index))


@undisturbed
def asked_after(lm: LanguageModel, ids: Sequence[int], logits: torch.Tensor) -> Asked:
    """Return the question that these tokens ask, whose next token has these logits, (V,).

    Two persons of whom one is named once: the answer is that one, where a name may follow here. Tokens that
    stand there twice: the token that came next last time. A country, and its capital, as in "The capital of
    Italy is". Three or more days, months, numbers, ordinals or letters in order: the next one, instead of the
    last one. The model's first choice where it is a pronoun: that of the other gender; behind the "isn't" of a
    tag question, the likelier one of "he" and "she". Otherwise its first choice instead of its second.

    Raises ValueError for a vocabulary of a single token.
    """
    if len(logits) < 2:
        raise ValueError(
            "a vocabulary of one token has no other word; give a model with more tokens"
        )
    asks = _Asks(lm, list(ids), lm.decode(ids), logits, top_ids(logits[None], LIKELY)[0].tolist())
    for kind, question in _QUESTIONS.items():
        pair = question(asks)
        if pair is not None and pair[0] != pair[1]:
            return Asked(kind, *pair)
    return Asked("first two", asks.best[0], asks.best[1])


@dataclass(frozen=True)
class _Asks:
    """A text up to the position that is asked about; `best` has the model's first choices."""

    lm: LanguageModel
    ids: list[int]
    text: str
    logits: torch.Tensor
    best: list[int]

    def first_of(self, word: str) -> int | None:
        """The id of the token with which a word begins here; None where the model has none."""
        first = next(iter(self.tokens_of(word)), None)
        if first is not None and first >= len(self.logits):
            return None
        return first

    def tokens_of(self, word: str) -> list[int]:
        """The word as it goes on here: with its space, unless the text ends in one."""
        if not self.text or self.text[-1].isspace():
            return self.lm.encode(word, begin=False)
        return self.lm.encode(f" {word}", begin=False)

    def pair_of(self, answer: str, instead: str) -> _Pair | None:
        """The first tokens of two words; None where the words begin alike, or the model has no token for one."""
        first = self.first_of(answer)
        second = self.first_of(instead)
        if first is None or second is None or first == second:
            return None
        return first, second

    def beside(self, answer: int) -> _Pair:
        """This answer, instead of the most probable of all other tokens."""
        return answer, next(i for i in self.best if i != answer)


def _names(asks: _Asks) -> _Pair | None:
    """The person who is named once, instead of the other one of two."""
    named = once_and_again(asks.text)
    if named is None:
        return None
    pair = asks.pair_of(*named)
    if pair is None:
        return None
    if _BEFORE_A_PERSON.search(asks.text) or {*pair} & {*asks.best}:
        return pair
    return None


def _copied(asks: _Asks) -> _Pair | None:
    """The token that came last time after the longest end of the text that stands there twice."""
    place, length = stood_before(asks.ids)
    if length < COPIED or (length < SURELY and asks.ids[place] != asks.best[0]):
        return None
    return asks.beside(asks.ids[place])


def stood_before(ids: Sequence[int]) -> tuple[int, int]:
    """Where the longest end of the ids that stands there twice went on last time, and how long that end is.

    Both are 0 where the last token stands there once.
    """
    longest = 0
    place = 0
    for end in range(len(ids) - 1, 0, -1):
        length = 0
        while length < end and ids[end - 1 - length] == ids[-1 - length]:
            length += 1
        if length > longest:
            longest = length
            place = end
    return place, longest


def _fact(asks: _Asks) -> _Pair | None:
    """The capital of a country, or the country of a capital, instead of another one.

    That is the likeliest of those that are one token each; of all, where none is.
    """
    for pattern, answers in (
        (_CAPITAL_IS, CAPITALS),
        (_IS_CAPITAL, {capital: country for country, capital in CAPITALS.items()}),
    ):
        match = pattern.search(asks.text)
        if match is None or match[1] not in answers:
            continue
        answer = answers[match[1]]
        ranked = []
        for other in answers.values():
            pair = asks.pair_of(answer, other)
            if pair is not None:
                # rather a word than the beginning of one
                is_whole = len(asks.tokens_of(other)) == 1
                ranked.append((is_whole, float(asks.logits[pair[1]]), pair))
        if ranked:
            return max(ranked)[2]
    return None


def _sequence(asks: _Asks) -> _Pair | None:
    """The next item of a sequence, instead of its last one once more."""
    items = [match for match in _ITEM.finditer(asks.text) if match[0] != "and"][-ITEMS:]
    if len(items) < ITEMS:
        return None
    between = [asks.text[a.end() : b.start()] for a, b in pairwise(items)]
    if not all(map(_BETWEEN.fullmatch, between)):
        return None
    tail = asks.text[items[-1].end() :]
    # after "Monday, Tuesday, Wednesday" comes a comma, and after "A B C" the next letter; where each item has
    # a line of its own, the next one comes behind a line break
    is_next = tail.strip() == between[-1].strip() or tail.strip(" ,") == "and"
    is_next = is_next and ("\n" in tail) == ("\n" in between[-1])
    following = _after([item[0] for item in items])
    if not is_next or following is None:
        return None
    return asks.pair_of(following, items[-1][0])


def _after(items: list[str]) -> str | None:
    """The item that comes after these; None where they are in no order that is known here."""
    if all(map(_NUMBER.fullmatch, items)):
        numbers = [int(item) for item in items]
        steps = {b - a for a, b in pairwise(numbers)}
        following = 2 * numbers[-1] - numbers[-2]
        if len(steps) > 1 or steps == {0} or following < 0:
            return None
        return str(following)
    for ordered in _ORDERED:
        words = ordered.words
        for spelled in (items, [item.lower() for item in items]):
            if not {*spelled} <= {*words}:
                continue
            places = [words.index(item) for item in spelled]
            steps = {(b - a) % len(words) for a, b in pairwise(places)}
            following_place = places[-1] + 1
            ends = following_place == len(words) and not ordered.turns
            if steps == {1} and not ends:
                return words[following_place % len(words)]
    return None


def _pronoun(asks: _Asks) -> _Pair | None:
    """The model's first choice where it is a pronoun, instead of that of the other gender."""
    pairs = []
    for he, she in _PRONOUNS:
        for words in ((he, she), (he.capitalize(), she.capitalize())):
            ids = [asks.tokens_of(word) for word in words]
            if all(len(one) == 1 and one[0] < len(asks.logits) for one in ids):
                pairs.append((ids[0][0], ids[1][0]))
    if _TAG.search(asks.text) and pairs:
        return _likelier_first(asks, pairs[0])
    first = asks.best[0]
    others = [sum(pair) - first for pair in pairs if first in pair]
    if not others:
        return None
    return first, max(others, key=lambda other: float(asks.logits[other]))


def _likelier_first(asks: _Asks, pair: _Pair) -> _Pair:
    """The two ids, the more probable one first."""
    first, second = sorted(pair, key=lambda i: -float(asks.logits[i]))
    return first, second


_QUESTIONS: dict[str, Callable[[_Asks], _Pair | None]] = {
    "names": _names,
    "copied": _copied,
    "fact": _fact,
    "sequence": _sequence,
    "pronoun": _pronoun,
}
KINDS = (*_QUESTIONS, "first two")
