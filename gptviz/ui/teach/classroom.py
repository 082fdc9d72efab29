"""Who this browser is in a class, and how the class leads it through its guide.

A browser that is in a class keeps a secret in a cookie, by which it is known after a reload, in a second tab
and to a restarted server. If its user has a place in other classes, too, the cookie has their secrets after
the first. Everything else is in the database of `gptviz.teach.classroom`.

Words: a `Room` is a class as the database gives it, a `Member` a pupil or teacher in it. A `step` is one of
the class's guide, counted from 0 (in the address, `state.STEP`, from 1); a step may ask a question, so that
its number stands for the question, too.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from gptviz.teach.classroom import LOBBY, ClassError, Member, Room, written_code
from gptviz.teach.guides import Question
from gptviz.ui.buttons import button
from gptviz.ui.components.class_cookie import COOKIE, class_cookie
from gptviz.ui.shell import state
from gptviz.ui.words import escaped

if TYPE_CHECKING:
    from gptviz.teach.classroom.classes import Classes

GUIDE = "class"  # what the guide of a class is called in the address
EVERY = 2.0  # seconds between two looks at what the teacher has done
BETWEEN = "."  # stands between the secrets of a cookie, and in none of them
MOST_OTHERS = 3  # secrets of other classes that are kept beside the one in use

# Keys of the session.
_SECRET = "class_secret"  # the secret in use; "" in no class
_OTHERS = "class_others"  # the secrets of the browser's other classes, a list
# a teacher's secret from a link that was opened; `ask` asks before it is used
_OFFERED = "class_offered"
_MEMBER = "class_member"  # the Member that the database gave last
# the step that this browser was at last: the class's own only while it goes together
_STEP = "class_step"
_LEFT = "class_left"  # the cookie, all its secrets, as it was when this browser last left a class
_WRONG = "class_wrong"  # a sentence, until it is shown: why the last thing could not be done

# What the teacher can switch: its label and its icon. The first two are for the whole class, the others are
# marks of one step.
ACTS = {
    "together": ("Everybody follows me", ":material/groups:"),
    "frozen": ("Freeze screens", ":material/front_hand:"),
    "locked": ("Lock votes", ":material/lock:"),
    "shown": ("Show votes", ":material/bar_chart:"),
    "revealed": ("Reveal the answer", ":material/visibility:"),
}
OF_CLASS = ("together", "frozen")

GONE = (
    "You are no longer in the class: it has ended, you left it in another tab, or your teacher removed you. "
    "You can go on exploring alone."
)
T = TypeVar("T")


@dataclass(frozen=True)
class Standing:
    """The state of a step's question for whoever sits at this browser."""

    answered: bool  # an answer was given, or the question skipped
    given: Any  # the answer; None if it was skipped, or there is none yet
    told: bool  # the truth may be shown
    open: bool  # an answer is still taken


@st.cache_resource(max_entries=1, show_spinner=False)
def classes() -> "Classes":
    """The classes in this server's database. Raises ClassError if it cannot be opened."""
    from gptviz.teach.classroom.classes import Classes
    from gptviz.teach.classroom.tables import open_database

    return Classes(open_database())


def _read_cookie() -> None:
    """Take the secrets of the browser's cookie into the session, if that was not done yet."""
    if _SECRET in st.session_state:
        return
    cookie = st.context.cookies.get(COOKIE)
    if not isinstance(cookie, str):
        cookie = ""
    first, *other_secrets = cookie.split(BETWEEN)
    st.session_state[_SECRET] = first
    st.session_state.setdefault(_OTHERS, other_secrets[:MOST_OTHERS])


def secret() -> str:
    """This browser's secret in the class that it is in; "" if it is in none."""
    _read_cookie()
    return str(st.session_state[_SECRET])


def _others() -> list[str]:
    """The secrets of this browser's other classes."""
    _read_cookie()
    other_secrets: list[str] = st.session_state.setdefault(_OTHERS, [])
    return other_secrets


def _kept() -> str:
    """All secrets of this browser, joined as in its cookie: the one in use first."""
    return BETWEEN.join([secret(), *_others()])


def keep() -> None:
    """Have the browser keep its secrets in the cookie, or drop the cookie, and read a link's secret."""
    class_cookie(_kept(), st.session_state.get(_LEFT, ""), _taught)


