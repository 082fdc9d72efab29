"""What the model is made of: every tensor to scale, and the sum of its parameters, line by line."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from gptviz.analysis.anatomy import Anatomy, anatomy, part_table, tensor_table
from gptviz.digits import significant
from gptviz.engine.config import GPTConfig
from gptviz.figures.anatomy import model_map
from gptviz.figures.anatomy_block import block_map, enlargement
from gptviz.figures.anatomy_shares import share_bars
from gptviz.model import FeedForward, GPTModel, LayerNorm, MultiHeadAttention, TransformerBlock
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Frame
from gptviz.ui.tables import STYLE
from gptviz.ui.views.anatomy import tables, words
from gptviz.ui.views.anatomy.form import PRESETS, form, preset_name
from gptviz.ui.views.anatomy.snippet import tensor_sizes

SOURCES: list[Callable[..., Any]] = [
    GPTModel.__init__,
    TransformerBlock.__init__,
    MultiHeadAttention.__init__,
    FeedForward.__init__,
    LayerNorm.__init__,
]


def draw(scene: Frame) -> None:
    """The page under the strip of chips: whatever is typed into the form, the model is not run again."""

    @st.fragment
    def everything() -> None:
        st.html(STYLE + tables.STYLE)
        config = form(scene.lm.config, scene.lm.name)
        shown, own = anatomy(config), anatomy(scene.lm.config)
        _whole_model(scene, shown, own)
        _sum(scene, shown, own)
        _shares(scene, config, shown, own)
        _one_block(scene, shown)
        in_numbers(lambda: tensor_table(shown), "anatomy.csv", words.NUMBERS)
        in_code(SOURCES, program(tensor_sizes, config=config))

    everything()


def _whole_model(scene: Frame, shown: Anatomy, own: Anatomy) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="anatomy_headline"):
        st.markdown(words.headline(shown), width="content")
        st.markdown(words.about(shown, own, scene.lm.name), width="content")
    prose(words.look_for(shown), "dimension", "parameter", "token", "block", "feed-forward", "LayerNorm")
    scene.chart(model_map(shown, scene.mode), key="anatomy_model", alt=words.alt(shown))
    prose(words.larger(shown, PRESETS["XL"]), "logit")


def _sum(scene: Frame, shown: Anatomy, own: Anatomy) -> None:
    st.subheader("The sum, line by line", anchor=False)
    st.html(tables.sum_table(shown, own, scene.lm.name))


def _shares(scene: Frame, config: GPTConfig, shown: Anatomy, own: Anatomy) -> None:
    st.subheader("Shares and memory", anchor=False)
    parts = {scene.lm.name: part_table(own)}
    if shown != own:
        parts = {preset_name(config) or "this config": part_table(shown)} | parts
    scene.chart(
        share_bars(parts, scene.mode), key="anatomy_shares", alt="The share of each part of the model"
    )
    st.html(tables.share_table(shown, scene.mode))
    prose(words.weights_only(shown), "causal mask")


def _one_block(scene: Frame, shown: Anatomy) -> None:
    longer = significant(enlargement(shown), 2)
    st.subheader(f"One block, its sides {longer} times as long as above", anchor=False)
    prose(words.heads(shown), "head")
    scene.chart(
        block_map(shown, scene.mode), key="anatomy_block", alt="Block 0's tensors, each with its shape"
    )
