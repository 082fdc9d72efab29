"""The second text of a comparison: the same question with another answer, in as many tokens where it can be.

Two passes are compared position by position, so both texts need the same number of tokens, and each word the
same ones. Of two names the other one comes again, so that one token differs and the answer with it (the
indirect-object task's S2); or the names are exchanged. Of a fact, another fact is asked for; a word that is
about to be copied is another word. What cannot be had so is made all the same, and says which word has how many
tokens. The kinds for two names are those of Wang et al., Interpretability in the Wild, 2022, where ABB is a text
whose second name comes again.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch

from gptviz.analysis.alignment import are_in_step
from gptviz.analysis.counterpart import counterpart
from gptviz.analysis.names import Mention, mentions, named_again, renamed, whole_word
from gptviz.analysis.prompts import NAMES, Prompt
from gptviz.analysis.word_classes import (
    ALSO_WORDS,
    CITIES,
    COUNTRIES,
    GENDERED,
    HE,
    MONTHS,
    OPPOSITES,
    ORDERED,
    SHE,
    WEEKDAYS,
    Ordered,
    of_the_other,
)
from gptviz.engine.given import ids_of
from gptviz.engine.index import index_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer import has_token, named_bytes

SWAP = "swap the two names"
COMES_AGAIN = "the other name comes again"
THIRD = "a third name"
ORDER = "the other order"
NAME = "another name"
HE_AND_SHE = "he and she exchanged"
FURTHER = "another part of the sequence"
COPIED = "another copied word"
ONE_TOKEN = "one other token"
# the kinds for two names one of which comes again, as they are offered
OF_NAMES = (COMES_AGAIN, SWAP, THIRD, ORDER)
# of these the answer stays the same: never what a comparison begins with
SAME_ANSWER = (ORDER,)

LEAST_REPEATED = 2  # tokens of a passage that comes again
TRIED = 64  # of the model's choices for a copied word
NOUNS = (
    "house", "tree", "river", "garden", "horse", "table", "window", "stone", "letter", "bridge", "castle", "flower",
    "mountain", "kitchen", "blacksmith", "waterfall", "candlestick",
)  # fmt: skip
# words that only hold a sentence together: none of them stands well for a copied one
_SMALL = """
the and but for nor not with from that this these those they them their there then than was were are had has have
his her him she who whom whose which what when where while its our your you one all any some more most very upon
into over under down out off own too also only even such been being would could should will shall may might must
did does done about after before because ever never
"""
SMALL = frozenset(_SMALL.split())
_WORD = re.compile(r" ?[^\W\d_]{2,}")
# what may stand between two members of a sequence
_BETWEEN = re.compile(r"[\s,;:.>-]*(?:(?:and|then|to|und|dann)(?: |$))?")
_DIGITS = re.compile(r"(?<![\w.,])\d{1,9}(?!\w|[.,]\d)")
_OPPOSITE = re.compile(rf"(?<=opposite of )(?:{'|'.join(OPPOSITES)})(?!\w)")
_FACTS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (noun, words, whole_word(word for word in words if word not in ALSO_WORDS))
    for noun, words in (
        ("country", COUNTRIES),
        ("city", CITIES),
        ("weekday", WEEKDAYS),
        ("month", MONTHS),
    )
)


@dataclass(frozen=True)
class OtherText:
    """A text beside another, `kind` in plain words; `ids` are its tokens.

    `is_equal`: it has as many tokens, and each word stands at the same ones. Where that is not so, `reason` is
    a sentence about the words that differ.
    """

    kind: str
    text: str
    ids: tuple[int, ...]
    is_equal: bool
    reason: str = ""


@dataclass(frozen=True)
class _Changed:
    """A text that may be the other one, and the words of it that stand for others: (old, new)."""

    kind: str
    text: str
    words: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Asked:
    """The text, its tokens, and the prediction that it is about: behind the token at `index`.

    `end` is the number of characters up to there.
    """

    lm: LanguageModel
    text: str
    ids: tuple[int, ...]
    special: bool
    index: int
    end: int

    @property
    def seen(self) -> str:
        """The text that the prediction is made from."""
        return self.text[: self.end]


@undisturbed
def other_texts(
    lm: LanguageModel,
    text: str,
    position: int = -1,
    special_tokens: bool = False,
    own: Trace | None = None,
    last_resort: bool = True,
) -> list[OtherText]:
    """Return the other texts for the prediction at `position`, the best first: those that are in step with it.

    For two names one of which is repeated: the other one repeated, exchanged, a third name, the other order.
    For a sequence, another part of it; for a word that is about to be copied, another one; for a fact, another
    of its class; for he and she, the other. If none of these `is_equal`, `counterpart`'s change of one
    token, unless `last_resort` is False: it takes a pass for each token. `own` is the trace of the text,
    where there is one.

    Of the words that fit, the first of its list is taken that keeps step. Raises ValueError as
    `lm.trace` does, and for a position that the text does not have.
    """
    if own is not None:
        own.of(lm.model)
    ids = ids_of(lm, text, special_tokens)
    if not ids:
        raise ValueError("the text is empty: there is no prediction that another text could change")
    index = index_of("position", position, len(ids))
    end = len(lm.decode(ids[: index + 1]))
    asked = _Asked(lm, text, tuple(ids), special_tokens, index, end)
    of_kinds = [*_of_two_names(asked), _of_sequence(asked), _of_copied_word(asked, own)]
    of_kinds += [_of_fact(asked), _of_he_and_she(asked), _of_one_name(asked)]
    found: dict[str, OtherText] = {}
    for alternatives in of_kinds:
        other = _first_that_fits(asked, alternatives)
        if other is not None:
            found.setdefault(other.text, other)
    texts = sorted(found.values(), key=_rank)
    if last_resort and not any(_rank(other) == 0 for other in texts):
        last = counterpart(lm, ids, index, special_tokens, own)
        if last is not None:
            texts = [OtherText(ONE_TOKEN, last.text, last.ids, True), *texts]
    return texts


def with_others_of(lm: LanguageModel, prompts: Iterable[Prompt], kind: str) -> list[Prompt]:
    """The prompts whose text has an other text of this kind that keeps step, each with that one.

    Its answers stay. Raises ValueError as `other_texts` does.
    """
    changed = []
    for prompt in prompts:
        offers = other_texts(lm, prompt.text, last_resort=False)
        other = next((one.text for one in offers if one.kind == kind and one.is_equal), None)
        if other is not None:
            changed.append(replace(prompt, other=other))
    return changed


def told_apart(one: torch.Tensor, other: torch.Tensor, count: int = 12) -> tuple[int, int]:
    """The two tokens that tell two texts apart by their logits, (V,) each: what each text's model says first.

    Where that is the same token, of the `count` first choices of either text the one whose log-probability is
    higher after the one text by most, and of the others the one for which it is so least, or which falls. They
    are never the same: where the logits are, the first two choices. Raises ValueError for a single token.
    """
    if len(one) < 2:
        raise ValueError(
            "a vocabulary of one token has no two words; give a model with more tokens"
        )
    first = int(one.argmax())
    second = int(other.argmax())
    if first != second:
        return first, second
    count = min(max(count, 2), len(one))
    choices = torch.cat([one.topk(count).indices, other.topk(count).indices])  # (2 * count,)
    gained = one.double().log_softmax(0) - other.double().log_softmax(0)  # (V,)
    first = int(choices[gained[choices].argmax()])
    choices = choices[choices != first]
    return first, int(choices[gained[choices].argmin()])


def _rank(other: OtherText) -> int:
    """0 for a text with another answer that is in step, 1 for the same answer, 2 for one out of step."""
    if not other.is_equal:
        return 2
    return int(other.kind in SAME_ANSWER)


def _first_that_fits(asked: _Asked, alternatives: Iterable[_Changed]) -> OtherText | None:
    """The first that is in step, else the first that the model can read; None if there is none."""
    first = None
    for change in alternatives:
        try:
            ids = tuple(ids_of(asked.lm, change.text, asked.special))
        except ValueError:  # a character that the model does not have
            continue
        if change.text == asked.text:
            continue
        if are_in_step(asked.lm, asked.ids, ids):
            return OtherText(change.kind, change.text, ids, True)
        if first is None:
            reason = _why(asked, change.words, len(ids))
            first = OtherText(change.kind, change.text, ids, False, reason)
    return first


def _why(asked: _Asked, words: Iterable[tuple[str, str]], length: int) -> str:
    """A sentence: which words have another number of tokens, and both texts' numbers."""
    counts: dict[str, int] = {}
    for pair in words:
        old, new = (len(ids_of(asked.lm, f" {word}")) for word in pair)
        if old != new:
            counts |= dict(zip(pair, (old, new), strict=True))
    totals = f"this text has {_tokens(length)} and yours {len(asked.ids)}"
    if length == len(asked.ids):
        totals = f"both texts have {_tokens(length)}, but some words stand at other positions"
    if not counts:
        return f"The new words join their neighbours in another way: {totals}."
    parts = [f"“{word}” has {_tokens(count)}" for word, count in counts.items()]
    return f"{', '.join(parts[:4])}: {totals}."


