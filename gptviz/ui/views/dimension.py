"""A number input for a dimension of the residual stream, which clicks on a picture choose as well."""

from gptviz.ui.shell.params import Param
from gptviz.ui.views.index_input import index_input


def dimension_input(param: Param[int | None], size: int, empty: str, help: str) -> int | None:
    """The chosen dimension, 0 to `size` - 1, or None: then the page takes the one that `empty` describes."""
    return index_input(param, f"Dimension, 0 to {size - 1}", size, empty, 260, help)
