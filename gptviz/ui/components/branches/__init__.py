"""The branches of a text as a small tree: where each left which, how long it is, and how probable.

A click on a branch, or Enter where the focus is on it, goes to it.
"""

from gptviz.ui.components.kernel import Component, On, Rows, among
from gptviz.ui.components.saved import Saved

_component = Component("branches")


def branch_tree(
    rows: Rows, chosen: int, step: int, on_branch: On, saved: Saved | None = None
) -> None:
    """Draw a row a branch; `on_branch(number)` runs before the rerun that a click causes.

    A row has "parent" (its number, None for the first), "at" (the step at which it left it), "length", "text"
    and the texts of its numbers, "log_p" and "perplexity"; where all have an "unchanged" text, ln p in the
    model without its changes, it stands beside. `step` is the one that is looked at.
    """
    data = {"rows": list(rows), "chosen": chosen, "step": step}
    _component("branches", data, {"branch": (among(range(len(rows))), on_branch)}, saved)
