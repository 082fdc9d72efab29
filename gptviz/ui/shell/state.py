"""What the whole app has in hand: the prompt, the model, the selected token, block and head.

They follow a visitor from page to page and stand in the address, so that a reload and a link open the
same thing: ?text=...&token=5&block=3&model=...&special=on&edits=z.4.3=zero (and what else says how to read
the model: see `models.choice`).
"""

import hashlib
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import astuple
from typing import Any

import cachetools

from gptviz.models.loading import DEFAULT_MODEL, UNSAID_MODEL
from gptviz.teach.claims import DEFAULT_TEXT, UNSAID_TEXT
from gptviz.ui.models.choice import Choice, choice_from
from gptviz.ui.shell import params
from gptviz.ui.shell.params import Param, at_most_last

# A longer address is refused by the server: 64 KiB, and a character takes up to 12 bytes there.
LINK_CHARACTERS = 5000

# Texts that are too long for an address, of all sessions, by a name that only those know who saw their link.
LONG_TEXT_BYTES = 64 * 2**20
_long_texts: cachetools.LRUCache[str, str] = cachetools.LRUCache(
    LONG_TEXT_BYTES, lambda text: 4 * len(text)
)
_lock = threading.Lock()


class Text(Param[str]):
    """A text may be empty, and may be longer than an address: the rest of it is then behind `KEPT`."""

    def parse(self, text: str) -> str:
        return text

    def written(self, value: str) -> str:
        return value[:LINK_CHARACTERS]

    def set(self, value: str | None) -> None:
        super().set(value)
        KEPT.set(_keep(self.value) if len(self.value) > LINK_CHARACTERS else None)


TEXT = Text("text", str, UNSAID_TEXT, first=DEFAULT_TEXT)
# "7000.5f3a…": the length and the name of a long text
KEPT: Param[str | None] = Param("kept", str, None)
TOKEN: Param[int | None] = Param("token", int, None, at_most_last)  # None: the last one
BLOCK: Param[int | None] = Param("block", int, None, at_most_last)  # None: the page's own choice
HEAD: Param[int | None] = Param("head", int, None, at_most_last)
SPECIAL = Param("special", bool, False)
PRESENT = Param("present", bool, False)
# "z.4.3=zero,mlp_out.2=mean": what is changed in the model, see `changes`
EDITS = Param("edits", str, "")
EDITS_OFF = Param("edits_off", bool, False)  # all of it left out for now
MODEL: tuple[Param, ...] = (
    Param("model", str, UNSAID_MODEL, first=DEFAULT_MODEL),
    Param[str | None]("n_heads", str, None),
    Param[str | None]("activation", str, None),
    Param[str | None]("tokenizer", str, None),
    Param("dtype", str, Choice.dtype),
    Param[str | None]("device", str, None),
    Param[str | None]("drop_surplus", str, None),
)
# all of a page at once, for who cannot scroll: a program, a printer
WHOLE = Param("whole", bool, False)
GUIDE: Param[str | None] = Param("guide", str, None)  # the guide in hand, and its step, from 1
STEP = Param("step", int, 1)
CLAIM: Param[str | None] = Param(
    "claims", str, None
)  # numbers that the link says are here: `gptviz.teach.claims`
APP: tuple[Param, ...] = (
    TEXT, KEPT, TOKEN, BLOCK, HEAD, SPECIAL, PRESENT, EDITS, EDITS_OFF, *MODEL, GUIDE, STEP, CLAIM, WHOLE,
)  # fmt: skip


def load(own: Iterable[Param] = ()) -> None:
    """Take this session's choices from the address: at first, and when the browser goes back or forward.

    `own` are the page's own params, which are taken from there as well.
    """
    params.load((*APP, *own))
    if KEPT.value is not None and len(TEXT.value) == LINK_CHARACTERS:
        with _lock:
            text = _long_texts.get(KEPT.value)
        if text is not None:
            TEXT.set(text)


def model() -> Choice:
    """The model that this session asks for."""
    return choice_from({param.name: param.value for param in MODEL if param.value is not None})


def choose_model(choice: Choice) -> None:
    """Have every page show another model."""
    for param, value in zip(MODEL, astuple(choice), strict=True):
        if value is None or value is False:
            param.set(None)
        else:
            param.set("on" if value is True else str(value))


def change(**chosen: Any) -> None:
    """Choose these of `APP` by name, None for a default; the address follows at the end of a page's frame."""
    params_by_name: dict[str, Param] = {param.name: param for param in APP}
    for name, value in chosen.items():
        params_by_name[name].set(value)


def open_head(block: int, head: int) -> None:
    """Have every page show this head; for callbacks."""
    change(block=block, head=head)


def lost_characters() -> int | None:
    """The length in characters of a link's whole text, if the server no longer has it; else None.

    The page then shows only the beginning, which stands in the link itself.
    """
    digits, _, name = (KEPT.value or "").partition(".")
    length = params.whole(digits, 10**9)
    if name and length is not None and len(TEXT.value) < length:
        return length
    return None


def link() -> dict[str, str]:
    """The query parameters that open all this again on any page."""
    return params.in_link(APP)


def _keep(text: str) -> str:
    """Keep a long text; return its name, a length and a hash. One larger than the store is not kept."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    name = f"{len(text)}.{digest}"
    with _lock, suppress(ValueError):
        _long_texts[name] = text
    return name
