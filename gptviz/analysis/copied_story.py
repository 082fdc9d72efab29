"""The story of a copied word: which head passes what to which, in texts that repeat a passage.

"The cat sat on the mat. The cat sat on the": mat. Olsson et al. say how: at the first " mat" a *previous token*
head writes down that " the" stands before it; at the end an *induction* head, whose query is " the", finds that
in the key of " mat" (this is K-composition), looks there, and copies it. Each role is shown or not shown by the
tests of `gptviz.analysis.circuit_claims`.

The texts are made: each repeats where the given text repeats, but its tokens are random words, as many as the text
has different ones, so that nothing but the passage tells what comes next; and up to `MORE` others stand before it and
before the passage comes again, so that no fixed distance leads to the answer. What a head passes on is taken from the
text with a random word in the place of one token: of the one behind the passage, for heads that copy it, so that
another word is the answer; of the passage's last one, for heads that find the place, so that there is nothing to be
found.

Positions: "end", the last token; "first", the same one where the passage stood before; "next", the token behind
that, which is the answer; "behind", the one after it.

Olsson et al., In-context Learning and Induction Heads, 2022; Elhage et al., A Mathematical Framework for
Transformer Circuits, 2021; McDougall et al., Copy Suppression, 2023 (heads that write against what they find).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from gptviz.analysis.asked import stood_before
from gptviz.analysis.circuit_claims import LEAST, Role, Story, Task, TaskText, tell
from gptviz.analysis.copying import ordinary_tokens
from gptviz.analysis.prompts import Texts, is_many
from gptviz.engine.given import ids_of
from gptviz.engine.index import whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.sample import long_passages
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer import begins_of, has_token, named_bytes

COUNT = 24  # texts
LONGEST = 96  # tokens of a text whose form is taken
BEFORE = 8  # tokens before the passage that are kept of it
MORE = 3  # the most words that are put in at either place
WEIGHED = 32  # words that are tried by weights alone
EXAMPLE = "The cat sat on the mat. The cat sat on the"

_WORD = re.compile(rb" [a-z]{3,}")
# no part of a name, of a number, or of a word with an apostrophe: " didn" is no word
_IN_BOOKS = re.compile(r"(?<![\w'’])[a-z]{3,}(?![\w'’])")
_WORDS = 500  # with fewer that are one token, tokens of another kind stand in the texts

PLACES = {
    "end": "the last token",
    "first": "where the last token stood before",
    "next": "what came next there",
    "behind": "the token behind that",
}
OTHERS = {
    "next": "the text with another word behind the passage",
    "first": "the text with another word at the passage's last token",
}
OUTSIDE = "next"  # the one whose values heads outside a circuit may give

INDUCTION = Role(
    "induction",
    "looks at what came next last time, and copies it",
    sign=1,
    at="end",
    other="next",
    looks="next",
    rather_than=("first", "behind"),
    copied="next",
)
SUPPRESSION = Role(
    "copy suppression",
    "looks at what came next last time, and writes against it",
    sign=-1,
    at="end",
    other="next",
    looks="next",
    rather_than=("first", "behind"),
    copied="next",
    copies=-1,
    is_classical=False,
)
PREVIOUS = Role(
    "previous token",
    "looks one token back, so that an induction head's key says what stands there",
    sign=1,
    at="next",
    other="first",
    looks="first",
    rather_than=("next",),
    to=(INDUCTION.name,),
    reads="k",
)
DUPLICATE = Role(
    "duplicate token",
    "looks at the last token's earlier copy, and tells an induction head's query",
    sign=1,
    at="end",
    other="first",
    looks="first",
    rather_than=("next", "end"),
    to=(INDUCTION.name,),
    reads="q",
)
ROLES = (INDUCTION, SUPPRESSION, PREVIOUS, DUPLICATE)


@undisturbed
def copied_story(
    lm: LanguageModel,
    text: Texts | None = None,
    baseline: str = "sample",
    count: int | None = None,
    progress: Progress = ignore_progress,
) -> Story:
    """Tell how a word is copied: every role with its test over made texts, shown or not shown.

    Args:
        text: a text that ends where it begins to repeat a passage, or a list of such; the made texts have its
            form, those of several texts in turn. Without it, random passages of six to ten words.
        baseline: what muted heads give, such as those outside the circuit in `Story.worth`: their mean over a
            "sample", "zero", their "mean" over the text, which still carries its words, or with "other" what they
            give in the text with another word behind the passage (previous and duplicate token muted: at its last
            token). What a head passes on is tested against these other texts in any case.
        count: how many texts are made; without it `COUNT`.
        progress: `progress(done, of)` is called after every text, without a lock: what it raises stops the work.

    Raises ValueError for a text that does not repeat a passage or is too long, for fewer texts than `LEAST`,
    and for a model with too few tokens.
    """
    if count is None:
        count = COUNT
    if whole("count", count, 1) < LEAST:
        raise ValueError(f"{count} texts are asked for; a story needs {LEAST} or more")
    texts = made_texts(lm, text, count)
    words = _words(lm)
    weighed = words[:: max(1, len(words) // WEIGHED)][:WEIGHED]
    task = Task(ROLES, PLACES, OTHERS, tuple(weighed), OUTSIDE)
    return tell(lm, task, texts, baseline, progress)


@undisturbed
def made_texts(
    lm: LanguageModel, text: Texts | None = None, count: int = COUNT, seed: int = 0
) -> list[TaskText]:
    """`count` texts of random words that repeat where the text, or each of several in turn, repeats.

    Raises ValueError as `copied_story`.
    """
    given: list[Any] = []
    if text is not None:
        given = [*text] if is_many(text) else [text]
    forms = [_form_of(lm, one) for one in given]
    words = _words(lm)
    texts = []
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        if forms:
            form = forms[number % len(forms)]
        else:
            form = _drawn(lm, rng)
        texts.append(_filled(lm, form, words, rng))
    return texts


# ---- the texts ----


@dataclass(frozen=True)
class _Form:
    """Which tokens of a text are the same: a number for each. A passage of `length` ends before `place`.

    The text ends with the same passage.
    """

    numbers: tuple[int, ...]
    place: int
    length: int


def _room(lm: LanguageModel) -> int:
    """How many tokens of a text the model reads behind those that stand before every text."""
    return lm.config.context_length - len(begins_of(lm.tokenizer))


def _form_of(lm: LanguageModel, text: Any) -> _Form:
    """The form of a text, from a little before the passage on."""
    ids = ids_of(lm, text)
    begins = begins_of(lm.tokenizer)
    if tuple(ids[: len(begins)]) == begins:
        ids = ids[len(begins) :]
    place, length = stood_before(ids)
    length = min(
        length, len(ids) - place - 1
    )  # what comes next must stand before the passage comes again
    if length < 1:
        raise ValueError(
            f"{lm.decode(ids)!r} does not end with a passage that stands in it before, with something behind it: give "
            f"a text such as {EXAMPLE!r}"
        )
    begin = max(0, place - length - BEFORE)
    kept = ids[begin:]
    most = min(LONGEST, _room(lm))
    if len(kept) > most:
        raise ValueError(
            f"from the passage to where it ends again there are {len(kept)} tokens; a story is told of up "
            f"to {most}: shorten what stands between"
        )
    found: dict[int, int] = {}
    numbers = [found.setdefault(i, len(found)) for i in kept]
    return _Form(tuple(numbers), place - begin, length)


def _drawn(lm: LanguageModel, rng: np.random.Generator) -> _Form:
    """A form with a passage of random length at a random place, the beginning of which comes again."""
    sizes = [int(rng.integers(*ends)) for ends in ((1, 5), (6, 11), (1, 5), (3, 6))]
    if sum(sizes) > _room(lm):
        sizes = [1, 4, 1, 2]
    before, passage, between, length = sizes
    single = before + passage + between
    numbers = (*range(single), *range(before, before + length))
    if len(numbers) > _room(lm):
        raise ValueError(
            f"{lm.name} reads {_room(lm)} tokens, and a passage that comes again needs "
            f"{len(numbers)}: take a model with a longer context"
        )
    return _Form(numbers, before + length, length)


def _filled(
    lm: LanguageModel, form: _Form, words: Sequence[int], rng: np.random.Generator
) -> TaskText:
    """A text of this form, of random words; some more of them stand before it and before the passage again."""
    room = _room(lm) - len(form.numbers)
    first_more = int(rng.integers(0, min(MORE, room) + 1))
    then_more = int(rng.integers(0, min(MORE, room - first_more) + 1))
    different = len({*form.numbers})
    needed = different + first_more + then_more + 2
    if len(words) < needed:
        raise ValueError(
            f"{lm.name} has {len(words)} tokens that a text can be made of, and one of this form needs {needed}"
        )
    drawn = rng.choice(words, needed, replace=False).tolist()
    another, instead, *more = drawn[different:]
    own = [drawn[number] for number in form.numbers]
    again = len(own) - form.length
    begins = begins_of(lm.tokenizer)
    ids = (*begins, *more[:first_more], *own[:again], *more[first_more:], *own[again:])
    following = len(begins) + first_more + form.place
    places = {
        "end": (len(ids) - 1,),
        "first": (following - 1,),
        "next": (following,),
        "behind": (following + 1,),
    }
    others = {
        "next": (*ids[:following], instead, *ids[following + 1 :]),
        "first": (*ids[: following - 1], another, *ids[following:]),
    }
    answer = ids[following]
    return TaskText(ids, answer, instead, places, others, {"next": answer})


def _words(lm: LanguageModel) -> list[int]:
    """The ids of whole words that are one token with a blank: those that stand in the sample's books.

    A vocabulary does not say which tokens are whole words: " mal" has its blank as " mill" has, and both begin longer
    tokens. A word that a book has by itself is one. That gives 1,130 tokens of mini's 8,192, and 1,479 of GPT-2's
    50,257. Where fewer than `_WORDS` are there, as in a vocabulary of another language, words and beginnings of words
    stand in for them; and all tokens, where these are few, too.
    """
    names = {
        i: named_bytes(lm.tokenizer, i)
        for i in range(ordinary_tokens(lm))
        if has_token(lm.tokenizer, i)
    }
    begun = [i for i, name in names.items() if _WORD.fullmatch(name)]
    in_books = _in_books()
    words = [i for i in begun if names[i][1:].decode("ascii") in in_books]
    for found in (words, begun):
        if len(found) >= _WORDS:
            return found
    return [*names]


@cache
def _in_books() -> frozenset[str]:
    """The words of the sample's books that are written small."""
    return frozenset(
        word for passage in long_passages() for word in _IN_BOOKS.findall(passage.text)
    )
