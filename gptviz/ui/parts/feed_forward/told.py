"""The page's words for units before and after GELU, and for those with a gate and an up: by the record's word."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from gptviz import Edit, llama
from gptviz.analysis.feed_forward import Units
from gptviz.both import Both
from gptviz.engine.architecture import Named
from gptviz.figures import feed_forward as figures
from gptviz.figures.marks import Floats
from gptviz.model import GELU, FeedForward
from gptviz.ui import words


class Told:
    """What the page says of units with one number before GELU: GPT-2's.

    `fire` are the ends of "1 unit ..." and "2 units ...", `whose` is whose work it is if all of the largest fire.
    `columns` are those of the table of the largest units, with the fields of `Units` they come from.
    """

    fire = ("unit of block {} fires", "units of block {} fire")
    whose = "of them do"
    differ = "fire in only one of the two models"
    heads: Sequence[str] = figures.HEADS
    passes = "What does GELU let through?"
    columns = {"before": "before", "after": "after", "column": "columns"}  # noqa: RUF012
    numbers_in_rows = "its number before and after GELU, whether it fires"
    terms: tuple[str, ...] = ("GELU",)
    sources: tuple[Callable[..., Any], ...] = (FeedForward.forward, GELU.forward, GELU.formula)

    def __init__(self, called: Named) -> None:
        self.norm = called.norm

    def strips(self, units: Units) -> list[Floats]:
        """The arrays of the first picture, one for each of `heads`."""
        return [units.given, units.before, units.after, units.written]

    def matrices(self, units: Units, put_here: bool) -> list[str]:
        """What the matrices do, and what comes between them; `put_here` if a change put other numbers there."""
        count = f"{len(units.before):,}"
        width = f"{len(units.given):,}"
        after_it = "after it"
        if put_here:
            after_it = "after the change"
        least = words.significant(float(units.after.min()), 2)
        return [
            f"The first matrix turns {width} numbers into {count}, the second turns "
            f"{count} back into {width}.",
            f"GELU comes in between: {after_it} no number is below {least}.",
        ]

    def firing(self, put_here: bool) -> str:
        """When a unit fires, and the beginning of a sentence on those that do not."""
        fires_if = "A unit fires if its number before GELU is above 0"
        if put_here:
            return (
                f"{fires_if}. A change puts other numbers in the place of what GELU makes of them, also of "
                "units that do not fire: these"
            )
        return (
            f"{fires_if}: then GELU lets more than half of it through. Of the others GELU leaves a "
            "little: they"
        )

    def lines(self, tanh: bool) -> str:
        """What the marks and lines of the second picture are."""
        which = "the exact GELU"
        if tanh:
            which = "the book's GELU, which is GPT-2's, with a tanh"
        return (
            f"A dot's area is the norm of what its unit contributes. The line is {which}. The dashed line is "
            "ReLU, which would silence all units that do not fire."
        )

    def one(self, both: Both[Units], unit: int, changed: bool) -> str:
        """The numbers of one unit, to follow "**Unit 3 of block 1** at `the`"."""
        before = both.map(lambda u: float(u.before[unit]))
        after = both.map(lambda u: float(u.after[unit]))
        it_fires = "it does not fire"
        if before.now > 0:
            it_fires = "it fires"
        return (
            f"is {before.arrow('3')} before GELU, so {it_fires}, and {after.arrow('3')} after GELU."
        )

    def fires_at(self, changes: Collection[Edit]) -> str:
        """The verb for tokens where a unit's activation, after `changes`, is above 0."""
        if changes:
            return "is above 0, with the change in it, at"
        return "fires at"


class Gated(Told):
    """What it says of units with a gate and an up."""

    fire = ("gate of block {} is open", "gates of block {} are open")
    whose = "of their units do"
    differ = "are open in only one of the two models"
    heads = figures.GATED_HEADS
    passes = "What does a gate let through?"
    columns = {"gate": "before", "silu(gate)": "bent", "up": "times", "output": "after"}  # noqa: RUF012
    columns |= {"column": "columns"}
    numbers_in_rows = "its gate, the gate's SiLU, its up, their product (`after`), whether the gate is open (`fires`)"
    terms = ("SwiGLU", "gate", "up")
    sources = (llama.FeedForward.forward,)

    def strips(self, units: Units) -> list[Floats]:
        assert units.times is not None
        return [units.given, units.before, units.times, units.after, units.written]

    def matrices(self, units: Units, put_here: bool) -> list[str]:
        count = f"{len(units.before):,}"
        width = f"{len(units.given):,}"
        between = "SwiGLU comes in between: each unit's output is silu(gate) × up."
        if put_here:
            between = "A change puts other numbers in the place of silu(gate) × up."
        return [
            f"Two matrices turn {width} numbers into {count} gates and {count} ups, a third turns "
            f"{count} outputs back into {width}.",
            between,
        ]

    def firing(self, put_here: bool) -> str:
        open_if = "A gate is open if it is above 0"
        if put_here:
            return f"{open_if}. A change puts other numbers in the place of the outputs: units with a shut gate"
        return (
            f"{open_if}: then SiLU keeps more than half of it, and the unit's up decides the sign. Of a shut "
            "gate SiLU leaves at most 0.28 below 0: those units"
        )

    def lines(self, tanh: bool) -> str:
        return (
            "A dot's area is the norm of what its unit contributes. Below, the line is SiLU, gate × sigmoid(gate); "
            "the dotted one leads from the chosen unit to what SiLU makes of its gate. The dashed line is ReLU."
        )

    def one(self, both: Both[Units], unit: int, changed: bool) -> str:
        gate = both.map(lambda u: float(u.before[unit]))
        passed = both.map(lambda u: float(u.bent[unit]))
        up = both.map(lambda u: 0.0 if u.times is None else float(u.times[unit]))
        output = both.map(lambda u: float(u.after[unit]))
        is_open = "shut"
        if gate.now > 0:
            is_open = "open"
        said = (
            f"has a gate of {gate.arrow('3')}, so it is {is_open}: SiLU makes {passed.arrow('3')} of it. "
            f"Times its up, {up.arrow('3')},"
        )
        if changed:
            return f"{said} it would be its output; with the change that is {output.arrow('3')}."
        return f"{said} its output is {output.arrow('3')}."

    def fires_at(self, changes: Collection[Edit]) -> str:
        if changes:
            return "is above 0, with the change in it, at"
        return "is above 0 at"


TOLD: dict[str, type[Told]] = {"GELU": Told, "SwiGLU": Gated}
