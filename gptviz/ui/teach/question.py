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
from gptviz.ui.teach import classroom, votes
from gptviz.ui.teach.classroom import Standing
from gptviz.ui.words import counted as counted_words, escaped, is_or_are

ANSWERS = "guide_answers"  # (guide, step) -> what was given; None where it was skipped
HINTS = "guide_hints"  # (guide, step) -> how many are shown
SHOWN_CIRCUIT = "gptviz_circuit"  # the text and the heads that "Circuit" shows, as they are written
NEXT_WORD = "next_word"  # the key whose answer stands behind the text
# keys whose answer is to be seen in the tokens or in the reach of a choice -> the keys of these on the page
HIDES = {"pieces": ("chips",), "token_count": ("chips",), "window_count": ("dw_window",)}
# keys whose answer the page says in a sentence that only explains -> a piece of that sentence
SAID_BY = {"hand_sum": "sum to 1", "hand_mirror": "need not be"}
# keys whose answer is worked out without the model, by hand or from the text
NOT_THE_MODELS = frozenset(
    [
        "after_character",
        "blind_loss",
        "hand_mirror",
        "hand_most",
        "hand_seen",
        "hand_sum",
        "hand_width",
        "last_target",
        "loss_of",
        "undivided",
        "window_count",
    ]
)
_OPENED = "guide_opened"  # the (guide, step) whose truth, a head, was opened
At = tuple[str | None, int]  # the guide's name, and the step from 0


def standing(at: At) -> Standing:
    """The state of the question of this step: answered or not, and whether its answer is told."""
    if at[0] == classroom.GUIDE:
        return classroom.standing(at[1])
    answers = st.session_state.setdefault(ANSWERS, {})
    return Standing(at in answers, answers.get(at), told=at in answers, open=at not in answers)


def counted(name: str, steps: Sequence[Step]) -> str:
    """How many of a guide's questions were answered in this session, skipped, or not reached, in words."""
    answers = st.session_state.get(ANSWERS, {})
    asks = [(name, number) for number, step in enumerate(steps) if step.ask is not None]
    answers_given = [answers[step_id] for step_id in asks if step_id in answers]
    skipped = sum(answer is None for answer in answers_given)
    answered = len(answers_given) - skipped
    left = len(asks) - len(answers_given)
    said = (
        f"You answered {answered} of {counted_words(len(asks), 'question')} and skipped {skipped}"
    )
    if left:
        return f"{said}. {left} {is_or_are(left)} still open."
    return f"{said}."


@per_run
def _answer(run: Run, question: str, position: int, given: Any, *arguments: Any) -> Answer:
    lm = runs.model(run)
    trace = runs.get(run, keys.sites(question, lm, position, given, *arguments))
    return KEYS[question][1](lm, trace, position, given, *arguments)


def ask(
    asked: Question,
    step: Step,
    at: At,
    found: Standing,
    lm: LanguageModel,
    key: str,
    about_text: bool,
) -> str | None:
    """Ask, or say what was answered and what is true. Gives the answer that the page must not tell yet, or None.

    `about_text`: the step's page is about the text. In presentation nothing else shows the text yet.
    """
    reading = prompt_box.read(lm, state.TEXT.value, state.SPECIAL.value)
    if not reading.ids:
        return None  # the page says why
    last = len(reading.ids) - 1
    token = state.TOKEN.value
    if token is None:
        position = last
    else:
        position = min(token, last)
    run = Run(key, tuple(reading.ids), changes.made(changes.found(lm, len(reading.ids))))

    def answer(given_answer: Any) -> Answer:
        arguments = keys.arguments(asked.key, asked.kind, asked.given)
        return _answer(run, asked.key, position, given_answer, *arguments)

    try:
        truth = answer(found.given if found.told else None)
    except (CannotAsk, CaptureError, runs.Busy, ValueError) as error:
        st.info(f"This cannot be asked here: {escaped(str(error))}.")
        return None
    asked = replace(asked, text=filled(asked.text, truth.facts))
    if found.told:
        st.caption(asked.text)  # what was asked stays, or nobody can talk about the answer
        _told(asked.key, found.given, truth, step.after, at)
    else:
        st.markdown(filled(step.text, truth.facts))
        member = classroom.member()
        may_vote = member is None or not member.teaches
        # as chips to be clicked, or on the page
        drawn_below = may_vote and asked.kind in ("token", "find")
        if about_text and state.PRESENT.value and not drawn_below:
            st.html(_text(lm.tokens(reading.ids), position, asked.key == NEXT_WORD))
        st.markdown(f"**{asked.text}**")
        if may_vote:
            st.fragment(_ballot)(asked, at, truth, run, position)
    if at[0] == classroom.GUIDE:
        choices: tuple[str, ...] = ()
        if asked.kind == "choice":
            choices = asked.options or truth.options
        votes.draw(at[1], asked, lm.tokens(run.ids), answer, choices)
    if found.told or asked.kind == "find":  # what is hunted for is found on the page itself
        return None
    return truth.shown


