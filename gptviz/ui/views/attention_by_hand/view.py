"""Attention on vectors small enough for a pencil: all numbers in sight, the given ones to be changed."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st
import torch

from gptviz.lessons import attention as lesson
from gptviz.lessons import averaging
from gptviz.lessons.attention import Attention, worked_row
from gptviz.model import MultiHeadAttention
from gptviz.ui.components.worksheet import worksheet
from gptviz.ui.shell import params
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Frame
from gptviz.ui.tables import STYLE
from gptviz.ui.views.attention_by_hand import averages, changes, sheets, state, tables, words
from gptviz.ui.views.attention_by_hand.changes import Given
from gptviz.ui.views.attention_by_hand.snippet import attention
from gptviz.ui.words import unlike_printed

AVERAGED = Param("hand_averages", str, "words", if_there)
PARAMS = (*state.PARAMS, AVERAGED)


def draw(frame: Frame) -> None:
    """The page: nothing of it is read by a model, and a change of a number runs only this."""

    @st.fragment
    def everything() -> None:
        st.html(STYLE)
        _controls()
        params.store(PARAMS)
        start, way = state.given(), state.WAY.value
        found = state.worked(start, way)
        query = state.query(start)
        _sentence(start, found, query)
        _picture(frame, start, found, query)
        _count()
        prose(words.look_for(way), "dot product", "softmax", "query", "key", "value", "causal mask", "head")
        _row(start, found, query)
        _softmax()
        _averaging(frame, start)
        _details(start, found)

    everything()


def _steps() -> list[str]:
    return state.SIMPLE_STEPS if state.WAY.value == "simple" else list(words.STEPS)


def _controls() -> None:
    state.EXAMPLE.within(list(state.EXAMPLES))
    state.WAY.within(list(words.WAYS))
    state.DRAWN.within(list(words.DRAWN))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="by_hand_controls"):
        state.EXAMPLE.widget(
            st.segmented_control,
            "Words",
            options=list(state.EXAMPLES),
            format_func=state.TEXTS.__getitem__,
            required=True,
            on_change=state.start_again,
        )
        way = state.WAY.widget(
            st.segmented_control,
            "Attention",
            options=list(words.WAYS),
            format_func=words.WAYS.__getitem__,
            required=True,
        )
    steps = _steps()
    if state.STEP.value not in steps:
        state.STEP.set(None)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="by_hand_steps"):
        at = steps.index(state.STEP.value)
        _button("‹", "step_back", "The step before", state.step_by, -1, at == 0)
        state.STEP.widget(
            st.segmented_control,
            "Up to",
            options=steps,
            format_func=words.STEPS.__getitem__,
            required=True,
            label_visibility="collapsed",
        )
        _button("›", "step_on", "The next step", state.step_by, 1, at == len(steps) - 1)
        if way != "simple":
            first = words.DRAWN[state.FIRST[way] or ""]
            state.DRAWN.widget(
                st.selectbox,
                "Matrices",
                options=list(words.DRAWN),
                index=None,
                placeholder=first,
                width=240,
                format_func=words.DRAWN.__getitem__,
                on_change=state.keep_vectors,
                label_visibility="collapsed",
            )


def _count() -> None:
    """Under the picture: how many words there are, and the way back to what is printed."""
    count = len(state.given().words)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="by_hand_count"):
        _button("A word more", "word_more", "", state.set_count, count + 1, count >= changes.MOST_WORDS)
        _button("A word less", "word_less", "", state.set_count, count - 1, count <= 1)
        st.button(
            "As printed",
            icon=":material/undo:",
            type="tertiary",
            key="by_hand_back",
            on_click=state.start_again,
            disabled=not state.CHANGED.value,
            help="Take back all that was typed.",
        )


def _button(label: str, key: str, help: str, call: Any, argument: int, disabled: bool) -> None:
    st.button(label, key=key, help=help or None, on_click=call, args=(argument,), disabled=disabled)


def _sentence(start: Given, found: Sequence[Attention], query: int) -> None:
    """What the picture comes to; before its last step, only what is shown of it."""
    step = state.STEP.value
    if step == "context":
        prose(_whole(start, found, query), "dot product", "query", "key", "value")
    else:
        prose(words.so_far(step, start.words[query], _of_step(step, start, found, query)))
    if refused := state.said():
        st.warning(refused)


def _whole(start: Given, found: Sequence[Attention], query: int) -> str:
    way, one = state.WAY.value, found[0]
    seen = query + 1 if way in ("causal", "heads") else len(start.words)
    weights, context = one.weights[query].tolist(), one.context[query].tolist()
    said = words.sentence(way, start.words, query, weights, context, seen)
    if state.CHANGED.value or query != state.EXAMPLES[state.EXAMPLE.value].query:
        return said
    both = torch.cat([each.context[query] for each in found]).tolist()
    return f"{said} {words.printed(state.EXAMPLE.value, way, state.drawn(), start.words[query], both)}"


def _of_step(step: str, start: Given, found: Sequence[Attention], query: int) -> list[list[float]]:
    """The word's own numbers of a step, of every head; of scaled scores and weights those that it can see."""
    match step:
        case "vectors":
            return [start.x[query].tolist()]
        case "queries":
            return [row[query].tolist() for one in found for row in (one.queries, one.keys, one.values)]
        case "scores":
            return [one.scores[query].tolist() for one in found]
        case _:
            rows = [one.scaled if step == "scaled" else one.weights for one in found]
            seen = [one.masked[query] > -torch.inf for one in found]
            return [row[query][mask].tolist() for row, mask in zip(rows, seen, strict=True)]


