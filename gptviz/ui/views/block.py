"""The app's block as a number input; left empty, a page shows the one that it has reason to."""

import streamlit as st

from gptviz.ui.shell.state import BLOCK


def block_input(layers: int, default: int, empty: str, width: int = 210) -> int:
    """The chosen block, or `default`, which `empty` describes ("the last")."""
    BLOCK.within(layers)
    chosen = BLOCK.widget(
        st.number_input,
        f"Block, 0 to {layers - 1}",
        min_value=0,
        max_value=layers - 1,
        value=None,
        step=1,
        placeholder=f"{default}, {empty}",
        width=width,
    )
    return default if chosen is None else chosen
