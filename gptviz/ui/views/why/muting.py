"""Direct beside total: what muting each part in turn takes away, worked out when somebody asks for it."""

import pandas as pd
import streamlit as st

from gptviz.analysis import shares as numbers
from gptviz.analysis.ablation import parts_of
from gptviz.figures import shares as figures
from gptviz.ui.shell import state
from gptviz.ui.shell.details import in_numbers
from gptviz.ui.shell.muted import knocked, muted_map
from gptviz.ui.shell.navigation import page_target
from gptviz.ui.shell.params import Param, in_link
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.target import PARAMS
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
    muted = knocked(scene, chosen.target, "why_stop", lambda: MUTE.set(False))
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
    with left:
        st.markdown("**What muting takes away**")
        muted_map(
            scene,
            muted,
            both["total"].to_numpy(),
            (block, head),
            "why_muted",
            f"What muting each part takes away from {chosen.said}",
            chosen.open,
        )
        st.page_link(
            page_target("knock_out"),
            label=words.TO_KNOCK_OUT,
            query_params=state.link() | in_link(PARAMS),
        )
    with right:
        scene.chart(
            figures.direct_and_total(both, (block, head), scene.mode),
            key="why_both",
            alt=f"Each head's direct share of {chosen.said}, and what muting it takes away",
        )
    prose(words.WHY_DIFFERENT, "LayerNorm", "residual stream")
    in_numbers(lambda: _table(both, muted), "muting", words.MUTED_NUMBERS, "direct and total")


def _table(both: pd.DataFrame, muted: pd.DataFrame) -> pd.DataFrame:
    shown = both[["kind", "block", "head", "direct"]].copy()
    shown["takes away"] = both["total"]
    return shown.assign(logit=muted["logit"], probability=muted["probability"])
