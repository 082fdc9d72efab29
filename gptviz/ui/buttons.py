"""Buttons: what a click does, its sign, and which of several stands out."""

from collections.abc import Callable
from typing import Any

import streamlit as st


def button(
    label: str,
    key: str,
    do: Callable[..., Any],
    *args: Any,
    icon: str = "",
    primary: bool = False,
    **how: Any,
) -> bool:
    """Draw a button; a click runs `do(*args)`, a callback. Return whether this run is the click's.

    `icon` is one of Material's by its name; `how` is the rest that `st.button` takes.
    """
    how |= {"icon": f":material/{icon}:"} if icon else {}
    how |= {"type": "primary"} if primary else {}
    return st.button(label, key=key, on_click=do, args=args, **how)
