"""The text that a panel speaks of: for its program, and in a link to a head on the Attention page."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from gptviz.ui.shell import params, state
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import BLOCK, EDITS, HEAD, LINK_CHARACTERS
from gptviz.ui.views.generate.written import Written


def text_so_far(scene: Scene, written: Written) -> dict[str, Any]:
    """What a program needs to come by the tokens that the model read for the chosen step."""
    return {
        "text": scene.text,
        "position": len(written.prompt) - 1,
        "new": written.new[: written.chosen],
        "special_tokens": scene.special,
    }


def attention_link(scene: Scene, ids: Sequence[int], position: int, block: int, head: int, key: str) -> None:
    """A button to a new tab, where these ids' text is read as these ids and is short enough for a link.

    With the changes that the scene's run has: those that are left out here would be made there.
    """
    lm, text = scene.lm, scene.lm.decode(ids)
    if len(text) > LINK_CHARACTERS or lm.encode(text, special_tokens=scene.special) != list(ids):
        return
    prompt = state.Prompt(text, position, state.current().model, scene.special)
    edits = ",".join(map(str, scene.run.edits))
    chosen = params.in_link((BLOCK, HEAD, EDITS), {BLOCK.name: block, HEAD.name: head, EDITS.name: edits})
    st.link_button(
        f"Block {block}, head {head} on the Attention page",
        f"attention?{urlencode(state.address_of(prompt) | chosen)}",
        icon=":material/open_in_new:",
        key=key,
    )
