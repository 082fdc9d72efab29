"""Ready-made sets of sentences, one for each kind of question: names, a copied word, a pronoun, a fact, a sequence.

Each sentence has its answer, what might be said instead, and its other text, after which that would be the
answer. Only what a model's tokenizer can hold is in its set: both answers one token each, both texts equally
long, with each word at the same tokens. Of names and copied words every second sentence has its two words exchanged,
since a model says some words more readily than others, whatever it reads.
"""

from collections.abc import Callable, Iterator
from itertools import zip_longest

from gptviz.analysis.alignment import are_in_step
from gptviz.analysis.prompts import PLACES, THINGS, Prompt, indirect_objects
from gptviz.analysis.templates import filled, read_lists
from gptviz.analysis.word_classes import (
    CAPITALS,
    LETTERS,
    MONTHS,
    NUMBERS,
    OPPOSITES,
    ORDINALS,
    WEEKDAYS,
)
from gptviz.engine.given import ids_of
from gptviz.engine.index import one_of, whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.undisturbed import undisturbed

COUNT = 24

COPIED = "The {place} was near the old {A}. They left the {place} and came to the old"
COPIED_LISTS = (
    "A, B: mill, barn, house, tree, bridge, castle, stone, tower, wall, bank, ship, door; "
    f"place: {', '.join(PLACES)}"
)
PERSONS = (
    ("man", "woman"),
    ("boy", "girl"),
    ("king", "queen"),
    ("father", "mother"),
    ("brother", "sister"),
    ("uncle", "aunt"),
    ("prince", "princess"),
    ("son", "daughter"),
)
# a sentence, and what it goes on with for him and for her
PRONOUNS = (
    ("The {} was tired, so", " he", " she"),
    ("The {} said that", " he", " she"),
    ("The {} lost the {thing}, and nobody would help", " him", " her"),
    ("The {} took off", " his", " her"),
)
FACTS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("The capital of {} is", tuple(CAPITALS.items())),
    ("The opposite of {} is", tuple(zip(OPPOSITES[::2], OPPOSITES[1::2], strict=True))),
    (
        "The wife of the {} is the",
        (("king", "queen"), ("prince", "princess"), ("father", "mother"), ("uncle", "aunt")),
    ),
)
RUNS = (3, 4)  # members of a sequence that stand there
TURNING = (WEEKDAYS, MONTHS)
STRAIGHT = (NUMBERS, ORDINALS, LETTERS)


@undisturbed
def ready_made(lm: LanguageModel, kind: str, count: int = COUNT) -> list[Prompt]:
    """At most `count` sentences of one of `KINDS`: those that this tokenizer can hold, so maybe none.

    Raises ValueError for another kind.
    """
    one_of("kind", kind, KINDS)
    prompts: list[Prompt] = []
    for prompt in _MADE[kind](lm, whole("count", count, 0)):
        if len(prompts) == count:
            break
        if is_held(lm, prompt):
            prompts.append(prompt)
    return prompts


def is_held(lm: LanguageModel, prompt: Prompt) -> bool:
    """Whether both answers are one token each, and another, and both texts in step and not the same."""
    try:
        answers = [ids_of(lm, str(answer)) for answer in (prompt.token, prompt.against)]
        text, other = (ids_of(lm, text) for text in (prompt.text, prompt.other or ""))
    except ValueError:  # a character that the model does not have
        return False
    is_pair = [len(ids) for ids in answers] == [1, 1] and answers[0] != answers[1]
    return is_pair and text != other and are_in_step(lm, text, other)


def _names(lm: LanguageModel, count: int) -> list[Prompt]:
    return indirect_objects(lm, count, exchanged=True)


def _copied(lm: LanguageModel, count: int) -> list[Prompt]:
    try:
        return filled(lm, COPIED, read_lists(COPIED_LISTS), max(count, 1)).prompts
    except ValueError:  # none of the words is one token
        return []


def _pronouns(lm: LanguageModel, count: int) -> Iterator[Prompt]:
    """Of each person and the one of the other sex, in turn; the things come in turn as well."""
    number = 0
    for he, she in PERSONS:
        for frame, his, hers in PRONOUNS:
            thing = THINGS[number % len(THINGS)]
            texts = [frame.replace("{thing}", thing).format(person) for person in (he, she)]
            answers = [his, hers]
            if number % 2:
                texts.reverse()
                answers.reverse()
            number += 1
            yield Prompt(texts[0], answers[0], answers[1], texts[1])


def _facts(lm: LanguageModel, count: int) -> Iterator[Prompt]:
    """Of each kind of fact in turn: every fact with the next one of its kind that this tokenizer can hold."""
    kinds = [[*_of_one_kind(lm, frame, facts)] for frame, facts in FACTS]
    for round_ in zip_longest(*kinds):
        yield from (prompt for prompt in round_ if prompt is not None)


def _of_one_kind(
    lm: LanguageModel, frame: str, facts: tuple[tuple[str, str], ...]
) -> Iterator[Prompt]:
    for number, (subject, answer) in enumerate(facts):
        for other, instead in (*facts[number + 1 :], *facts[:number]):
            prompt = Prompt(frame.format(subject), f" {answer}", f" {instead}", frame.format(other))
            if is_held(lm, prompt):
                yield prompt
                break


def _sequences(lm: LanguageModel, count: int) -> Iterator[Prompt]:
    """Parts of each order in turn; the other text is the part that begins one later."""
    kinds = [[*_parts(words, turns=True)] for words in TURNING]
    kinds += [[*_parts(words, turns=False)] for words in STRAIGHT]
    kinds = [[prompt for prompt in prompts if is_held(lm, prompt)] for prompts in kinds]
    for round_ in zip_longest(*kinds):
        yield from (prompt for prompt in round_ if prompt is not None)


def _parts(words: tuple[str, ...], turns: bool) -> Iterator[Prompt]:
    size = len(words)
    if turns:
        line = [*words, *words]
    else:
        line = [*words]
    for length in RUNS:
        for start in range(min(size, len(line) - length - 1)):
            text, other = (
                f"{', '.join(line[begin : begin + length])}," for begin in (start, start + 1)
            )
            yield Prompt(text, f" {line[start + length]}", f" {line[start + length + 1]}", other)


_MADE: dict[str, Callable[[LanguageModel, int], list[Prompt] | Iterator[Prompt]]] = {
    "names": _names,
    "copied": _copied,
    "pronoun": _pronouns,
    "fact": _facts,
    "sequence": _sequences,
}
KINDS = tuple(_MADE)
