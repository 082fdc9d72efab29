"""The branches of a text as a small tree: where each left which, how long it is, and how probable.

A click on a branch, or Enter where the focus is on it, goes to it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gptviz.figures.theme import Mode
from gptviz.ui.components.kernel import among, component
from gptviz.ui.components.saved import Saved, stem

_component = component("branches", branch=among("branches"))


def branch_tree(
    rows: Sequence[Mapping[str, Any]],
    chosen: int,
    step: int,
    mode: Mode,
    on_branch: Callable[[int], Any],
    *,
    key: str = "branches",
    saved: Saved | None = None,
) -> None:
    """Draw a row a branch; `on_branch(number)` runs before the rerun that a click causes.

    A row has "parent" (its number, None for the first), "at" (the step at which it left it), "length", "text"
    and the texts of its numbers, "log_p" and "perplexity"; where all have an "unchanged" text, ln p in the
    model without its changes, it stands beside. `step` is the one that is looked at.
    """
    _component(
        key,
        {"rows": [dict(row) for row in rows], "chosen": chosen, "step": step},
        mode=mode,
        limits={"branches": range(len(rows))},
        on={"branch": on_branch},
        saved=saved or Saved(stem("branches")),
    )


def example(mode: Mode, sent: Callable[[str, Any], Any]) -> None:
    """A text with two branches, the second one from the first."""
    rows = [
        {"parent": parent, "at": at, "length": length, "text": text, "log_p": "−12.3", "perplexity": "7.1"}
        for parent, at, length, text in (
            (None, 0, 8, " and so on"),
            (0, 2, 6, " but not"),
            (1, 4, 9, " a gypsy"),
        )
    ]
    branch_tree(rows, 1, 3, mode, lambda number: sent("branch", number), key="branches_example")
