"""Every head of every block, one of them large, its steps, and the arithmetic behind one weight."""

import streamlit as st

from gptviz.analysis import attention
from gptviz.model import MultiHeadAttention
from gptviz.ui.shell.details import in_code, in_numbers
from gptviz.ui.shell.page import Scene
from gptviz.ui.views.attention import controls as view
from gptviz.ui.views.attention import panels, words
from gptviz.ui.views.attention.snippet import attention as snippet


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    trace = scene.trace

    left, right = st.columns([4, 5], gap="medium")
    paragraph, steps, arithmetic = st.container(), st.container(), st.container()

    with left:  # all that chooses stands here, so that the large matrix fits into the first screen
        sheet = st.container()
        block, head = view.controls(scene)
        average, hide_first = view.options()
    with right:
        heading = st.container()
        picture = st.container()

    weights = attention.block_mean(trace["attn", block]) if average else trace["attn", block][head]
    if hide_first:
        weights = attention.without_first(weights)

    with arithmetic:
        st.subheader("One weight, worked out", anchor=False)
        key = view.key_control(scene, weights)

    with sheet:
        view.draw_sheet(scene, block, head)
    heading.markdown(words.heading(scene, block, head, average, hide_first))
    with picture:
        panels.draw_head(scene, weights, key)
    paragraph.markdown(words.look_for(scene, weights))
    if answer := words.sink(scene, block, head):
        paragraph.markdown(answer)
    with steps:
        st.subheader(f"The steps of block {block}, head {head}", anchor=False)
        panels.draw_steps(scene, block, head, key)
    with arithmetic:
        cell = attention.cell(trace, block, head, scene.position, key)
        panels.draw_arithmetic(scene, words.arithmetic(scene, cell), cell, block, head)

    in_numbers(
        lambda: attention.table(weights, view.shown(scene)),
        f"attention-block{block}-" + ("average" if average else f"head{head}"),
        words.table_caption(block, head, average, hide_first),
    )
    in_code(
        [MultiHeadAttention.forward],
        snippet(scene.load, scene.text, block, head, average, hide_first, scene.special),
        words.shapes(trace),
    )
