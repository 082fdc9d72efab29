"""Which sites of a pass a function of numbers reads: it says so itself, for whoever runs that pass."""

from collections.abc import Callable
from typing import Any, TypeVar

from gptviz.engine.language_model import LanguageModel

Sites = tuple[str | tuple[str, int], ...]
F = TypeVar("F", bound=Callable[..., Any])


def reads(*sites: str | Callable[..., Sites]) -> Callable[[F], F]:
    """Mark `f(lm, trace, ...)` as one that reads these sites: `@reads("k")`.

    Where they depend on what it is asked, a function of its arguments but the trace gives them:
    `@reads(lambda lm, block: (("attn", block),))`.
    """

    def mark(function: F) -> F:
        function.__dict__["reads"] = sites
        return function

    return mark


def sites_of(function: Callable[..., Any], lm: LanguageModel, *args: object) -> Sites:
    """The sites that `function(lm, trace, *args)` reads, as `LanguageModel.trace` takes them for `keep`."""
    found: list[str | tuple[str, int]] = []
    for site in function.__dict__.get("reads", ()):
        found += site(lm, *args) if callable(site) else (site,)
    return tuple(dict.fromkeys(found))
