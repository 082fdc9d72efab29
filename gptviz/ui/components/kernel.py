"""What every component stands on: its files, what it is given, and what it may send back.

A component is a folder with `name.js` and `name.css`; its own file finds kernel.js and saving.js imported as
`gv` (`code.py`). What the browser sends is checked here, once, against what the component was last drawn
with: anybody can send anything, and a late click may follow a shorter text. What does not fit is ignored.
"""

import base64
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from gptviz.figures.theme import Mode
from gptviz.tokenizer import well_formed
from gptviz.ui.components.code import javascript, stylesheet
from gptviz.ui.components.saved import Saved, stem

Limits = Mapping[str, Container[Any]]  # what may come, by the names that the checks use
Check = Callable[[Any, Limits], Any]  # (what came, the limits of the last drawing) -> the value, or Refused


class Refused(ValueError):
    """The browser sent what the component, as it was last drawn, does not offer."""


def among(name: str) -> Check:
    """A whole number or a word that is in the drawing's limits of that name: a range, a set, ..."""

    def check(value: Any, limits: Limits) -> int | str:
        if isinstance(value, bool) or not isinstance(value, int | str) or value not in limits[name]:
            raise Refused(f"{value!r} is not among the {name}")
        return value

    return check


def text(longest: int | None = None) -> Check:
    """A text, of so many characters at most; half a surrogate pair, which none can hold, becomes U+FFFD."""

    def check(value: Any, limits: Limits) -> str:
        if not isinstance(value, str) or (longest is not None and len(value) > longest):
            raise Refused(f"{value!r} is no text of at most {longest} characters")
        return well_formed(value)

    return check


def record(*optional: str, **fields: Check) -> Check:
    """An object of checked fields, as a dict; those in `optional` may be left out, but not all fields may."""

    def check(value: Any, limits: Limits) -> dict[str, Any]:
        if not isinstance(value, dict) or not value:
            raise Refused(f"{value!r} is no object with {', '.join(fields)}")
        unknown, missing = value.keys() - fields.keys(), fields.keys() - value.keys() - set(optional)
        if unknown or missing:
            raise Refused(f"{value!r} is no object with {', '.join(fields)}")
        return {name: fields[name](part, limits) for name, part in value.items()}

    return check


def exactly(expected: bool | str) -> Check:
    """This value and no other: an event that says only that it happened."""

    def check(value: Any, limits: Limits) -> bool | str:
        if type(value) is not type(expected) or value != expected:
            raise Refused(f"{value!r} is not {expected!r}")
        return expected

    return check


@dataclass(frozen=True)
class Component:
    """A declared component; a call draws it. See `component`."""

    name: str
    events: Mapping[str, Check]
    renderer: ComponentRenderer

    def __call__(
        self,
        key: str,
        data: Mapping[str, Any],
        *,
        mode: Mode,
        on: Mapping[str, Callable[[Any], Any]] | None = None,
        limits: Limits | None = None,
        saved: Saved | None = None,
    ) -> dict[str, Any]:
        """Draw it; `on[event](value)` runs before the rerun that the event causes, with a checked value.

        `limits` are what the checks of the events compare with. `saved` names and explains the file of a
        picture. Gives back the events, checked, that caused this run. Callbacks stay in the session until
        the next drawing: they must hold no Trace and nothing large.
        """
        on, limits = on or {}, limits or {}
        unknown = on.keys() - self.events.keys()
        if unknown:
            raise ValueError(
                f"{self.name} has no event {', '.join(sorted(unknown))}; it has {', '.join(self.events)}"
            )
        callbacks: dict[str, Any] = {
            f"on_{event}_change": self._callback(key, event, limits, on.get(event)) for event in self.events
        }
        words = (saved or Saved(stem(self.name))).data()
        result = self.renderer(key=key, data={"mode": mode, "saved": words, **data}, **callbacks)
        sent = {event: self.checked(event, result.get(event), limits) for event in self.events}
        return {event: value for event, value in sent.items() if value is not None}

    def checked(self, event: str, value: Any, limits: Limits) -> Any:
        """What came with an event, or None where it is nothing that the drawing offered."""
        try:
            return None if value is None else self.events[event](value, limits)
        except Refused:
            return None

    def _callback(
        self, key: str, event: str, limits: Limits, run: Callable[[Any], Any] | None
    ) -> Callable[[], None]:
        def changed() -> None:
            sent = st.session_state.get(key)  # None: it came late, when the page had been turned
            value = self.checked(event, getattr(sent, event, None), limits)
            if run is not None and value is not None:
                run(value)

        return changed


def packed(values: np.ndarray, kind: str = "<f4") -> str:
    """Numbers as the browser reads them fastest: their bytes, in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()


def component(name: str, **events: Check) -> Component:
    """Declare the component of components/`name`, and how each event that it sends is checked."""
    renderer = st.components.v2.component(f"gptviz.{name}", css=stylesheet(name), js=javascript(name))
    return Component(name, events, renderer)