def _taught(link: str) -> None:
    """Callback: a link with a teacher's secret was opened. A browser in another class is asked first."""
    members = attempt(lambda: (classes().member(link), classes().member(secret())))
    if members is None:
        return
    offered, current = members
    if offered is None or not offered.teaches:
        say("This link leads to no class. Perhaps the class has ended.")
    elif link != secret() and current is not None:
        st.session_state[_OFFERED] = link
    else:
        become(link)


def ask() -> None:
    """If a teacher's link was opened, draw the question whether to steer its class."""
    link = st.session_state.get(_OFFERED)
    if link is None:
        offered = None
    else:
        offered = attempt(lambda: classes().member(link))
    current = member()
    if offered is None or current is None:
        return
    with st.container(border=True, key="class_offer"):
        st.markdown(
            f"This link makes you the teacher of the class **{written_code(offered.room.code)}**. "
            f"Now you are {_named(current)}. You keep both places."
        )
        with st.container(horizontal=True):
            button("Steer that class", "class_offer_take", go_to, link, primary=True)
            button("Stay here", "class_offer_leave", _stay)


def _stay() -> None:
    """Callback: decline the class of the link."""
    st.session_state.pop(_OFFERED, None)


def _named(somebody: Member) -> str:
    """Name a member for a sentence: "**quiet otter** in the class KF7-M2Q", or "the teacher of …"."""
    if somebody.teaches:
        role = "the teacher of"
    else:
        role = f"**{somebody.name}** in"
    return f"{role} the class {written_code(somebody.room.code)}"


def go_to(other: str) -> None:
    """Callback: switch to another class, by the secret for it; the place in this one is kept."""
    _stay()
    current = secret()
    other_secrets = [saved for saved in _others() if saved != other]
    if current and current != other:
        other_secrets = [current, *other_secrets]
    become(other)
    st.session_state[_OTHERS] = other_secrets[:MOST_OTHERS]


def ways_back() -> None:
    """Draw a button for each other class that this browser has a place in."""
    for index, other in enumerate(_others()):
        membership = attempt(lambda other=other: classes().member(other))  # type: ignore[misc]
        if membership is not None:
            label = f"Go to the class {written_code(membership.room.code)}"
            button(label, f"class_back_{index}", go_to, other, icon="undo")


def become(new_secret: str) -> None:
    """Use another secret. With "" leave the class: use that of the browser's next class, or none."""
    if not new_secret:
        st.session_state[_LEFT] = _kept()
        other_secrets = _others()
        if other_secrets:
            new_secret = other_secrets[0]
        st.session_state[_OTHERS] = other_secrets[1:]
    st.session_state[_SECRET] = new_secret
    for key in (_STEP, _MEMBER):
        st.session_state.pop(key, None)
    if state.GUIDE.value == GUIDE:
        state.GUIDE.set(None)


def attempt(act: Callable[[], T]) -> T | None:
    """Call `act` and return its result; after a ClassError None, and keep its sentence for `say_wrong`."""
    try:
        return act()
    except ClassError as error:
        say(str(error))
        return None


def say(wrong: str) -> None:
    """Keep a sentence, why something could not be done, until `say_wrong` shows it."""
    st.session_state[_WRONG] = wrong


def say_wrong() -> None:
    """Show the sentence that `say` kept, once; nothing if there is none."""
    if (wrong := st.session_state.pop(_WRONG, None)) is not None:
        st.warning(escaped(wrong))


def member() -> Member | None:
    """The member that this browser was when `look` last read the database; None: in no class."""
    me: Member | None = st.session_state.get(_MEMBER)
    return me


def _me() -> Member:
    """The same, for code that runs inside a class only: never None."""
    me = member()
    assert me is not None
    return me


def look() -> Member | None:
    """Read from the database which member of which class this browser is; None: in no class.

    If the database does not answer, it is the member as last read.
    """
    if not secret():
        return None
    try:
        me = classes().member(secret())
    except ClassError as error:
        say(str(error))
        return member()
    if me is None:
        if member() is not None:
            say(GONE)
        become("")
        return look()  # `become` took the secret of another class of this browser, or none
    st.session_state[_MEMBER] = me
    return me


def lead() -> Member | None:
    """Have this browser follow the class's step, or the class follow its teacher's; return its member.

    A class that does not go together is only led into its guide, where everybody turns the steps alone.
    """
    me = look()
    if me is None or me.room.step == LOBBY:
        return me
    room = me.room
    last_step = st.session_state.get(_STEP)
    my_step = state.STEP.value - 1
    # the teacher was at the class's step, and has turned to another
    leads = me.teaches and room.together and last_step == room.step != my_step
    if leads and state.GUIDE.value == GUIDE:
        attempt(lambda: classes().steer(secret(), step=max(0, my_step)))
        look()
    elif room.together or state.GUIDE.value != GUIDE:
        my_step = room.step
    state.GUIDE.set(GUIDE)
    state.STEP.set(my_step + 1)
    st.session_state[_STEP] = my_step
    return member()


