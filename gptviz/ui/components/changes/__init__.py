"""What is changed in the model, as a strip: a chip a change, what all of them did, undo, off and on.

All of its words come from Python; the browser draws them. It stays small, so that it can be in sight always.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from gptviz.figures.theme import Mode
from gptviz.ui.components.kernel import among, component

_component = component("changes", remove=among("numbers"), act=among("acts"))

ACTS = ("undo", "clear", "switch", "try")


class Chip(TypedDict):
    """One change: as it is written, in words, whether it is made ("made", "off" or "refused"), and what else
    is to be said of it ("" for nothing)."""

    text: str
    says: str
    state: Literal["made", "off", "refused"]
    note: str


class Effect(TypedDict):
    """The selected position's prediction: tokens as the screen shows them, probabilities before and after,
    their digits, KL divergence in bits. `nothing`: none of it was changed."""

    after: str
    position: int
    token: str
    before: float
    before_text: str
    now: float
    now_text: str
    top: str
    top_now: float
    top_text: str
    kl: float
    kl_text: str
    nothing: bool


def change_strip(
    chips: Sequence[Chip],
    effect: Effect | None,
    off: bool,
    mode: Mode,
    on_remove: Callable[[int], Any],
    on_act: Mapping[str, Callable[[], Any]],
    *,
    notes: Sequence[Sequence[str]] = (),
    ask: tuple[str, str] | None = None,
    key: str = "changes",
) -> None:
    """Draw the strip; `on_remove(number)` and `on_act["undo"]()` run before the rerun that a click causes.

    `effect` None: nothing is made, `off` or refused all of it. `notes` are sentences below
    the chips, each text and code in turn; `ask` is one more, and the words of its button, which is
    `on_act["try"]`.
    """
    _component(
        key,
        {
            "chips": list(chips),
            "effect": effect,
            "off": off,
            "notes": [list(note) for note in notes],
            "ask": ask,
        },
        mode=mode,
        limits={"numbers": range(len(chips)), "acts": ACTS},
        on={"remove": on_remove, "act": lambda act: on_act[act]()},
    )