def _tokens(count: int) -> str:
    """ "1 token", "3 tokens"."""
    if count == 1:
        return "1 token"
    return f"{count} tokens"


# ---- names ----


def _of_two_names(asked: _Asked) -> Iterator[Iterable[_Changed]]:
    """The four texts for two names, where one of them comes again before the prediction.

    Of more than two names these are the last one of those that stand there twice or more, and the last of all
    others.
    """
    named = [mention for mention in mentions(asked.text) if mention.start < asked.end]
    again = named_again(named)
    if again is None:
        return
    repeated = again.last
    one = repeated.name
    other = again.others[-1]
    text = asked.text
    both = {one: other, other: one}
    yield [_Changed(COMES_AGAIN, _put(text, [(repeated, other)]), ((one, other),))]
    yield [_Changed(SWAP, renamed(text, both), ((one, other),))]
    thirds = [name for name in _names_like(one) if not whole_word([name]).search(text)]
    yield [_Changed(THIRD, _put(text, [(repeated, name)]), ((one, name),)) for name in thirds]
    firsts = [next(m for m in named if m.name == name) for name in (one, other)]
    turned = [(firsts[0], other), (firsts[1], one)]
    yield [_Changed(ORDER, _put(text, turned), ((one, other),))]


def _of_one_name(asked: _Asked) -> Iterator[_Changed]:
    """Another name for the one that was named last, where it is not one of two that come again."""
    named = [mention for mention in mentions(asked.text) if mention.start < asked.end]
    if not named or next(_of_two_names(asked), None) is not None:
        return
    name = named[-1].name
    for new in _names_like(name):
        if not whole_word([new]).search(asked.text):
            yield _Changed(NAME, renamed(asked.text, {name: new}), ((name, new),))


