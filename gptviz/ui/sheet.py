"""What a page is made of: numbers of both runs, said, drawn, tabled and programmed, each in one call.

The only module that knows how before and after are shown.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import pandas as pd

from gptviz import LanguageModel, Run, Trace
from gptviz.analysis.reads import sites_of
from gptviz.both import Both, alike
from gptviz.engine.sites import Key
from gptviz.figures.ghosts import UNCHANGED
from gptviz.ui import runs
from gptviz.ui.runs import per_run
from gptviz.ui.shell.details import in_code, in_numbers
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.same import why_same
from gptviz.ui.shell.scene import Frame, Scene

P = ParamSpec("P")
R = TypeVar("R")


@per_run
def _of(run: Run, numbers: Callable[..., Any], *args: Any) -> Any:
    return numbers(runs.model(run), runs.get(run, sites_of(numbers, *args)), *args)


def of(
    scene: Scene, numbers: Callable[Concatenate[LanguageModel, Trace, P], R], *args: P.args, **none: P.kwargs
) -> Both[R]:
    """`numbers(lm, trace, *args)` of the run and, if something is changed, of the unchanged one.

    It must be a public function of a module, marked by `reads`; the arguments must be hashable.
    """
    was = None if scene.other is None else _of(scene.other, numbers, *args)
    return Both(_of(scene.run, numbers, *args), was)


def say(
    scene: Scene,
    text: str,
    *terms: str,
    about: Both[Any] | None = None,
    what: str = "this picture",
    sites: Iterable[Key] = (),
) -> None:
    """A sentence; where `about` is as it was in spite of a change, why: see `why_same`."""
    prose(text, *terms)
    if about is not None and about.was is not None and not about.moved:
        prose(why_same(scene, what, sites))


def joined(tables: Both[pd.DataFrame]) -> pd.DataFrame:
    """One table of both: before each column that is another, the same of the unchanged model.

    Row by row: both must have as many, in one order.
    """
    if tables.was is None:
        return tables.now
    if len(tables.now) != len(tables.was):
        raise ValueError(f"{len(tables.now)} rows and {len(tables.was)} cannot stand side by side")
    found = tables.now.copy()
    for column in tables.now:
        old = tables.was[column].to_numpy()
        if not alike(found[column].to_numpy(), old):
            found.insert(int(found.columns.get_indexer([column])[0]), f"{UNCHANGED} {column}", old)
    return found


def numbers_of(name: str, tables: Callable[[], Both[pd.DataFrame]], caption: str = "", **more: Any) -> None:
    """*In numbers*: the table behind the picture, with the unchanged numbers where they are others.

    `tables` runs when somebody opens it; `more` as `in_numbers` takes it.
    """

    def table() -> pd.DataFrame:
        return joined(tables())

    in_numbers(table, name, caption, **more)


def code_of(
    scene: Frame,
    sources: Sequence[Callable[..., Any]],
    numbers: Callable[..., Any],
    *args: object,
    run: Callable[[], object] | None = None,
    key: str = "in_code",
    **named: object,
) -> None:
    """*In code*: the model's lines, the very function whose numbers are drawn, and the lines that call it.

    `numbers` has `lm`, or `lm` and a trace, as its first parameters, or neither; `args` and `named` follow.
    `run` comes by some of `sources`, whose shapes are then shown.
    """
    in_code([*sources, numbers], program(scene, numbers, *args, **named), key, run)


def program(scene: Frame, numbers: Callable[..., Any], *args: object, **named: object) -> str:
    """A few lines of Python that run as they are; `picture` is what is drawn, `unchanged` the same before."""
    first = [*inspect.signature(numbers).parameters][:2]
    given = [*(repr(arg) for arg in args), *(f"{name}={arg!r}" for name, arg in named.items())]
    lines = ["import gptviz"] if first[:1] == ["lm"] else []
    lines += [f"from {numbers.__module__} import {numbers.__name__}", ""]
    runs_of = [("lm", "t", "picture")]
    if first[:1] == ["lm"]:
        lines.append(f"lm = {scene.load}")
        if isinstance(scene, Scene) and scene.other is not None:
            runs_of.append(("lm.plain", "u", "unchanged"))
    for lm, trace, name in runs_of:
        heads = [lm] if first[:1] == ["lm"] else []
        if first == ["lm", "t"]:
            assert isinstance(scene, Scene)
            heads.append(trace)
            lines.append(f"{trace} = {lm}.trace({_read(scene)}, keep={sites_of(numbers, *args)!r})")
        lines.append(f"{name} = {numbers.__name__}({', '.join([*heads, *given])})")
    return "\n".join(lines) + "\n"


def _read(scene: Scene) -> str:
    """The prompt as `LanguageModel.trace` takes it: the text, or the ids of what fits."""
    special = ", special_tokens=True" if scene.special else ""
    if scene.truncated:
        return f"lm.encode({scene.text!r}{special})[: lm.config.context_length]"
    return f"{scene.text!r}{special}"
