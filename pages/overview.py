"""The whole way from the text to the next token, on one screen."""

import streamlit as st

from gptviz.analysis.overview import SITES, glance, token_table
from gptviz.model import GPTModel
from gptviz.ui.details import in_code, in_numbers
from gptviz.ui.doors import doors
from gptviz.ui.examples import example_row
from gptviz.ui.overview_words import shapes, the_way
from gptviz.ui.page import page
from gptviz.ui.snippets.overview import overview

scene = page("Overview", keep=SITES)
now = glance(scene.trace, scene.position)

example_row()
doors(scene, now)
st.markdown(the_way(scene, now))

in_numbers(
    lambda: token_table(scene.trace),
    "overview.csv",
    "A line a token: its embeddings' lengths, and its variance before the first and the last LayerNorm.",
)
in_code(
    [GPTModel.forward, GPTModel.final_hidden],
    overview(scene.load, scene.text, scene.position, scene.special),
    shapes(scene),
)
