"""What a picture shows of a changed run: what the changes did, the run itself, or the model as it is."""

import streamlit as st

from gptviz.figures.ghosts import CHANGED, DIFFERENCE, UNCHANGED
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.scene import Scene

__all__ = ["DIFFERENCE", "SHOWN", "scene_of", "shown_input"]

SHOWN = Param("shown", str, DIFFERENCE, if_there, once="pattern")  # as it was called on Attention


def scene_of(scene: Scene, shown: str) -> Scene:
    """What a picture is of, for `Scene.chart` and `Scene.saved`: its file says the changes, or has none."""
    return scene.unchanged if shown == UNCHANGED else scene


def shown_input(scene: Scene, moved: bool, label: str = "Shown") -> str:
    """DIFFERENCE, CHANGED or UNCHANGED as chosen.

    CHANGED, without a choice, where nothing is changed or what is changed has not `moved` what is shown.
    """
    if scene.other is None or not moved:
        return CHANGED
    SHOWN.within((DIFFERENCE, CHANGED, UNCHANGED))
    return SHOWN.widget(
        st.segmented_control,
        label,
        options=(DIFFERENCE, CHANGED, UNCHANGED),
        format_func=str.capitalize,
        required=True,
    )
