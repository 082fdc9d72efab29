"""The whole way from the text to the next token, on one screen."""

import streamlit as st

from gptviz.analysis.overview import glance, token_table
from gptviz.model import GPTModel
from gptviz.ui.shell.details import in_code, in_numbers
from gptviz.ui.shell.page import Scene
from gptviz.ui.views.overview.doors import doors
from gptviz.ui.views.overview.examples import example_row
from gptviz.ui.views.overview.snippet import overview
from gptviz.ui.views.overview.words import shapes, the_way


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
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
