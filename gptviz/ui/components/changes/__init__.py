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


def example(mode: Mode, sent: Callable[[str, Any], Any]) -> None:
    """A head that is off, a change that does not fit; and the same, switched off."""
    chips: list[Chip] = [
        {"text": "z.4.3=zero", "says": "block 4 head 3 off", "state": "made", "note": ""},
        {"text": "z.9.3=zero", "says": "block 9 head 3 off", "state": "refused", "note": "no such block"},
    ]
    effect: Effect = {
        "after": "·old",
        "position": 7,
        "token": "·mill",
        "before": 0.906,
        "before_text": "0.906",
        "now": 0.184,
        "now_text": "0.184",
        "top": "·man",
        "top_now": 0.25,
        "top_text": "0.250",
        "kl": 2.25,
        "kl_text": "2.25",
        "nothing": False,
    }
    for off, key in ((False, "changes_example"), (True, "changes_off")):
        change_strip(
            [{**chip, "state": "off"} for chip in chips] if off else chips,
            None if off else effect,
            off,
            mode,
            lambda number: sent("remove", number),
            {act: lambda act=act: sent("act", act) for act in ACTS},  # type: ignore[misc]
            notes=[] if off else [["", "z.9.3=zero", " is kept, and not made: there is no block 9."]],
            ask=("Whether each of these did anything takes 2 passes.", "Look") if off else None,
            key=key,
        )
