"""The panel on paths: who wrote what the word's heads read, and who wrote what those read."""

from typing import Any

import pandas as pd
import streamlit as st

from gptviz.analysis.paths import LEAST
from gptviz.analysis.shapes import run_first_block
from gptviz.figures.paths import paths_graph
from gptviz.model import TransformerBlock
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.panels import panel, sideways
from gptviz.ui.shell.params import Param, between
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.target import Target
from gptviz.ui.views.why.chosen import Chosen
from gptviz.ui.views.why.ways import derived, words
from gptviz.ui.views.why.ways.paths_snippet import edges as edges_in_python
from gptviz.ui.views.why.ways.words import Writer
from gptviz.ui.words import Place

FROM, TO = 100 * LEAST, 20.0
MOST = 32  # edges that a picture has room for

THRESHOLD = Param("paths_from", float, FROM, between)  # percent
PARAMS = (THRESHOLD,)


def draw(scene: Scene, chosen: Chosen) -> None:
    """The panel, for the page's word; closed it costs nothing."""
    with panel(
        "Paths: who wrote what the heads read", ":material/conversion_path:", "why_paths_box"
    ) as opened:
        if opened:
            _draw(scene, chosen.target)


@st.fragment
def _draw(scene: Scene, target: Target) -> None:
    found = derived.paths(scene.run, scene.position, target.token, target.against)
    sentence = st.container()
    THRESHOLD.within((FROM, TO))
    threshold = (
        THRESHOLD.widget(
            st.slider,
            "Draw edges from … % of the word on",
            min_value=FROM,
            max_value=TO,
            step=0.5,
            format="%.1f %%",
            width=420,
        )
        / 100
    )
    above, drawn = found.above(threshold), found.above(threshold, MOST)
    labels = scene.labels
    with sentence:
        _say(labels, found.edges, target)
    sideways("why_paths")
    scene.chart(
        paths_graph(drawn, labels, scene.position, target.shown, scene.lm.config.n_layers, scene.mode),
        key="why_paths",
        alt=f"The {len(drawn)} largest paths from tokens to {target.shown}",
        which=(f"from{threshold:g}",),
    )
    totals = found.total, found.scale
    st.caption(words.counted(len(drawn), len(above), threshold, *totals, target.against_shown))
    prose(words.PATHS, "head", "feed-forward", "embedding")
    prose(words.ASSUMES_PATHS, "LayerNorm", "query", "key", "attention weight")
    in_numbers(found.edges, "why-paths.csv", words.PATHS_TABLE, "every path that was found", missing="–")
    in_code(
        [TransformerBlock.forward],
        program(
            edges_in_python,
            scene.load,
            text=scene.text,
            token=target.token,
            against=target.against,
            position=scene.position,
            threshold=threshold,
            special_tokens=scene.special,
        ),
        key="in_code_paths",
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )


def _say(labels: list[str], edges: pd.DataFrame, target: Target) -> None:
    """The largest exact way through a head, and what most made a head look where it did."""
    by_number = {int(row["edge"]): row for row in edges.to_dict("records")}
    below = edges[edges["level"] > 0]
    exact, steering = below[below["exact"]], below[below["by"].isin(["Q", "K"]) & (below["part"] == "head")]
    said = []
    if len(exact):
        row = by_number[int(exact.loc[exact["logits"].abs().idxmax(), "edge"])]
        heads, parent = [], row["parent"]
        while not pd.isna(parent):
            heads.append(_writer(by_number[int(parent)], labels))
            parent = by_number[int(parent)]["parent"]
        said.append(
            words.strongest(_writer(row, labels), heads, row["logits"], target.shown, target.against_shown)
        )
    else:
        said.append(words.no_ways(LEAST))
    if len(steering):
        row = by_number[int(steering.loc[steering["logits"].abs().idxmax(), "edge"])]
        head = _writer(by_number[int(row["parent"])], labels)
        said.append(words.looked(_writer(row, labels), head, row["by"], row["logits"]))
    prose(" ".join(said), "logit", "head", "block")


def _writer(row: dict[str, Any], labels: list[str]) -> Writer:
    block, head = (None if pd.isna(row[name]) else int(row[name]) for name in ("block", "head"))
    return Writer(row["part"], block, head, Place(labels[row["position"]], int(row["position"])))
