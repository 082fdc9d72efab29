"""The guide bar: a step above the page, its question before the picture, the truth after the answer.

Guide and step stand in the address (`guide=tour&step=3`) beside everything else, so that a link opens a step.
A step's place (page, text, token, ...) is set once, when the step is reached; what a visitor changes then
stays.
"""

from fnmatch import fnmatch
from io import BytesIO
from typing import Any, Final, Literal

import streamlit as st

from gptviz import LanguageModel
from gptviz.teach.classroom import ClassError, Member
from gptviz.teach.guides import Guide, GuideError, Step, files, find, read
from gptviz.teach.guides.guide import LARGEST, Address
from gptviz.text.suggest import did_you_mean
from gptviz.ui.buttons import button
from gptviz.ui.components.guide_look import look_at
from gptviz.ui.models.budget import still_here
from gptviz.ui.shell import address, state
from gptviz.ui.shell.navigation import CLASS, PAGES, called, link as door, page_file, page_target
from gptviz.ui.shell.params import Param
from gptviz.ui.teach import classroom, cover, question
from gptviz.ui.words import capital, counted, escaped

_AT = "guide_at"  # in the session: the (guide, step) whose place was taken
_OWN = "guide_own"  # the text of a guide that was opened as a file
OWN = "own"  # its name
_GO = "guide_go"  # the page of the class is left for the step
_SAID = "guide_said"  # what the address said of both, or was to say, in the run before
# what may be seen of a page
Seen = Literal["all", "covered", "nothing"]
ALL: Final = "all"
COVERED: Final = "covered"
NOTHING: Final = "nothing"
_WRONG = "guide_wrong"  # why the file that was opened last is none


def current() -> tuple[Guide, int] | None:
    """The guide in hand and the number of its step, from 0; None if there is none or it cannot be read."""
    name = state.GUIDE.value
    if name is None:
        return None
    try:
        guide = _guide(name)
    except GuideError as error:
        st.warning(f"This guide cannot be opened: {escaped(str(error))}")
        state.GUIDE.set(None)
        return None
    return guide, max(0, min(state.STEP.value, len(guide.steps)) - 1)


def _guide(name: str) -> Guide:
    """The guide of this name, or the one that this visitor has opened as a file; all of its pages exist."""
    if name == OWN and _OWN not in st.session_state:
        raise GuideError(
            [(0, "it was opened as a file, and only that visitor has it: open the file here")]
        )
    if name == classroom.GUIDE and classroom.member() is None:
        raise GuideError(
            [(0, "it belongs to a class, and you are in none: join the class on the page Class")]
        )
    try:
        texts = {classroom.GUIDE: classroom.guide, OWN: lambda: str(st.session_state[_OWN])}
        if name in texts:
            guide = read(texts[name]())
        else:
            guide = find(name)
    except ClassError as error:
        raise GuideError([(0, str(error))]) from error
    checked(guide)
    return guide


def checked(guide: Guide) -> None:
    """Raises GuideError where a step names a page that does not exist."""
    steps_without_page = [step for step in guide.steps if step.page not in PAGES]
    if steps_without_page:
        raise GuideError(
            [
                (step.line, f"there is no page {step.page[:60]!r}{did_you_mean(step.page, PAGES)}")
                for step in steps_without_page
            ]
        )


def _leave() -> None:
    """Callback: leave the guide; the page stays as it is."""
    state.GUIDE.set(None)
    state.STEP.set(None)
    for key in (_AT, question.ANSWERS, question.HINTS):  # who begins it again is asked again
        st.session_state.pop(key, None)
    address.ask_for_the_page()


def offers() -> None:
    """Draw the tour as a large button, the other guides behind one, and a file of a teacher's own.

    Not on a projector, whose screen the pictures need: a guide that was begun before goes on there.
    """
    if state.GUIDE.value is not None or state.PRESENT.value:
        return
    with st.container(
        horizontal=True, gap="small", vertical_alignment="center", key="guide_offers"
    ):
        tour = _guide("tour")
        _link(
            f"{tour.title}, {counted(tour.minutes, 'minute')}",
            "tour",
            "tour",
            1,
            tour.steps[0],
            "guide_tour",
        )
        box = st.popover(
            "Lessons", icon=":material/school:", key="guide_lessons", on_change="rerun"
        )
        if box.open:
            with box:
                _lessons()
        door(CLASS, state.link(), label="Class", icon=":material/groups:", width="content")


def in_order() -> list[str]:
    """The names of all guides: the tour, the lessons by number, then what is no lesson."""
    return sorted(files(), key=lambda name: (name != "tour", not name.startswith("lesson"), name))