def _names_like(name: str) -> Iterable[str]:
    """Names that may stand for this one, those of the same sex first."""
    same = next((names for names in (HE, SHE) if name in names), ())
    return dict.fromkeys((*same, *NAMES))


def _put(text: str, changes: Iterable[tuple[Mention, str]]) -> str:
    """The text with other words at these mentions."""
    for mention, word in sorted(changes, key=lambda change: -change[0].start):
        text = f"{text[: mention.start]}{word}{text[mention.end :]}"
    return text


def _of_he_and_she(asked: _Asked) -> Iterator[_Changed]:
    """He for she and she for he: words everywhere and, if there is one name, a name of the other sex."""
    names = {mention.name for mention in mentions(asked.text)}
    if len(names) > 1:
        return
    pairs: list[tuple[str, str]] = []

    def exchanged(match: re.Match[str]) -> str:
        pairs.append((match[0], of_the_other(match)))
        return pairs[-1][1]

    changed = GENDERED.sub(exchanged, asked.text)
    name = next(iter(names), "")
    if name in HE:
        others = SHE
    elif name in SHE:
        others = HE
    else:
        if pairs:
            yield _Changed(HE_AND_SHE, changed, tuple(pairs))
        return
    for new in others:
        yield _Changed(HE_AND_SHE, renamed(changed, {name: new}), (*pairs, (name, new)))


# ---- sequences and facts ----