def _text(tokens: Sequence[Token], position: int, blank: bool) -> str:
    """The text as HTML, large; with a blank after `position`, where the guess of the next word goes."""
    before, after = (
        html.escape(
            b"".join(token.raw for token in tokens_of_part).decode("utf-8", "replace"), quote=False
        )
        for tokens_of_part in (tokens[: position + 1], tokens[position + 1 :])
    )
    gap = ""
    if blank:
        gap = '<span class="gv-blank" role="img" aria-label="blank"></span>'
    return f'<p class="gv-asked-text" data-testid="asked_text">{before}{gap}{after}</p>'


def _told(key: str, given: Any, answer: Answer, after: str, step_id: At) -> None:
    """Draw what was answered beside the truth, and the step's own sentences with this run's numbers."""
    if isinstance(answer.truth, tuple) and st.session_state.get(_OPENED) != step_id:
        state.open_head(*answer.truth)  # the head that is the truth is the one on the screen
        st.session_state[_OPENED] = step_id
    sentence = ""
    if given is not None:
        mark = ":material/close: "
        if answer.right:
            mark = ":material/check: "
        sentence = f"{mark}You said {answer.said}. "
    whose = "This model"
    if key in NOT_THE_MODELS:
        whose = "The answer"
    st.markdown(f"{sentence}{whose}: **{answer.shown}**.")
    facts = {"truth": answer.shown, "said": answer.said or "nothing"} | answer.facts
    st.markdown(filled(after, facts))


def _say(step_id: At, given: Any) -> None:
    """Callback: record this answer; None skips."""
    if step_id[0] == classroom.GUIDE:
        classroom.vote(step_id[1], given, st.session_state.get(HINTS, {}).get(step_id, 0))
    else:
        st.session_state[ANSWERS] = st.session_state.get(ANSWERS, {}) | {step_id: given}


def _ballot(ask: Question, step_id: At, truth: Answer, run: Run, position: int) -> None:
    """Draw the way to answer, with hints; it runs alone, so that thirty who answer at once do not wait."""
    status = standing(step_id)
    if status.told and address.is_fragment_run():
        st.rerun()
    classroom.say_wrong()
    tokens = runs.model(run).tokens(run.ids)
    if status.answered:
        answer = "nothing"
        if status.given is not None:
            answer = escaped(votes.shown(ask.kind, status.given, tokens))
        text = f":material/send: Sent: {answer}."
        if status.open:
            text += " You can still change your answer."
        st.markdown(text)
    if not status.open:
        st.markdown(":material/lock: The votes are locked.")
        return

    say = partial(_say, step_id)
    st.session_state.setdefault(HINTS, {})
    filled_in = _is_filled_in(ask, step_id)
    if ask.kind == "token":
        chips(tuple(tokens), truth.truth if filled_in else position, say, key="guide_chips")
    elif ask.kind == "head":
        _heads(run, truth.truth if filled_in else None, say)
    elif ask.kind == "find":
        _hand_in(ask, say)
    else:
        _form(ask, truth.options, step_id)
    _hints(ask, step_id, runs.model(run), truth)


def _box(step_id: At) -> str:
    """The key of the answer's input."""
    return f"guide_given_{step_id[0]}_{step_id[1]}"


