"""What is changed in the model, as a strip: a chip a change, what all of them did, undo, off and on.

All of its words come from Python; the browser draws them. It stays small, so that it can be in sight always.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gptviz.ui.components.kernel import Component, On, Rows, among

_component = Component("changes")

ACTS = ("undo", "clear", "switch", "try")


def change_strip(
    chips: Rows,
    effect: Mapping[str, Any] | None,
    off: bool,
    on_remove: On,
    on_act: Mapping[str, Callable[[], Any]],
    *,
    notes: Sequence[Sequence[str]] = (),
    ask: tuple[str, str] | None = None,
    key: str = "changes",
) -> None:
    """Draw the strip; `on_remove(number)` and `on_act["undo"]()` run before the rerun that a click causes.

    A chip is one change: its "text" as it is written, what it "says" in words, its "state" ("made", "off" or
    "refused"), and a "note" on it, or "". `effect` is the selected position's prediction: "after" which token
    and "position", the "token" that was first with its probability "before" and "now", the "top" one of now
    with "top_now", "kl" in bits, each with the "..._text" of its digits, and whether "nothing" of it was
    changed. `effect` None: nothing is made, `off` or refused all of it. `notes` are sentences below
    the chips, each text and code in turn; `ask` is one more, and the words of its button, which is
    `on_act["try"]`.
    """
    note_parts = [list(note) for note in notes]
    data = {"chips": list(chips), "effect": effect, "off": off, "notes": note_parts, "ask": ask}
    remove = (among(range(len(chips))), on_remove)
    act = (among(ACTS), lambda act: on_act[act]())
    _component(key, data, {"remove": remove, "act": act})
