"""A number input for a dimension of the residual stream, which clicks on a picture choose as well."""

import streamlit as st

from gptviz.ui.shell.params import Param


def dimension_input(param: Param[int | None], size: int, empty: str, help: str) -> int | None:
    """The chosen dimension, 0 to `size` - 1, or None: then the page takes the one that `empty` describes."""
    param.within(size)
    return param.widget(
        st.number_input,
        f"Dimension, 0 to {size - 1}",
        min_value=0,
        max_value=size - 1,
        step=1,
        value=None,
        placeholder=empty,
        help=help,
        width=260,
    )