def _form(ask: Question, options: tuple[str, ...], step_id: At) -> None:
    """Draw an input for the answer, and a button to send it."""
    name = f"guide_{step_id[0]}_{step_id[1]}"
    box_key = _box(step_id)

    def sent() -> None:
        value = st.session_state.get(box_key)
        if value not in (None, ""):
            _say(step_id, value[:60] if ask.kind == "word" else value)

    with (
        st.form(name, border=False),
        st.container(horizontal=True, vertical_alignment="bottom", gap="small"),
    ):
        options_of_box: Any = {"label_visibility": "collapsed", "key": box_key}
        if ask.kind == "choice":
            st.radio(ask.text, ask.options or options, index=None, **options_of_box)
        elif ask.kind == "word":
            st.text_input(ask.text, max_chars=60, width=260, **options_of_box)
        elif ask.between is not None:
            st.session_state.setdefault(box_key, sum(ask.between) // 2)
            st.slider(ask.text, *ask.between, width=420, **options_of_box)
        else:
            st.number_input(ask.text, value=None, width=160, **options_of_box)
        st.form_submit_button("That is my guess", type="primary", on_click=sent)


def _hand_in(ask: Question, say: Callable[[Any], None]) -> None:
    """Draw a button that hands in what is on the screen when it is pressed: the text, and its circuit or open
    head.
    """

    def on_screen() -> tuple[str, str] | None:
        block = state.BLOCK.value
        head = state.HEAD.value
        if block is None or head is None:
            open_head = ""
        else:
            open_head = f"{block}.{head}"
        if ask.key == "smallest_circuit":
            chosen = st.session_state.get("circuit")
            shown_text, shown = st.session_state.get(SHOWN_CIRCUIT, ("", None))
            is_counted = st.session_state.get("keep") is not None
            if chosen is None and is_counted and shown_text == state.TEXT.value:
                chosen = shown
        else:
            chosen = open_head
        if chosen:
            return (state.TEXT.value, str(chosen))
        return None

    def sent() -> None:
        if (finding := on_screen()) is not None:
            say(finding)

    if on_screen() is None:
        request = "Open a head"
        if ask.key == "smallest_circuit":
            request = "Choose the heads of your circuit"
        st.caption(f"{request} on the page below. Then hand in what your screen shows.")
    else:
        st.button(
            "Hand in what my screen shows", type="primary", key="guide_hand_in", on_click=sent
        )


def _heads(run: Run, chosen: Head | None, say: Callable[[Any], None]) -> None:
    """Draw every head, small and without a name, to be clicked."""
    lm = runs.model(run)
    picture, side = heads.thumbnails(run, mode_shown())
    unnamed = Thumbnail(kind="mixed", label=" ", says="What is it for?", write=0.0)
    grid = [[unnamed] * lm.config.n_heads for _ in range(lm.config.n_layers)]
    head_grid(
        picture, side, grid, chosen, lambda block, head: say((block, head)), key="guide_heads"
    )


def _is_filled_in(ask: Question, step_id: At) -> bool:
    """True if the last hint was asked for: then the answer is filled in. Never in a class."""
    return step_id[0] != classroom.GUIDE and 0 < len(ask.hints) <= st.session_state[HINTS].get(
        step_id, 0
    )


def _fill_in(ask: Question, step_id: At, lm: LanguageModel, truth: Answer) -> None:
    """Put the answer into its input, to be sent if it convinces. A token or head is chosen instead."""
    if ask.kind == "word":
        st.session_state[_box(step_id)] = lm.decode([truth.truth]).strip()
    elif ask.kind == "choice":
        st.session_state[_box(step_id)] = truth.shown
    elif ask.kind == "number":
        number = float(f"{truth.truth:.6g}")
        if ask.between is None:
            st.session_state[_box(step_id)] = number
        else:
            st.session_state[_box(step_id)] = round(number)


def _hints(ask: Question, step_id: At, lm: LanguageModel, truth: Answer) -> None:
    shown = st.session_state[HINTS].get(step_id, 0)
    if step_id[0] == classroom.GUIDE:
        truth_fact = {}
    else:
        truth_fact = {"truth": truth.shown}
    hints = [text for hint in ask.hints if (text := filled(hint, truth.facts | truth_fact))]
    for hint in hints[:shown]:
        st.caption(f":material/lightbulb: {hint}")

    def more() -> None:
        st.session_state[HINTS] = st.session_state[HINTS] | {step_id: shown + 1}
        if _is_filled_in(ask, step_id):
            _fill_in(ask, step_id, lm, truth)

    with st.container(horizontal=True, gap="small", key="guide_help"):
        if shown < len(hints):
            st.button("A hint", key="guide_hint", type="tertiary", on_click=more)
        label = "Show me"
        if step_id[0] == classroom.GUIDE:
            label = "Skip"
        st.button(label, key="guide_skip", type="tertiary", on_click=_say, args=(step_id, None))
