"""The guide bar: a step above the page, its question before the picture, the truth after the answer.

Guide and step stand in the address (`guide=tour&step=3`) beside everything else, so that a link opens a step.
A step's place (page, text, token, ...) is taken once, when the step is come to; what a person changes then
stays. What was answered is kept in the session.
"""

from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any

import streamlit as st

from gptviz import CaptureError, LanguageModel, Run
from gptviz.figures.theme import Mode
from gptviz.guides import Guide, GuideError, Question, Step, files, find, keys, read
from gptviz.guides.guide import filled
from gptviz.guides.keys import KEYS, Answer, CannotAsk
from gptviz.ui import heads, runs
from gptviz.ui.components.chips import chips
from gptviz.ui.components.guide_look import look_at
from gptviz.ui.components.heads import Thumbnail, head_grid
from gptviz.ui.runs import per_run
from gptviz.ui.shell import address, changes, state
from gptviz.ui.shell import prompt as prompt_box
from gptviz.ui.shell.navigation import PAGES, page_target
from gptviz.ui.shell.params import Param

_AT = "guide_at"  # in the session: the (guide, step) whose place was taken
ANSWERS = "guide_answers"  # (guide, step) -> what was given; None where it was skipped
_HINTS = "guide_hints"  # (guide, step) -> how many are shown
_OWN = "guide_own"  # the text of a guide that was opened as a file
OWN = "own"  # its name
_SAID = "guide_said"  # what the address said of both, or was to say, in the run before
_WRONG = "guide_wrong"  # why the file that was opened last is none


def current() -> tuple[Guide, int] | None:
    """The guide in hand and the number of its step, from 0; None where there is none or it cannot be read."""
    name = state.GUIDE.value
    if name is None:
        return None
    try:
        guide = _guide(name)
    except GuideError as error:
        st.warning(f"This guide cannot be opened: {error}")
        state.GUIDE.set(None)
        return None
    return guide, max(0, min(state.STEP.value, len(guide.steps)) - 1)


def _guide(name: str) -> Guide:
    """The guide of this name, or the one that this visitor has opened as a file; all of its pages exist."""
    if name == OWN and _OWN not in st.session_state:
        raise GuideError([(0, "a guide that was opened as a file stays with who opened it")])
    guide = read(st.session_state[_OWN]) if name == OWN else find(name)
    wrong = [step for step in guide.steps if step.page not in PAGES]
    if wrong:
        raise GuideError([(step.line, f"there is no page {step.page[:60]!r}") for step in wrong])
    return guide


def _leave() -> None:
    """Callback: out of the guide; the page stays as it is."""
    state.GUIDE.set(None)
    state.STEP.set(None)
    for key in (_AT, ANSWERS, _HINTS):  # who begins it again is asked again
        st.session_state.pop(key, None)
    address.ask_for_the_page()


def offers() -> None:
    """The tour as a large button, the other guides behind one, and a file of a teacher's own.

    Not on a projector, whose screen the pictures need: a guide that was begun before goes on there.
    """
    if state.GUIDE.value is not None or state.PRESENT.value:
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="guide_offers"):
        tour = _guide("tour")
        _link(f"{tour.title}, {tour.minutes} minutes", "tour", "tour", 1, tour.steps[0], "guide_tour")
        box = st.popover("Lessons", icon=":material/school:", key="guide_lessons", on_change="rerun")
        if box.open:
            with box:
                _lessons()


def _lessons() -> None:
    """Every guide but the tour, and a file of a teacher's own."""
    for name in [name for name in files() if name != "tour"]:
        try:
            guide = _guide(name)
        except GuideError as error:  # a teacher's own: it is said, and stops nobody else
            st.caption(f"{name}.md: {error}")
            continue
        label = f"**{guide.title}**, {guide.minutes} minutes: {guide.learnt}"
        _link(label, "arrow_forward", name, 1, guide.steps[0], f"guide_begin_{name}")
    st.file_uploader("A guide of your own", type="md", key="guide_file", on_change=_opened)
    if (wrong := st.session_state.get(_WRONG)) is not None:
        st.warning(wrong)


def _opened() -> None:
    """Callback: a guide was opened as a file, or why it is none."""
    file = st.session_state["guide_file"]
    st.session_state[_WRONG] = None
    if file is None:
        return
    try:
        text = file.getvalue().decode("utf-8", "replace")
        read(text)
    except GuideError as error:
        st.session_state[_WRONG] = f"This file is no guide. {error}"
    else:
        st.session_state[_OWN] = text
        st.session_state.pop(ANSWERS, None)
        state.GUIDE.set(OWN)
        state.STEP.set(1)


# ---- the step's place ----


