"""A placeholder for something further down, which says when the reader comes to it."""

from collections.abc import Callable
from typing import Any

from gptviz.ui.components.kernel import Component, happened

_component = Component("lazy_section")


def lazy_section(key: str, come: Callable[[Any], Any]) -> None:
    """Run `come` when the placeholder is in sight and the page has come to rest, or at a click."""
    _component(key, {}, {"near": (happened, come)})
