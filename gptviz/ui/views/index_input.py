"""A number input for one of so many; left empty, a page shows the one that it has reason to."""

import streamlit as st

from gptviz.ui.shell.params import Param


def index_input(
    param: Param[int | None], label: str, size: int, empty: str, width: int, help: str | None = None
) -> int | None:
    """What was chosen of 0 to `size` - 1, or None: then the page takes the one that `empty` describes."""
    param.within(size)
    return param.widget(
        st.number_input,
        label,
        min_value=0,
        max_value=size - 1,
        value=None,
        step=1,
        placeholder=empty,
        help=help,
        width=width,
    )
