"""A menu at parts of the model: what can be done to them, for the whole app, and undone.

`menu(scene, Part("head", 4, 3), key="head")` draws the plainest change as a button of one click, and beside
it a popover with all of them, each with its formula and its line of Python. A click makes an edit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from gptviz import Edit
from gptviz.engine.sites import SITES
from gptviz.ui.shell import address, changes
from gptviz.ui.shell.change_words import PARTS, token
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import as_code

EVERY = "*"  # every block, in an edit


@dataclass(frozen=True)
class Part:
    """A part of the model, or of what it made of a text, that a menu is about.

    kind "head": of `block` and `head`. "attention", "feed-forward": of `block`. "token": the one at
    `position`, and, where they are given, as it is seen in `block` and `head`. "site": of `block` (None
    outside of them), at `position` (None: at all).
    """

    kind: Literal["head", "attention", "feed-forward", "token", "site"]
    block: int | None = None
    head: int | None = None
    position: int | None = None
    site: str = ""

    def name(self, labels: Sequence[str] = ()) -> str:
        """As a button says it: "block 4 head 3", with the tokens as the screen shows them."""
        at = "" if self.position is None else token(self.position, labels)
        match self.kind:
            case "head":
                return f"block {self.block} head {self.head}"
            case "token":
                return at
            case "site":
                where = "" if self.block is None else f" of block {self.block}"
                return f"{PARTS[self.site]}{where}{f' at {at}' if at else ''}"
        return f"block {self.block}'s {self.kind}"


@dataclass(frozen=True)
class Action:
    """One thing that can be done: a few words, the edit, its formula, what that means, and the way back."""

    label: str
    edit: Edit
    formula: str
    means: str
    undone: str = "Undo"

    @property
    def python(self) -> str:
        return f'lm.trace(text, edits=["{self.edit}"])'


def actions(part: Part) -> list[Action]:
    """What can be done to it, the plainest first."""
    match part.kind:
        case "head":
            heads = [_must(part.head)]
            return [*_values("z", part.block, "its output z", heads), *_looks(part.block, heads)]
        case "attention":
            return [*_values("attn_out", part.block, "its output"), *_looks(part.block, None)]
        case "feed-forward":
            return _values("mlp_out", part.block, "its output")
        case "token":
            return _hidden(part)
    positions = None if part.position is None else [part.position]
    return _values(part.site, part.block, f"the {PARTS[part.site]}", None, positions)


def _values(
    site: str,
    block: int | None,
    name: str,
    heads: Sequence[int] | None = None,
    positions: Sequence[int] | None = None,
) -> list[Action]:
    """Zero and the two means."""
    if SITES[site].form == "weights":
        return _looks(block, heads)

    def edit(value: str) -> Edit:
        return Edit(site, block, value, heads, positions)

    short = "z" if site == "z" else "x"
    return [
        Action(
            "Switch off",
            edit("zero"),
            f"{short}ᵢ = 0",
            f"{name} is zero, so it adds nothing",
            undone="Switch on again",
        ),
        Action(
            "Average of this text",
            edit("mean"),
            f"{short}ᵢ = (1/T) Σⱼ {short}ⱼ",
            f"{name} is its mean over this text's positions",
        ),
        Action(
            "Average of a sample",
            edit("sample"),
            f"{short}ᵢ = mean of {short} in a sample",
            f"{name} is its mean over other text, the better null: nothing of this text is in it",
        ),
    ]


def _looks(block: int | None, heads: Sequence[int] | None) -> list[Action]:
    """Where a head looks, given by hand."""

    def edit(value: str) -> Edit:
        return Edit("attn", block, value, heads)

    return [
        Action(
            "Look at all alike",
            edit("uniform"),
            "Aᵢⱼ = 1 / (i + 1), j ≤ i",
            "the same weight for every key that it may see",
        ),
        Action("Look at the first", edit("first"), "Aᵢ₀ = 1", "all of each row goes to the first token"),
        Action(
            "Look at the one before",
            edit("previous"),
            "Aᵢ,ᵢ₋₁ = 1, A₀₀ = 1",
            "all of each row goes to the token just before",
        ),
    ]


def _hidden(part: Part) -> list[Action]:
    """A token that later ones may not look at: everywhere, in one block, in one head."""
    n = _must(part.position)
    places: list[tuple[str, int | str, Sequence[int] | None]] = [("Hide from later ones", EVERY, None)]
    if part.block is not None:
        places.append((f"Hide in block {part.block} only", part.block, None))
        if part.head is not None:
            places.append((f"Hide in block {part.block} head {part.head} only", part.block, [part.head]))
    return [
        Action(
            label,
            Edit("attn", block, f"hide{n}", heads),
            f"Aᵢ,{n} = 0 for i > {n}",
            f"its column is zero for later rows, and what is left of each is divided by 1 − Aᵢ,{n}",
        )
        for label, block, heads in places
    ]


def _must(number: int | None) -> int:
    assert number is not None, "this kind of part has this number"
    return number


# ---- drawn ----


def menu(scene: Scene, *parts: Part, key: str, quick: bool = True) -> None:
    """Draw the menu of one part, or of several that are chosen among in the popover.

    `key` is the menu's own on its page; `quick` draws the button of one click, for the first part. In a
    fragment, too, the whole page runs again when something is changed, since all of its numbers are others.
    """
    with st.container(key=f"change_{key}", horizontal=True, gap="small"):
        if quick:
            first = actions(parts[0])[0]
            _button(first, f"change_{key}_quick", says=f"{parts[0].name(scene.labels)}, on every page")
        opened = f"change_{key}_open"
        box = st.popover("Change …", icon=":material/tune:", key=opened, on_change="rerun")
        if box.open:
            with box:
                _opened(scene, parts, key, opened)
    address.run_the_page_if_asked_for()


def switch(action: Action, key: str, says: str) -> None:
    """One change as a button of its own; a second click undoes it. `says` is what stands over its help."""
    _button(action, f"change_{key}", says=says)
    address.run_the_page_if_asked_for()


def _opened(scene: Scene, parts: tuple[Part, ...], key: str, opened: str) -> None:
    named = {part.name(scene.labels): part for part in parts}
    chosen = next(iter(named))
    if len(named) > 1:
        chosen = st.segmented_control(
            "Change",
            list(named),
            default=chosen,
            key=f"change_{key}_part",
            required=True,
            label_visibility="collapsed",
        )
    else:
        st.markdown(f"**{chosen[:1].upper()}{chosen[1:]}**")
    for number, action in enumerate(actions(named[chosen])):
        _row(action, f"change_{key}_{number}", opened)


def _row(action: Action, key: str, opened: str) -> None:
    button, words = st.columns([4, 9], gap="small", vertical_alignment="center")
    with button:
        _button(action, key, opened)
    with words:
        st.markdown(f"**{action.formula}** :small[· {action.means}]  \n:small[{as_code(action.python)}]")


def _button(action: Action, key: str, opened: str | None = None, says: str = "") -> None:
    made = str(action.edit) in changes.written()
    st.button(
        action.undone if made else action.label,
        key=key,
        icon=":material/undo:" if made else None,
        type="primary" if made else "secondary",
        on_click=_toggle,
        args=(action, opened),
        help=f"{says}: {action.means}" if says else None,
        width="stretch" if opened else "content",
    )


def _toggle(action: Action, opened: str | None) -> None:
    """Make the change, or undo it where it is made; the popover closes, so that the page is in sight."""
    written = changes.written()
    if str(action.edit) in written:
        changes.remove(written.index(str(action.edit)))
    else:
        changes.add(action.edit)
    address.ask_for_the_page()
    if opened is not None:
        st.session_state[opened] = False
