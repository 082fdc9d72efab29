"""The first mean over the sample of a model takes a while: how far it is, and a way out."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from gptviz import LanguageModel
from gptviz.engine.sample_means import reading, sample_means
from gptviz.ui.shell import change_words
from gptviz.ui.shell.address import end_page


def read_sample(lm: LanguageModel, key: str, stop: Callable[[], Any]) -> None:
    """A bar and a button `key` until the mean is known; nothing where it is.

    A click interrupts the script where the bar moves, and what was read is kept. `stop` is the button's
    callback: the page must then not ask again. Ends the run with a sentence for a model that cannot read it.
    """
    try:
        known = reading(lm.model, lm.config, lm.encode).means is not None
    except ValueError as error:
        st.warning(f"{lm.name}: {error}.")
        end_page()
    if known:
        return
    place = st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        st.button("Stop", key=key, type="primary", on_click=stop)
        bar = st.progress(0.0)
    sample_means(
        lm.model,
        lm.config,
        lm.encode,
        lambda done, of: bar.progress(done / of, change_words.sample(done, of)),
    )
    place.empty()
