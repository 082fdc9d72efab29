"""A menu at parts of the model: what can be done to them, for the whole app, and undone.

`menu(scene, Part("head", 4, 3), key="head")` draws the plainest change as a button of one click, and beside
it a popover with all of them, each with its formula and its line of Python. A click makes an edit.
"""

import streamlit as st

from gptviz.ui.shell import address, changes
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.change_actions import Action, Part, actions
from gptviz.ui.words import as_code

__all__ = ["Part", "menu", "switch"]


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