def _lessons() -> None:
    """Draw every guide but the tour, and an upload for a teacher's own."""
    for name in [name for name in in_order() if name != "tour"]:
        try:
            guide = _guide(name)
        except GuideError as error:  # a teacher's own: it is said, and stops nobody else
            st.caption(f"{escaped(name)}.md: {escaped(str(error))}")
            continue
        label = f"**{guide.title}**, {counted(guide.minutes, 'minute')}: {guide.learnt}"
        _link(label, "arrow_forward", name, 1, guide.steps[0], f"guide_begin_{name}")
    options: Any = {"type": "md", "key": "guide_file", "max_upload_size": 1}
    st.file_uploader("A guide of your own", on_change=_opened, **options)
    if (fault := st.session_state.get(_WRONG)) is not None:
        st.warning(escaped(fault))


def _opened() -> None:
    """Callback: take the guide that was opened as a file, or keep why it is none."""
    uploads = still_here("guide_file")
    st.session_state[_WRONG] = None
    if not uploads:
        return
    try:
        text = text_of(uploads[0])
        checked(read(text))
    except GuideError as error:
        st.session_state[_WRONG] = f"This file is not a guide. {capital(str(error))}"
    else:
        st.session_state[_OWN] = text
        st.session_state.pop(question.ANSWERS, None)
        state.GUIDE.set(OWN)
        state.STEP.set(1)


def text_of(sent: BytesIO) -> str:
    """The text of an uploaded guide, cut one byte above the limit: enough to see that it is too long."""
    return sent.getvalue()[: LARGEST + 1].decode("utf-8", "replace")


# ---- the step's place ----


def arrive(page: str, params: tuple[Param[Any], ...]) -> None:
    """Set the place of a step that is new: turn to its page, set its choices.

    Choices that the address has already win if the step was opened by it: a link may show another token. In a
    class everybody has the same place, and keeps it as long as its question is open.
    """
    query = st.query_params
    name = state.GUIDE.parse(query.get("guide", ""))
    number = state.STEP.parse(query.get("step", ""))
    # a link was clicked, or the address changed by hand
    if (name, number) != st.session_state.get(_SAID):
        state.GUIDE.set(name)
        state.STEP.set(number)
    member = classroom.lead()
    guide_and_number = current()
    if guide_and_number is None:
        step_id = None
    else:
        step_id = (state.GUIDE.value, guide_and_number[1])
    st.session_state[_SAID] = (state.GUIDE.value, state.STEP.value)
    if guide_and_number is None:
        return
    steps = guide_and_number[0].steps
    number = guide_and_number[1]
    step = steps[number]
    known = {param.name: param for param in (*state.APP, *params)}
    is_led = member is not None and state.GUIDE.value == classroom.GUIDE
    is_held = is_led and page == step.page and classroom.is_asking_all(number, step.ask)
    if st.session_state.get(_AT) == step_id and not is_held:
        return
    if page == CLASS and not (st.session_state.pop(_GO, False) or _is_brought(member)):
        return  # it says who is in the class, and where that is
    if page != step.page and step.page in PAGES:
        st.switch_page(
            page_target(step.page), query_params=_query(state.GUIDE.value, number + 1, step)
        )
    if member is not None and is_led:
        for param in state.MODEL:
            param.set(param.parse(member.room.model.get(param.name, "")))
    from_address = not is_led and (_AT not in st.session_state or address.is_history_navigation())
    for name, value in _in_class(steps[: number + 1]) if is_led else step.place:
        if name in known:
            known[name].set(
                known[name].parse(query[name] if from_address and name in query else value)
            )
    st.session_state[_AT] = step_id


def _in_class(steps: tuple[Step, ...]) -> Address:
    """The place of the last of these steps, with the text and model that earlier steps set."""
    carried = {"text": state.DEFAULT_TEXT}
    for step in steps:
        carried |= {
            name: value for name, value in step.place if name in ("text", "special", "model")
        }
    return tuple((carried | dict(steps[-1].place)).items())


def go() -> None:
    """Callback: from the page of the class to its step."""
    st.session_state[_GO] = True


def _is_brought(member: Member | None) -> bool:
    """True for a pupil of a class who has not been led to a step of a guide yet."""
    return member is not None and not member.teaches and _AT not in st.session_state


def step_link(number: int, step: Step, label: str, key: str) -> None:
    """A link to a step of the class's guide, from the page of the class."""
    _link(label, "arrow_forward", classroom.GUIDE, number + 1, step, key, CLASS)


def _query(name: str | None, number: int, step: Step) -> dict[str, str]:
    """The query of a step's link, from 1: the choices in hand, with the step's place in them."""
    parameters = state.link() | dict(step.place) | {"guide": name or "", "step": str(number)}
    return {name: value for name, value in parameters.items() if value}


def _link(
    label: str, icon: str, name: str | None, number: int, step: Step, key: str, page: str = ""
) -> None:
    """Draw a link to a step: it adds one step to the browser's history, as `st.switch_page` does not.

    On the same `page` it is a button, as the browser would keep its address there.
    """
    with st.container(key=key, width="content"):
        if page == step.page:
            done = key.endswith("done")
            button(label, f"{key}_go", _turn_to, number, icon=icon, primary=done)
            return
        query = _query(name, number, step)
        st.page_link(
            page_target(step.page), label=label, icon=f":material/{icon}:", query_params=query
        )