def _picture(frame: Frame, start: Given, found: Sequence[Attention], query: int) -> None:
    way = state.WAY.value
    title = f"Attention by hand: {words.WAYS[way]}"
    worksheet(
        "by_hand",
        sheets.lines(start, found, way, _steps(), state.STEP.value),
        query,
        words.REST,
        frame.mode,
        on_number=state.type_number,
        on_word=state.type_word,
        on_row=state.QUERY.set,
        saved=frame.saved("attention_by_hand", title, state.EXAMPLE.value, way),
    )


def _row(start: Given, found: Sequence[Attention], query: int) -> None:
    st.markdown(f"#### {words.row_title(start.words[query])}")
    for number, one in enumerate(found):
        if len(found) > 1:
            st.markdown(f"**Head {number}**")
        st.html(tables.worked_out(worked_row(one, query), start.words, one))


def _softmax() -> None:
    """The slides' softmax, with what they print."""
    exponentials, weights = tables.slide_exponentials()
    st.markdown("#### Softmax in two steps")
    left, right = st.columns([5, 6], gap="medium")
    with left:
        otherwise = unlike_printed(lesson.SLIDE_EXPONENTIALS, exponentials)
        prose(words.softmax(otherwise, unlike_printed(lesson.SLIDE_WEIGHTS, weights)), "softmax")
    with right:
        st.html(tables.softmax_table())


def _averaging(frame: Frame, start: Given) -> None:
    st.markdown("#### The trick behind it: averages")
    prose(words.AVERAGING, "softmax")
    AVERAGED.within(["words", "notebook"])
    of = AVERAGED.widget(
        st.segmented_control,
        "Average",
        options=["words", "notebook"],
        required=True,
        format_func={"words": "the vectors above", "notebook": "the notebook's 8 × 2 numbers"}.__getitem__,
    )
    x = start.x if of == "words" else averages.notebook()
    labels = start.words if of == "words" else [str(t) for t in range(len(x))]
    if of == "notebook":
        st.markdown(words.notebook(averages.printed_otherwise()))
    worksheet(
        "averages",
        averages.lines(labels, x),
        None,
        words.agree(averages.apart(x)),
        frame.mode,
        saved=frame.saved("averages", "Three programs for the averages of what came before"),
    )


def _details(start: Given, found: Sequence[Attention]) -> None:
    in_numbers(lambda: tables.pairs(start, found), "by_hand_pairs", words.ROWS, "pairs", missing="masked")
    in_numbers(lambda: tables.vectors(start, found), "by_hand_vectors", words.VECTORS, "vectors")
    way = state.WAY.value
    heads = tuple(
        tuple(tuple(map(tuple, getattr(head, name).tolist())) for name in ("query", "key", "value"))
        for head in start.heads
    )
    functions: dict[str, list[Callable[..., Any]]] = {
        "simple": [lesson.simple_attention],
        "heads": [lesson.self_attention, lesson.multi_head_attention],
    }
    in_code(
        [
            *functions.get(way, [lesson.self_attention]),
            averaging.averages_by_loop,
            averaging.averages_by_matrix,
            averaging.averages_by_softmax,
            MultiHeadAttention.forward,
        ],
        program(
            attention,
            x=tuple(map(tuple, start.x.tolist())),
            heads=heads,
            causal=way in ("causal", "heads"),
        ),
    )
