"""Components whose picture can be saved: their own .js and .css, after those that all of them share."""

from pathlib import Path

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

_HERE = Path(__file__).parent


def saving_component(name: str) -> ComponentRenderer:
    """The component gptviz.`name` of `name`.js and `name`.css, which may use all that save_picture.js has."""
    return st.components.v2.component(f"gptviz.{name}", css=_both(name, ".css"), js=_both(name, ".js"))


def _both(name: str, ending: str) -> str:
    files = (_HERE / f"kernel{ending}", _HERE / name / f"{name}{ending}")
    return "\n".join(file.read_text("utf-8") for file in files)
