"""The sheet of the circuit: who is in, and what each head brings to the model, changed and unchanged."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from gptviz.figures.circuit import circuit_sheet
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.circuit import derived, words
from gptviz.ui.views.circuit.choice import BESIDE, SHEET, Chosen, toggle
from gptviz.ui.views.circuit.derived import Asked
from gptviz.ui.views.slow import is_asked_for


@dataclass(frozen=True)
class Brought:
    """What each head brings, (L, H): to the model on the screen, to the unchanged one; None if not known."""

    own: NDArray[np.float64] | None = None
    unchanged: NDArray[np.float64] | None = None


def sheet(scene: Scene, asked: Asked, chosen: Chosen) -> Brought:
    """Who is in, coloured by what each brings where that is quick or asked for."""
    config, brought = scene.lm.config, _brought(scene, asked, chosen)
    in_brackets = "" if brought.unchanged is None else words.IN_BRACKETS
    st.caption(words.sheet(chosen.measured) + in_brackets)
    scene.chart(
        circuit_sheet(
            brought.own, chosen.heads, (config.n_layers, config.n_heads), scene.mode, brought.unchanged
        ),
        key="circuit_sheet",
        alt=f"The circuit of {chosen.measured.axis}: {len(chosen.heads)} of {chosen.of} heads",
    )
    heads = chosen.heads
    cell_clicks(
        "circuit_sheet",
        config.n_layers,
        config.n_heads,
        lambda block, head: toggle(heads, (block, head)),
        scene.mode,
    )
    return brought


def _brought(scene: Scene, asked: Asked, chosen: Chosen) -> Brought:
    """Worked out where it is quick; else there is a button that asks for it."""
    for param in (SHEET, BESIDE):
        param.within(("on", "off"))
    tokens, passes = len(scene.tokens), chosen.of
    if SHEET.value != "on" and (SHEET.value == "off" or is_asked_for(scene.lm, tokens, passes)):
        st.button(words.ask(passes), key="circuit_sheet_start", on_click=SHEET.set, args=("on",))
        return Brought()
    own = derived.brings(scene.run, asked, chosen.heads, lambda: SHEET.set("off"))
    if scene.other is None:
        return Brought(own)
    if BESIDE.value != "on" and (BESIDE.value == "off" or is_asked_for(scene.lm, tokens, 2 * passes)):
        st.button(words.BESIDE, key="circuit_sheet_beside", on_click=BESIDE.set, args=("on",))
        return Brought(own)
    return Brought(
        own, derived.brings(scene.other, asked, chosen.heads, lambda: BESIDE.set("off"), "_beside")
    )
