"""A piece of work as a value: whoever can import its function and has its model can do it."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from gptviz import LanguageModel
from gptviz.engine.edits import Edit
from gptviz.engine.progress import Progress

RAY = "GPTVIZ_RAY"  # the setting: the address of a Ray cluster, by which `gptviz.jobs.ray` works


@dataclass(frozen=True)
class Task:
    """`function(lm, *args, **options, progress=...)`, where `lm` is the model of this key with these edits.

    A task that makes a model, such as reading one, is given none: `function(*args, **options, progress=...)`.
    The function stands in a module; the arguments are hashable and can be pickled. Two equal tasks are one,
    whoever asks. It calls `progress(done, of)` between short steps; what that raises ends it.
    """

    function: Callable[..., Any]
    model: str
    args: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    edits: tuple[Edit, ...] = ()

    def do(self, lm: LanguageModel | None, progress: Progress) -> Any:
        """Do it, with its model as it is without edits; with None where it is to be given no model."""
        args = self.args
        if lm is not None:
            args = (lm.edited(*self.edits), *args)
        return self.function(*args, **dict(self.options), progress=progress)


class Execution(Protocol):
    """A task at work."""

    future: Future[Any]

    def progress(self) -> tuple[int, int]:
        """So much is done, of so much."""

    def cancel(self) -> None:
        """End it now."""


class Backend(Protocol):
    """Who works: `slots` tasks at a time, and up to twice as many where some take very long.

    A future raises one of `gone` where not the task failed, but who worked on it: it is tried again.
    """

    @property
    def slots(self) -> int: ...
    @property
    def gone(self) -> tuple[type[BaseException], ...]: ...

    def ready(self, model: str, lm: LanguageModel) -> Any:
        """What `start` needs of a model; slow the first time. Raises OSError, ValueError."""

    def start(self, task: Task, model: Any, alone: bool) -> Execution:
        """Begin at once. `alone`: nobody else waits or works, so that it may have all cores."""

    def forget(self, model: str) -> None:
        """A model is gone."""

    def stands(self) -> bool:
        """Whether tasks can be done at present."""

    def close(self) -> None:
        """End everything."""
