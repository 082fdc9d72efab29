"""What attention costs on this machine: measured when somebody asks for it, and stopped when they like."""

from typing import Any

import pandas as pd
import streamlit as st

from gptviz.figures import scaling as figures
from gptviz.lessons import cost as lesson
from gptviz.lessons.cost import Cost
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.scaling import words

# In the session, not in the address: a link must not set somebody else's machine to work.
RUNNING, MEASURED = "gptviz_cost_running", "gptviz_cost_measured"


def draw(scene: Scene) -> None:
    config = scene.lm.config
    heads, d = config.n_heads, config.emb_dim // config.n_heads
    prose(words.cost(heads, d, lesson.SIZES[-1]), "head", "token")
    if st.session_state.get(RUNNING, False):
        _measure(heads, d)
    else:
        st.button(
            "Measure on this machine", icon=":material/timer:", key="cost_start", on_click=_run, args=(True,)
        )
    found = lesson.table(measured(scene))
    if len(found):
        _charts(scene, found)


def measured(scene: Scene) -> list[Cost]:
    """What this session has measured with this model's sizes."""
    config = scene.lm.config
    sizes, costs = st.session_state.get(MEASURED, (None, []))
    return list(costs) if sizes == (config.n_heads, config.emb_dim // config.n_heads) else []


def _run(running: bool) -> None:
    st.session_state[RUNNING] = running


def _measure(heads: int, d: int) -> None:
    """Each size is in the session as soon as it is measured: what was measured before a stop stays."""
    costs: list[Cost] = []
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Stop", key="cost_stop", type="primary", on_click=_run, args=(False,))
        bar = st.progress(0.0)
    for done, cost in enumerate(lesson.measure(heads, d), start=1):
        costs.append(cost)
        st.session_state[MEASURED] = ((heads, d), costs)
        bar.progress(
            done / len(lesson.SIZES), f"{cost.tokens:,} tokens"
        )  # a click interrupts the script here
    _run(False)
    st.rerun()


def _charts(scene: Scene, found: pd.DataFrame) -> None:
    last = found.iloc[-1]
    times = None if pd.isna(last["times"]) else float(last["times"])
    prose(words.measured(int(last["tokens"]), float(last["seconds"]), float(last["bytes"]), times))
    drawn: dict[str, Any] = {"seconds": "seconds", "bytes": "bytes of scores and weights"}
    for place, (column, title) in zip(st.columns(2, gap="medium"), drawn.items(), strict=True):
        with place:
            scene.chart(
                figures.cost(found, column, title, scene.mode),
                key=f"scaling_cost_{column}",
                alt=f"Attention over T tokens: {title}, measured, beside T squared",
            )
