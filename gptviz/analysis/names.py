"""Names of persons in a text, and whether a model knows which of two of them is meant."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from gptviz.analysis.prompts import ABBA, BABA, indirect_objects
from gptviz.engine.given import ids_of
from gptviz.engine.kinds import Model
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.undisturbed import undisturbed

TITLES = ("Mr", "Mrs", "Miss", "Ms", "Dr", "Herr", "Frau", "Uncle", "Aunt")

# Given names that are little else where they stand with a capital. Left out are those that are often words,
# months or places then, too: May, Jan, Will, Mark, Rose, Grace, Christian, Paris, Florence, Victoria, Sofia,
# Diego. Frank and Jack are words as well, but begin few sentences as such.
_NAMES = """
Aaron Adam Adrian Agnes Alan Albert Alex Alexander Alfred Alice Amy Andrea Andreas Andrew Angela Anna
Anne Anthony Anton Arthur Barbara Ben Benjamin Bernard Betty Bob Brian Carl Carlos Catherine Cecilia
Charles Charlie Chris Christina Christine Christopher Clara Claudia Clemens Daniel David
Deborah Dennis Diana Dmitri Donald Dorothy Edgar Edith Edward Elena Eleanor Eliza Elizabeth Ella
Ellen Emil Emily Emma Eric Ernest Esther Eva Felix Fiona Frances Frank Franz Fred Frederick Fritz Gabriel
Geoffrey George Gerald Gerhard Gertrude Gisela Gregory Greta Gustav Hannah Hans Harold Harry Heidi
Heinrich Helen Helena Henry Herbert Hugh Ian Ida Igor Ingrid Irene Isaac Isabel Isabella Ivan Jack Jacob
James Jane Janet Jason Jeff Jennifer Jenny Jessica Jim Joan Joe Johann Johanna John Jonas Jonathan
Joseph Joshua Juan Judith Julia Julian Juliet Julius Karen Karl Kate Katharina Katherine Kathy Katie
Kevin Klaus Lars Laura Laurence Leo Leon Leonard Leonie Lisa Louis Louise Lucas Lucy Ludwig Luis Lukas
Lydia Marcus Margaret Maria Marie Martha Martin Mary Matthew Matthias Max Maximilian Megan Michael Miguel
Monica Moritz Nancy Naomi Natalie Nathan Nicholas Nick Nicole Nina Noah Nora Olga Oliver Olivia Oscar
Oskar Otto Patricia Paul Paula Pedro Peter Philip Philipp Rachel Ralph Raymond Rebecca Richard Robert
Roger Ronald Rosa Rudolf Rupert Ruth Samuel Sandra Sara Sarah Sebastian Sergei Simon Sophia Sophie
Stefan Stella Stephen Steven Susan Susanna Sven Sylvia Theodor Theodore Theresa Thomas Tim Timothy Tobias
Tom Tommy Ulrich Ulrike Ursula Walter Werner Wilhelm William Wolfgang
"""
GIVEN = frozenset(_NAMES.split())

# a name after a title, or a given name; all that stands right behind it with a capital is the same person's
_TITLED = rf"(?:{'|'.join(TITLES)})\.? (?P<titled>[A-Z][a-zà-ÿ]+)"
_GIVEN = rf"(?P<given>{'|'.join(sorted(GIVEN))})"
_PERSON = re.compile(rf"(?<![\w-])(?:{_TITLED}|{_GIVEN})(?![a-zà-ÿ])(?:[ -][A-Z][a-zà-ÿ]+)*")

TESTED = 24  # sentences with two names


def persons(text: str) -> list[str]:
    """The persons that a text names, each once and in order: by given name, or by the name after a title."""
    names = [match["titled"] or match["given"] for match in _PERSON.finditer(text)]
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class Mention:
    """Where a text names a person: from character `start` to before `end`."""

    name: str
    start: int
    end: int


def whole_word(words: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of these words where it is no part of a longer one: not "Tom" in "Tomato" or "Tom-cat"."""
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-])")


def mentions(text: str) -> list[Mention]:
    """Every place where one of the `persons` of a text is named, in order: "Darcy" without a title, too."""
    names = persons(text)
    if not names:
        return []
    return [Mention(m[0], m.start(), m.end()) for m in whole_word(names).finditer(text)]


