"""The question of a guide's step: asked before its picture, then the prediction beside the truth.

What was answered is kept in the session, or for a pupil in the class.
"""

import html
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from gptviz import CaptureError, LanguageModel, Run
from gptviz.engine.tokens import Token
from gptviz.teach.guides import Question, Step, keys
from gptviz.teach.guides.answers import Answer, CannotAsk, Head
from gptviz.teach.guides.guide import filled
from gptviz.teach.guides.keys import KEYS
from gptviz.ui import heads, runs
from gptviz.ui.components.chips import chips
from gptviz.ui.components.heads import Thumbnail, head_grid
from gptviz.ui.components.kernel import mode_shown
from gptviz.ui.runs import per_run
from gptviz.ui.shell import address, changes, prompt as prompt_box, state
from gptviz.ui.teach import classroom, wall
from gptviz.ui.teach.classroom import Standing
from gptviz.ui.words import escaped

ANSWERS = "guide_answers"  # (guide, step) -> what was given; None where it was skipped
HINTS = "guide_hints"  # (guide, step) -> how many are shown
NEXT_WORD = "next_word"  # the key whose answer stands behind the text
_OPENED = "guide_opened"  # the (guide, step) whose truth, a head, was opened
At = tuple[str | None, int]  # the guide's name, and the step from 0


def standing(at: At) -> Standing:
    """The state of the question of this step: answered or not, and whether its answer is told."""
    if at[0] == classroom.GUIDE:
        return classroom.standing(at[1])
    answers = st.session_state.setdefault(ANSWERS, {})
    return Standing(at in answers, answers.get(at), told=at in answers, open=at not in answers)


def counted(name: str, steps: Sequence[Step]) -> str:
    """A sentence: how many of a guide's questions were answered in this session, or skipped."""
    answers = st.session_state.get(ANSWERS, {})
    asks = [(name, number) for number, step in enumerate(steps) if step.ask is not None]
    given = [answers[at] for at in asks if at in answers]
    skipped = sum(one is None for one in given)
    return f"You answered {len(given) - skipped} of {len(asks)} questions, and skipped {skipped}."


@per_run
def _answer(run: Run, question: str, position: int, given: Any, *arguments: Any) -> Answer:
    lm = runs.model(run)
    trace = runs.get(run, keys.sites(question, lm, position, given, *arguments))
    return KEYS[question][1](lm, trace, position, given, *arguments)


def ask(
    asked: Question, step: Step, at: At, found: Standing, lm: LanguageModel, key: str, about_text: bool
) -> bool:
    """Ask, or say what was answered and what is true; whether the picture still waits.

    `about_text`: the step's page is about the text. While somebody presents, nothing else shows that yet.
    """
    reading = prompt_box.read(lm, state.TEXT.value, state.SPECIAL.value)
    if not reading.ids:
        return False  # the page says why
    last = len(reading.ids) - 1
    token = state.TOKEN.value
    if token is None:
        position = last
    else:
        position = min(token, last)
    run = Run(key, tuple(reading.ids), changes.made(changes.found(lm, len(reading.ids))))

    def answer(given: Any) -> Answer:
        arguments = keys.arguments(asked.key, asked.kind, asked.given)
        return _answer(run, asked.key, position, given, *arguments)

    try:
        truth = answer(found.given if found.told else None)
    except (CannotAsk, CaptureError, runs.Busy, ValueError) as error:
        st.info(f"This cannot be asked here: {escaped(str(error))}.")
        return False
    asked = replace(asked, text=filled(asked.text, truth.facts))
    if found.told:
        st.caption(asked.text)  # what was asked stays, or nobody can talk about the answer
        _told(found.given, truth, step.after, at)
    else:
        st.markdown(filled(step.text, truth.facts))
        member = classroom.member()
        votes = member is None or not member.teaches
        drawn_below = votes and asked.kind in ("token", "find")  # as chips to be clicked, or on the page
        if about_text and state.PRESENT.value and not drawn_below:
            st.html(_text(lm.tokens(reading.ids), position, asked.key == NEXT_WORD))
        st.markdown(f"**{asked.text}**")
        if votes:
            st.fragment(_ballot)(asked, at, truth, run, position)
    if at[0] == classroom.GUIDE:
        wall.draw(at[1], asked, lm.tokens(run.ids), answer)
    return not found.told and asked.kind != "find"  # what is hunted for is found on the page itself