def _of_sequence(asked: _Asked) -> Iterator[_Changed]:
    """Other parts of the sequence that the text ends with: each member as many places further, or back."""
    yield from _digits_further(asked)
    for ordered in ORDERED:
        run = _run(asked, whole_word_any_case(ordered))
        places = [_place(ordered, match[0]) for match in run]
        size = len(ordered.words)
        if not _is_even([after - before for before, after in pairwise(places)], size, ordered):
            continue
        for shift in sorted(range(1 - size, size), key=lambda n: (abs(n), -n)):
            moved = [place + shift for place in places]
            if shift and (ordered.turns or 0 <= min(moved) <= max(moved) < size):
                new = [
                    _as_large(match[0], ordered.words[place % size])
                    for match, place in zip(run, moved, strict=True)
                ]
                yield _written(asked.text, FURTHER, run, new)


def whole_word_any_case(ordered: Ordered) -> re.Pattern[str]:
    """A pattern for the words of an ordered class; those written small may begin a sentence."""
    words = [*ordered.words]
    words += [word.capitalize() for word in ordered.words if word.islower()]
    return whole_word(words)


def _place(ordered: Ordered, word: str) -> int:
    """The place of a word in its class, whatever its first letter's size."""
    if word not in ordered.words:
        word = word.lower()
    return ordered.words.index(word)


def _as_large(like: str, word: str) -> str:
    """The word with a first letter as large as that of another."""
    if like[0].isupper():
        return word[0].upper() + word[1:]
    return word


def _is_even(steps: list[int], size: int, ordered: Ordered) -> bool:
    """Whether the steps from member to member are one step, again and again; two at least, one of a circle."""
    if ordered.turns:
        steps = [step % size for step in steps]
        least = 1
    else:
        least = 2
    return len(steps) >= least and len(set(steps)) == 1 and steps[0] != 0


