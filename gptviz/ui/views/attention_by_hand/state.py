"""What somebody has chosen and typed on the Attention by hand page: Params, and what they come to."""

from collections.abc import Callable

import streamlit as st

from gptviz.lessons.attention import (
    Attention,
    HeadWeights,
    multi_head_attention,
    self_attention,
    simple_attention,
)
from gptviz.lessons.sentences import SENTENCES, Sentence, linear_weights, rand_weights
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.views.attention_by_hand import changes, words
from gptviz.ui.views.attention_by_hand.changes import Given

EXAMPLES: dict[str, Sentence] = dict(zip(("hello", "journey"), SENTENCES.values(), strict=True))
TEXTS = dict(zip(EXAMPLES, SENTENCES, strict=True))
DRAW: dict[str, Callable[[int], tuple[HeadWeights, ...]]] = {
    "linear-789": lambda heads: linear_weights(789, heads),
    "linear-123": lambda heads: linear_weights(123, heads),
    "rand-123": lambda heads: rand_weights(123, heads),
}
FIRST = {"simple": None, "weights": "linear-789", "causal": "linear-123", "heads": "linear-123"}

EXAMPLE = Param("hand", str, "hello", if_there)
WAY = Param("hand_way", str, "simple", if_there)
DRAWN: Param[str | None] = Param("hand_weights", str, None, if_there)
STEP = Param("hand_step", str, "context", if_there)
QUERY: Param[int | None] = Param("hand_query", int, None, if_there)
CHANGED = Param("hand_changed", str, "")
PARAMS = (EXAMPLE, WAY, DRAWN, STEP, QUERY, CHANGED)

_SAID = "by_hand_said"  # what could not be a number, until something else is typed


def drawn() -> str | None:
    """Which matrices: those chosen, or the ones that the seeds have for this way; None without any."""
    return None if WAY.value == "simple" else DRAWN.value or FIRST[WAY.value]


def given() -> Given:
    """What the calculation starts from, with all that was changed."""
    source = drawn()
    heads = DRAW[source](2 if WAY.value == "heads" else 1) if source else ()
    return changes.apply(changes.read(CHANGED.value), EXAMPLES[EXAMPLE.value], heads)


def query(start: Given) -> int:
    """The word that is followed: the one chosen, or the one that the example's text works out."""
    last = len(start.words) - 1
    return min(EXAMPLES[EXAMPLE.value].query if QUERY.value is None else QUERY.value, last)


def worked(start: Given, way: str) -> tuple[Attention, ...]:
    """The attention of every head; one where there are no heads to speak of."""
    if way == "simple":
        return (simple_attention(start.x),)
    if way == "heads":
        return multi_head_attention(start.x, start.heads).heads
    return (self_attention(start.x, start.heads[0], causal=way == "causal"),)


# ---- callbacks ----


def type_number(matrix: str, row: int, column: int, text: str) -> None:
    """A cell was typed anew."""
    now = given().matrices
    if matrix not in now or row >= now[matrix].shape[0] or column >= now[matrix].shape[1]:
        return  # of a drawing before this one
    value = changes.number(text)
    if value is None:
        kept = words.short(float(now[matrix][row, column]))
        st.session_state[_SAID] = words.not_a_number(text, kept, changes.LARGEST)
        return
    _change(changes.with_number(changes.read(CHANGED.value), (matrix, row, column), value))


def type_word(row: int, text: str) -> None:
    _change(changes.with_word(changes.read(CHANGED.value), row, text))


def set_count(count: int) -> None:
    _change(changes.with_count(changes.read(CHANGED.value), count))


def start_again() -> None:
    """Back to the example as it is; also where another one is chosen."""
    _change(changes.Changes())
    QUERY.set(None)


def keep_vectors() -> None:
    """Other matrices were chosen: what was typed into the old ones goes, the vectors stay."""
    now = changes.read(CHANGED.value)
    vectors = {place: value for place, value in now.numbers.items() if place[0] == "x"}
    _change(changes.Changes(now.count, vectors, now.words))


def step_by(by: int) -> None:
    steps = list(words.STEPS) if WAY.value != "simple" else SIMPLE_STEPS
    at = steps.index(STEP.value) + by
    STEP.set(steps[min(max(at, 0), len(steps) - 1)])


SIMPLE_STEPS = ["vectors", "scores", "weights", "context"]


def _change(to: changes.Changes) -> None:
    CHANGED.set(changes.written(to))
    st.session_state.pop(_SAID, None)


def said() -> str:
    """Why the last text could not be a number; "" where it could."""
    found: str = st.session_state.get(_SAID, "")
    return found
