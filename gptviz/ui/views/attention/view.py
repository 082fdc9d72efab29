"""Every head of every block, one of them large, its steps, and the arithmetic behind one weight."""

import streamlit as st
import torch

from gptviz.analysis import attention
from gptviz.analysis.head_roles import role_table
from gptviz.analysis.shapes import run_first_block
from gptviz.model import MultiHeadAttention
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.attention import controls, panels, words
from gptviz.ui.views.attention.snippet import weights


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    trace, shown, heads = scene.trace, controls.shown(scene), scene.trace.config.n_heads

    sentence = st.container()
    left, right = st.columns([4, 5], gap="medium")
    paragraph, steps, arithmetic = st.container(), st.container(), st.container()

    with left:  # all that chooses stands above the grid of heads, however many heads there are
        block, head = controls.controls(scene)
        average, hide_first = controls.options()

    own = attention.block_mean(trace["attn", block]) if average else trace["attn", block][head]
    drawn = attention.without_first(own) if hide_first else own  # (T, T), what the large matrix shows

    with arithmetic:
        st.subheader("One weight, worked out", anchor=False)
        key = controls.key_control(scene, drawn)

    with sentence:
        prose(_sentence(scene, block, head, own, average, hide_first), "block", "head", "attention")
    with left:
        controls.draw_sheet(scene, block, head)
    with right:
        panels.draw_head(scene, own, drawn, key)
    with paragraph:
        prose(words.LOOK_FOR, "query", "key")
    measured = controls.measured(scene.run)
    first = attention.first_token(measured.first, trace["v", block][head], block, head)
    if first is not None and (answer := words.sink(first, shown)):
        paragraph.markdown(answer)
    with steps:
        st.subheader(f"The steps of block {block}, head {head}", anchor=False)
        if note := words.steps_of(block, head, heads, average, hide_first):
            st.markdown(note)
        panels.draw_steps(scene, block, head, key)
    with arithmetic:
        cell = attention.cell(trace, block, head, scene.position, key)
        lines = words.arithmetic(cell, shown)
        if cell.weight is not None:
            row = own[cell.query]
            lines += words.drawn(
                cell.weight,
                row[key].item() if average else None,
                row[0].item() if hide_first and key > 0 else None,
            )
        panels.draw_arithmetic(scene, lines, cell, block, head)

    in_numbers(
        lambda: attention.table(drawn, shown),
        f"attention-block{block}-" + ("average" if average else f"head{head}"),
        words.table_caption(block, head, average, hide_first),
    )
    in_numbers(
        lambda: role_table(measured.roles, measured.writes),
        "heads",
        words.ROLES,
        "what each head does",
    )
    in_code(
        [MultiHeadAttention.forward],
        program(
            weights,
            scene.load,
            text=scene.text,
            block=block,
            head=head,
            average=average,
            hide_first=hide_first,
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, [token.id for token in scene.tokens]),
    )


def _sentence(scene: Scene, block: int, head: int, own: torch.Tensor, average: bool, hide_first: bool) -> str:
    """What stands above the picture: what the head does, and what the selected token looks at."""
    shown = controls.shown(scene)
    row = own[scene.position, : scene.position + 1].tolist()
    what = (
        words.average(block, scene.trace.config.n_heads)
        if average
        else words.one_head(block, head, controls.measured(scene.run).roles[block][head], shown)
    )
    return f"{what} {words.rescaled_row(shown, row) if hide_first else words.row(shown, row)}"
