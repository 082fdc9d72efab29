"""The panel on flow: LLM-TT's contribution graph, and attention rollout, of the selected token's stream."""

from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis.flow import contribution_graph, rollout, token_flow
from gptviz.both import Both
from gptviz.digits import percent
from gptviz.figures.maps import Map
from gptviz.figures.token_graph import flow_graph
from gptviz.ui import sheet
from gptviz.ui.sheet import Param, Scene, between, if_there, sideways
from gptviz.ui.words import Place, counted, prose

FROM = 1.0
TO = 30.0
CONTRIBUTIONS = "Contributions"
ROLLOUT = "Attention rollout"
ASSUMES = {
    CONTRIBUTIONS: "A part counts by how much nearer to the whole stream (sum of absolute differences) it "
    "brings one; a part that points away counts for nothing. (Ferrando et al., 2022; LLM Transparency Tool, "
    "2024.)",
    ROLLOUT: "In every block half of a token stays where it is, and half goes where its heads look on "
    "average. Values and feed-forwards play no part. (Abnar & Zuidema, 2020.)",
}

WAY = Param("flow_way", str, CONTRIBUTIONS, if_there)
THRESHOLD = Param("flow_from", float, 4.0, between)  # percent; 4 is LLM-TT's own
RENORMALIZE = Param("flow_scaled", bool, True)  # as in LLM-TT
PARAMS = (WAY, THRESHOLD, RENORMALIZE)


@st.fragment
def draw(scene: Scene) -> None:
    """Draw the panel's content, for the page's selected token."""
    labels = scene.labels
    selected = scene.position
    layers = scene.lm.config.n_layers
    sentence = st.container()
    with st.container(horizontal=True, vertical_alignment="top"):
        way = WAY.choose("Picture", {name: name for name in (CONTRIBUTIONS, ROLLOUT)})
        if way == CONTRIBUTIONS:
            options = {"step": 0.5, "format": "%.1f %%", "width": 320}
            threshold = (
                THRESHOLD.number(st.slider, "Follow edges of more than … %", FROM, TO, **options)
                / 100
            )
            hint = "On (as in LLM Transparency Tool): compare each head with the threshold by itself, and scale "
            hint += "what remains up to 100 %. Off: add up the heads and scale nothing."
            scaled = RENORMALIZE.widget(st.toggle, "Head by head", help=hint)
    method = token_flow if way == CONTRIBUTIONS else rollout
    result = sheet.once(scene.run, method, selected)
    rows, followed = result if way == CONTRIBUTIONS else (result, 1.0)  # (L + 1, n)
    row = rows[0].numpy()
    with sentence:
        text = f"In the end **{percent(float(row[selected]))}** of the residual stream of "
        text += f"{Place(labels[selected], selected)} is its own (by {way.lower()})."
        if selected:
            most = int(row[:selected].argmax())
            text += f" Of the other tokens, {Place(labels[most], most)} contributes most: "
            text += f"{percent(float(row[most]))}."
        prose(text, "residual stream")
    if way == CONTRIBUTIONS:
        graph = sheet.once(scene.run, contribution_graph, selected, threshold, scaled)
        sideways("why_flow")
        scene.chart(
            flow_graph(graph.edges, labels, selected, layers, scene.mode),
            key="why_flow",
            alt=f"What flows into the stream of {labels[selected]}, edges of more than {percent(threshold)}",
            which=(f"from{threshold:g}", *(["scaled"] if scaled else [])),
        )
        heads = "all heads together"
        if scaled:
            heads = "each head by itself, and what remains is scaled up to 100 %"
        text = (
            f"{counted(len(graph.edges), 'edge')}. Each dot is a token's stream after a step. The thicker an edge, the "
            "larger its share of the stream above. "
            f"The picture follows edges of more than {percent(threshold)}, {heads}."
        )
        if graph.left_out:
            text += f" It stops early at {counted(graph.left_out, 'place')}."
        st.caption(text)
        caption = "One row per edge: contribution is its share of the target's stream after the block's step; "
        caption += "head is the one that gives most of it."
        with sheet.details("the graph"):
            sheet.numbers_of("why-graph", graph.edges, caption, "the graph's edges", missing="–")
    # of the token alone, on top, the share is 1
    strongest = 1.0
    if selected:
        strongest = float(rows[:-1].max())
    title = f"share of the last stream of {escape(labels[selected], quote=False)}, by {way.lower()}"
    sideways("why_depth")
    sheet.maps(
        scene,
        "why_depth",
        [Map(title, Both(rows.flip(0).numpy()), "share", "share", (0.0, strongest))],
        [*(f"after block {b}" for b in reversed(range(layers))), "tokens"],
        f"Where the stream of {labels[selected]} comes from at each depth, by {way.lower()}",
        which=(way.split()[-1].lower(),),
        few=slice(selected + 1),
    )
    if followed < 1:
        st.caption(
            f"Every block follows at least {percent(followed)} of the whole, and counts the rest as staying."
        )
    text = f"**What it assumes.** {ASSUMES[way]} This shows what the stream is made of, not which part of it "
    text += "votes for a word."
    prose(text, "residual stream", "block", "head", "attention", "feed-forward")

    def shares() -> pd.DataFrame:
        depth, position = np.indices(rows.shape).reshape(2, -1)  # (2, (L + 1) * n)
        columns = {"depth": depth, "position": position, "token": [labels[i] for i in position]}
        return pd.DataFrame(columns | {"share": rows.flatten().double().numpy()})

    caption = "One row per depth and token: the share of the selected token's last stream that comes from it."
    with sheet.details("the flow"):
        sheet.numbers_of("why-flow", shares, caption, "shares at each depth")
        sheet.code_of(scene, ["block"], method, position=selected, key="in_code_flow")
