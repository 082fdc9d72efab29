"""A class: join it by its code; or begin one, and see who is in it and what they have answered."""

import json
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from html import escape
from urllib.parse import urlsplit

import pandas as pd
import segno
import streamlit as st
from streamlit.net_util import get_internal_ip

from gptviz.teach import guides
from gptviz.teach.classroom import LOBBY, Member, Room, Vote, written_code
from gptviz.ui import sheet, words
from gptviz.ui.models.browsers import browser
from gptviz.ui.models.budget import still_here
from gptviz.ui.models.choice import UPLOAD
from gptviz.ui.shell import state
from gptviz.ui.shell.navigation import folder_of
from gptviz.ui.teach import classroom, guide as guide_bar

CODE = sheet.Param("code", str, "")  # of a class, in the link that pupils get
FILE = "class_file"  # a guide that a teacher brings
ALL = "All pages"
OF_GUIDE = "Only the lesson's pages"


def join() -> None:
    """Callback: this browser is a pupil."""
    address = st.context.ip_address
    code = str(st.session_state["class_code"])
    if found := classroom.attempt(lambda: classroom.classes().join(code, address, browser())):
        classroom.become(found)


def begin() -> None:
    """Callback: this browser is the teacher of a new class, with the model in hand."""
    name = st.session_state["class_guide"]
    own = still_here(FILE)
    if st.session_state.get(FILE) is not None and not own:
        classroom.say("Your guide is no longer here. Choose its file again.")
        return
    try:
        if own:
            text = guide_bar.text_of(own[0])
        else:
            text = guides.files()[name].read_text("utf-8", "replace")
        guide = guides.read(text)
        guide_bar.checked(guide)
    except guides.GuideError as error:
        classroom.say(f"This guide cannot be used. {error}")
        return
    if state.model().name.startswith(UPLOAD):
        classroom.say(
            "Only you can use a model that you opened as a file. Choose one that your students have, too."
        )
        return
    model = sheet.in_link(state.MODEL)
    if st.session_state["class_pages"] == OF_GUIDE:
        pages = sorted({step.page for step in guide.steps})
    else:
        pages = []
    address = st.context.ip_address
    if found := classroom.attempt(
        lambda: classroom.classes().begin(text, model, pages, browser(), address)
    ):
        classroom.become(found)


def remove() -> None:
    """Callback: the teacher takes a pupil out of the class."""
    name = st.session_state["class_removed"]
    if name is not None:
        classroom.attempt(lambda: classroom.classes().remove(classroom.secret(), name))


def leave(member: Member) -> None:
    """Callback: out of the class, with all that was answered; a teacher ends it for all."""

    def act() -> bool:
        classes = classroom.classes()
        if member.teaches:
            classes.end(classroom.secret())
        else:
            classes.leave(member)
        return True

    if classroom.attempt(act):  # else who teaches still does
        classroom.become("")


def origin() -> str:
    """The app's address as other machines reach it, with its folder if it has one.

    Also where this browser is on the server's own machine.
    """
    here = urlsplit(st.context.url or "http://localhost:8501")
    folder = folder_of(here.path)
    if here.hostname not in ("localhost", "127.0.0.1"):
        return f"{here.scheme}://{here.netloc}{folder}"
    return f"{here.scheme}://{get_internal_ip() or here.hostname}:{here.port or 80}{folder}"


def answers(votes: list[Vote], guide: guides.Guide) -> str:
    """All answers as CSV. What was given is JSON: no spreadsheet takes a pupil's word for a formula."""
    columns = "step heading pupil answer first_answer changes hints skipped time"
    rows = []
    for vote in votes:
        when = datetime.fromtimestamp(vote.at, UTC).isoformat(timespec="seconds")
        given = json.dumps(vote.given, ensure_ascii=False)
        first = json.dumps(vote.first, ensure_ascii=False)
        heading = ""
        if vote.step < len(guide.steps):
            heading = guide.steps[vote.step].heading
        place = (vote.step + 1, heading, vote.name)
        skipped = vote.given is None
        rows.append((*place, given, first, vote.changes, vote.hints, skipped, when))
    return pd.DataFrame(rows, columns=columns.split()).to_csv(index=False, lineterminator="\r\n")


def nobody() -> None:
    """Two ways into a class."""
    with st.container(horizontal=True, gap="large"):
        with st.form("class_join", width=360):
            st.subheader("I am a student", anchor=False)
            st.markdown(
                "Enter the code from your teacher's screen. The app gives you a name; nobody asks for "
                "yours."
            )
            st.session_state.setdefault("class_code", CODE.value)
            st.text_input("Code", key="class_code", max_chars=20, placeholder="for example KF7-M2Q")
            st.form_submit_button("Join", type="primary", on_click=join)
        with st.form("class_new", width=540):
            st.subheader("I teach", anchor=False)
            st.markdown(
                "Show the code on the projector. At each question everybody predicts alone; then you "
                "reveal what the model does."
            )
            called = titles()
            if state.GUIDE.value in called:  # who comes from a lesson wants this one
                st.session_state.setdefault("class_guide", state.GUIDE.value)
            st.selectbox("Lesson", [*called], format_func=called.__getitem__, key="class_guide")
            st.file_uploader(
                "Or a lesson of your own, as a file", type="md", key=FILE, max_upload_size=1
            )
            st.segmented_control(
                "Students see", [ALL, OF_GUIDE], default=ALL, required=True, key="class_pages"
            )
            st.caption(f"Model: {words.escaped(frame.lm.name)}. The class ends after a day.")
            st.form_submit_button("Begin a class", type="primary", on_click=begin)


