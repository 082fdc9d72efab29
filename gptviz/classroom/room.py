"""A class as its members see it."""

from dataclasses import dataclass
from typing import Any

MARKS = ("locked", "shown", "revealed")  # what a teacher says of a step
LOBBY = -1  # the step before the first: the class gathers


class ClassError(ValueError):
    """Why something cannot be done in a class, as a sentence."""


@dataclass(frozen=True)
class Room:
    """A class as everybody in it sees it. Steps count from 0; `marks` are those of each step."""

    id: int
    code: str
    model: dict[str, str]
    pages: tuple[str, ...]
    step: int
    together: bool
    frozen: bool
    marks: dict[int, frozenset[str]]
    steered: int
    ends: float

    def has(self, mark: str, step: int) -> bool:
        """Return whether the teacher has locked, shown or revealed this step."""
        return mark in self.marks.get(step, ())


@dataclass(frozen=True)
class Member:
    """Who somebody is in a class: a pupil with a name, or its teacher, without."""

    room: Room
    name: str = ""
    pupil: int | None = None

    @property
    def teaches(self) -> bool:
        return self.pupil is None


@dataclass(frozen=True)
class Vote:
    """A pupil's answer to a step: the one that counts, and the first. None where it was skipped."""

    name: str
    step: int
    given: Any
    first: Any
    hints: int
    changes: int
    at: float

    @property
    def answer(self) -> Any:
        """Return what was given, as a question's key takes it: what JSON made a list is a pair again."""
        return tuple(self.given) if isinstance(self.given, list) else self.given