def arrive(page: str, params: tuple[Param[Any], ...]) -> None:
    """Take the place of a step that is new: turn to its page, set its choices.

    What the address says of them already wins where it was opened so: a link may show another token.
    """
    said = st.query_params
    name, number = state.GUIDE.parse(said.get("guide", "")), state.STEP.parse(said.get("step", ""))
    if (name, number) != st.session_state.get(_SAID):  # a link was clicked, or the address changed by hand
        state.GUIDE.set(name)
        state.STEP.set(number)
    found = current()
    here = None if found is None else (state.GUIDE.value, found[1])
    st.session_state[_SAID] = (state.GUIDE.value, state.STEP.value)
    if found is None or st.session_state.get(_AT) == here:
        return
    step = found[0].steps[found[1]]
    if page != step.page and step.page in PAGES:
        st.switch_page(page_target(step.page), query_params=_query(state.GUIDE.value, found[1] + 1, step))
    known = {param.name: param for param in (*state.APP, *params)}
    fresh = _AT not in st.session_state or address.is_history_navigation()
    for name, value in step.place:
        if name in known:
            known[name].set(known[name].parse(said[name] if fresh and name in said else value))
    st.session_state[_AT] = here


def _query(name: str | None, number: int, step: Step) -> dict[str, str]:
    """The address of a step, from 1: what is in hand, with the step's place in it."""
    there = state.link() | dict(step.place) | {"guide": name or "", "step": str(number)}
    return {name: value for name, value in there.items() if value}


def _link(label: str, icon: str, name: str | None, number: int, step: Step, key: str, page: str = "") -> None:
    """A link to a step: one step of the browser's history, as `st.switch_page` is not.

    On the same `page` a button, as there the browser would keep its address.
    """
    with st.container(key=key, width="content"):
        if page == step.page:
            done: Any = {"type": "primary"} if key.endswith("done") else {}
            st.button(label, icon=f":material/{icon}:", on_click=state.STEP.set, args=(number,), **done)
            return
        query = _query(name, number, step)
        st.page_link(page_target(step.page), label=label, icon=f":material/{icon}:", query_params=query)


# ---- the bar ----


def draw(page: str, lm: LanguageModel, key: str, mode: Mode) -> bool:
    """Draw the bar; whether a question waits, so that the page must not show its picture yet."""
    found = current()
    if found is None:
        return False
    guide, number = found
    step, at = guide.steps[number], (state.GUIDE.value, number)
    answers = st.session_state.setdefault(ANSWERS, {})
    waits = step.ask is not None and at not in answers and page == step.page
    with st.container(key="gv_guide"):
        if step.until and not _is_done(step):  # what is done may be in a part of the page that runs alone
            st.fragment(run_every=1.0)(_way)(guide, number, step, page, False)
        else:
            _way(guide, number, step, page, at in answers)
        if page != step.page:
            label = f"This step is on the page {PAGES[step.page].title}: go there"
            _link(label, "arrow_forward", state.GUIDE.value, number + 1, step, "guide_there")
            return False
        if step.ask is None:
            st.markdown(step.after if step.until and _is_done(step) else step.text)
        else:
            waits = _asked(step, step.ask, at, lm, key, mode, waits)
    if step.look and not waits:
        look_at(step.look, mode)
    return waits


def _way(guide: Guide, number: int, step: Step, page: str, answered: bool) -> None:
    """Its heading, and the way back and on."""
    address.run_the_page_if_asked_for()
    done = answered if step.ask is not None else _is_done(step)
    if done and step.until and address.is_fragment_run():
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="guide_way"):
        st.markdown(f"**{step.heading}**", width="content")
        st.caption(f"{guide.title}, step {number + 1} of {len(guide.steps)}", width="content")
        with st.container(horizontal=True, gap="small", width="content", key="guide_buttons"):
            steps, name = guide.steps, state.GUIDE.value
            if number:
                _link("Back", "arrow_back", name, number, steps[number - 1], "guide_back", page)
            if number + 1 < len(steps):
                key = "guide_next_done" if done else "guide_next"
                _link("Next step", "arrow_forward", name, number + 2, steps[number + 1], key, page)
            leave = "Leave" if number + 1 < len(steps) else "Done"
            st.button(leave, icon=":material/close:", key="guide_leave", type="tertiary", on_click=_leave)


def _is_done(step: Step) -> bool:
    """Whether what the step asks to do is done: its `until` holds; "other" is anything but the step's own."""
    place = dict(step.place)
    for name, wanted in step.until:
        held = st.session_state.get(name)
        said = "" if held is None else str(held)
        same = said in (place.get(name, ""), "") if wanted == "other" else not fnmatch(said, wanted)
        if same:
            return False
    return True


# ---- its question ----


