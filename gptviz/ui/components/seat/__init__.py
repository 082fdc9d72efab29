"""Keeps a browser's place in a class in a cookie, and takes the teacher's secret out of the address.

The secret is in the address's fragment (`#teach=...`), which no browser sends to a server.
"""

from collections.abc import Callable
from typing import Any

from gptviz.ui.components.kernel import Component, text

COOKIE = "gptviz_class"
_component = Component("seat")


def seat(secret: str, left: str, on_taught: Callable[[str], Any]) -> None:
    """Have the browser keep this secret for a day, or drop the one that was `left`, unless another of its
    tabs keeps another one by now; `on_taught` gets the secret of its address."""
    _component("seat", {"cookie": COOKIE, "secret": secret, "left": left}, {"taught": (text(100), on_taught)})
