"""The one prompt, model and selected token of a session, and their place in the address.

The session holds them, so that they follow from page to page. The address shows them, so that a
reload and a link open the same thing: ?text=...&token=5&model=...&special=on
(and what else says how to read the model: see `model_choice`). When the browser goes
back or forward, the address wins.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import streamlit as st

from gptviz.ui.models.choice import Choice, choice_from, params_of
from gptviz.ui.shell import address

DEFAULT_TEXT = "Seven green parrots sang behind the old mill. Seven green parrots sang behind the old"

# A longer address is refused by the server: 64 KiB, and a character takes up to 12 bytes there.
LINK_CHARACTERS = 5000

DEFAULT_MODEL = Choice()

_KEY = "gptviz_prompt"


@dataclass(frozen=True)
class Prompt:
    """What a person has chosen. `token` is None as long as nobody has picked one: then it is the last."""

    text: str = DEFAULT_TEXT
    token: int | None = None
    model: Choice = DEFAULT_MODEL
    special: bool = False


def current() -> Prompt:
    """This session's prompt: from the address at first and when the browser goes back or forward."""
    if _KEY not in st.session_state or address.is_history_navigation():
        st.session_state[_KEY] = from_address(st.query_params)
    return st.session_state[_KEY]


def change(**changes: object) -> Prompt:
    """Replace some of the prompt's fields; the address follows at the end of `page()`'s frame."""
    st.session_state[_KEY] = replace(current_or_default(), **changes)  # type: ignore[arg-type]
    return st.session_state[_KEY]


def current_or_default() -> Prompt:
    """The session's prompt without a look at the address, for callbacks."""
    return st.session_state.get(_KEY, Prompt())


def from_address(params: Mapping[str, str]) -> Prompt:
    """Read ?text, ?token, ?model and ?special; what makes no sense there is as if it were not there."""
    token = params.get("token", "")
    return Prompt(
        text=params.get("text", DEFAULT_TEXT),
        token=int(token) if token.isascii() and token.isdigit() and len(token) < 7 else None,
        model=choice_from(params),
        special=params.get("special") == "on",
    )


def address_of(prompt: Prompt) -> dict[str, str]:
    """The query parameters that open this prompt; defaults are left out."""
    text = prompt.text[:LINK_CHARACTERS]
    params = {
        "text": text if text != DEFAULT_TEXT else None,
        "token": None if prompt.token is None else str(prompt.token),
        **params_of(prompt.model),
        "special": "on" if prompt.special else None,
    }
    return {name: value for name, value in params.items() if value is not None}


def write_address(prompt: Prompt, choices: address.Choices) -> None:
    """Make the address say what the session holds, the page's own choices too. One step of history at most.

    A parameter that is there already is overwritten and not deleted: deleting would be a second step.
    """
    explicit = {
        "text": prompt.text[:LINK_CHARACTERS],
        "token": "last" if prompt.token is None else str(prompt.token),
        **{name: value or "" for name, value in params_of(prompt.model).items()},
        "model": prompt.model.name,
        "dtype": prompt.model.dtype,
        "special": "on" if prompt.special else "off",
    }
    wanted = address_of(prompt)
    shown = {name: explicit[name] for name in explicit if name in wanted or name in st.query_params}
    address.write(shown | address.written(choices))
