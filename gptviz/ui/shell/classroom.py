"""Who this browser is in a class, and how the class leads it.

A browser keeps a secret in a cookie, by which a reload, a second tab and a server that was started again know
it. Everything else is in the database of `gptviz.classroom`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from gptviz.classroom import LOBBY, ClassError, Member, Room
from gptviz.guides import Question
from gptviz.ui.components.seat import COOKIE, seat
from gptviz.ui.shell import state
from gptviz.ui.words import escaped

if TYPE_CHECKING:
    from gptviz.classroom.classes import Classes

GUIDE = "class"  # what the guide of a class is called in the address
EVERY = 2.0  # seconds between two looks at what the teacher has done
_SECRET = "class_secret"  # in the session; "" for nobody
_MEMBER = "class_member"  # as the database said last
_STEP = "class_step"  # the step that this browser and the class were at last
_LEFT = "class_left"  # the secret that this browser gave up last
_WRONG = "class_wrong"  # why the last thing could not be done
ACTS = {
    "together": ("Everybody follows me", ":material/groups:"),
    "frozen": ("Screens stand still", ":material/front_hand:"),
    "locked": ("Votes locked", ":material/lock:"),
    "shown": ("Votes shown", ":material/bar_chart:"),
    "revealed": ("Truth told", ":material/visibility:"),
}
T = TypeVar("T")


@dataclass(frozen=True)
class Standing:
    """How it stands with a question: what was `given` (None: skipped) where it was `answered`; whether the
    truth may be `told`, and whether an answer is taken still."""

    answered: bool
    given: Any
    told: bool
    open: bool


@st.cache_resource(max_entries=1, show_spinner=False)
def classes() -> "Classes":
    """The classes of this server's database. Raises ClassError where it cannot be opened."""
    from gptviz.classroom.classes import Classes
    from gptviz.classroom.tables import open_database

    return Classes(open_database())


def secret() -> str:
    """This browser's secret, "" where it is in no class."""
    if _SECRET not in st.session_state:
        held = st.context.cookies.get(COOKIE)
        st.session_state[_SECRET] = held if isinstance(held, str) else ""
    return str(st.session_state[_SECRET])


def keep() -> None:
    """Have the browser keep its secret, or drop the one that it gave up, and take that of its address."""
    seat(secret(), st.session_state.get(_LEFT, ""), _taught)


def _taught(secret: str) -> None:
    """Callback: a teacher's own link was opened. One that steers nothing takes nobody's place."""
    steers = attempt(lambda: classes().member(secret) is not None)
    if steers:
        become(secret)
    elif steers is False:
        say("The class of this link has ended, or it never was one.")


def become(secret: str) -> None:
    """Have this browser be somebody else in a class, or with "" nobody."""
    if not secret:
        st.session_state[_LEFT] = st.session_state.get(_SECRET, "")
    st.session_state[_SECRET] = secret
    for key in (_STEP, _MEMBER):
        st.session_state.pop(key, None)
    if state.GUIDE.value == GUIDE:
        state.GUIDE.set(None)


def attempt(act: Callable[[], T]) -> T | None:
    """Return what this gives; None where it cannot be done, which `say_wrong` then says."""
    try:
        return act()
    except ClassError as error:
        say(str(error))
        return None


def say(wrong: str) -> None:
    """Have the next run say why something could not be done."""
    st.session_state[_WRONG] = wrong


def say_wrong() -> None:
    """Why the last thing could not be done, once."""
    if (wrong := st.session_state.pop(_WRONG, None)) is not None:
        st.warning(escaped(wrong))


def member() -> Member | None:
    """Return who this browser was when `look` was called last."""
    found: Member | None = st.session_state.get(_MEMBER)
    return found


def _me() -> Member:
    """The same, for who is in a class."""
    found = member()
    assert found is not None
    return found


def look() -> Member | None:
    """Return who this browser is in which class; as it was where the database does not answer."""
    if not secret():
        return None
    try:
        found = classes().member(secret())
    except ClassError as error:
        say(str(error))
        return member()
    if found is None:
        if member() is not None:
            say("The class has ended, or was left in another tab. What you see is yours to explore.")
        become("")
    else:
        st.session_state[_MEMBER] = found
    return found