def _text(tokens: Sequence[Token], position: int, blank: bool) -> str:
    """The text as HTML, large; with a blank behind `position`, where the guess of the next word goes."""
    before, after = (
        html.escape(b"".join(token.raw for token in some).decode("utf-8", "replace"), quote=False)
        for some in (tokens[: position + 1], tokens[position + 1 :])
    )
    gap = ""
    if blank:
        gap = '<span class="gv-blank" role="img" aria-label="blank"></span>'
    return f'<p class="gv-asked-text" data-testid="asked_text">{before}{gap}{after}</p>'


def _told(given: Any, answer: Answer, after: str, at: At) -> None:
    """Draw what was said beside what is true, and the step's own sentences with this run's numbers."""
    if isinstance(answer.truth, tuple) and st.session_state.get(_OPENED) != at:
        state.open_head(*answer.truth)  # the head that is the truth is the one on the screen
        st.session_state[_OPENED] = at
    said = ""
    if given is not None:
        mark = ":material/close: "
        if answer.right:
            mark = ":material/check: "
        said = f"{mark}You said {answer.said}. "
    st.markdown(f"{said}This model: **{answer.shown}**.")
    told = {"truth": answer.shown, "said": answer.said or "nothing"} | answer.facts
    st.markdown(filled(after, told))


def _say(at: At, given: Any) -> None:
    """Callback: this is the answer; None skips."""
    if at[0] == classroom.GUIDE:
        classroom.vote(at[1], given, st.session_state.get(HINTS, {}).get(at, 0))
    else:
        st.session_state[ANSWERS] = st.session_state.get(ANSWERS, {}) | {at: given}


def _ballot(ask: Question, at: At, truth: Answer, run: Run, position: int) -> None:
    """The way to answer, with hints; it runs alone, so that thirty who answer at once do not wait."""
    status = standing(at)
    if status.told and address.is_fragment_run():
        st.rerun()
    classroom.say_wrong()
    tokens = runs.model(run).tokens(run.ids)
    if status.answered:
        answer = "nothing"
        if status.given is not None:
            answer = escaped(wall.shown(ask.kind, status.given, tokens))
        text = f":material/check: You said {answer}."
        if status.open:
            text += " You may still change your mind."
        st.markdown(text)
    if not status.open:
        st.markdown(":material/lock: The votes are locked.")
        return

    say = partial(_say, at)
    st.session_state.setdefault(HINTS, {})
    filled_in = _is_filled_in(ask, at)
    if ask.kind == "token":
        chips(tuple(tokens), truth.truth if filled_in else position, say, key="guide_chips")
    elif ask.kind == "head":
        _heads(run, truth.truth if filled_in else None, say)
    elif ask.kind == "find":
        _hand_in(ask, say)
    else:
        _form(ask, truth.options, at)
    _hints(ask, at, runs.model(run), truth)


def _box(at: At) -> str:
    """The key of the box that is typed into, or chosen in."""
    return f"guide_given_{at[0]}_{at[1]}"