@dataclass(frozen=True)
class Again:
    """Where a person is named who was named before, `last` of all such places, and the other persons' names.

    `others` has a name for each of their mentions, in order; it is not empty.
    """

    last: Mention
    others: tuple[str, ...]


def named_again(named: Sequence[Mention]) -> Again | None:
    """Who of a text's persons comes again, of several the one that does so last; None without one, or others."""
    counts = Counter(mention.name for mention in named)
    again = [mention for mention in named if counts[mention.name] > 1]
    if not again:
        return None
    others = tuple(mention.name for mention in named if mention.name != again[-1].name)
    if not others:
        return None
    return Again(again[-1], others)


def once_and_again(text: str) -> tuple[str, str] | None:
    """The one of two persons whom a text names once, and the one whom it names more often.

    None for a text with any other number of persons, and where none, or not just one, is named once.
    """
    again = named_again(mentions(text))
    if again is None or len(again.others) > 1:
        return None
    return again.others[0], again.last.name


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with each of these names replaced by its own, everywhere and at once; parts of words stay.

    Two names that become each other are exchanged: doing it twice gives the text again.
    """
    if not names:
        return text
    return whole_word(names).sub(lambda match: names[match[0]], text)


def order_of(text: str, answer: str, instead: str) -> str | None:
    """Whether the answer is the name that a text has first (ABBA) or second (BABA); the other name comes again.

    None for a text that does not name the answer once and the other one twice, the second time behind both.
    """
    once = answer.strip()
    again = instead.strip()
    if not once or not again or once == again:
        return None
    named = [match[0] for match in whole_word([once, again]).finditer(text)]
    if named == [once, again, again]:
        return ABBA
    if named == [again, once, again]:
        return BABA
    return None


def groups_of(lm: LanguageModel, texts: Sequence[Any], target: Any) -> list[int]:
    """The group of each text, a number: that of its pair where two are each other's with their two words exchanged.

    So are the sentences of `indirect_objects(exchanged=True)`. How readily a model says a word, whatever it reads,
    raises the one by what it lowers the other, so they are no two independent numbers: a standard error is over pairs.
    Any other text is a group of its own, and so is one without a pair of words.

    `texts` are texts or their ids, `target` a pair of tokens (token, against) for all, or a list of one for each.
    """
    targets = target if isinstance(target, list) else [target] * len(texts)
    groups: list[int] = []
    # the places of the texts that have no partner yet, by the text and its two words
    waiting: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for place, (text, aim) in enumerate(zip(texts, targets, strict=True)):
        group = place
        words = _two_words(lm, aim)
        if words is not None:
            once, again = words
            written = text if isinstance(text, str) else lm.decode([*text])
            partners = waiting[renamed(written, {once: again, again: once}), again, once]
            if partners:
                group = partners.pop()
            else:
                waiting[written, once, again].append(place)
        groups.append(group)
    return groups


def _two_words(lm: LanguageModel, target: Any) -> tuple[str, str] | None:
    """The two words of a pair of tokens, without spaces; None for any other target."""
    if not isinstance(target, tuple) or None in target:
        return None
    token, against = (
        word.strip() if isinstance(word, str) else lm.decode([word]).strip() for word in target
    )
    if not token or not against or token == against:
        return None
    return token, against


_known: WeakKeyDictionary[Model, tuple[int, int]] = WeakKeyDictionary()


@undisturbed
def names_kept_apart(lm: LanguageModel) -> tuple[int, int]:
    """The number of two-name sentences in which the model prefers the name that is meant, and of all of them.

    The sentences are `indirect_objects`', every second one with its names exchanged. They are read once for a model, a
    short pass each. (0, 0) where the model has no tokens for them.
    """
    if lm.model not in _known:
        right = 0
        sentences = indirect_objects(lm, TESTED, exchanged=True)
        for prompt in sentences:
            logits = lm.plain.trace(prompt.text, keep=()).logits(-1)
            meant, other = (ids_of(lm, name)[0] for name in prompt.target)
            right += int(logits[meant] > logits[other])
        _known[lm.model] = right, len(sentences)
    return _known[lm.model]
