"""What every component stands on: its files, what it is given, and what it may send back.

A component is a folder with `name.js` and `name.css`; its own file finds kernel.js and saving.js imported as
`gv` (`code.py`). What the browser sends is checked here, once, against what the component was last drawn
with: a client can send anything, and a late click may follow a shorter text. What does not fit is ignored.
"""

import base64
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from gptviz.figures.theme import PALETTES, Mode
from gptviz.tokenizer import show_token, well_formed
from gptviz.tokenizer.characters import character_groups
from gptviz.ui.components.code import javascript
from gptviz.ui.components.saved import Saved, stem

COLOURS = len(PALETTES["light"].positions)  # of positions, in turn

Check = Callable[[Any], Any]  # what came -> the value, or Refused
Event = tuple[Check, Callable[[Any], Any] | None]  # and what runs with the value, before the rerun
On = Callable[[int], Any]  # what runs before the rerun that a click causes
Rows = Sequence[Mapping[str, Any]]
Elsewhere = Callable[[str, dict[str, Any]], None]  # a component's name, and its data

_elsewhere: ContextVar[tuple[Elsewhere, Mode] | None] = ContextVar("elsewhere", default=None)


class Refused(ValueError):
    """The browser sent what the component, as it was last drawn, does not offer."""


def among(values: Container[Any]) -> Check:
    """A whole number or a word that is one of these: a range, a set, ..."""

    def check(value: Any) -> int | str:
        if isinstance(value, bool) or not isinstance(value, int | str) or value not in values:
            raise Refused(f"{value!r} is not among {values}")
        return value

    return check


def text(longest: int | None = None) -> Check:
    """A text of at most `longest` characters; half a surrogate pair becomes U+FFFD."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or (longest is not None and len(value) > longest):
            raise Refused(f"{value!r} is no text of at most {longest} characters")
        return well_formed(value)

    return check


def record(*optional: str, **fields: Check) -> Check:
    """An object of checked fields, as a dict; those in `optional` may be left out, but not all fields may."""

    def check(value: Any) -> dict[str, Any]:
        needed = fields.keys() - set(optional)
        if not isinstance(value, dict) or not value or not needed <= value.keys() <= fields.keys():
            raise Refused(f"{value!r} is no object with {', '.join(fields)}")
        return {name: fields[name](part) for name, part in value.items()}

    return check


def parts(run: Callable[..., Any] | None, *optional: str, **fields: Check) -> Event:
    """An event of several fields: `run` gets them in this order, None for one that is left out."""
    if run is None:
        return record(*optional, **fields), None
    return record(*optional, **fields), lambda value: run(*map(value.get, fields))


def happened(value: Any) -> bool:
    """True and nothing else: an event that says only that it happened."""
    if value is not True:
        raise Refused(f"{value!r} is not True")
    return True


@dataclass(frozen=True)
class Component:
    """The component of components/`name`: a call draws it. The first call registers it with Streamlit."""

    name: str

    def __call__(
        self,
        key: str,
        data: Mapping[str, Any],
        on: Mapping[str, Event] = MappingProxyType({}),
        saved: Saved | None = None,
    ) -> dict[str, Any]:
        """Draw it, light or dark as the page is. `on[event]` is a check and a callback: it runs with a value
        that passes the check, before the rerun that the event causes.

        `saved` names and explains the file of a picture. Returns the events that caused this run.
        Callbacks stay in the session until the next drawing: they must hold no Trace and nothing large.
        """
        words = (saved or Saved(stem(self.name))).data()
        elsewhere = _elsewhere.get()
        if elsewhere is not None:
            draw, mode = elsewhere
            draw(self.name, {"mode": mode, "saved": words, **data})
            return {}
        import streamlit as st

        def changed(event: str) -> None:
            sent = st.session_state.get(key)  # None: it came late, when the page had been turned
            value = checked(on[event][0], getattr(sent, event, None))
            run = on[event][1]
            if run is not None and value is not None:
                run(value)

        callbacks: dict[str, Any] = {f"on_{event}_change": partial(changed, event) for event in on}
        sent_data = {"mode": mode_shown(), "saved": words, **data}
        result = _renderer(self.name)(key=key, data=sent_data, **callbacks)
        sent = {event: checked(check, result.get(event)) for event, (check, _) in on.items()}
        return {event: value for event, value in sent.items() if value is not None}


def mode_shown() -> Mode:
    """Light or dark, as the browser shows the page."""
    import streamlit as st

    if st.context.theme.type == "dark":
        return "dark"
    return "light"


@contextmanager
def elsewhere(draw: Elsewhere, mode: Mode) -> Iterator[None]:
    """Inside this block give components to `draw`, and not to Streamlit, which is then not needed at all."""
    token = _elsewhere.set((draw, mode))
    try:
        yield
    finally:
        _elsewhere.reset(token)


def drawn_elsewhere() -> bool:
    """Whether this is drawn for a file or a notebook, where a component is alone, with no page around it."""
    return _elsewhere.get() is not None


def checked(check: Check, value: Any) -> Any:
    """Check the value of an event; None if there is none, or if the drawing did not offer it."""
    try:
        if value is None:
            return None
        return check(value)
    except Refused:
        return None


def packed(values: np.ndarray, kind: str = "<f4") -> str:
    """Numbers as the browser reads them fastest: their bytes, in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()


def shared_characters(raws: Sequence[bytes]) -> list[tuple[int, int, str]]:
    """(first token, the one after the last, the character as shown) of tokens that share a character."""
    return [
        (group.start, group.stop, show_token(group.text.encode()))
        for group in character_groups(raws)
        if group.text is not None and len(group.positions) > 1
    ]


@cache
def _renderer(name: str) -> Callable[..., Any]:
    import streamlit as st

    return st.components.v2.component(f"gptviz.{name}", js=javascript(name))