def titles() -> dict[str, str]:
    """Every guide's title and minutes, by its name, the tour first; a broken one's file name."""
    found = {}
    for name in guide_bar.in_order():
        found[name] = f"{name}.md"
        with suppress(guides.GuideError):
            guide = guides.find(name)
            if guide.minutes:
                found[name] = f"{guide.title}, {words.counted(guide.minutes, 'minute')}"
            else:
                found[name] = guide.title
    return found


def pupil(member: Member) -> None:
    """Draw who this browser is, and the way out."""
    st.markdown(f"You are **{member.name}** in the class {written_code(member.room.code)}.")
    if member.room.step == LOBBY:
        st.markdown(
            "When your teacher starts, this page moves on by itself. You can explore while you wait."
        )
    st.button("Leave the class", on_click=leave, args=(member,), help="This deletes your answers.")


def teacher(member: Member) -> None:
    """Draw what stands on the projector: the code and its picture, who is there; the steps,
    and the way on.
    """
    room = member.room
    guide = guides.read(classroom.guide())
    votes = classroom.attempt(lambda: classroom.classes().votes(room)) or []
    link = f"{origin()}/class?code={room.code}"
    with st.container(horizontal=True, gap="large"):
        with st.container(width="content"):
            picture = segno.make(link, error="m").svg_data_uri(scale=8, dark="#000", light="#fff")
            st.html(
                f'<img alt="QR code of {escape(link)}" width="320" height="320" src="{picture}">'
            )
            st.markdown(f"Code of **{words.escaped(guide.title)}**")
            st.html(f'<p class="gv-code" data-testid="code">{written_code(room.code)}</p>')
            st.markdown(f"<{link}>")
        with st.container(width="stretch"):
            st.fragment(run_every=2.0)(gathered)(room)
            if room.step == LOBBY:
                first = guide.steps[0].heading
                st.button(
                    f"Begin with step 1: {first}", type="primary", key="class_start", on_click=start
                )
            if room.together:
                st.caption("Go to a step; the class comes along:")
            steps(votes, guide)
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "Answers as CSV", answers(votes, guide), "gptviz_class.csv", key="class_csv"
        )
        if not state.PRESENT.value:  # the room would see it
            own = st.popover("Your secret link", key="class_own", on_change="rerun")
            if own.open:  # only then is it on the page at all
                own.markdown("Whoever has this link steers the class. Keep it to yourself.")
                own.code(f"{origin()}/class#teach={classroom.secret()}")
        out = st.popover("Remove a student", key="class_out", on_change="rerun")
        if out.open:
            with out:
                names = classroom.attempt(lambda: classroom.classes().names(room)) or []
                st.selectbox(
                    "Student", names, index=None, placeholder="choose a name", key="class_removed"
                )
                st.markdown("This deletes all answers of this student.")
                st.button(
                    "Remove from the class", type="primary", key="class_remove", on_click=remove
                )
        with st.popover("End the class", key="class_end"):
            st.markdown("This deletes everybody's answers.")
            st.button(
                "End it now", type="primary", key="class_end_now", on_click=leave, args=(member,)
            )


def start() -> None:
    """Callback: on with the first step, for everybody."""
    classroom.attempt(lambda: classroom.classes().steer(classroom.secret(), step=0))
    guide_bar.go()


def gathered(room: Room) -> None:
    """Draw who has joined; it looks again by itself."""
    names = classroom.attempt(lambda: classroom.classes().names(room))
    classroom.say_wrong()
    if names is not None:
        have = "has" if len(names) == 1 else "have"
        st.markdown(f"**{words.counted(len(names), 'student')}** {have} joined.")
        st.html("".join(f'<span class="gv-pupil">{name}</span>' for name in names) or "&nbsp;")


def steps(votes: list[Vote], guide: guides.Guide) -> None:
    """The guide's steps, each with how many have answered it, and a click that leads there."""
    said = Counter(vote.step for vote in votes if vote.given is not None)
    with st.container(gap=None):
        for number, step in enumerate(guide.steps):
            count = ""
            if step.ask is not None:
                count = f" · {words.counted(said[number], 'answer')}"
            guide_bar.step_link(
                number, step, f"{number + 1}. {step.heading}{count}", f"class_step_{number}"
            )


frame = sheet.start_page("Class", choices=[CODE], reads_text=False)
member = classroom.member()
classroom.say_wrong()
if member is None:
    classroom.keep()
    nobody()
elif member.teaches:
    teacher(member)
    classroom.ways_back()
else:
    pupil(member)
    classroom.ways_back()