def draw_messages() -> bool:
    """Draw what this browser's user has to know of the class; True if the screen is to stand still.

    It may be what went wrong, a teacher's link, or that the teacher has frozen all screens. The cookie is
    kept, too.
    """
    me = member()
    say_wrong()
    if me is None:
        return False
    keep()
    ask()
    if me.teaches or not me.room.frozen:
        return False
    st.info("Please look at your teacher. You can go on in a moment, and nothing is lost.")
    return True


def has_moved() -> bool:
    """True if the teacher steered the class since this browser looked last.

    False, with a caption that says why, if the database does not answer.
    """
    me = member()
    try:
        if me is None:
            return False
        steered, _ = classes().news(me.room)
        return steered != me.room.steered
    except ClassError as error:
        st.caption(escaped(str(error)))
        return False


def guide() -> str:
    """The text of the guide of this browser's class; it must be in one."""
    return str(_guide_of(_me().room.id) or "")


@st.cache_resource(max_entries=50, show_spinner=False)  # a class never changes its guide
def _guide_of(class_id: int) -> str:
    return classes().guide(class_id)


def standing(step: int) -> Standing:
    """The state of this step's question for this browser's user, who is in a class.

    A teacher does not answer. A pupil is told the truth when the teacher reveals it; in a class that does not
    go together also after an answer.
    """
    me = _me()
    room = me.room
    told = room.has("revealed", step)
    if me.teaches:
        return Standing(answered=False, given=None, told=told, open=False)
    # one at most; None after an error
    my_votes = attempt(lambda: classes().votes(room, step, me.pupil))
    answered = bool(my_votes)
    answer = my_votes[0].answer if my_votes else None
    told = told or (answered and not room.together)
    closed = room.has("locked", step) or room.frozen
    return Standing(answered, answer, told, open=not (told or closed))


def is_asking_all(step: int, question: Question | None) -> bool:
    """True if the class goes together and the truth of this step's question is not revealed yet.

    As long as that is so, every member keeps the step's text, model and place, so that all answer about the
    same run. False for a hunt ("find"), whose answer has to be looked for on other pages.
    """
    me = member()
    asks = question is not None and question.kind != "find"
    return asks and me is not None and me.room.together and not me.room.has("revealed", step)


def vote(step: int, given: Any, hints: int) -> None:
    """Callback: record a pupil's answer to this step's question, or say why it does not count.

    `hints` is how many hints the pupil saw before.
    """
    attempt(lambda: classes().vote(_me(), step, given, hints))


def controls(step: int, asks: bool) -> None:
    """Draw the teacher's switches: all of them if the step asks something, else those of the whole class."""
    room = _me().room
    switched_on = [act for act in ACTS if _is_on(room, act, step)]
    # a key for each step: a browser that is slow may still send the switches of the step before
    key = f"class_acts_{step}"
    st.session_state[key] = switched_on
    st.pills(
        "The class",
        [*ACTS] if asks else [*OF_CLASS],
        selection_mode="multi",
        format_func=lambda act: f"{ACTS[act][1]} {ACTS[act][0]}",
        key=key,
        on_change=_steered,
        args=(step, switched_on),
        label_visibility="collapsed",
    )


def _is_on(room: Room, act: str, step: int) -> bool:
    """True if the teacher has switched this act on, for the class or for this step."""
    if act in OF_CLASS:
        return bool(getattr(room, act))
    return room.has(act, step)


def _steered(step: int, before: Iterable[str]) -> None:
    """Callback: the teacher has switched something. "together" also takes the class to this step."""
    switched_on = set(st.session_state[f"class_acts_{step}"])
    changed = switched_on ^ set(before)
    changes: dict[str, Any] = {act: act in switched_on for act in changed & set(OF_CLASS)}
    if changes.get("together"):
        changes["step"] = step
    if changed - set(OF_CLASS):
        changes["marks"] = (step, sorted(switched_on - set(OF_CLASS)))
    attempt(lambda: classes().steer(secret(), **changes))


def open_pages() -> tuple[str, ...]:
    """The names of the pages that this browser's class shows to its pupils; none if it may see all pages."""
    me = member()
    if me is None or me.teaches:
        return ()
    return me.room.pages
