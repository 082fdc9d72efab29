"""Attribution patching on "Patching": what one gradient guesses, beside what every patch really did."""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from gptviz.analysis.activation_patching import agreement
from gptviz.both import Both
from gptviz.digits import fixed, significant
from gptviz.engine.sites import sites_of
from gptviz.figures.shares import off_the_line
from gptviz.ui import sheet
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import prose


def draw(scene: Scene, table: pd.DataFrame, called: Mapping[str, str], way: str) -> None:
    """Draw the section, for the rows of `patching(estimate=True)`; `called` are its sites on the screen."""

    def where(row: pd.Series) -> str:
        """ "queries, block 0 · head 1", "residual stream, block 3 at position 5"."""
        if pd.isna(row["head"]):
            place = f" at position {row['position']}"
        else:
            part = sites_of(scene.lm.config)[row["site"]].part
            place = f" · {part} {row['head']}"
        return f"{called[row['site']]}, block {row['block']}{place}"

    st.subheader("Can one gradient say what all patches would do?", anchor=False)
    agreements = agreement(table)
    text = "**Attribution patching** estimates what every patch would do, from one pass and its gradient: "
    text += "(new value − old value) × gradient, summed."
    correlated = agreements.dropna(subset="correlation").sort_values("correlation")
    if len(correlated) > 1:
        rows = correlated[["site", "correlation"]].itertuples(index=False)
        phrases = [f"for the {called[site]} (correlation **{fixed(r, 3)}**)" for site, r in rows]
        text += f" Estimate and truth agree best {phrases[-1]} and worst {phrases[0]}."
    farthest = agreements.loc[agreements["worst"].idxmax()]
    text += f" The largest error is at the {where(farthest)}: estimated {significant(farthest['estimate'])} "
    prose(f"{text}logits, in truth {significant(farthest['change'])}.")
    points = table.loc[agreements["row"]].round(3).groupby(["change", "estimate"], sort=False)
    worst = {  # values often stand where outputs do
        rows.index[0]: ", ".join(rows["site"].map(called)) for _, rows in points
    }
    left, right = st.columns(2, gap="medium")
    with left:
        points_at = table["change"].to_numpy(float), table["estimate"].to_numpy(float)
        names = [worst.get(row, "") for row in table.index]
        says = [f"{where(row)}: in truth %.3f, estimated %.3f" for _, row in table.iterrows()]
        axes = "what the patch does, in logits", "what the gradient estimates"
        fig = off_the_line(*points_at, names, says, axes, scene.mode, named=len(table))
        alt = f"What each patch does to the difference of logits, and what one gradient estimates ({way})"
        scene.chart(fig, key="patching_estimate", alt=alt, which=(way, "estimate"))
    with right:
        st.caption(
            "In logits. Names in the picture: the worst estimate of each kind, if it is far off."
        )
        columns = {"site": "patched", "largest": "largest change", "worst": "worst error"}
        displayed = agreements.assign(site=agreements["site"].map(called))[
            ["site", "largest", "correlation", "worst"]
        ]
        sheet.table("attribution patching", Both(displayed.rename(columns=columns)), digits=3)
        st.caption(
            "A gradient only knows the slope at one point. Where the model curves on the way, the estimate "
            "misses: a softmax with nearly all its weight on one key is almost flat."
        )
