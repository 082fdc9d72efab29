"""The sentences of the Compare page: numbers in, Markdown out."""

from collections.abc import Sequence

from gptviz.digits import fixed, significant
from gptviz.figures.next_token import probability_text
from gptviz.ui.words import Place, as_code, escaped

NO_OTHER_TEXT = "There is no text for the right side yet: type one into the box above."

NO_PAIRS = (
    "The two sides end no token at the same place of the text, as far as they read it, so nothing can be set "
    "side by side: shorten the text, or choose another model."
)

IDENTICAL = (
    "Both sides are the same pass: there is nothing to compare. Change something on the left (a head that "
    "is switched off, say), or write a change for the right side into the box."
)

ONE_TOKEN = "Both have read one place together, so there are no patterns to compare: add a word to the text."

HOW = (
    "Tokens belong together where both sides have read as far; a token without a partner counts with the "
    "next one that has one. A head's number is the share of its attention that stands elsewhere on the other "
    "side, on average over these places (the first left out): 0 is the same pattern, 1 has nothing in common."
)

STREAMS = (
    "1 less the cosine of the two residual streams, for each pair of tokens and before each block: 0 is the "
    "same direction, 1 none in common. Read from the top down: where does a difference begin, and how far "
    "does it spread to the right?"
)

DIFFERENCE = "{query} gives {key} {value} more on the right"

HEADS_NUMBERS = (
    "Every head, the one that differs most first: the share of its attention that stands elsewhere."
)
STREAMS_NUMBERS = "1 less the cosine of the two residual streams: a row a depth and pair of tokens."
NEXT_NUMBERS = (
    "Both sides' most probable next tokens. Missing is what a vocabulary does not have; "
    "ranks are over the whole vocabulary, from 1."
)


def changed_by(edits: Sequence[str]) -> str:
    """What a side with these changes is called."""
    return ", ".join(edits)


def changed(name: str) -> str:
    """What a model is called where something is changed in it: by its own name it would be itself."""
    return f"{name} (changed)"


def by_changed(text: str) -> str:
    """What a text is called that a changed model reads."""
    return f"{text} (model changed)"


def no_edit(error: str) -> str:
    """What was typed is no change."""
    return f"{error[:1].upper()}{error[1:]}. Your text is kept; the right side is unchanged."


def left_out(edits: Sequence[str]) -> str:
    listed = ", ".join(escaped(edit) for edit in edits)
    return f"On the right this does not fit the text there, and is left out: {listed}."


def what_comes_next(
    names: tuple[str, str],
    here: tuple[Place, Place],
    best: tuple[str, str],
    own: tuple[float, float],
    others: tuple[float, float],
    apart: tuple[float, str, str] | None,
) -> str:
    """The two sides' first choices: `own` are their own probabilities, `others` those on the other side.

    `apart` is the KL divergence in bits, and from which side to which.
    """
    left, right = (f"**{escaped(name)}**" for name in names)
    place = f"After {here[0]}"
    if str(here[0]) != str(here[1]):
        place += f", on the right after {here[1]},"
    if best[0] == best[1]:
        said = (
            f"{place} both expect {as_code(best[0])}: {left} with {probability_text(own[0])}, "
            f"{right} with {probability_text(own[1])}"
        )
    else:
        said = (
            f"{place} {left} expects {as_code(best[0])} with {_of(own[0], others[0])}; "
            f"{right} expects {as_code(best[1])} with {_of(own[1], others[1])}"
        )
    if apart is None:
        return f"{said}. Their vocabularies are two, so there is no KL divergence between them."
    bits, holds, expected = apart
    return f"{said}. The KL divergence from {escaped(holds)} to {escaped(expected)} is {fixed(bits, 2)} bits."


def _of(own: float, other: float) -> str:
    known = "not in its vocabulary" if other != other else probability_text(other)
    return f"{probability_text(own)} (on the other side: {known})"


def heads_differ(block: int, head: int, share: float, none: int, heads: int) -> str:
    """Which head differs most, and how many not at all."""
    if none == heads:
        return "All heads look where they look on the other side."
    same = f" {none} of {heads} heads look where they look on the other side." if none else ""
    return (
        f"Head {head} of block {block} differs most: {significant(share, 2)} of its attention "
        f"stands elsewhere.{same}"
    )


def other_shape(names: tuple[str, str], shapes: tuple[str, str]) -> str:
    """Why there is no map of heads, and none of streams."""
    return (
        f"{escaped(names[0])} has {shapes[0]}, {escaped(names[1])} {shapes[1]}: no head and no number of the "
        "one belongs to one of the other. What can be compared stands here: what each expects next, and any "
        "head of each, chosen below."
    )


def trained_apart(names: tuple[str, str]) -> str:
    return (
        f"A head of {escaped(names[0])} and the one with the same number in {escaped(names[1])} do the same "
        "only if one was made from the other by training it further."
    )


def no_own_pair(place: Place, taken: Place) -> str:
    """The selected token has no partner."""
    return f"{place} has no partner on the right: compared is the next place that both have read, {taken}."


def ranked(block: int, head: int, share: float) -> str:
    """A button's: a head and how much of its attention stands elsewhere."""
    return f"{block}·{head} {significant(share, 2)}"


RANKED = "The heads that differ most, and by how much; a click opens one:"


def less(names: tuple[str, str], heads: tuple[tuple[int, int], tuple[int, int]]) -> str:
    """What the picture of the difference is called."""
    left, right = (f"{one_head(*head)} of {name}" for name, head in zip(names, heads, strict=True))
    return f"{right} less {left[:1].lower()}{left[1:]}"


def one_head(block: int, head: int) -> str:
    return f"Block {block}, head {head}"


def blocks(done: int, of: int) -> str:
    """How far the comparison of all heads is."""
    return f"{done} of {of} blocks compared"