@per_run
def _answer(run: Run, question: str, position: int, given: Any, *arguments: Any) -> Answer:
    lm = runs.model(run)
    trace = runs.get(run, keys.sites(question, lm, position, given, *arguments))
    return KEYS[question][1](lm, trace, position, given, *arguments)


def _asked(
    step: Step, ask: Question, at: tuple[Any, int], lm: LanguageModel, key: str, mode: Mode, waits: bool
) -> bool:
    """Ask, or say what was answered and what is true; whether it still waits for an answer."""
    reading = prompt_box.read(lm, state.TEXT.value, state.SPECIAL.value)
    if not reading.ids:
        return False  # the page says why
    last, token = len(reading.ids) - 1, state.TOKEN.value
    position = last if token is None else min(token, last)
    run = Run(key, tuple(reading.ids), changes.made(changes.found(lm, len(reading.ids))))
    given = None if waits else st.session_state[ANSWERS][at]
    try:
        arguments = keys.arguments(ask.key, ask.kind, ask.given)
        answer = _answer(run, ask.key, position, given, *arguments)
    except (CannotAsk, CaptureError, runs.Busy, ValueError) as error:
        st.info(f"This cannot be asked here: {error}.")
        return False
    if not waits:
        _told(given, answer, step.after)
        return False
    st.markdown(filled(step.text, answer.facts))
    ask = replace(ask, text=filled(ask.text, answer.facts))
    st.markdown(f"**{ask.text}**")
    _ways(ask, answer, run, position, at, mode)
    _hints(ask, at, answer.truth)
    return True


def _told(given: Any, answer: Answer, after: str) -> None:
    """What was said beside what is true, and the step's own sentences with this run's numbers."""
    if given is not None:
        mark = ":material/check: " if answer.right else ":material/close: "
        st.markdown(f"{mark}You said {answer.said}. This model: **{answer.shown}**.")
    else:
        st.markdown(f"This model: **{answer.shown}**.")
    told = {"truth": answer.shown, "said": answer.said or "nothing"} | answer.facts
    st.markdown(filled(after, told))


def _say(at: tuple[Any, int], given: Any, truth: Any = None) -> None:
    """Callback: this is the answer; None skips. A head that is the `truth` is then the one on the screen."""
    if isinstance(truth, tuple):
        state.open_head(*truth)
    st.session_state[ANSWERS] = st.session_state.get(ANSWERS, {}) | {at: given}


def _ways(ask: Question, answer: Answer, run: Run, position: int, at: tuple[Any, int], mode: Mode) -> None:
    """The way to answer a question of this kind."""

    def say(given: Any) -> None:
        _say(at, given, answer.truth)

    name = f"guide_{at[0]}_{at[1]}"
    tokens = tuple(runs.model(run).tokens(run.ids))
    if ask.kind == "token":
        chips(tokens, position, mode, say, key="guide_chips")
        return
    if ask.kind == "head":
        _heads(run, say, mode)
        return
    given: Any
    with st.form(name, border=False), st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        hidden: Any = {"label_visibility": "collapsed"}
        if ask.kind == "choice":
            given = st.radio(ask.text, ask.options or answer.options, index=None, **hidden)
        elif ask.kind == "word":
            given = st.text_input(ask.text, max_chars=60, width=260, **hidden)
        else:
            given = st.number_input(ask.text, value=None, width=160, **hidden)
        sent = st.form_submit_button("That is my guess", type="primary")
    if sent and given not in (None, ""):
        say(given)
        st.rerun()


def _heads(run: Run, say: Callable[[Any], None], mode: Mode) -> None:
    """Every head, small and without a name, to be clicked."""
    lm = runs.model(run)
    picture, side = heads.thumbnails(run, mode)
    unnamed = Thumbnail(kind="mixed", label=" ", says="What is it for?", write=0.0)
    grid = [[unnamed] * lm.config.n_heads for _ in range(lm.config.n_layers)]
    head_grid(picture, side, grid, None, mode, lambda block, head: say((block, head)), key="guide_heads")


def _hints(ask: Question, at: tuple[Any, int], truth: Any) -> None:
    shown = st.session_state.setdefault(_HINTS, {}).get(at, 0)
    for hint in ask.hints[:shown]:
        st.caption(f":material/lightbulb: {hint}")
    with st.container(horizontal=True, gap="small", key="guide_help"):
        if shown < len(ask.hints):
            st.button("A hint", key="guide_hint", type="tertiary", on_click=_more, args=(at, shown + 1))
        st.button("Show me", key="guide_skip", type="tertiary", on_click=_say, args=(at, None, truth))


def _more(at: tuple[Any, int], shown: int) -> None:
    st.session_state[_HINTS] = st.session_state.get(_HINTS, {}) | {at: shown}
