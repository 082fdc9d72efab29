"""Which sites of a pass a function of numbers reads: it says so itself, for whoever runs that pass."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sites import Key
from gptviz.engine.trace import Trace
from gptviz.engine.weights import AModel
from gptviz.model import GPTModel

Sites = tuple[str | Key, ...]
F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


def reads(*sites: str | Callable[..., Sites]) -> Callable[[F], F]:
    """Mark `f(lm, trace, ...)` as one that reads these sites: `@reads("k")`.

    Where they depend on what it is asked, a function of its arguments but the trace gives them:
    `@reads(lambda lm, block: (("attn", block),))`. A trace that other weights made is refused: ValueError.
    """

    def mark(function: F) -> F:
        @functools.wraps(function)
        def checked(lm: LanguageModel, t: Trace, *args: Any, **named: Any) -> Any:
            t.of(lm.model)
            return function(lm, t, *args, **named)

        found = checked if [*inspect.signature(function).parameters][:2] == ["lm", "t"] else function
        found.__dict__["reads"] = sites
        return cast(F, found)

    return mark


def of_model(
    function: Callable[Concatenate[Trace, GPTModel, P], R],
) -> Callable[Concatenate[Trace, AModel, P], R]:
    """Mark `f(trace, model, ...)`: it takes a LanguageModel too, and refuses other weights: ValueError."""

    @functools.wraps(function)
    def asked(trace: Trace, model: AModel, *args: P.args, **named: P.kwargs) -> R:
        return function(trace, trace.of(model), *args, **named)

    return asked


def sites_of(function: Callable[..., Any], lm: LanguageModel, *args: object) -> Sites:
    """The sites that `function(lm, trace, *args)` reads, as `LanguageModel.trace` takes them for `keep`."""
    found: list[str | Key] = []
    for site in function.__dict__.get("reads", ()):
        found += site(lm, *args) if callable(site) else (site,)
    return tuple(dict.fromkeys(found))
