"""A number input for a dimension of the residual stream, which clicks on a picture choose as well."""

import streamlit as st

from gptviz.ui.shell import address


def dimension_input(key: str, size: int, empty: str, help: str, choices: address.Choices) -> int | None:
    """The chosen dimension, 0 to `size` - 1, or None: then the page takes the one that `empty` describes.

    For the inside of a fragment: `choices`, with `key` among them, are written to the address, since a
    rerun of a fragment alone draws no frame that would.
    """
    if not 0 <= (st.session_state.get(key) or 0) < size:
        st.session_state[key] = None  # a dimension of another, larger model
    picked = st.number_input(
        f"Dimension, 0 to {size - 1}",
        min_value=0,
        max_value=size - 1,
        value=None,
        placeholder=empty,
        help=help,
        width=260,
        key=key,
        persist_state="session",
    )
    address.write(address.written(choices))
    return None if picked is None else int(picked)
