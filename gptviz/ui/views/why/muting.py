"""Direct beside total: what muting each part in turn takes away, worked out when somebody asks for it."""

from typing import Any

import pandas as pd
import streamlit as st

from gptviz.analysis import shares as numbers
from gptviz.analysis.knock_out import knock_out, parts_of
from gptviz.figures import shares as figures
from gptviz.ui import runs
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell.details import in_numbers
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.target import Target
from gptviz.ui.views.why import words
from gptviz.ui.views.why.chosen import Chosen

MUTE = Param("mute", bool, False)


def draw(scene: Scene, chosen: Chosen, table: pd.DataFrame) -> None:
    """The switch, and when it is on the two numbers of each head side by side. `table` is `attribution`'s."""
    st.subheader("Direct is not total", anchor=False)
    prose(words.offer(len(parts_of(scene.lm))))
    MUTE.widget(st.toggle, "Mute each part in turn")
    if not MUTE.value:
        return
    muted = knocked(scene, chosen.target)
    both = numbers.direct_and_total(table, muted)
    block, head = chosen.block, chosen.head
    target = chosen.target
    opened = both[(both["block"] == block) & (both["head"] == head)].iloc[0]
    heads = both[both["kind"] == "head"]
    far = heads.loc[(heads["total"] - heads["direct"]).abs().idxmax()]
    direct, total = float(opened["direct"]), float(opened["total"])
    said = words.total_effect(block, head, direct, total, target.shown, target.against_shown)
    if far["label"] != opened["label"]:
        said += " " + words.farthest(far["label"], float(far["direct"]), float(far["total"]))
    prose(said)
    left, right = st.columns(2, gap="medium")
    config = scene.lm.config
    grid, columns = numbers.grid(
        both.rename(columns={"kind": "part", "total": "contribution"}),
        config.n_layers,
        config.n_heads,
        ("attention", "feed-forward"),
    )
    with left:
        st.markdown("**What muting takes away**")
        scene.chart(
            figures.share_grid(grid, columns, (block, head), "muting it takes away", scene.mode),
            key="why_muted",
            alt=f"What muting each part takes away from {chosen.said}",
        )
        cell_clicks("why_muted", len(grid), len(columns), chosen.open, scene.mode)
    with right:
        scene.chart(
            figures.direct_and_total(both, (block, head), scene.mode),
            key="why_both",
            alt=f"Each head's direct share of {chosen.said}, and what muting it takes away",
        )
    prose(words.WHY_DIFFERENT, "LayerNorm", "residual stream")
    in_numbers(lambda: _table(both, muted), "muting", words.MUTED_NUMBERS, "direct and total")


def knocked(scene: Scene, target: Target) -> pd.DataFrame:
    """`knock_out` for the selected position; with a progress bar and a way to stop, where it is not known."""
    lm, position = scene.lm, scene.position
    pair = target.token if target.against is None else (target.token, target.against)
    place = st.empty()

    def work() -> pd.DataFrame:
        with place.container(horizontal=True, vertical_alignment="center"):
            st.button("Stop", key="why_stop", type="primary", on_click=MUTE.set, args=(False,))
            bar = st.progress(0.0)

        def progress(done: int, of: int) -> Any:
            bar.progress(done / of, words.muting(done, of))  # a click interrupts the script here

        return knock_out(lm, scene.run.ids, pair, position=position, progress=progress)

    found = runs.runs().derived((f"{__name__}.knocked", position, pair), scene.run, work)
    place.empty()
    return found


def _table(both: pd.DataFrame, muted: pd.DataFrame) -> pd.DataFrame:
    shown = both[["kind", "block", "head", "direct"]].copy()
    shown["takes away"] = both["total"]
    return shown.assign(logit=muted["logit"], probability=muted["probability"])
