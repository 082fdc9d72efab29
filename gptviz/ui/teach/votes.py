"""The wall: how many of a class have answered, what they said and, once revealed, which answers are right.

The model's own answer stands above it, drawn by `question`.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import streamlit as st

from gptviz import CaptureError
from gptviz.engine.tokens import Token
from gptviz.teach.classroom import ClassError, Vote
from gptviz.teach.guides import Question
from gptviz.teach.guides.answers import Answer
from gptviz.tokenizer import show_token
from gptviz.ui import runs
from gptviz.ui.shell import address, state
from gptviz.ui.teach import classroom
from gptviz.ui.words import counted, escaped

# different answers that are shown, as many as fit on a projector; all others are one line
MOST = 12
EVERY = 1.0  # seconds between two looks at the votes: a teacher watches them come in
WAYS = 3  # answers that get a button which opens them

Row = tuple[str, Any, int]  # how an answer is shown, the answer, how many gave it


def shown(kind: str, given: Any, tokens: Sequence[Token]) -> str:
    """An answer in words.

    `given`, by the kind of question: "head" (block, head); "find" (the text, what was found there); "token" a
    position, which may lie beyond a text that was shortened since; "number" a number; else a word.
    """
    if kind == "head":
        return f"block {given[0]}, head {given[1]}"
    if kind == "find":
        return f"{given[1]} on “{given[0][:60]}”"
    if kind == "token":
        is_in_text = given < len(tokens)
        if is_in_text:
            return f"{show_token(tokens[given].raw)} (position {given})"
        return f"position {given}"
    return f"{given:.12g}" if kind == "number" else str(given)  # as it was given: 3, not 3.00


def most_frequent(votes: Sequence[Vote], kind: str, tokens: Sequence[Token]) -> list[Row]:
    """The `MOST` most frequent answers: numbers by size, others the most frequent first."""
    answers = [(shown(kind, vote.answer, tokens), vote.answer) for vote in votes]
    frequency = Counter(label for label, _ in answers)
    answer_of = dict(answers)
    labels = [label for label, _ in frequency.most_common(MOST)]
    if kind == "number":
        labels.sort(key=answer_of.__getitem__)
    return [(label, answer_of[label], frequency[label]) for label in labels]


def of_choices(votes: Sequence[Vote], choices: Sequence[str]) -> list[Row]:
    """Every choice of a question, in its order, those that nobody chose with 0 votes."""
    frequency = Counter(vote.answer for vote in votes)
    return [(choice, choice, frequency[choice]) for choice in choices]


def draw(
    step: int,
    ask: Question,
    tokens: Sequence[Token],
    answer: Callable[[Any], Answer],
    choices: Sequence[str],
) -> None:
    """Draw the wall of a step's question for the teacher; it refreshes by itself.

    `answer` takes what a pupil gave and says what the model makes of it, and whether it is right. `choices` are
    what a pupil can choose from, none where the answer is typed or clicked: they are seen before the votes are.
    """
    member = classroom.member()
    if member is not None and member.teaches:
        st.fragment(run_every=EVERY)(_draw)(step, ask, tokens, answer, choices)


def _draw(
    step: int,
    ask: Question,
    tokens: Sequence[Token],
    answer: Callable[[Any], Answer],
    choices: Sequence[str],
) -> None:
    address.run_the_page_if_asked_for()
    member = classroom.member()
    if member is None:
        return
    room = member.room
    try:
        votes = classroom.classes().votes(room, step)
        joined = len(classroom.classes().names(room))
    except ClassError as error:
        st.caption(escaped(str(error)))
        return
    answered = [vote for vote in votes if vote.given is not None]
    skipped = ""
    if len(votes) > len(answered):
        skipped = f", {len(votes) - len(answered)} skipped"
    st.markdown(f"Answered: **{len(answered)}** of {counted(joined, 'student')}{skipped}.")
    if choices and not room.has("shown", step):
        items = "".join(f"<li>{escape(choice)}</li>" for choice in choices)
        st.html(f'<ul data-testid="choices">{items}</ul>')
    elif room.has("shown", step) and not answered and not choices:
        st.caption("No votes yet. They appear here, on this screen, as students answer.")
    elif room.has("shown", step):
        is_revealed = room.has("revealed", step)
        if choices:
            rows = of_choices(answered, choices)
        else:
            rows = most_frequent(answered, ask.kind, tokens)
        right: dict[str, bool] = {}
        try:
            if ask.kind == "find":  # a contest: who found what is seen at once, with names
                st.html(_ranking(answered, answer))
                return
            if is_revealed:
                right = {label: _is_right(answer, value) for label, value, _ in rows}
        except (CaptureError, runs.Busy) as error:  # the votes stay; the next look asks again
            st.caption(escaped(str(error)))
        st.html(_table(rows, len(answered), right))
        if is_revealed:  # before, what a button opens would show the answer
            _ways_there(ask, rows)


def _is_right(answer: Callable[[Any], Answer], given: Any) -> bool:
    """True if an answer is right by the model's own pass over this text.

    One that is about another text is wrong.
    """
    try:
        return bool(answer(given).right)
    except ValueError:
        return False


def _ways_there(ask: Question, rows: Sequence[Row]) -> None:
    """Draw buttons that open what the votes speak of on the page below.

    That is a head, a token or, where the question is about a model without some part, this change of it.
    """
    links: list[tuple[str, Any]] = []
    if ask.kind in ("head", "token"):
        links = [(f"Open {label}", value) for label, value, _ in rows[:WAYS]]
    elif edit := dict(ask.given).get("edit"):
        links = [(f"Make this change: {edit}", edit)]
    if links:
        with st.container(horizontal=True, gap="small", key="wall_ways"):
            for label, value in links:
                key = f"wall_{label}"
                args = (ask.kind, value)
                st.button(escaped(label), type="tertiary", key=key, on_click=_open, args=args)


def _open(kind: str, value: Any) -> None:
    """Callback: have the page below show this value."""
    if kind == "head":
        state.open_head(*value)
    elif kind == "token":
        state.TOKEN.set(value)
    else:
        state.EDITS.set(value)
    address.ask_for_the_page()


def _table(rows: Sequence[Row], n_answered: int, right: dict[str, bool]) -> str:
    """Bars as a table that a screen reader reads; what is right is marked in words too."""
    lines = [(label, count) for label, _, count in rows]
    other_count = n_answered - sum(count for *_, count in rows)
    if other_count:
        lines.append(("other answers", other_count))
    longest = max(1, *(count for _, count in lines))
    rows_html = []
    for label, count in lines:
        kind = ""
        heading = escape(label)
        if right.get(label, False):
            kind = "right"
            heading += " ✓ right"
        width = f"{100 * count / longest:.0f}%"
        rows_html.append(
            f'<tr class="{kind}"><th scope="row">{heading}</th>'
            f'<td><i style="width:{width}"></i></td><td>{count}</td></tr>'
        )
    return f'<table class="gv-wall" data-testid="wall">{"".join(rows_html)}</table>'


def _ranking(votes: Sequence[Vote], answer: Callable[[Any], Answer]) -> str:
    """HTML of the class's finds, a row a pupil, the best first.

    Each find's score is worked out here, whatever a browser says of it.
    """
    rows: list[tuple[float, str, str]] = []
    for vote in votes:
        try:
            finding = answer(vote.answer)
        except ValueError as error:  # a hostile browser, or a text that this model cannot read
            rows.append((math.inf, vote.name, f"does not count: {error}"))
        else:
            rows.append(
                (math.inf if finding.score is None else -finding.score, vote.name, finding.said)
            )
    line = '<tr><th scope="row">{}</th><td>{}</td></tr>'
    cells = [line.format(escape(name), escape(sentence)) for _, name, sentence in sorted(rows)]
    return f'<table class="gv-ranking" data-testid="wall">{"".join(cells)}</table>'
