"""How one token is drawn: all probabilities side by side on a bar, the random number that falls on it, and
the candidates as rows, from the most probable down.

Pointing at a row shows its place on the bar; a click on one that was not drawn goes on with it instead.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gptviz.figures.theme import Mode
from gptviz.ui.components.kernel import among, component
from gptviz.ui.components.saved import Saved, stem

_component = component("draws", branch=among("others"))


def draws(
    rows: Sequence[Mapping[str, Any]],
    segments: Sequence[Mapping[str, Any]],
    point: Mapping[str, Any] | None,
    mode: Mode,
    on_branch: Callable[[int], Any],
    *,
    rest: Mapping[str, Any] | None = None,
    can_branch: bool = True,
    compared: tuple[str, str] | None = None,
    key: str = "draws",
    saved: Saved | None = None,
) -> None:
    """Draw `figures.draws.draw_rows` and its `segments`; `on_branch(id)` runs before the rerun of a click.

    `point` is {"at", "text"}: the random number; None where nothing is drawn. A row that is "drawn" stands in
    the text, and has no button; the others have one if it `can_branch`. `compared` are the two words for what
    the rows' ghosts and bars are, where both are shown.
    """
    others = {int(row["id"]) for row in rows if not row["drawn"]} if can_branch else set()
    _component(
        key,
        {
            "rows": [dict(row) for row in rows],
            "segments": [dict(segment) for segment in segments],
            "point": None if point is None else dict(point),
            "rest": None if rest is None else dict(rest),
            "branch": can_branch,
            "compared": compared,
        },
        mode=mode,
        limits={"others": others},
        on={"branch": on_branch},
        saved=saved or Saved(stem("draw")),
    )


def example(mode: Mode, sent: Callable[[str, Any], Any]) -> None:
    """Three candidates, the second one drawn by 0.45, and what is left; each with what it had unchanged."""
    shares = [("·had", 0.4), ("·gypsy", 0.2), ("·was", 0.1)]
    rows: list[dict[str, Any]] = []
    at = 0.0
    for i, (shown, p) in enumerate(shares):
        rows.append(
            {
                "id": 10 + i,
                "rank": i + 1,
                "shown": shown,
                "probability": p,
                "model_probability": p,
                "start": at,
                "stop": at + p,
                "p_text": f"{p:.2f}",
                "place": f"{at:.2f} to {at + p:.2f}",
                "drawn": i == 1,
                "cut": False,
                "ghost": 0.3 - 0.1 * i,
                "ghost_text": f"{0.3 - 0.1 * i:.2f}",
                "sentence": f"has {p:.2f}. " * (i + 1),
            }
        )
        at += p
    segments = [
        {"index": i, "start": r["start"], "stop": r["stop"], "shown": r["shown"], "kind": "candidate"}
        for i, r in enumerate(rows)
    ]
    segments.append({"index": None, "start": at, "stop": 1.0, "shown": "8,189 others", "kind": "rest"})
    draws(
        rows,
        segments,
        {"at": 0.45, "text": "0.450"},
        mode,
        lambda i: sent("branch", i),
        rest={"shown": "8,189 others", "probability": 0.3, "p_text": "0.30", "place": "0.70 to 1"}
        | {"ghost_text": "0.40"},
        compared=("unchanged", "changed"),
        key="draws_example",
    )
