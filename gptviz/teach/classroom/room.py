"""A class as its members see it, and what is given out in it: codes, and names for pupils."""

import secrets
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
        """Whether the teacher has locked, shown or revealed this step."""
        return mark in self.marks.get(step, ())


@dataclass(frozen=True)
class Member:
    """A member of a class: a pupil with a name, or its teacher, without one."""

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
        """The answer as a question's key takes it: a list, as JSON has it, becomes a pair."""
        if isinstance(self.given, list):
            return tuple(self.given)
        return self.given


# ---- codes that can be read from a projector ----

# nothing that is read as something else: no 0 O, 1 I L
ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
LENGTH = 6  # 31^6 = 887 million codes, of which a visitor may try `classes.WRONG_CODES` a minute


def new_code() -> str:
    """A random code for a class."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def parse_code(text: str) -> str | None:
    """The code in a typed text, in any case and with any gaps; None if it cannot be one."""
    plain = "".join(char for char in text[:40].upper() if char not in " -\u2013\t\n")
    if len(plain) == LENGTH and set(plain) <= set(ALPHABET):
        return plain
    return None


def written_code(code: str) -> str:
    """The code as it is shown: KF7-M2Q."""
    return f"{code[: LENGTH // 2]}-{code[LENGTH // 2 :]}"


# ---- names for pupils ----

ADJECTIVES = (
    "able amber blue bold brave brief bright brisk busy calm clear clever cosy curious daring eager early "
    "fair fine fond free fresh gentle glad golden grand green happy honest jolly keen kind lively lucky "
    "merry mild modest neat nimble patient plain polite proud quick quiet rapid rare ready red royal shy "
    "silent silver simple sleepy small smart steady sunny sure swift tidy warm wise witty young"
)
ANIMALS = (
    "ant badger bat bear beaver bee bird bison camel cat crab crane crow deer dolphin dove duck eagle eel "
    "elk falcon finch fish fox frog goat goose hare hawk hen heron horse koala lark lion llama lynx mole "
    "moose moth mouse newt otter owl ox panda parrot pony puffin quail rabbit raven robin salmon seal "
    "sheep snail sparrow squid stork swan tiger toad trout turtle walrus whale wolf wombat wren yak zebra"
)


def free_name(taken: set[str]) -> str:
    """A name like "quiet otter" that nobody in the class has; there are some 5,000."""
    while (
        name := f"{secrets.choice(ADJECTIVES.split())} {secrets.choice(ANIMALS.split())}"
    ) in taken:
        continue
    return name
