"""Temperature, top-k and top-p, which stand in the address; moving one never runs the model."""

import streamlit as st

from gptviz.sampling import Options

ROWS = (10, 20, 50, 100)


def sampling_controls(vocabulary: int) -> tuple[Options, int]:
    """Draw the controls. The three settings, None where one is switched off, and how many rows to show."""
    # not columns: on a phone they would fill the screen before the picture
    row = st.container(key="next_settings", horizontal=True, vertical_alignment="bottom", gap="medium")
    temperature = row.slider(
        "Temperature",
        min_value=0.0,
        max_value=2.0,
        value=1.0,
        step=0.05,
        key="temperature",
        bind="query-params",
        persist_state="session",
        width=220,
        help="Every logit is divided by it before the softmax. 1 leaves the model as it is; "
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
        bind="query-params",
        persist_state="session",
        width=130,
        help=f"Keep the k largest logits of the {vocabulary:,}. Empty: keep all.",
    )
    top_p = row.slider(
        "Top-p",
        min_value=0.01,
        max_value=1.0,
        value=1.0,
        step=0.01,
        key="top_p",
        bind="query-params",
        persist_state="session",
        width=220,
        help="Keep the fewest tokens whose probabilities reach p, after temperature and top-k. 1: keep all.",
    )
    count = row.selectbox(
        "Rows",
        ROWS,
        key="next_rows",
        bind="query-params",
        persist_state="session",
        width=100,
        help="How many bars to show.",
    )
    k = None if top_k is None else int(top_k)
    return Options(float(temperature), k, None if top_p == 1 else float(top_p)), int(count)