def _run(asked: _Asked, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """The matches at the text's end that only commas, blanks and "and" stand between, and nothing behind."""
    run: list[re.Match[str]] = []
    begin = asked.end
    for match in reversed(list(pattern.finditer(asked.seen))):
        if not _BETWEEN.fullmatch(asked.text[match.end() : begin]):
            break
        run.insert(0, match)
        begin = match.start()
    return run


def _digits_further(asked: _Asked) -> Iterator[_Changed]:
    run = _run(asked, _DIGITS)
    numbers = [int(match[0]) for match in run]
    steps = {after - before for before, after in pairwise(numbers)}
    if len(run) < 3 or len(steps) != 1 or 0 in steps:
        return
    step = steps.pop()
    for shift in (step, -step, 1, -1, 2, -2, 3, 4, 5, 6, 7, 8, 9):
        if min(numbers) + shift >= 0:
            new = [str(number + shift) for number in numbers]
            yield _written(asked.text, FURTHER, run, new)


def _of_fact(asked: _Asked) -> Iterator[_Changed]:
    """Another of its class for the country, city, weekday, month, number or opposite that is named last."""
    if _of_any_sequence(asked):
        return
    found = [
        (match, noun, words)
        for noun, words, pattern in (*_FACTS, ("opposite", OPPOSITES, _OPPOSITE))
        for match in pattern.finditer(asked.seen)
    ]
    numbers = list(_DIGITS.finditer(asked.seen))
    if numbers:
        value = int(numbers[-1][0])
        near = [str(value + n) for n in (1, -1, 2, -2, 3, 4, 5, 6, 7, 8, 9) if value + n >= 0]
        found.append((numbers[-1], "number", (numbers[-1][0], *near)))
    if not found:
        return
    match, noun, words = max(found, key=lambda one: one[0].start())
    at = words.index(match[0])
    for new in (*words[at + 1 :], *words[:at]):
        if not whole_word([new]).search(asked.text):
            same = list(whole_word([match[0]]).finditer(asked.text))
            yield _written(asked.text, f"another {noun}", same, [new] * len(same))


def _of_any_sequence(asked: _Asked) -> bool:
    """Whether the text ends with a sequence: its members are no fact."""
    return next(iter(_of_sequence(asked)), None) is not None


def _written(
    text: str, kind: str, places: Sequence[re.Match[str]], words: Sequence[str]
) -> _Changed:
    """The text with other words at these places."""
    pairs = tuple((match[0], word) for match, word in zip(places, words, strict=True))
    for match, word in reversed(list(zip(places, words, strict=True))):
        text = f"{text[: match.start()]}{word}{text[match.end() :]}"
    return _Changed(kind, text, pairs)


# ---- a passage that comes again ----


def _of_copied_word(asked: _Asked, own: Trace | None) -> Iterator[_Changed]:
    """Another word for the one that followed this passage before: one that the model expects there, too.

    It is replaced wherever it stands up to there; one of several tokens, by a noun of as many.
    """
    ids = asked.ids[: asked.index + 1]
    ends = _earlier_ends(ids)
    if not ends:
        return
    lm = asked.lm
    begin = ends[0] + 1
    length = _length_of_word(lm, ids, begin)
    copied = ids[begin : begin + length]
    followed = {ids[end + 1 : end + 1 + length] for end in ends}
    before = lm.decode(list(ids))
    old = lm.decode(list(copied))
    blank = old[: len(old) - len(old.lstrip())]
    if len(followed) > 1 or not _WORD.fullmatch(old) or (not blank and before[-1:].isalpha()):
        return
    sound = next((article for article in (" a", " an") if before.endswith(article)), "")
    words: list[str] = []
    if length == 1:
        trace = own or lm.trace(list(ids), keep=["final"])
        expected = trace.logits(begin - 1).topk(min(TRIED, lm.config.vocab_size)).indices.tolist()
        words = [lm.decode([token]) for token in expected if has_token(lm.tokenizer, token)]
    words += [f"{blank}{noun}" for noun in NOUNS]
    places = [i for i in range(asked.index) if _stands_at(lm, ids, i, copied)]
    for new in words:
        is_there = whole_word([new.strip()]).search(asked.text)
        if _is_like(old, new, sound) and not is_there:
            pieces = _replaced(lm, asked.ids, places, length, new)
            yield _Changed(COPIED, lm.decode(pieces), ((old.strip(), new.strip()),))


def _is_like(old: str, new: str, article: str) -> bool:
    """Whether a word may stand for another: as large a first letter, a blank before it or none, no small word.

    Behind " a" and " an" it begins with the right sound.
    """
    word = new.strip()
    if not _WORD.fullmatch(new) or len(word) < 3 or word.lower() in SMALL or new == old:
        return False
    if article and (article == " an") != (word[0].lower() in "aeiou"):
        return False
    return new.startswith(" ") == old.startswith(" ") and new.islower() == old.islower()


def _earlier_ends(ids: Sequence[int]) -> list[int]:
    """Where the longest passage that the ids end with ended before, and something followed, in order.

    Empty for one of fewer than two tokens.
    """
    longest = LEAST_REPEATED
    ends: list[int] = []
    for end in range(LEAST_REPEATED - 1, len(ids) - 1):
        n = 0
        while n <= end and ids[end - n] == ids[len(ids) - 1 - n]:
            n += 1
        if n > longest:
            ends = []
            longest = n
        if n == longest:
            ends.append(end)
    return ends


def _length_of_word(lm: LanguageModel, ids: Sequence[int], start: int) -> int:
    """How many tokens the word has that begins at `start`: those behind it begin with a letter."""
    end = start + 1
    while end < len(ids) and named_bytes(lm.tokenizer, ids[end])[:1].isalpha():
        end += 1
    return end - start


def _stands_at(lm: LanguageModel, ids: Sequence[int], place: int, word: Sequence[int]) -> bool:
    """Whether these tokens stand at `place`, and are a whole word there."""
    is_word = _length_of_word(lm, ids, place) == len(word)
    return is_word and tuple(ids[place : place + len(word)]) == tuple(word)


def _replaced(
    lm: LanguageModel, ids: Sequence[int], places: Sequence[int], length: int, word: str
) -> list[int]:
    """The ids with a word's tokens instead of the `length` at each of these places."""
    new = ids_of(lm, word)
    pieces = list(ids)
    for place in reversed(places):
        pieces[place : place + length] = new
    return pieces
