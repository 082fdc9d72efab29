"""A menu at parts of the model: what can be done to them, for the whole app, and undone.

`menu(scene, Part("head", 4, 3), key="head")` draws the plainest change as a button of one click, and beside
it a popover with all of them, each with its formula and its line of Python. A click makes an edit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st

from gptviz import Edit
from gptviz.engine.sites import ALL_SITES
from gptviz.ui.buttons import button
from gptviz.ui.shell import address, changes, target
from gptviz.ui.shell.change_words import PARTS, token
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import as_code, capital, show_id

EVERY = "*"  # every block, in an edit


@dataclass(frozen=True)
class Part:
    """The part of the model, or of its pass over a text, that a menu is about.

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
        if self.position is None:
            at_token = ""
        else:
            at_token = token(self.position, labels)
        if self.block is None:
            of_block = ""
        else:
            of_block = f" of block {self.block}"
        if self.kind == "head":
            return f"block {self.block} head {self.head}"
        if self.kind == "token":
            return at_token
        if self.kind == "site":
            site = f"{PARTS.get(self.site)}{of_block}"
            if at_token:
                return f"{site} at {at_token}"
            return site
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


# value -> label, formula of x, what that means of it, and the way back where it has a name of its own
VALUES = {
    "zero": ("Switch off", "{x}ᵢ = 0", "is zero, so it adds nothing", "Switch on again"),
    "mean": (
        "Average of this text",
        "{x}ᵢ = (1/T) Σⱼ {x}ⱼ",
        "is its mean over the positions of this text",
    ),
    "sample": (
        "Average of a sample",
        "{x}ᵢ = mean of {x} in a sample",
        "is its mean over other text, so nothing of this text is in it",
    ),
}
# the same of attention weights, given by hand
LOOKS = {
    "uniform": (
        "Look at all tokens equally",
        "Aᵢⱼ = 1 / (i + 1), j ≤ i",
        "every token that may be looked at gets the same weight",
    ),
    "first": (
        "Look only at the first token",
        "Aᵢ₀ = 1",
        "each token gives all its attention to the first",
    ),
    "previous": (
        "Look only at the token before",
        "Aᵢ,ᵢ₋₁ = 1, A₀₀ = 1",
        "each token gives all its attention to the one just before it",
    ),
}
# the same of anything but weights, after all others
TIMES = {
    "x0.5": ("Halve", "{x}ᵢ = 0.5 {x}ᵢ", "is halved"),
    "x2": ("Double", "{x}ᵢ = 2 {x}ᵢ", "is doubled"),
}
OUTPUTS = {"head": ("z", "z"), "attention": ("attn_out", "x"), "feed-forward": ("mlp_out", "x")}


def actions(part: Part) -> list[Action]:
    """The changes that a menu offers for a part, the plainest first."""
    if part.kind == "token":
        return _hidden(part)
    if part.head is None:
        heads = None
    else:
        heads = [part.head]
    if part.position is None:
        positions = None
    else:
        positions = [part.position]
    site, x = OUTPUTS.get(part.kind, (part.site, "x"))
    name = "its output"
    if part.kind == "site":
        name = f"the {PARTS[site]}"
    elif x == "z":
        name = "its output z"

    def offered(
        table: Mapping[str, tuple[str, ...]], site: str, name: str, places: list[int] | None
    ) -> list[Action]:
        edits = {value: Edit(site, part.block, value, heads, places) for value in table}
        return [
            Action(label, edits[value], formula.format(x=x), f"{name}{does}", *undone)
            for value, (label, formula, does, *undone) in table.items()
        ]

    looks = offered(LOOKS, "attn", "", None)
    if ALL_SITES[site].form == "weights":
        return looks
    values, times = (offered(table, site, f"{name} ", positions) for table in (VALUES, TIMES))
    return [*values, *(looks if part.kind in ("head", "attention") else []), *times]


def _hidden(part: Part) -> list[Action]:
    """A token that later ones may not look at: everywhere, in one block, in one head."""
    n = part.position
    places: list[tuple[str, int | str, Sequence[int] | None]] = [
        ("Hide from later tokens", EVERY, None)
    ]
    if part.block is not None:
        places.append((f"Hide in block {part.block} only", part.block, None))
        if part.head is not None:
            places.append(
                (f"Hide in block {part.block} head {part.head} only", part.block, [part.head])
            )
    return [
        Action(
            label,
            Edit("attn", block, f"hide{n}", heads),
            f"Aᵢ,{n} = 0 for i > {n}",
            f"later tokens give it no attention, and their other weights are divided by 1 − Aᵢ,{n}",
        )
        for label, block, heads in places
    ]


# ---- drawn ----


