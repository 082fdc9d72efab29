"""A template with lists gives many sentences: each with its answer, what might be said instead, and its other text.

    When {A} and {B} went to the {place}, {B} gave a {thing} to

    A, B: Mary, John, Tom, Kate; place: store, park; thing: drink, book

The answer is what stands for {A}, instead of it stands {B}. In the other text A's word comes again, where the last
{B} stood; or both are exchanged, or a third word stands there (the kinds of `gptviz.analysis.other_texts`). Names that
share a list never have the same word of it. {B} need not stand twice, or at all: then both are exchanged, and B's
word stands where {A} was.

A model says some words more readily than others, whatever it reads. So each sentence is followed by the one with {A}
and {B} exchanged, if both words are in the lists of both: in a mean of the two the words themselves cancel.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import prod

from gptviz.analysis.alignment import are_in_step
from gptviz.analysis.names import once_and_again, order_of, renamed
from gptviz.analysis.other_texts import COMES_AGAIN, OF_NAMES, ORDER, THIRD
from gptviz.analysis.prompts import NAMES, PLACES, THINGS, Prompt
from gptviz.engine.given import ids_of
from gptviz.engine.index import one_of, whole
from gptviz.engine.language_model import LanguageModel
from gptviz.text.suggest import did_you_mean

MOST = 100  # sentences
LONGEST = 2_000  # characters of a template, and of its lists
LONGEST_SENTENCE = 20_000  # characters of what a template is filled to
TRIED = 2_000  # sentences that are read by the tokenizer before no more are looked for
WORDS = 200  # of a list
ENUMERATED = 20_000  # combinations of words that are all written down before some are drawn

ANSWER = "A"
INSTEAD = "B"
EXAMPLE = "When {A} and {B} went to the {place}, {B} gave a {thing} to"
EXAMPLE_LISTS = f"A, B: {', '.join(NAMES)}; place: {', '.join(PLACES)}; thing: {', '.join(THINGS)}"
_HOLE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Filled:
    """The sentences of a template, and of those that were left out each a word or a text, and why."""

    prompts: list[Prompt]
    left_out: list[tuple[str, str]]


def read_lists(written: str) -> dict[str, tuple[str, ...]]:
    """The words of each name: "A, B: Tom, Anna; place: park" gives three. A new line is as good as ";".

    Raises ValueError, a sentence, for lists that are too long, that lack a ":", a name or words, and for a
    name that has two.
    """
    if len(written) > LONGEST:
        raise ValueError(
            f"the lists have {len(written):,} characters; at most {LONGEST:,} are read"
        )
    lists: dict[str, tuple[str, ...]] = {}
    for part in filter(str.strip, re.split(r"[;\n]", written)):
        names, colon, words = part.partition(":")
        if not colon:
            raise ValueError(f"{part.strip()!r} has no colon; write a list as place: park, school")
        found = tuple(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
        for name in (name.strip() for name in names.split(",")):
            if not name:
                raise ValueError(f"{part.strip()!r} has no name before its colon")
            if name in lists:
                raise ValueError(f"{name} has two lists; write all its words into one")
            if not found:
                raise ValueError(f"the list of {name} is empty; write words after its colon")
            if len(found) > WORDS:
                raise ValueError(
                    f"the list of {name} has {len(found)} words; at most {WORDS} are read"
                )
            lists[name] = found
    return lists


def holes(template: str) -> list[str]:
    """The names in braces, each once and in order.

    Raises ValueError, a sentence, for a template that is too long or has none, and for a brace that stands
    alone.
    """
    if len(template) > LONGEST:
        raise ValueError(
            f"the template has {len(template):,} characters; at most {LONGEST:,} are read"
        )
    names = [name.strip() for name in _HOLE.findall(template)]
    if re.search(r"[{}]", _HOLE.sub("", template)):
        raise ValueError("a brace stands alone; each { needs its }")
    if not names:
        raise ValueError(f"the template has no names in braces; write one as in: {EXAMPLE}")
    return list(dict.fromkeys(names))


def filled(
    lm: LanguageModel,
    template: str,
    lists: Mapping[str, Sequence[str]],
    count: int = MOST,
    seed: int = 0,
    other: str = COMES_AGAIN,
) -> Filled:
    """Return at most `count` different sentences, drawn by `seed`; all of them where there are fewer.

    Behind each stands the one with {A} and {B} exchanged, if the lists have it. What has no such partner comes last:
    without {B} in the template, a sentence is there once, with one rival.
    `other` is the kind of their other texts, one of `OF_NAMES`; where {B} does not stand twice, or {A} nowhere, both
    are exchanged whatever the kind.
    A word for {A} or {B} must be one token of the model with a space before it, and the other text must have
    as many tokens, and each word at the same ones: what is not so is left out, with the reason. Raises
    ValueError, a sentence, for a name without a list, neither {A} nor {B}, too many or too long sentences, another
    kind, and where nothing is left. At most `TRIED` sentences are looked at.
    """
    if whole("count", count, 1) > MOST:
        raise ValueError(f"{count} sentences are asked for; at most {MOST} are made")
    one_of("other", other, OF_NAMES)
    template = template.rstrip()
    in_template = holes(template)
    names = list(dict.fromkeys([*in_template, ANSWER, INSTEAD]))
    for name in names:
        if name not in lists:
            raise ValueError(_no_list(name, lists))
    if ANSWER not in in_template and INSTEAD not in in_template:
        raise ValueError(
            "the template has neither {A} nor {B}, so its other text would be the same: write {A} where the "
            "answer stands"
        )
    left_out: dict[str, str] = {}
    words: dict[str, list[str]] = {}
    for name in names:
        words[name] = list(lists[name])
        if name in (ANSWER, INSTEAD):
            counts = {word: _count(lm, f" {word}") for word in words[name]}
            words[name] = [word for word, tokens in counts.items() if tokens == 1]
            left_out |= {w: _not_one(lm, tokens) for w, tokens in counts.items() if tokens != 1}
    short = next((name for name in names if not words[name]), None)
    if short is not None:
        raise ValueError(
            f"none of the words of {short} is one token of {lm.name}, as an answer must be"
        )
    longest = _length(template, {name: max(words[name], key=len) for name in names})
    if longest > LONGEST_SENTENCE:
        raise ValueError(
            f"a sentence of this template has up to {longest:,} characters; at most {LONGEST_SENTENCE:,} are "
            "read: use shorter words, or fewer braces"
        )
    prompts: list[Prompt] = []
    for prompt in _different(template, _drawn(words, lists, seed), other, lists):
        why = _why_not(lm, prompt)
        if why:
            left_out[prompt.text] = why
        else:
            prompts.append(prompt)
        if len(prompts) == count:
            break
    if not prompts and not left_out:
        raise ValueError("{A} and {B} need two different words; their lists have only one")
    return Filled(prompts, list(left_out.items()))


def _different(
    template: str,
    drawn: Iterator[list[dict[str, str]]],
    kind: str,
    lists: Mapping[str, Sequence[str]],
) -> Iterator[Prompt]:
    """At most `TRIED` different sentences: those of the pairs that are whole, and last those that are left."""
    seen: set[str] = set()
    left: list[list[dict[str, str]]] = []
    for choices in chain(drawn, left):  # what is left is known when all are drawn
        prompts = [_prompt(template, chosen, kind, lists) for chosen in choices]
        if any(prompt.text in seen for prompt in prompts):
            # without {B} a sentence would come again with another rival
            if len(choices) > 1:
                left += [[chosen] for chosen in choices]
            continue
        for prompt in prompts:
            if len(seen) == TRIED:
                return
            seen.add(prompt.text)
            yield prompt


def _no_list(name: str, lists: Mapping[str, Sequence[str]]) -> str:
    """A sentence about a name that has no list."""
    if name == ANSWER:
        return "{A} has no list; it is the answer: write its words as A, B: Mary, John"
    if name == INSTEAD:
        return (
            "{B} has no list; it is what might be said instead: write its words as A, B: Mary, John"
        )
    return f"{{{name}}} has no list{did_you_mean(name, lists)}; write its words as {name or 'name'}: one, two"


def _not_one(lm: LanguageModel, tokens: int | None) -> str:
    if tokens is None:
        return f"{lm.name} cannot read all of its characters"
    return f"it is {tokens} tokens of {lm.name}, and an answer is one"


def _why_not(lm: LanguageModel, prompt: Prompt) -> str:
    """Why a sentence cannot be compared with its other text; "" where it can."""
    try:
        own, other = (ids_of(lm, text) for text in (prompt.text, prompt.other or ""))
    except ValueError:
        return f"{lm.name} cannot read all of its characters"
    if own == other:
        return "its other text is the same"
    if len(own) != len(other):
        return f"it has {len(own)} tokens, its other text {len(other)}"
    if not are_in_step(lm, own, other):
        return "some of its words stand at other tokens in its other text"
    return ""


def _count(lm: LanguageModel, text: str) -> int | None:
    """The number of tokens of a text; None where the model lacks a character."""
    try:
        return len(ids_of(lm, text))
    except ValueError:
        return None


def _prompt(
    template: str, chosen: Mapping[str, str], kind: str, lists: Mapping[str, Sequence[str]]
) -> Prompt:
    """The sentence with these words, and its other text."""
    exchanged = _exchanged(chosen)
    text = _written(template, chosen)
    names = [hole.strip() for hole in _HOLE.findall(template)]
    is_of_kind = ANSWER in names and names.count(INSTEAD) > 1
    if is_of_kind and kind in (COMES_AGAIN, THIRD, ORDER):
        words = [chosen[name] for name in names]
        if kind == ORDER:
            for name in (ANSWER, INSTEAD):
                words[names.index(name)] = exchanged[name]
        else:
            last = len(names) - 1 - names[::-1].index(INSTEAD)
            words[last] = chosen[ANSWER]
            if kind == THIRD:
                words[last] = _third(chosen, lists)
        in_order = iter(words)
        other = _HOLE.sub(lambda hole: next(in_order), template)
    else:
        other = _written(template, exchanged)
    order = order_of(text, chosen[ANSWER], chosen[INSTEAD])
    return Prompt(text, f" {chosen[ANSWER]}", f" {chosen[INSTEAD]}", other, order)


def _third(chosen: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> str:
    """The word behind B's in its list that the sentence has not; B's own, where there is none."""
    words = [*lists[INSTEAD]]
    at = words.index(chosen[INSTEAD])
    free = [word for word in (*words[at + 1 :], *words[:at]) if word not in chosen.values()]
    return next(iter(free), chosen[INSTEAD])


def _written(template: str, words: Mapping[str, str]) -> str:
    """The template with these words in its braces."""
    return _HOLE.sub(lambda hole: words[hole[1].strip()], template)


def _length(template: str, words: Mapping[str, str]) -> int:
    """The number of characters of `_written`."""
    of_holes = sum(len(words[hole.strip()]) for hole in _HOLE.findall(template))
    return len(_HOLE.sub("", template)) + of_holes


def _drawn(
    words: Mapping[str, Sequence[str]], lists: Mapping[str, Sequence[str]], seed: int
) -> Iterator[list[dict[str, str]]]:
    """Different choices of a word for each name, in an order that the seed decides, with {A} and {B} exchanged.

    Each stands in a list with that one behind it, or alone where the words are not in both lists. All of them, where
    they can be written down; of more, as many as are soon found. Names that share a list have different words.
    """
    names = list(words)
    rng = random.Random(seed)
    choices: Iterator[tuple[str, ...]]
    if prod(len(words[name]) for name in names) <= ENUMERATED:
        every = list(product(*words.values()))
        rng.shuffle(every)
        choices = iter(every)
    else:
        tries = 50 * MOST
        choices = (tuple(rng.choice(words[name]) for name in names) for _ in range(tries))
    seen = set()
    for choice in choices:
        chosen = dict(zip(names, choice, strict=True))
        if choice in seen or not _are_different(chosen, lists):
            continue
        pair = [chosen]
        exchanged = _exchanged(chosen)
        is_listed = exchanged[ANSWER] in words[ANSWER] and exchanged[INSTEAD] in words[INSTEAD]
        if is_listed and _are_different(exchanged, lists):
            pair.append(exchanged)
        seen |= {tuple(one[name] for name in names) for one in pair}
        yield pair


def _exchanged(chosen: Mapping[str, str]) -> dict[str, str]:
    """The choice with the words of {A} and {B} exchanged."""
    return {**chosen, ANSWER: chosen[INSTEAD], INSTEAD: chosen[ANSWER]}


def _are_different(chosen: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> bool:
    """Whether names that share a list have different words, and so have {A} and {B}."""
    of_lists = {(tuple(lists[name]), word) for name, word in chosen.items()}
    return len(of_lists) == len(chosen) and chosen[ANSWER] != chosen[INSTEAD]


def like(text: str) -> tuple[str, str] | None:
    """A template and its lists from a text with two names, one of which comes again; None for any other.

    That one is {B}; a place or a thing of the ready-made sentences becomes {place}, {thing}.
    """
    if _HOLE.search(text) or len(text) > LONGEST or re.search(r"[{}]", text):
        return None
    named = once_and_again(text)
    if named is None:
        return None
    once, repeated = named
    template = renamed(text, {once: "{A}", repeated: "{B}"})
    lists = [f"A, B: {', '.join(dict.fromkeys((once, repeated, *NAMES)))}"]
    for name, words in (("place", PLACES), ("thing", THINGS)):
        found = next((word for word in words if re.search(rf"\b{word}\b", template)), None)
        if found is not None:
            template = re.sub(rf"\b{found}\b", f"{{{name}}}", template)
            lists.append(f"{name}: {', '.join(words)}")
    return template, "; ".join(lists)