def _turn_to(number: int) -> None:
    """Callback: another step of the same page. The bar may run alone, so have the page run too."""
    state.STEP.set(number)
    address.ask_for_the_page()


# ---- the bar ----


def draw(page: str, lm: LanguageModel, key: str, about_text: bool) -> Seen:
    """Draw the bar, and say what may be seen of the page: COVERED while a question waits for its answer."""
    if classroom.draw_messages():
        return NOTHING
    guide_and_number = current()
    if guide_and_number is None:
        return ALL
    guide, number = guide_and_number
    step = guide.steps[number]
    step_id = (state.GUIDE.value, number)
    with st.container(key="gv_guide"):
        if step.ask is None:
            standing = None
        else:
            standing = question.standing(step_id)
        # what is done may be in a part of the page that runs alone
        if step.until and not _is_done(step):
            st.fragment(run_every=1.0)(_way)(guide, number, step, page, False)
        else:
            _way(guide, number, step, page, standing is not None and standing.told)
        if page != step.page:
            label = (
                f"This step is on the page {called(step.page, PAGES[step.page].title)}: go there"
            )
            _link(label, "arrow_forward", state.GUIDE.value, number + 1, step, "guide_there")
            is_led = state.GUIDE.value == classroom.GUIDE and page != CLASS
            # other pages show the answer, too
            if is_led and classroom.is_asking_all(number, step.ask):
                cover.begin(page_file(page), (), (), "", why=_why(standing))
                return COVERED
            return ALL
        hidden = None
        if standing is None or step.ask is None:
            st.markdown(step.after if step.until and _is_done(step) else step.text)
        else:
            hidden = question.ask(step.ask, step, step_id, standing, lm, key, about_text)
        if number and number + 1 == len(guide.steps) and step_id[0] not in (None, classroom.GUIDE):
            st.caption(question.counted(step_id[0], guide.steps))
    if step.ask is not None and hidden is not None:
        hides = question.HIDES.get(step.ask.key, ())
        said_by = question.SAID_BY.get(step.ask.key, "")
        cover.begin(page_file(page), step.shows, hides, hidden, said_by, _why(standing))
        return COVERED
    if step.look:
        look_at(step.look)
    return ALL


def _why(standing: classroom.Standing | None) -> str:
    """What has to happen before a covered page is seen, for who looks at it."""
    member = classroom.member()
    if member is not None and member.teaches:
        return cover.TEACHES
    if member is not None and standing is not None and standing.answered:
        return cover.WAIT
    return cover.WHY


def _way(guide: Guide, number: int, step: Step, page: str, answered: bool) -> None:
    """Draw the step's heading, and the way back and on."""
    address.run_the_page_if_asked_for()
    if step.ask is not None:
        done = answered
    else:
        done = _is_done(step)
    if done and step.until and address.is_fragment_run():
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="guide_way"):
        st.markdown(f"**{step.heading}**", width="content")
        st.caption(f"{guide.title}, step {number + 1} of {len(guide.steps)}", width="content")
        with st.container(horizontal=True, gap="small", width="content", key="guide_buttons"):
            steps = guide.steps
            name = state.GUIDE.value
            member = classroom.member()
            is_led = member is not None and not member.teaches and member.room.together
            if number and not is_led:
                _link("Back", "arrow_back", name, number, steps[number - 1], "guide_back", page)
            if number + 1 < len(steps) and not is_led:
                key = "guide_next"
                if done:
                    key = "guide_next_done"
                _link("Next step", "arrow_forward", name, number + 2, steps[number + 1], key, page)
            if name == classroom.GUIDE:
                door(CLASS, state.link(), label="Class", icon=":material/groups:", width="content")
            else:
                if name != OWN and member is None:
                    query = state.link()
                    hint = "Everybody predicts on a phone, and you reveal the answer."
                    door(CLASS, query, label="With a class", icon=":material/groups:", help=hint)
                label = "Done"
                if number + 1 < len(steps):
                    label = "Close"
                st.button(
                    label,
                    icon=":material/close:",
                    key="guide_leave",
                    type="tertiary",
                    on_click=_leave,
                )
    if name == classroom.GUIDE and member is not None and member.teaches:
        classroom.controls(number, step.ask is not None)


def _is_done(step: Step) -> bool:
    """True if the visitor did what the step asks for: every choice in its `until` is as it says.

    "other" is any choice but the step's own.
    """
    place = dict(step.place)
    for name, wanted in step.until:
        value = st.session_state.get(name)
        chosen = "" if value is None else str(value)
        if wanted == "other" and chosen in (place.get(name, ""), ""):
            return False
        if wanted != "other" and not fnmatch(chosen, wanted):
            return False
    return True
