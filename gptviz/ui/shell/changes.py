"""What a visitor has changed in the model: edits, in the address, kept from page to page.

`?edits=z.4.3=zero,mlp_out.2=mean` is a list in the order in which they are made; `?edits_off=on` leaves all
of them out for now. What cannot be read, or does not fit this model or text, is kept and reported, but not
applied. The callbacks are for buttons and clicks: `add`, `remove`, `undo`, `clear`, `switch`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gptviz import Edit, LanguageModel
from gptviz.analysis.reach import hidden_token
from gptviz.engine.edit_values import GRAMMAR
from gptviz.engine.sample_means import reading
from gptviz.ui.components.saved import shortened
from gptviz.ui.shell import state

MOST = 100  # changes that are made at once
LONGEST_WHY = 400  # characters: all values that there are take 330
CHARACTERS = 4000  # of all of them: an address that is too long is refused by the server


@dataclass(frozen=True)
class Change:
    """One part of the list: its text, its edit, and why it is not made, if it is not."""

    text: str
    edit: Edit | None
    refusal: str | None = None


def written() -> list[str]:
    """The list as it stands in the session, blanks left out."""
    return [part.strip() for part in state.EDITS.value.split(",") if part.strip()]


def found(lm: LanguageModel, n_tokens: int) -> tuple[Change, ...]:
    """The list, each part read and checked against this model and a text of so many tokens."""
    return tuple(_read(text, number, lm, n_tokens) for number, text in enumerate(written()))


def made(changes: Sequence[Change]) -> tuple[Edit, ...]:
    """The edits of the pass: none while they are switched off."""
    if state.EDITS_OFF.value:
        return ()
    return tuple(change.edit for change in changes if change.edit and change.refusal is None)


def _read(text: str, number: int, lm: LanguageModel, n_tokens: int) -> Change:
    try:
        edit = Edit.parse(text)
    except ValueError as error:  # the strip says the text, and once how a change is written
        why = (
            str(error)
            .removeprefix(f"{text!r} is no edit: ")
            .removesuffix(f"; an edit is written {GRAMMAR}")
        )
        return Change(text, None, shortened(why, LONGEST_WHY))
    if number >= MOST:
        return Change(
            text, edit, f"at most {MOST} changes can be made at once; undo another one first"
        )
    try:
        edit.check(lm.config, n_tokens)
        if edit.named is not None and edit.named.name == "sample":
            reading(lm)  # which not every model can
    except ValueError as error:
        return Change(text, edit, str(error))
    return Change(text, edit.of(lm.config))


# ---- callbacks ----


def add(*edits: Edit) -> None:
    """Make these changes too; each takes the place of one that was made at the same place.

    Tokens that are hidden are hidden beside each other. Where the list would be too long for an address, a
    note says so and nothing is changed.
    """
    texts = written()
    for edit in edits:
        texts = [text for text in texts if not _replaces(edit, text)] + [str(edit)]
    if len(",".join(texts)) > CHARACTERS or len(texts) > MOST:
        st.toast(
            f"A link has room for {MOST} changes and {CHARACTERS:,} characters. Nothing was added: undo a change first."
        )
        return
    state.EDITS_OFF.set(False)
    _set(texts)


def remove(number: int) -> None:
    """Undo one change of the list."""
    texts = written()
    _set(texts[:number] + texts[number + 1 :])


def toggle(edit: Edit) -> None:
    """Make this change, or undo it if it is made."""
    texts = written()
    if str(edit) in texts:
        remove(texts.index(str(edit)))
    else:
        add(edit)


def undo() -> None:
    """Undo the last change."""
    _set(written()[:-1])


def clear() -> None:
    """Undo all changes."""
    _set([])


def switch() -> None:
    """Switch all changes off, or on again."""
    state.EDITS_OFF.set(not state.EDITS_OFF.value)


def _set(texts: Sequence[str]) -> None:
    state.EDITS.set(",".join(texts))
    if not texts:
        state.EDITS_OFF.set(False)


def parsed(text: str) -> Edit | None:
    """The edit that a part of the list is; None if it cannot be read."""
    try:
        return Edit.parse(text)
    except ValueError:
        return None


def _replaces(new: Edit, text: str) -> bool:
    def place(edit: Edit) -> tuple[object, ...]:
        return edit.site, edit.block, edit.heads, edit.positions, hidden_token(edit)

    previous = parsed(text)
    return previous is not None and place(previous) == place(new)
