"""Dropout on attention weights: before, the mask, after."""

import streamlit as st
import torch

from gptviz.figures import scaling as figures
from gptviz.lessons import dropout as lesson
from gptviz.ui import runs
from gptviz.ui.shell.params import Param, between, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import BLOCK, HEAD
from gptviz.ui.views.scaling import words

WEIGHTS = Param("sc_weights", str, "ones", if_there)
P = Param("sc_p", float, 0.5, between)
SEED = Param("sc_seed", int, 123, between)
PARAMS = (WEIGHTS, P, SEED)

OFFERED = {"ones": "Ones", "journey": "“Your journey …”", "text": "This text"}
JOURNEY = ("Your", "journey", "starts", "with", "one", "step")
MOST = 24  # tokens of the text


def draw(scene: Scene) -> None:
    sentence = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        WEIGHTS.within(OFFERED)
        WEIGHTS.widget(
            st.segmented_control,
            "Weights",
            options=list(OFFERED),
            format_func=OFFERED.__getitem__,
            required=True,
        )
        P.within((0.0, 0.9))
        P.widget(st.slider, "p", min_value=0.0, max_value=0.9, step=0.1, width=220)
        SEED.within((0, 9999))
        SEED.widget(st.number_input, "Seed", min_value=0, max_value=9999, step=1, width=130)
    weights, labels = _weights(scene)
    found = lesson.drop(weights, P.value, SEED.value)
    sums = None
    if WEIGHTS.value != "ones":
        rows = found.after.sum(-1)
        sums = float(rows.min()), float(rows.max())
    with sentence:
        prose(words.dropout(P.value, found.gone, found.kept, sums), "attention weight", "token")
    high = max(1.0, float(found.after.max()))
    for column, name, title, values in zip(
        st.columns(3, gap="medium"),
        ("before", "mask", "after"),
        ("Weights", "Mask", f"Weights × mask ÷ {1 - P.value:.1f}"),
        (found.before, found.mask, found.after),
        strict=True,
    ):
        with column:
            st.markdown(f"**{title}**")
            scene.chart(
                figures.weight_grid(values.numpy(), labels, 1.0 if name == "mask" else high, scene.mode),
                key=f"scaling_drop_{name}",
                which=(f"p{P.value:g}", f"seed{SEED.value}"),
                alt=f"Dropout with p = {P.value:g}, seed {SEED.value}: {title.lower()}",
            )
    shown = ""
    if WEIGHTS.value == "text":
        whose = words.whose(BLOCK.value or 0, HEAD.value or 0, scene.other is not None)
        shown = f"{whose} {words.first_tokens(len(labels), len(scene.tokens))}"
    st.caption(f"{words.dropout_source(WEIGHTS.value, P.value, SEED.value)} {shown}")


def _weights(scene: Scene) -> tuple[torch.Tensor, list[str]]:
    """The square that is dropped from, and its labels."""
    if WEIGHTS.value == "ones":
        return lesson.ones(), [str(i) for i in range(6)]
    if WEIGHTS.value == "journey":
        return lesson.journey(), list(JOURNEY)
    block, head = BLOCK.value or 0, HEAD.value or 0
    attn = runs.get(scene.run, (("attn", block),))["attn", block][head]  # (T, T)
    return attn[:MOST, :MOST].clone(), [f"{i} {label}" for i, label in enumerate(scene.labels[:MOST])]
