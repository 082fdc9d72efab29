"""The next token's candidates as rows with bars: a st.components.v2 component.

A row shows every step from logit to probability; its button appends the token. Pointing at a row,
or a click on it, writes its arithmetic under the rows. The picture can be saved.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from gptviz.figures.theme import Mode, palette
from gptviz.ui.components.kernel import saving_component

_component = saving_component("candidates")

USED = ("paper", "panel", "ink", "quiet", "grid", "accent")


def candidate_bars(
    rows: Sequence[dict[str, Any]],
    rest: dict[str, Any] | None,
    heads: dict[str, str],
    mode: Mode,
    on_append: Callable[[int], Any],
    *,
    action: str,
    key: str = "candidates",
) -> None:
    """Draw the rows; `on_append(id)` runs before the rerun that a click on a row's button causes.

    `rows` and `rest` are those of `figures.next_token.candidate_rows`, `heads` its column titles, and
    `action` the words on the buttons.
    """
    colors = palette(mode)
    shown = {int(row["id"]) for row in rows if row["whole"]}

    def append() -> None:
        chosen = st.session_state[key].append
        if chosen in shown:  # a late click may follow other rows
            on_append(chosen)

    scale = bar_scale([row[name] for row in rows for name in ("probability", "model_probability")])
    result = _component(
        key=key,
        data={
            "rows": list(rows),
            "rest": rest,
            "heads": heads,
            "action": action,
            "scale": scale,
            "colors": {name: getattr(colors, name) for name in USED} | {"bar": colors.output},
        },
        on_append_change=append,
    )
    if result.append is not None:
        st.rerun()  # the prompt belongs to the whole page, not to the fragment that this may be in


def bar_scale(probabilities: Sequence[float]) -> float:
    """The probability of a full bar: a round number, so that bars keep their scale while a slider moves."""
    largest = max(probabilities, default=1.0)
    return next(scale for scale in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if largest <= scale or scale == 1.0)
