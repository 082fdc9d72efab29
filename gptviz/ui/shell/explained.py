"""Whether a page explains the model that is chosen; if not, the sentence that stands in its place."""

import streamlit as st

from gptviz import LanguageModel
from gptviz.engine.architecture import architecture_of
from gptviz.engine.instead import Instead
from gptviz.ui.shell import state
from gptviz.ui.shell.address import end_page
from gptviz.ui.shell.navigation import called, link
from gptviz.ui.words import escaped


def instead_of(page: str, lm: LanguageModel) -> Instead | None:
    """What the model has in place of what a page explains; None where the page explains this model."""
    return architecture_of(lm.config).instead.get(page)


def sentence(instead: Instead, name: str) -> str:
    """What a page explains, and what the model of this name has instead."""
    said = f"This page explains {instead.explains}; {escaped(name)} has {instead.has}"
    if instead.page:
        return f"{said}, as **{called(instead.page)}** shows."
    return f"{said} (not shown for this model yet)."


def end_unless_explained(page: str, lm: LanguageModel) -> None:
    """End a page that does not explain this model, with the sentence that says so and a link."""
    instead = instead_of(page, lm)
    if instead is None:
        return
    st.info(sentence(instead, lm.name))
    if instead.page:
        icon = ":material/arrow_forward:"
        link(instead.page, state.link(), label=called(instead.page), icon=icon)
    end_page()