def _form(ask: Question, options: tuple[str, ...], at: At) -> None:
    """Draw what is typed or chosen, and a button to say it."""
    name = f"guide_{at[0]}_{at[1]}"
    kept = _box(at)

    def sent() -> None:
        given = st.session_state.get(kept)
        if given not in (None, ""):
            _say(at, given[:60] if ask.kind == "word" else given)

    with st.form(name, border=False), st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        hidden: Any = {"label_visibility": "collapsed", "key": kept}
        if ask.kind == "choice":
            st.radio(ask.text, ask.options or options, index=None, **hidden)
        elif ask.kind == "word":
            st.text_input(ask.text, max_chars=60, width=260, **hidden)
        elif ask.between is not None:
            st.session_state.setdefault(kept, sum(ask.between) // 2)
            st.slider(ask.text, *ask.between, width=420, **hidden)
        else:
            st.number_input(ask.text, value=None, width=160, **hidden)
        st.form_submit_button("That is my guess", type="primary", on_click=sent)


def _hand_in(ask: Question, say: Callable[[Any], None]) -> None:
    """Hand in what is on the screen, as it is when the button is pressed: the text,
    and its circuit or open head.
    """

    def found() -> tuple[str, str] | None:
        block = state.BLOCK.value
        head = state.HEAD.value
        if block is None or head is None:
            one = ""
        else:
            one = f"{block}.{head}"
        if ask.key == "smallest_circuit":
            chosen = st.session_state.get("circuit")
        else:
            chosen = one
        if chosen:
            return (state.TEXT.value, str(chosen))
        return None

    def sent() -> None:
        if (one := found()) is not None:
            say(one)

    if found() is None:
        what = "Open a head"
        if ask.key == "smallest_circuit":
            what = "Choose the heads of your circuit"
        st.caption(f"{what} on the page below; then hand in what your screen shows.")
    else:
        st.button("Hand in what my screen shows", type="primary", key="guide_hand_in", on_click=sent)


def _heads(run: Run, chosen: Head | None, say: Callable[[Any], None]) -> None:
    """Every head, small and without a name, to be clicked."""
    lm = runs.model(run)
    picture, side = heads.thumbnails(run, mode_shown())
    unnamed = Thumbnail(kind="mixed", label=" ", says="What is it for?", write=0.0)
    grid = [[unnamed] * lm.config.n_heads for _ in range(lm.config.n_layers)]
    head_grid(picture, side, grid, chosen, lambda block, head: say((block, head)), key="guide_heads")


def _is_filled_in(ask: Question, at: At) -> bool:
    """True if the last hint was asked for: then the answer is filled in. Never in a class."""
    return at[0] != classroom.GUIDE and 0 < len(ask.hints) <= st.session_state[HINTS].get(at, 0)


def _fill_in(ask: Question, at: At, lm: LanguageModel, truth: Answer) -> None:
    """Put the answer into the box, to be sent by whom it convinces. A token or head is chosen instead."""
    if ask.kind == "word":
        st.session_state[_box(at)] = lm.decode([truth.truth]).strip()
    elif ask.kind == "choice":
        st.session_state[_box(at)] = truth.shown
    elif ask.kind == "number":
        number = float(f"{truth.truth:.6g}")
        if ask.between is None:
            st.session_state[_box(at)] = number
        else:
            st.session_state[_box(at)] = round(number)


def _hints(ask: Question, at: At, lm: LanguageModel, truth: Answer) -> None:
    shown = st.session_state[HINTS].get(at, 0)
    if at[0] == classroom.GUIDE:
        told = {}
    else:
        told = {"truth": truth.shown}
    hints = [said for hint in ask.hints if (said := filled(hint, truth.facts | told))]
    for hint in hints[:shown]:
        st.caption(f":material/lightbulb: {hint}")

    def more() -> None:
        st.session_state[HINTS] = st.session_state[HINTS] | {at: shown + 1}
        if _is_filled_in(ask, at):
            _fill_in(ask, at, lm, truth)

    with st.container(horizontal=True, gap="small", key="guide_help"):
        if shown < len(hints):
            st.button("A hint", key="guide_hint", type="tertiary", on_click=more)
        label = "Show me"
        if at[0] == classroom.GUIDE:
            label = "Skip"
        st.button(label, key="guide_skip", type="tertiary", on_click=_say, args=(at, None))
