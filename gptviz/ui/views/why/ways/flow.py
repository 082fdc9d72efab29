"""The panel on flow: LLM-TT's contribution graph, and attention rollout, of the selected token's stream."""

import pandas as pd
import streamlit as st
import torch

from gptviz.analysis.shapes import run_first_block
from gptviz.digits import percent
from gptviz.figures.flow import depth_map, flow_graph
from gptviz.model import TransformerBlock
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.panels import panel, sideways
from gptviz.ui.shell.params import Param, between, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.why.chosen import Chosen
from gptviz.ui.views.why.ways import derived, words
from gptviz.ui.views.why.ways.flow_snippet import shares as shares_in_python
from gptviz.ui.views.why.ways.words import CONTRIBUTIONS, ROLLOUT, Place

FROM, TO = 1.0, 30.0

WAY = Param("flow_way", str, CONTRIBUTIONS, if_there)
THRESHOLD = Param("flow_from", float, 4.0, between)  # percent; 4 is LLM-TT's own
RENORMALIZE = Param("flow_scaled", bool, True)  # as in LLM-TT
PARAMS = (WAY, THRESHOLD, RENORMALIZE)


def draw(scene: Scene, chosen: Chosen) -> None:
    """The panel, for the page's selected token; closed it costs nothing."""
    with panel(
        "Flow: which tokens the stream is made of", ":material/account_tree:", "why_flow_box"
    ) as opened:
        if opened:
            _draw(scene)


@st.fragment
def _draw(scene: Scene) -> None:
    labels = scene.labels
    sentence = st.container()
    WAY.within((CONTRIBUTIONS, ROLLOUT))
    with st.container(horizontal=True, vertical_alignment="top"):
        way = WAY.widget(st.segmented_control, "Picture", options=(CONTRIBUTIONS, ROLLOUT), required=True)
        threshold = None
        if way == CONTRIBUTIONS:
            THRESHOLD.within((FROM, TO))
            threshold = (
                THRESHOLD.widget(
                    st.slider,
                    "Follow edges of more than … %",
                    min_value=FROM,
                    max_value=TO,
                    step=0.5,
                    format="%.1f %%",
                    width=320,
                )
                / 100
            )
            RENORMALIZE.widget(st.toggle, "Head by head", help=words.HEAD_BY_HEAD)
    found = (derived.contributions if way == CONTRIBUTIONS else derived.rolled)(scene.run, scene.position)
    with sentence:
        _say(way, labels, scene.position, found.rows[0])
    if threshold is not None:
        _graph(scene, labels, threshold)
    sideways("why_depth")
    scene.chart(
        depth_map(found.rows.numpy(), labels, scene.position, words.DEPTH[way], scene.mode),
        key="why_depth",
        alt=f"Where the stream of {labels[scene.position]} comes from at each depth, by {way.lower()}",
        which=(way.split()[-1].lower(),),
    )
    if found.followed < 1:
        st.caption(words.followed(found.followed))
    prose(words.ASSUMES[way], "residual stream", "block", "head", "attention", "feed-forward")
    in_numbers(
        lambda: _depth_table(found.rows, labels), "why-flow.csv", words.DEPTH_TABLE, "shares at each depth"
    )
    in_code(
        [TransformerBlock.forward],
        program(
            shares_in_python,
            scene.load,
            text=scene.text,
            position=scene.position,
            way=way,
            special_tokens=scene.special,
        ),
        key="in_code_flow",
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )


def _graph(scene: Scene, labels: list[str], threshold: float) -> None:
    scaled = RENORMALIZE.value
    graph = derived.graph(scene.run, scene.position, threshold, scaled)
    layers = scene.lm.config.n_layers
    sideways("why_flow")
    scene.chart(
        flow_graph(graph.edges, labels, scene.position, layers, scene.mode),
        key="why_flow",
        alt=f"What flows into the stream of {labels[scene.position]}, edges of more than "
        f"{percent(threshold)}",
        which=(f"from{threshold:g}", *(["scaled"] if scaled else [])),
    )
    st.caption(words.graph_counted(len(graph.edges), threshold, graph.left_out, scaled))
    in_numbers(graph.edges, "why-graph.csv", words.GRAPH_TABLE, "the graph's edges", missing="–")


def _say(way: str, labels: list[str], position: int, row: torch.Tensor) -> None:
    others, other, share = row[:position], None, 0.0
    if position:
        best = int(others.argmax())
        other, share = Place(labels[best], best), float(others[best])
    selected = Place(labels[position], position)
    prose(words.flow(way, selected, float(row[position]), other, share), "residual stream")


def _depth_table(rows: torch.Tensor, labels: list[str]) -> pd.DataFrame:
    """depth (0 the embeddings, then after each block), position, token, share."""
    depths, n = rows.shape
    return pd.DataFrame(
        {
            "depth": [depth for depth in range(depths) for _ in range(n)],
            "position": list(range(n)) * depths,
            "token": labels[:n] * depths,
            "share": rows.flatten().double().numpy(),
        }
    )
