"""Which sites of a pass a function of numbers reads: it says so itself, for whoever runs that pass."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from gptviz.engine.copies import copied
from gptviz.engine.index import index_of, of_kind
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, unheard
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

    Where they depend on what it is asked, a function of its arguments but the trace gives them:
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

        found = checked if [*inspect.signature(function).parameters][:2] == ["lm", "t"] else function
        found.__dict__["reads"] = sites
        return cast(F, found)

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
    """A function's result, of which nothing is the memory of a trace that hands out copies."""
    if t.hands_out_copies:
        return copied(result)
    return result


def counted(
    function: Callable[..., Any], first: int = 2
) -> Callable[[Trace, tuple[Any, ...], dict[str, Any]], Any]:
    """A function that counts blocks, heads and positions from 0 in arguments from `first` on."""
    names = [*inspect.signature(function).parameters][first:]
    places = [(i, name) for i, name in enumerate(names) if name in COUNTED]

    def own(t: Trace, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        given = dict(enumerate(args)) | named
        for i, name in places:
            at = i if i < len(args) else name
            if given.get(at) is not None:
                given[at] = index_of(name, given[at], COUNTED[name](t))
        return [given[i] for i in range(len(args))], {name: given[name] for name in named}

    return own


def sites_of(function: Callable[..., Any], lm: LanguageModel, *args: object) -> Sites:
    """The sites that `function(lm, trace, *args)` reads, as `LanguageModel.trace` takes them for `keep`."""
    found: list[str | Key] = []
    for site in function.__dict__.get("reads", ()):
        found += site(lm, *args) if callable(site) else (site,)
    return tuple(dict.fromkeys(found))


def of_text(
    lm: LanguageModel,
    ids: tuple[int, ...],
    numbers: Callable[..., Any],
    *args: Any,
    progress: Progress = unheard,
) -> Any:
    """`numbers(lm, trace, *args)` of a text's ids: the pass, and what is made of it."""
    return numbers(lm, lm.trace(ids, keep=sites_of(numbers, lm, *args)), *args)