def menu(scene: Scene, *parts: Part, key: str, narrow: bool = False) -> None:
    """Draw the menu of one part, or of several that are chosen among in the popover.

    `key` is the menu's own on its page; the button of one click is for the first part, and says which it is:
    "Switch off head 4·3", or where it is `narrow`, beside a sentence that names the part,
    "Switch off 4·3", and of no head "Switch off". A change reruns the whole page, also from a fragment,
    since all of its numbers change.
    """
    with st.container(key=f"change_{key}", horizontal=True, gap="small"):
        first = actions(parts[0])[0]
        opened = f"change_{key}_open"
        name = parts[0].name(scene.labels)
        switched = ""
        if parts[0].kind == "head":  # in short: there is little room beside a picture
            switched = f"head {parts[0].block}·{parts[0].head}"
            if narrow:
                switched = switched.removeprefix("head ")
        elif not narrow and parts[0].kind in OUTPUTS:
            switched = name
        _button(first, f"change_{key}_quick", says=f"{name}, on every page", named=switched)
        box = st.popover("Change …", key=opened, on_change="rerun")
        if box.open:
            with box:
                _opened(scene, parts, key, opened)
    address.run_the_page_if_asked_for()


def switch(action: Action, key: str, says: str) -> None:
    """Draw one change as a button; a second click undoes it. `says` stands above its help."""
    _button(action, f"change_{key}", says=says)
    address.run_the_page_if_asked_for()


def _opened(scene: Scene, parts: tuple[Part, ...], key: str, opened: str) -> None:
    parts_by_name = {part.name(scene.labels): part for part in parts}
    chosen = next(iter(parts_by_name))
    if len(parts_by_name) > 1:
        options: Any = {
            "default": chosen,
            "required": True,
            "label_visibility": "collapsed",
            "wrap": True,
        }
        chosen = st.segmented_control(
            "Change", list(parts_by_name), key=f"change_{key}_part", **options
        )
    else:
        st.markdown(f"**{capital(chosen)}**")
    part = parts_by_name[chosen]
    offered: list[tuple[object, Action]] = list(enumerate(actions(part)))
    if part.kind == "site" and ALL_SITES[part.site].shape == "(T, D)":
        offered = [*(("push", action) for action in _pushed(scene, part, key)), *offered]
    for number, action in offered:
        button, description = st.columns([4, 9], gap="small", vertical_alignment="center")
        with button:
            _button(action, f"change_{key}_{number}", opened)
        description.markdown(
            f"**{action.formula}** :small[· {action.means}]  \n:small[{as_code(action.python)}]"
        )


def _pushed(scene: Scene, part: Part, key: str) -> list[Action]:
    """Draw inputs of two words and a number; return what adds one's output row, less the other's."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        towards, away = (
            st.text_input(
                label, key=f"change_{key}_{label}", width=150, placeholder="a token, such as ·love"
            )
            for label in ("Push it towards", "away from")
        )
        times = st.number_input("times", 0.01, 9999.0, 20.0, key=f"change_{key}_times", width=130)
    tokens = [target.find_token(scene.lm, typed) if typed else None for typed in (towards, away)]
    unknown = [
        typed
        for typed, token_id in zip((towards, away), tokens, strict=True)
        if typed and token_id is None
    ]
    if unknown:
        st.caption(
            f"{as_code(unknown[0])} is not a single token of this model. Write · for a space."
        )
    terms = [(sign, token) for sign, token in zip("+-", tokens, strict=True) if token is not None]
    if unknown or not terms:
        return []
    value = "".join(f"{sign}{times:g}*out{token}" for sign, token in terms)
    rows = " ".join(f"{sign} {times:g} w({show_id(scene.lm, token)})" for sign, token in terms)
    edit = Edit(
        part.site, part.block, value, positions=None if part.position is None else [part.position]
    )
    means = "w is a token's row of the output head; the dot product with it gives the token's logit"
    return [Action("Push", edit, f"xᵢ = xᵢ {rows}", means)]


def _button(
    action: Action, key: str, opened: str | None = None, says: str = "", named: str = ""
) -> None:
    """Draw a change as a button. `says` stands above its help, `named` behind its label: what is switched off."""
    is_made = str(action.edit) in changes.written()
    if is_made:
        label = action.undone
        icon = "undo"
    else:
        label = action.label
        icon = ""
    if named:
        label += f" {named}"
    help_text = None
    if says:
        help_text = f"A click changes {says}: then {action.means}."
    if says and is_made:
        help_text = f"A click undoes the change of {says}: {action.means}."
    options: Any = {"help": help_text}
    options |= {"width": "stretch" if opened else "content"}
    button(label, key, _toggle, action, opened, icon=icon, primary=is_made, **options)


def _toggle(action: Action, opened: str | None) -> None:
    """Make the change, or undo it if it is made; close the popover, so that the page is in sight."""
    changes.toggle(action.edit)
    address.ask_for_the_page()
    if opened is not None:
        st.session_state[opened] = False
