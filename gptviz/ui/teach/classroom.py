"""Who this browser is in a class, and how the class leads it.

A browser keeps a secret in a cookie, by which a reload, a second tab and a server that was started again know
it. Behind it stand those of other classes that its person is in, too. Everything else is in the database of
`gptviz.teach.classroom`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from gptviz.teach.classroom import LOBBY, ClassError, Member, Room, written_code
from gptviz.teach.guides import Question
from gptviz.ui.buttons import button
from gptviz.ui.components.seat import COOKIE, seat
from gptviz.ui.shell import state
from gptviz.ui.words import escaped

if TYPE_CHECKING:
    from gptviz.teach.classroom.classes import Classes

GUIDE = "class"  # what the guide of a class is called in the address
EVERY = 2.0  # seconds between two looks at what the teacher has done
_SECRET = "class_secret"  # in the session; "" for nobody
_OTHERS = "class_others"  # the secrets of other classes, which the browser keeps as well
_OFFERED = "class_offered"  # a teacher's secret of a link: its person is asked before it is taken
MOST_OTHERS = 3
BETWEEN = "."  # stands between the secrets of a cookie, and in none of them
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
GONE = (
    "The class has ended, was left in another tab, or your teacher has taken you out. What you see is yours "
    "to explore."
)
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
    from gptviz.teach.classroom.classes import Classes
    from gptviz.teach.classroom.tables import open_database

    return Classes(open_database())


def secret() -> str:
    """This browser's secret, "" where it is in no class."""
    if _SECRET not in st.session_state:
        held = st.context.cookies.get(COOKIE)
        first, *others = (held if isinstance(held, str) else "").split(BETWEEN)
        st.session_state[_SECRET] = first
        st.session_state.setdefault(_OTHERS, others[:MOST_OTHERS])
    return str(st.session_state[_SECRET])


def _others() -> list[str]:
    """The secrets of this browser's other classes."""
    secret()
    found: list[str] = st.session_state.setdefault(_OTHERS, [])
    return found


def _kept() -> str:
    """All secrets of this browser, as its cookie holds them."""
    return BETWEEN.join([secret(), *_others()])


def keep() -> None:
    """Have the browser keep its secrets, or drop the one that it gave up, and take that of its address."""
    seat(_kept(), st.session_state.get(_LEFT, ""), _taught)


def _taught(link: str) -> None:
    """Callback: a link with a teacher's secret was opened. Who has a seat is asked before it is taken."""
    found = attempt(lambda: (classes().member(link), classes().member(secret())))
    if found is None:
        return
    offered, own = found
    if offered is None or not offered.teaches:
        say("The class of this link has ended, or it never was one.")
    elif link != secret() and own is not None:
        st.session_state[_OFFERED] = link
    else:
        become(link)


def ask() -> None:
    """Draw the question whether the class of a link is to be steered, where one was opened."""
    link = st.session_state.get(_OFFERED)
    if link is None:
        found = None
    else:
        found = attempt(lambda: classes().member(link))
    own = member()
    if found is None or own is None:
        return
    with st.container(border=True, key="class_offer"):
        st.markdown(
            f"This link steers the class **{written_code(found.room.code)}**: you would be its teacher. "
            f"You are {_named(own)}. Both places are kept."
        )
        with st.container(horizontal=True):
            button("Steer that class", "class_offer_take", go_to, link, primary=True)
            button("Stay here", "class_offer_leave", _stay)


def _stay() -> None:
    """Callback: the class of the link is not taken."""
    st.session_state.pop(_OFFERED, None)


def _named(somebody: Member) -> str:
    """A member in a sentence: "**quiet otter** in the class KF7-M2Q"."""
    if somebody.teaches:
        who = "the teacher of"
    else:
        who = f"**{somebody.name}** in"
    return f"{who} the class {written_code(somebody.room.code)}"


def go_to(other: str) -> None:
    """Callback: on with another class; the place in this one is kept beside it."""
    _stay()
    own = secret()
    others = [one for one in _others() if one != other]
    if own and own != other:
        others = [own, *others]
    become(other)
    st.session_state[_OTHERS] = others[:MOST_OTHERS]


def ways_back() -> None:
    """Draw a button for each other class that this browser has a place in."""
    for number, other in enumerate(_others()):
        found = attempt(lambda other=other: classes().member(other))  # type: ignore[misc]
        if found is not None:
            label = f"Go to the class {written_code(found.room.code)}"
            button(label, f"class_back_{number}", go_to, other, icon="undo")


def become(secret: str) -> None:
    """Have this browser be somebody else in a class, or with "" whoever it was beside that, or nobody."""
    if not secret:
        st.session_state[_LEFT] = _kept()
        others = _others()
        secret = others[0] if others else ""
        st.session_state[_OTHERS] = others[1:]
    st.session_state[_SECRET] = secret
    for key in (_STEP, _MEMBER):
        st.session_state.pop(key, None)
    if state.GUIDE.value == GUIDE:
        state.GUIDE.set(None)


def attempt(act: Callable[[], T]) -> T | None:
    """Call `act` and give its result; after a ClassError None, and `say_wrong` says why."""
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
    """The member of a class that this browser was when `look` was called last; None for nobody."""
    found: Member | None = st.session_state.get(_MEMBER)
    return found


def _me() -> Member:
    """The same, for who is in a class."""
    found = member()
    assert found is not None
    return found


def look() -> Member | None:
    """Read from the database which member of which class this browser is; None for nobody.

    If the database does not answer, it is who it was before.
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
        return look()  # as who it was beside that
    st.session_state[_MEMBER] = me
    return me


def lead() -> Member | None:
    """Go to the class's step; where the teacher has turned to another, have the class follow."""
    found = look()
    if found is None or found.room.step == LOBBY:
        return found
    room = found.room
    before = st.session_state.get(_STEP)
    mine = state.STEP.value - 1
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
    ask()
    if found.teaches or not found.room.frozen:
        return False
    st.info("Your teacher asks you to look up. It goes on in a moment, and nothing is lost.")
    return True


def has_moved() -> bool:
    """True if the teacher steered the class since this browser looked last.

    False, with a caption that says why, if the database does not answer.
    """
    me = member()
    try:
        return me is not None and classes().news(me.room)[0] != me.room.steered
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
    """The state of the question of this step for this browser's member of a class."""
    me = _me()
    room = me.room
    told = room.has("revealed", number)
    shut = room.has("locked", number) or room.frozen
    if me.teaches:
        return Standing(False, None, told, False)
    mine = attempt(lambda: classes().votes(room, number, me.pupil))
    answered = bool(mine)
    given = mine[0].answer if mine else None
    told = told or (answered and not room.together)
    return Standing(answered, given, told, not (told or shut))


def holds(number: int, ask: Question | None) -> bool:
    """True if the class follows the teacher to this step and the answer is not told yet.

    Then all have the same run. False for a hunt ("find"), whose answer is found on other pages.
    """
    me = member()
    asks = ask is not None and ask.kind != "find"
    return asks and me is not None and me.room.together and not me.room.has("revealed", number)


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
    if act in ("together", "frozen"):
        return bool(getattr(room, act))
    return room.has(act, number)


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
    if found is None or found.teaches:
        return ()
    return found.room.pages
