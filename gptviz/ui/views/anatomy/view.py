"""What the model is made of: every tensor to scale, and the sum of its parameters, line by line."""

import streamlit as st

from gptviz.analysis.anatomy import anatomy, part_table, tensor_table
from gptviz.digits import significant
from gptviz.figures.anatomy import model_map
from gptviz.figures.anatomy_block import block_map, enlargement
from gptviz.figures.anatomy_shares import share_bars
from gptviz.model import FeedForward, GPTModel, LayerNorm, MultiHeadAttention, TransformerBlock
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.page import Scene
from gptviz.ui.views.anatomy import words
from gptviz.ui.views.anatomy.form import form, preset_name
from gptviz.ui.views.anatomy.snippet import tensor_sizes


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    name, mode = scene.lm.name, scene.mode

    @st.fragment
    def sheet() -> None:
        """All of it: whatever is typed into the form, the model is not run again."""
        st.html(words.STYLE)
        config = form(scene.lm.config, name)
        shown, own = anatomy(config), anatomy(scene.lm.config)
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="anatomy_headline"):
            st.markdown(words.headline(shown), width="content")
            st.markdown(words.about(shown, own, name), width="content")
        scene.chart(model_map(shown, mode), key="anatomy_model", alt=words.alt(shown))
        st.markdown(words.look_for(shown))

        st.subheader("The sum, line by line", anchor=False)
        st.html(words.sum_table(shown, own, name))

        st.subheader("Shares and memory", anchor=False)
        tables = {name: part_table(own)}
        if shown != own:
            tables = {preset_name(config) or "this config": part_table(shown)} | tables
        scene.chart(share_bars(tables, mode), key="anatomy_shares", alt="The share of each part of the model")
        st.html(words.share_table(shown, mode))
        st.markdown(words.weights_only(shown))

        larger = significant(enlargement(shown), 2)
        st.subheader(f"One block, its sides {larger} times as long as above", anchor=False)
        scene.chart(block_map(shown, mode), key="anatomy_block", alt="Block 0's tensors, each with its shape")
        st.markdown(words.heads(shown))

        in_numbers(lambda: tensor_table(shown), "anatomy.csv", words.NUMBERS)
        in_code(
            [
                GPTModel.__init__,
                TransformerBlock.__init__,
                MultiHeadAttention.__init__,
                FeedForward.__init__,
                LayerNorm.__init__,
            ],
            program(tensor_sizes, config=config),
        )

    sheet()
