"""How one token is drawn: all probabilities side by side on a bar, the random number that falls on it, and
the candidates as rows, from the most probable down.

Pointing at a row shows its place on the bar; a click on one that was not drawn goes on with it instead.
"""

from collections.abc import Mapping
from typing import Any

from gptviz.ui.components.kernel import Component, On, Rows, among
from gptviz.ui.components.saved import Saved

_component = Component("draws")


def draws(
    rows: Rows,
    segments: Rows,
    point: Mapping[str, Any] | None,
    on_branch: On,
    *,
    rest: Mapping[str, Any] | None = None,
    can_branch: bool = True,
    compared: tuple[str, str] | None = None,
    saved: Saved | None = None,
) -> None:
    """Draw a `figures.candidates.Draw`; `on_branch(id)` runs before the rerun of a click.

    `point` is {"at", "text"}: the random number; None where nothing is drawn. A row that is "drawn" stands in
    the text, and has no button; the others have one if it `can_branch`. `compared` are the two words for what
    the rows' ghosts and bars are, where both are shown.
    """
    if can_branch:
        branch_ids = {int(row["id"]) for row in rows if not row["drawn"]}
    else:
        branch_ids = set()
    data: dict[str, Any] = {
        "rows": list(rows),
        "segments": list(segments),
        "point": point,
        "rest": rest,
    }
    data |= {"branch": can_branch, "compared": compared}
    _component("draws", data, {"branch": (among(branch_ids), on_branch)}, saved)
