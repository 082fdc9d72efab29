"""The next token's candidates as rows with bars.

A row shows every step from logit to probability; its button appends the token. Pointing at a row,
or a click on it, writes its arithmetic under the rows. The picture can be saved.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from gptviz.figures.theme import Mode
from gptviz.ui.components.kernel import among, component
from gptviz.ui.components.saved import Saved, stem

_component = component("candidates", append=among("candidates"))


def candidate_bars(
    rows: Sequence[dict[str, Any]],
    rest: dict[str, Any] | None,
    heads: dict[str, str],
    mode: Mode,
    on_append: Callable[[int], Any],
    *,
    action: str,
    key: str = "candidates",
    saved: Saved | None = None,
) -> None:
    """Draw the rows; `on_append(id)` runs before the rerun that a click on a row's button causes.

    `rows` and `rest` are those of `figures.next_token.candidate_rows`, `heads` its column titles, and
    `action` the words on the buttons.
    """
    sent = _component(
        key,
        {"rows": list(rows), "rest": rest, "heads": heads, "action": action},
        mode=mode,
        saved=saved or Saved(stem("next-token")),
        limits={"candidates": {int(row["id"]) for row in rows if row["whole"]}},
        on={"append": on_append},
    )
    if sent:
        st.rerun()  # the prompt belongs to the whole page, not to the fragment that this may be in


def example(mode: Mode, sent: Callable[[str, Any], Any]) -> None:
    """Three candidates, the second one cut by top-k, the third a piece of a character; and the rest.

    They are those of a changed model: each has its ghost.
    """
    shown = [("·had", 0.4), ("·gypsy", 0.0), ("\\xe4", 0.1)]
    rows = [_example_row(i, token, p) for i, (token, p) in enumerate(shown)]
    rest = _example_row(3, "8,189 others", 0.5) | {
        "key": "rest",
        "id": None,
        "rank": 0,
        "rest": True,
        "rank_text": "",
    }
    heads = {"rank": "rank", "token": "token", "logit": "logit", "scaled": "÷ 1", "filter": "filters"}
    candidate_bars(
        rows,
        rest | {"whole": False},
        heads | {"before": "unchanged", "p": "changed"},
        mode,
        lambda id: sent("append", id),
        action="Append",
        key="candidates_example",
    )


def _example_row(i: int, token: str, probability: float) -> dict[str, Any]:
    cut = probability == 0
    return {
        "key": str(i),
        "id": 10 + i,
        "rank": i + 1,
        "token": token,
        "logit": 3.5 - i,
        "scaled": 3.5 - i,
        "filter": "top-k" if cut else "kept",
        "probability": probability,
        "model_probability": 0.25,
        "rank_text": str(i + 1),
        "logit_text": f"{3.5 - i:.2f}",
        "scaled_text": f"{3.5 - i:.2f}",
        "filter_text": "✕ top-k" if cut else "✓",
        "p_text": f"{probability:.2f}",
        "first": i == 0,
        "out": cut,
        "ghost": 0.25,
        "ghost_text": "0.250",
        "was_first": i == 1,
        "rest": False,
        "whole": i < 2,
        "came": i == 1,
        "sentence": f"has probability {probability:.2f}, and a sentence. " * (i + 1),
    }
