"""Params: everything that a visitor chooses, each with its one place in session, address and widget.

A Param's name is its key in the session, its parameter in the address and its widget's key. So a choice
can be made by a widget, by a click on a picture and by a link, and all of them are the same choice:

    BLOCK = Param("block", int, None, clamp=at_most_last)

    block = BLOCK.within(config.n_layers)      # what was chosen, made possible for this model
    BLOCK.widget(st.number_input, "Block")     # drawn: it shows the choice, and changes it
    BLOCK.set(3)                               # for callbacks

`load` takes the address into the session (at first, when the browser goes back, and what a link is
`choosing`), `store` writes the session into the address.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import streamlit as st

from gptviz.ui.shell import address

T = TypeVar("T")

_OF_THE_PAGE = "gptviz_params"  # in the session: the params of the page that was drawn last
_DRAWN = "gptviz_drawn"  # and of each param's widget, the page that drew it last
_LOADED = "gptviz_loaded"  # and the page that was loaded last
_CHOSEN = "chosen"  # in a link: the names of the choices that it makes

PRESENTED = 26 / 16  # how much larger type is at most while somebody presents, as in present.css
LARGEST = 10**6  # of a whole number in the address: beyond are only mistakes


def as_it_is(value: Any, _limit: Any) -> Any:
    """The value as it is: nothing makes this choice impossible."""
    return value


def at_most_last(value: int | None, count: int) -> int | None:
    """The value, at most the last of `count`: for tokens, blocks and heads."""
    if value is None:
        return None
    return min(value, count - 1)


def if_there(value: Any, limit: Any) -> Any:
    """The value if it is there, else None: one of 0 to `limit` - 1, or one of the values of `limit`."""
    if isinstance(limit, int):
        possible = range(limit)
    else:
        possible = limit
    if value in possible:
        return value
    return None


def between(value: Any, limits: tuple[Any, Any]) -> Any:
    """The value, or the nearer limit if it is beyond."""
    if value is None:
        return None
    return max(limits[0], min(value, limits[1]))


@dataclass(frozen=True, eq=False)
class Param(Generic[T]):
    """One choice. `default` holds until something is chosen; it is left out of the address.

    `kind` (int, float, str, bool) says how it stands in the address. `clamp(value, limit)` says what becomes
    of it where another model or text makes it impossible: see `within`. `once` is its name in older links.
    `first` is for a default that has changed since links were made: who opens an address that says nothing
    at all begins with it, and one that says something and not this goes on to mean `default`.
    """

    name: str
    kind: type[int] | type[float] | type[str] | type[bool]
    default: T
    clamp: Callable[[T, Any], T | None] = as_it_is
    once: str = ""
    first: T | None = None

    @property
    def value(self) -> T:
        """The choice of this session, or the default."""
        stored = st.session_state.get(self.name)
        if stored is None:
            return self.default
        return cast(T, stored)

    def set(self, value: T | None) -> None:
        """Choose, or with None take the choice back. Call it before the widget is drawn, or in a callback."""
        if value is None:
            st.session_state[self.name] = self.default
        else:
            st.session_state[self.name] = value

    def within(self, limit: Any) -> T:
        """The choice, made possible by `clamp` for this `limit`; the session then has it so as well."""
        possible = self.clamp(self.value, limit)
        if possible != self.value:
            self.set(possible)
        return self.value

    def said(self, there: Mapping[str, str]) -> str | None:
        """The choice as an address has it, by its name or its older one; None if it has neither."""
        return there.get(self.name, there.get(self.once or self.name))

    def unsaid(self, says_nothing: bool) -> T:
        """What an address means that does not have this choice, and perhaps no other."""
        if says_nothing and self.first is not None:
            return self.first
        return self.default

    def parse(self, text: str) -> T:
        """Read a parameter of the address; the default if it cannot be read."""
        parsed = _PARSERS[self.kind](text)
        if parsed is None:
            return self.default
        return cast(T, parsed)

    def written(self, value: T) -> str:
        """The text of the address that `parse` reads back."""
        if value is None:
            return ""
        if self.kind is not bool:
            return str(value)
        if value:
            return "on"
        return "off"

    def widget(self, draw: Callable[..., Any], label: str, **options: Any) -> T:
        """Draw the widget with this choice in it, and write it into the address, in a fragment too."""
        chosen = self.drawn(draw, label, **options)
        # a part of the page that runs alone says all that its callbacks changed, at once: each time that
        # the address is written is a step of the browser's history
        store(
            [self, *(st.session_state.get(_OF_THE_PAGE, ()) if address.is_fragment_run() else ())]
        )
        return chosen

    def choose(
        self,
        label: str,
        names: Mapping[Any, str] | Iterable[Any],
        draw: Callable[..., Any] | None = None,
        **options: Any,
    ) -> T:
        """Choose one of `names`, as they are called on the screen; drawn side by side, or by `draw`.

        A choice that is not among them is dropped.
        """
        if isinstance(names, Mapping):
            labels = dict(names)
        else:
            labels = {item: str(item) for item in names}
        self.within(labels)
        options = {"options": tuple(labels), "format_func": labels.__getitem__} | options
        if draw is None:
            return self.widget(st.segmented_control, label, required=True, **options)
        return self.widget(draw, label, **options)

    def number(
        self, draw: Callable[..., Any], label: str, least: Any, most: Any, **options: Any
    ) -> T:
        """Choose a number from `least` to `most`, as st.slider, st.number_input draw it."""
        self.within((least, most))
        return self.widget(draw, label, min_value=least, max_value=most, **options)

    def index(self, what: str, size: int | range, usual: int, empty: str, **options: Any) -> int:
        """Choose one of 0 to `size` - 1, or of a range, as a number; left empty it is the `usual` one, which
        `empty` describes ("5, the last").
        """
        self.within(size)
        if isinstance(size, int):
            positions = range(size)
        else:
            positions = size
        limits = {"min_value": positions[0], "max_value": positions[-1], "value": None, "step": 1}
        label = f"{what}, {positions[0]} to {positions[-1]:,}"
        chosen = self.widget(st.number_input, label, **limits, placeholder=empty, **options)
        if chosen is None:
            return usual
        return cast(int, chosen)

    def drawn(self, draw: Callable[..., Any], label: str, **options: Any) -> T:
        """Draw the widget with this choice in it; the caller writes the address.

        To Streamlit the same key is another widget on another page. There it would begin with its own
        default, the least of a slider, in place of the session's choice: so it is told the choice again.
        """
        drawn_on = st.session_state.setdefault(_DRAWN, {})
        page = address.page()
        if drawn_on.get(self.name) != page or st.session_state.get(self.name) is None:
            st.session_state[self.name] = self.value
            drawn_on[self.name] = page
        if isinstance(options.get("width"), int) and st.session_state.get("present"):
            options["width"] = round(PRESENTED * options["width"])  # type is larger there
        if draw is st.segmented_control:
            options = {"wrap": True} | options  # on a phone the last of them would be out of sight
        return cast(T, draw(label, key=self.name, persist_state="session", **options))


def load(params: Iterable[Param[Any]]) -> None:
    """Take the address into the session: params that it lacks, or all of them when the browser goes back.

    On the way from another page these are also the choices that the link is `choosing`. Call it once, at a
    page's beginning, with all params of the page and the app.
    """
    params = st.session_state[_OF_THE_PAGE] = tuple(params)
    goes_back = address.is_history_navigation()
    query = st.query_params.to_dict()
    chosen: list[str] = []
    # on the same page they were taken, and may be others by now
    if st.session_state.get(_LOADED) != address.page():
        chosen = query.get(_CHOSEN, "").split(",")
    st.session_state[_LOADED] = address.page()
    says_nothing = _says_nothing(query)
    for param in params:
        text = param.said(query)
        is_new = param.name not in st.session_state or param.name in chosen
        if text is not None and (goes_back or is_new):
            st.session_state[param.name] = param.parse(text)
        elif text is None and (goes_back or (is_new and param.first is not None)):
            st.session_state[param.name] = param.unsaid(says_nothing)


def store(params: Iterable[Param[Any]]) -> None:
    """Write what the session holds into the address; a default only where something else stood before."""
    # once: each look at it, or at the session, asks whose run this is
    query = st.query_params.to_dict()
    says_nothing = _says_nothing(query)
    changed = {}
    for param in params:
        value = param.value
        text_before = param.said(query)
        if text_before is None and value == param.unsaid(says_nothing):
            continue
        if (
            text_before is None
            or value != param.default
            or param.parse(text_before) != param.default
        ):
            changed[param.name] = param.written(value)
    if says_nothing and changed:
        # from now on the address says something, and what is first has to be said as well
        for param in st.session_state.get(_OF_THE_PAGE, ()):
            if param.first is not None and param.value != param.default:
                changed[param.name] = param.written(param.value)
    address.write(changed)


def in_link(
    params: Iterable[Param[Any]], values: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The query parameters that open these choices elsewhere; `values` replace ours.

    Defaults are left out, but for those that an empty address would not mean.
    """
    chosen = {param: (values or {}).get(param.name, param.value) for param in params}
    return {
        param.name: param.written(value)
        for param, value in chosen.items()
        if value != param.default or param.first is not None
    }


