"""Temperature, top-k and top-p, which stand in the address; moving one never runs the model."""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.sampling import Sampling

ROWS = (10, 20, 50, 100)
KEPT: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}


def sampling_controls(vocabulary: int) -> tuple[Sampling, int]:
    """Draw the controls. The three settings, None where one is switched off, and how many rows to show."""
    # not columns: on a phone they would fill the screen before the picture
    row = st.container(key="next_settings", horizontal=True, vertical_alignment="bottom", gap="small")
    temperature = _slider(
        row,
        "Temperature",
        (0.0, 2.0, 0.05),
        "Every logit is divided by it before the softmax. 1 leaves the model as it is; "
        "0 always takes the most probable token.",
    )
    top_k = row.number_input(
        "Top-k",
        min_value=1,
        max_value=vocabulary,
        value=None,
        step=1,
        placeholder="off",
        key="top_k",
        width=130,
        help=f"Keep the k largest logits of the {vocabulary:,}. Empty: keep all.",
        **KEPT,
    )
    top_p = _slider(
        row,
        "Top-p",
        (0.01, 1.0, 0.01),
        "Keep the fewest tokens whose probabilities reach p, after temperature and top-k. 1: keep all.",
    )
    count = row.selectbox("Rows", ROWS, key="next_rows", width=100, help="How many bars to show.", **KEPT)
    k = None if top_k is None else int(top_k)
    return Sampling(temperature, k, None if top_p == 1 else top_p), int(count)


def _slider(row: DeltaGenerator, label: str, span: tuple[float, float, float], help: str) -> float:
    """A slider that starts at 1, where it changes nothing; `span` is its least, its largest, its step."""
    least, largest, step = span
    key = label.lower().replace("-", "_")
    return float(row.slider(label, least, largest, 1.0, step, key=key, width=200, help=help, **KEPT))
