"""Temperature, top-k and top-p, which stand in the address; moving one never runs the model."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.sampling import Sampling
from gptviz.ui.shell.params import Param, between, if_there

ROWS = (10, 20, 50, 100)
TEMPERATURE, TOP_P = Param("temperature", float, 1.0, between), Param("top_p", float, 1.0, between)
TOP_K: Param[int | None] = Param("top_k", int, None, between)
COUNT = Param("next_rows", int, ROWS[0], if_there)
PARAMS = (TEMPERATURE, TOP_K, TOP_P, COUNT)


def sampling_controls(vocabulary: int) -> tuple[Sampling, int]:
    """Draw the controls. The three settings, None where one is switched off, and how many rows to show."""
    # not columns: on a phone they would fill the screen before the picture
    row = st.container(key="next_settings", horizontal=True, vertical_alignment="bottom", gap="small")
    temperature = _slider(
        row,
        TEMPERATURE,
        "Temperature",
        (0.0, 2.0, 0.05),
        "Every logit is divided by it before the softmax. 1 leaves the model as it is; "
        "0 always takes the most probable token.",
    )
    TOP_K.within((1, vocabulary))
    top_k = TOP_K.widget(
        row.number_input,
        "Top-k",
        min_value=1,
        max_value=vocabulary,
        value=None,
        step=1,
        placeholder="off",
        width=130,
        help=f"Keep the k largest logits of the {vocabulary:,}. Empty: keep all.",
    )
    top_p = _slider(
        row,
        TOP_P,
        "Top-p",
        (0.01, 1.0, 0.01),
        "Keep the fewest tokens whose probabilities reach p, after temperature and top-k. 1: keep all.",
    )
    COUNT.within(ROWS)
    count = COUNT.widget(row.selectbox, "Rows", options=ROWS, width=100, help="How many bars to show.")
    k = None if top_k is None else int(top_k)
    return Sampling(temperature, k, None if top_p == 1 else top_p), int(count)


def _slider(
    row: DeltaGenerator, param: Param[float], label: str, span: tuple[float, float, float], help: str
) -> float:
    """A slider that starts at 1, where it changes nothing; `span` is its least, its largest, its step."""
    least, largest, step = span
    param.within((least, largest))
    return float(
        param.widget(row.slider, label, min_value=least, max_value=largest, step=step, width=200, help=help)
    )
