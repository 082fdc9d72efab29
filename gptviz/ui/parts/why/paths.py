"""The panel on paths: which parts wrote what the word's heads read, and which wrote what those read."""

from typing import Any

import pandas as pd
import streamlit as st

from gptviz.analysis.paths import LEAST, Paths, paths
from gptviz.digits import percent, significant
from gptviz.engine.architecture import architecture_of
from gptviz.figures.token_graph import paths_graph
from gptviz.ui import sheet
from gptviz.ui.sheet import Param, Scene, between, sideways
from gptviz.ui.shell.target import Target
from gptviz.ui.words import Place, compared_with, prose, towards

FROM = 100 * LEAST
TO = 20.0
MOST = 32  # edges that a picture has room for

THRESHOLD = Param("paths_from", float, FROM, between)  # percent
PARAMS = (THRESHOLD,)


@st.fragment
def draw(scene: Scene, target: Target) -> None:
    """Draw the panel's content, for the page's word."""
    labels = scene.labels
    word = (target.token, target.against, scene.position)
    result: Paths = sheet.once(scene.run, paths, *word)
    prose(" ".join(_ways(result.edges, labels, target)), "logit", "head", "block")
    options = {"step": 0.5, "format": "%.1f %%", "width": 420}
    threshold = (
        THRESHOLD.number(st.slider, "Draw edges from … % of the word on", FROM, TO, **options) / 100
    )
    above = result.above(threshold)
    edges_drawn = result.above(threshold, MOST)
    sideways("why_paths")
    fig = paths_graph(
        edges_drawn, labels, scene.position, target.shown, scene.lm.config.n_layers, scene.mode
    )
    alt = f"The {len(edges_drawn)} largest paths from tokens to {target.shown}"
    scene.chart(fig, key="why_paths", alt=alt, which=(f"from{threshold:g}",))
    if len(edges_drawn) == len(above):
        which = f"All {len(above)}"
    else:
        which = f"The {len(edges_drawn)} largest of {len(above)}"
    st.caption(
        f"{which} edges of {percent(threshold)} or more are drawn. 100 % is {significant(result.scale)}: all "
        "direct contributions to the word, added up without their signs. With their signs they add up to "
        f"{significant(result.total)}, its logit minus {compared_with(target.against_shown)}."
    )
    embedded = "tokens"
    if "position" in architecture_of(scene.lm.config).embedded:
        embedded = "token and position"
    prose(
        "Circles are heads (block.head), squares feed-forward layers, dots the embeddings of "
        f"{embedded}.",
        *("head", "feed-forward", "embedding"),
    )
    text = f"**What it assumes.** Solid edges are exact, with {scene.norm}s and attention weights held fixed: "
    text += "they split what a head took from a token among the parts that had made that token's stream. "
    text += "Dotted edges show, to first order, what made a head look there: the gradient of its contribution "
    text += "by query or key, times what each part added to them. A feed-forward layer is not linear, so "
    text += "paths end there."
    prose(text, scene.norm, "query", "key", "attention weight")
    caption = "One row per edge: which part writes at which position, which head reads it there, by value (V), "
    caption += (
        "query (Q) or key (K). In logits. `parent` is the edge that the reading head itself makes."
    )
    with sheet.details("the paths"):
        sheet.numbers_of(
            "why-paths", result.edges, caption, "every path that was found", missing="–"
        )
        arguments: dict[str, Any] = dict(zip(("token", "against", "position"), word, strict=True))
        sheet.code_of(scene, ["block"], paths, **arguments, key="in_code_paths")


def _ways(edges: pd.DataFrame, labels: list[str], target: Target) -> list[str]:
    """Sentences: the strongest exact way through a head, and what most made a head look where it did."""
    rows: dict[int, dict[str, Any]] = {row["edge"]: row for row in edges.to_dict("records")}

    def writer(row: dict[str, Any]) -> str:
        place = Place(labels[row["position"]], row["position"])
        if row["part"] == "embedding":
            return f"the token {place}"
        if row["part"] == "head":
            return f"block {row['block']}, head {row['head']} at {place}"
        return f"the feed-forward layer of block {row['block']} at {place}"

    def largest(frame: pd.DataFrame) -> dict[str, Any]:
        return rows[int(frame.loc[frame["logits"].abs().idxmax(), "edge"])]

    below = edges[edges["level"] > 0]
    exact = below[below["exact"]]
    steering = below[below["by"].isin(["Q", "K"]) & (below["part"] == "head")]
    if exact.empty:
        least = percent(LEAST)
        sentences = [
            f"No path goes through a head: nothing that a head read reaches {least} of the word."
        ]
    else:
        row = largest(exact)
        readers = []
        parent = row["parent"]
        while not pd.isna(parent):
            readers.append(writer(rows[parent]))
            parent = rows[parent]["parent"]
        path = f"{writer(row)}, read by {' then by '.join(readers)}"
        comparison = towards(target.shown, target.against_shown)
        logits = significant(row["logits"])
        sentences = [
            f"**The strongest path** to {comparison}: {path}. It contributes exactly **{logits}** logits."
        ]
    if len(steering):
        row = largest(steering)
        direction = "lowered"
        if row["logits"] >= 0:
            direction = "raised"
        reader = writer(rows[row["parent"]])
        changed = f"the key that {reader} read there"
        if row["by"] == "Q":
            changed = f"the query of {reader}"
        sentences.append(
            f"**Why a head looked where it did**, to first order: {writer(row)} added to {changed}. That "
            f"{direction} the reading head's contribution by **{significant(abs(row['logits']))}** logits."
        )
    return sentences
