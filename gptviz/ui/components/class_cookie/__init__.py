"""Keeps a browser's place in a class in a cookie, and takes the teacher's secret out of the address.

The secret is in the address's fragment (`#teach=...`), which no browser sends to a server.
"""

from collections.abc import Callable
from typing import Any

from gptviz.ui.components.kernel import Component, text

COOKIE = "gptviz_class"
_component = Component("class_cookie")


def class_cookie(secret: str, left: str, on_taught: Callable[[str], Any]) -> None:
    """Have the browser keep `secret` in its cookie for a day, and read the secret of its address.

    `secret` and `left` are whole cookies: the secrets of several classes, joined. If `secret` is empty, the
    cookie is dropped if it is still the one that was `left`: another tab may have joined a class since. If
    the address has a teacher's secret, `on_taught` is called with it.
    """
    _component(
        "class_cookie",
        {"cookie": COOKIE, "secret": secret, "left": left},
        {"taught": (text(100), on_taught)},
    )
