"""Decorators that say which sites of a pass a function reads, for the caller that runs the pass."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from gptviz.engine.copies import copied
from gptviz.engine.index import index_of, of_kind
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.sites import Key
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import settled
from gptviz.engine.weights import AModel
from gptviz.model import GPTModel

Sites = tuple[str | Key, ...]
F = TypeVar("F", bound=Callable[..., Any])
COUNTED: dict[str, Callable[[Trace], int]] = {  # parameters' names, and how many of each there are
    "block": lambda t: t.config.n_layers,
    "head": lambda t: t.config.n_heads,
    **dict.fromkeys(("position", "query", "key"), len),
}
P = ParamSpec("P")
R = TypeVar("R")
PASS = "give what lm.trace(text) gives"


def reads(*sites: str | Callable[..., Sites]) -> Callable[[F], F]:
    """Mark `f(lm, trace, ...)` as one that reads these sites: `@reads("k")`.

    Where the sites depend on the arguments, a function of these (all but the trace) gives them:
    `@reads(lambda lm, block: (("attn", block),))`. A trace that other weights made is refused: ValueError.
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

        marked = checked if [*inspect.signature(function).parameters][:2] == ["lm", "t"] else function
        marked.__dict__["reads"] = sites
        return cast(F, marked)

    return mark


def of_model(
    function: Callable[Concatenate[Trace, GPTModel, P], R],
) -> Callable[Concatenate[Trace, AModel, P], R]:
    """Mark `f(trace, model, ...)`: it takes a LanguageModel too, and refuses other weights: ValueError."""
    as_counted = counted(function)

    @functools.wraps(function)
    def asked(trace: Trace, model: AModel, *args: P.args, **named: P.kwargs) -> R:
        of_kind("trace", trace, Trace, PASS)
        args, named = as_counted(trace, args, named)
        with settled():
            return _handed_out(trace, function(trace.uncopied(), trace.of(model), *args, **named))

    return asked


def _handed_out(t: Trace, result: R) -> R:
    """A function's result, copied if the trace hands out copies, so that none of its memory leaves."""
    if t.hands_out_copies:
        return copied(result)
    return result


def counted(
    function: Callable[..., Any], first: int = 2
) -> Callable[[Trace, tuple[Any, ...], dict[str, Any]], Any]:
    """A function that checks blocks, heads and positions in arguments from `first` on; -1 is the last."""
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
    """`numbers(lm, trace, *args)` of a text's ids: the pass, and what is made of it."""
    return numbers(lm, lm.trace(ids, keep=sites_of(numbers, lm, *args)), *args)