def _says_nothing(query: Mapping[str, str]) -> bool:
    """True if the address has none of the page's choices."""
    return all(param.said(query) is None for param in st.session_state.get(_OF_THE_PAGE, ()))


def choosing(values: Mapping[Param[Any], Any]) -> dict[str, str]:
    """The query parameters of a link that makes these choices, whatever the session has chosen before.

    Other parameters of a link say what the session has when the link is drawn, and only open it elsewhere.
    """
    chosen = {param.name: param.written(value) for param, value in values.items()}
    return chosen | {_CHOSEN: ",".join(chosen)}


def whole(text: str, largest: int = LARGEST) -> int | None:
    """A whole number of an address, below `largest`; None for everything else, however long."""
    # before `int`, which raises for more than 4,300 digits, zeros included
    digits = text.lstrip("0") or text[:1]
    is_short = digits.isascii() and digits.isdigit() and len(digits) <= len(str(largest))
    if is_short and int(digits) < largest:
        return int(digits)
    return None


def _number(text: str) -> float | None:
    plain = (
        text.isascii()
        and text.count(".") <= 1
        and text.replace(".", "").isdigit()
        and len(text) < 12
    )
    if plain:
        return float(text)
    return None


def _switch(text: str) -> bool | None:
    # "true" is what Streamlit's own binding wrote into older links
    return {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}.get(
        text.lower()
    )


_PARSERS: dict[Any, Callable[[str], Any]] = {
    int: whole,
    float: _number,
    str: lambda text: text or None,
    bool: _switch,
}
