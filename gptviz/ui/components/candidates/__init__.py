"""The next token's candidates as rows with bars.

A row shows every step from logit to probability; its button appends the token. Pointing at a row,
or a click on it, writes its arithmetic under the rows. The picture can be saved.
"""

from typing import Any

from gptviz.ui.components.kernel import Component, On, Rows, among
from gptviz.ui.components.saved import Saved

_component = Component("candidates")


def candidate_bars(
    rows: Rows,
    rest: dict[str, Any] | None,
    heads: dict[str, str],
    on_append: On | None,
    *,
    action: str,
    saved: Saved | None = None,
) -> None:
    """Draw the rows; `on_append(id)` runs before the rerun that a click on a row's button causes;
    without one there are no buttons.

    `rows` and `rest` are those of `figures.candidates.candidate_rows`, `heads` its column titles, and
    `action` the words on the buttons.
    """
    data = {"rows": list(rows), "rest": rest, "heads": heads, "action": action if on_append else ""}
    ids = among({int(row["id"]) for row in rows if row["whole"]})
    if _component("candidates", data, {"append": (ids, on_append)}, saved):
        import streamlit as st

        st.rerun()  # the prompt belongs to the whole page, not to the fragment that this may be in