def lead() -> Member | None:
    """Go to the class's step; where the teacher has turned to another, have the class follow."""
    found = look()
    if found is None or found.room.step == LOBBY:
        return found
    room, before, mine = found.room, st.session_state.get(_STEP), state.STEP.value - 1
    leads = found.teaches and room.together and before == room.step != mine
    if leads and state.GUIDE.value == GUIDE:
        attempt(lambda: classes().steer(secret(), step=max(0, mine)))
        look()
    elif room.together or state.GUIDE.value != GUIDE:
        mine = room.step
    state.GUIDE.set(GUIDE)
    state.STEP.set(mine + 1)
    st.session_state[_STEP] = mine
    return member()


def watch() -> bool:
    """Keep the browser's secret, and say what went wrong; whether its screen is to stand still."""
    found = member()
    say_wrong()
    if found is None:
        return False
    keep()
    if found.teaches or not found.room.frozen:
        return False
    st.info("Your teacher asks you to look up. It goes on in a moment, and nothing is lost.")
    return True


def has_moved() -> bool:
    """Return whether the class was steered since this browser looked last. Where nobody can tell, say so."""
    found = member()
    try:
        return found is not None and classes().news(found.room)[0] != found.room.steered
    except ClassError as error:
        st.caption(escaped(str(error)))
        return False


def guide() -> str:
    """The text of the class's guide, for who is in it."""
    return str(_guide_of(_me().room.id) or "")


@st.cache_resource(max_entries=50, show_spinner=False)  # a class never changes its guide
def _guide_of(room: int) -> str:
    return classes().guide(room)


def standing(number: int) -> Standing:
    """Return how it stands with the question of this step, for who is in a class."""
    found = _me()
    room = found.room
    told, shut = room.has("revealed", number), room.has("locked", number) or room.frozen
    if found.teaches:
        return Standing(False, None, told, False)
    mine = attempt(lambda: classes().votes(room, number, found.pupil))
    answered = bool(mine)
    given = mine[0].answer if mine else None
    told = told or (answered and not room.together)
    return Standing(answered, given, told, not (told or shut))


def holds(number: int, ask: Question | None) -> bool:
    """Return whether everybody follows to this step and its truth is not told: then all have the same run.

    What is hunted for is found elsewhere.
    """
    found = member()
    asks = ask is not None and ask.kind != "find"
    return asks and found is not None and found.room.together and not found.room.has("revealed", number)


def vote(number: int, given: Any, hints: int) -> None:
    """Callback: a pupil answers; where that is too late it is said."""
    attempt(lambda: classes().vote(_me(), number, given, hints))


def controls(number: int, asks: bool) -> None:
    """Draw what the teacher steers: all acts where the step asks something."""
    room = _me().room
    on = [act for act in ACTS if _is_on(room, act, number)]
    st.session_state["class_acts"] = on
    st.pills(
        "The class",
        [*ACTS] if asks else ["together", "frozen"],
        selection_mode="multi",
        format_func=lambda act: f"{ACTS[act][1]} {ACTS[act][0]}",
        key="class_acts",
        on_change=_steered,
        args=(number, on),
        label_visibility="collapsed",
    )


def _is_on(room: Room, act: str, number: int) -> bool:
    return bool(getattr(room, act)) if act in ("together", "frozen") else room.has(act, number)


def _steered(number: int, before: Iterable[str]) -> None:
    """Callback: the teacher has switched something. Who leads again takes the class along."""
    now = set(st.session_state["class_acts"])
    changed = now ^ set(before)
    acts: dict[str, Any] = {act: act in now for act in changed & {"together", "frozen"}}
    if acts.get("together"):
        acts["step"] = number
    if changed - {"together", "frozen"}:
        acts["marks"] = (number, sorted(now))
    attempt(lambda: classes().steer(secret(), **acts))


def doors() -> tuple[str, ...]:
    """The pages that a pupil's class sees; none for all."""
    found = member()
    return () if found is None or found.teaches else found.room.pages
