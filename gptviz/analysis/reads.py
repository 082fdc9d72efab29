"""Decorators for functions of a Trace, and the helpers that call such functions.

`@reads("k")` records which sites a function needs (places in the model, `gptviz.SITES`), so that a caller can
run a pass that keeps no others: `of_text` does both. `@of_model` is for functions of a trace and its weights.
Both check the arguments, refuse a trace of other weights, protect the function from global settings of torch
and NumPy (`settled`), and copy the result, so that a caller who writes into it does not change the trace.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from gptviz.engine.copies import copied
from gptviz.engine.index import index_of, of_kind
from gptviz.engine.kinds import Model
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.sites import Key
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import settled
from gptviz.engine.weights import AModel

Sites = tuple[str | Key, ...]
F = TypeVar("F", bound=Callable[..., Any])
# parameters that are an index, by name, and how many of each there are; -1 is the last one
COUNTED: dict[str, Callable[[Trace], int]] = {
    "block": lambda t: t.config.n_layers,
    "head": lambda t: t.config.n_heads,
    **dict.fromkeys(("position", "query", "key"), len),
}
P = ParamSpec("P")
R = TypeVar("R")
PASS = "give what lm.trace(text) gives"  # the advice in an error message


def reads(*sites: str | Callable[..., Sites]) -> Callable[[F], F]:
    """Decorate a function `f(lm, t, ...)` that reads these sites of the trace `t`: `@reads("k")`.

    If the sites depend on the arguments, give a function of all arguments but the trace:
    `@reads(lambda lm, block: (("attn", block),))`. The function raises ValueError for a trace of other
    weights than those of `lm`. A function whose first parameters are not `lm` and `t` only has its sites
    recorded.
    """

    def mark(function: F) -> F:
        as_counted = counted(function)

        @functools.wraps(function)
        def checked(lm: LanguageModel, t: Trace, *args: Any, **named: Any) -> Any:
            of_kind("lm", lm, LanguageModel, "give a model: gptviz.load(...)")
            of_kind("t", t, Trace, PASS).of(lm)
            args, named = as_counted(t, args, named)
            with settled():
                return _handed_out(t, function(lm, t.uncopied(), *args, **named))

        marked = (
            checked if [*inspect.signature(function).parameters][:2] == ["lm", "t"] else function
        )
        marked.__dict__["reads"] = sites
        return cast(F, marked)

    return mark


def of_model(
    function: Callable[Concatenate[Trace, Model, P], R],
) -> Callable[Concatenate[Trace, AModel, P], R]:
    """Decorate a function `f(trace, model, ...)` so that `model` may be a LanguageModel, too.

    It raises ValueError if other weights made the trace.
    """
    as_counted = counted(function)

    @functools.wraps(function)
    def asked(trace: Trace, model: AModel, *args: P.args, **named: P.kwargs) -> R:
        of_kind("trace", trace, Trace, PASS)
        args, named = as_counted(trace, args, named)
        with settled():
            return _handed_out(trace, function(trace.uncopied(), trace.of(model), *args, **named))

    return asked


def _handed_out(t: Trace, result: R) -> R:
    """The result, copied if the trace hands out copies, as it may have views of the trace's tensors in it."""
    if t.hands_out_copies:
        return copied(result)
    return result


def counted(
    function: Callable[..., Any], first: int = 2
) -> Callable[[Trace, tuple[Any, ...], dict[str, Any]], Any]:
    """A function that turns negative blocks, heads and positions among the arguments into indices from 0.

    It takes the trace and the arguments of `function` from its parameter number `first` on, as positional and
    keyword arguments, and returns both. It raises ValueError for an index out of range.
    """
    names = [*inspect.signature(function).parameters][first:]
    places = [(i, name) for i, name in enumerate(names) if name in COUNTED]

    def count_from_0(t: Trace, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        arguments = dict(enumerate(args)) | named
        for i, name in places:
            key = i if i < len(args) else name
            if arguments.get(key) is not None:
                arguments[key] = index_of(name, arguments[key], COUNTED[name](t))
        return [arguments[i] for i in range(len(args))], {name: arguments[name] for name in named}

    return count_from_0


def sites_of(function: Callable[..., Any], lm: LanguageModel, *args: object) -> Sites:
    """The sites that `function(lm, trace, *args)` reads, as `LanguageModel.trace` takes them for `keep`."""
    sites: list[str | Key] = []
    for site in function.__dict__.get("reads", ()):
        sites += site(lm, *args) if callable(site) else (site,)
    return tuple(dict.fromkeys(sites))


def of_text(
    lm: LanguageModel,
    ids: tuple[int, ...],
    numbers: Callable[..., Any],
    *args: Any,
    progress: Progress = ignore_progress,
) -> Any:
    """Trace a text with the sites that the function `numbers` reads, and return `numbers(lm, trace, *args)`.

    `progress` is not used: it is there so that every function of a text can be called alike.
    """
    return numbers(lm, lm.trace(ids, keep=sites_of(numbers, lm, *args)), *args)
