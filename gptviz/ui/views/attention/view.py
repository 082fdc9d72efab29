"""Every head of every block, one of them large, its steps, and the arithmetic behind one weight."""

import math

import streamlit as st
import torch

from gptviz import Trace
from gptviz.analysis import attention
from gptviz.analysis.head_roles import role_table
from gptviz.analysis.shapes import run_first_block
from gptviz.model import MultiHeadAttention
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views import heads
from gptviz.ui.views.attention import controls, panels, words
from gptviz.ui.views.attention.choice import Choice
from gptviz.ui.views.attention.snippet import weights


def draw(scene: Scene) -> None:
    """The page under the prompt."""
    sentence = st.container()
    left, right = st.columns([4, 5], gap="medium")
    paragraph, steps, arithmetic = st.container(), st.container(), st.container()

    with left:  # all that chooses stands above the grid of heads, however many heads there are
        block, head = controls.controls(scene)
        chosen = Choice(block, head, *controls.options())
    trace = scene.get(controls.sites(scene.lm.config, len(scene.tokens), block), scene.reduce)
    own, drawn = chosen.weights(trace)
    with arithmetic:
        st.subheader("One weight, worked out", anchor=False)
        key = controls.key_control(scene, drawn)

    _strip(scene, drawn)
    with sentence:
        prose(_sentence(scene, chosen, own), "block", "head", "attention")
    with left:
        controls.draw_grid(scene, block, head)
    with right:
        if chosen.arcs:
            panels.draw_arcs(scene, trace, chosen, key)
        else:
            panels.draw_head(scene, chosen, own, drawn, key)
    with paragraph:
        prose(_look_for(scene, chosen, own), "query", "key", "causal mask")
        _sink(scene, trace, chosen)
    with steps:
        st.subheader(f"The steps of block {block}, head {head}", anchor=False)
        if note := words.steps_of(block, head, trace.config.n_heads, chosen.average, chosen.hide_first):
            st.markdown(note)
        panels.draw_steps(scene, trace, block, head, key)
    with arithmetic:
        _arithmetic(scene, trace, chosen, own, key)
    _details(scene, chosen, drawn)


def _strip(scene: Scene, drawn: torch.Tensor) -> None:
    """The selected row of the picture, drawn on the text itself; None for what nothing is drawn for."""
    row = drawn[scene.position].tolist()
    seen = [None if math.isnan(weight) else weight for weight in row[: scene.position + 1]]
    scene.strip(weights=[*seen, *[None] * (len(row) - len(seen))])


def _sentence(scene: Scene, chosen: Choice, own: torch.Tensor) -> str:
    """What stands above the picture: what the head does, and whether it is drawn as it is."""
    shown = scene.labels
    row = own[scene.position, : scene.position + 1].tolist()
    if chosen.average:
        what = words.average(chosen.block, scene.lm.config.n_heads)
    else:
        role = heads.measured(scene.run).roles[chosen.block][chosen.head]
        what = words.one_head(chosen.block, chosen.head, role, shown)
    if chosen.hide_first:
        return f"{what} {words.rescaled_row(shown, row)}"
    return f"{what} {words.row(shown, row)}" if chosen.average else what


def _look_for(scene: Scene, chosen: Choice, own: torch.Tensor) -> str:
    """What stands below: how to read the picture, and the selected row of it."""
    parts = [words.LOOK_FOR_ARCS if chosen.arcs else words.LOOK_FOR]
    if not (chosen.hide_first or chosen.average):  # else it stands above
        row = own[scene.position, : scene.position + 1].tolist()
        parts.append(words.row(scene.labels, row))
    if not chosen.average:
        parts.append(words.over_all(heads.measured(scene.run).roles[chosen.block][chosen.head]))
    return " ".join(filter(None, parts))


def _sink(scene: Scene, trace: Trace, chosen: Choice) -> None:
    values = trace["v", chosen.block][chosen.head]
    first = attention.first_token(heads.measured(scene.run).first, values, chosen.block, chosen.head)
    if first is not None and (answer := words.sink(first, scene.labels)):
        st.markdown(answer)


def _arithmetic(scene: Scene, trace: Trace, chosen: Choice, own: torch.Tensor, key: int) -> None:
    cell = attention.cell(trace, chosen.block, chosen.head, scene.position, key)
    lines = words.arithmetic(cell, scene.labels)
    if cell.weight is not None:
        average = own[cell.query, key].item() if chosen.average else None
        first = own[cell.query, 0].item() if chosen.hide_first and key > 0 else None
        lines += words.drawn(cell.weight, average, first)
    panels.draw_arithmetic(scene, trace, lines, cell, chosen.block, chosen.head)


def _details(scene: Scene, chosen: Choice, drawn: torch.Tensor) -> None:
    block, head = chosen.block, chosen.head
    in_numbers(
        lambda: attention.table(drawn, scene.labels),
        f"attention-block{block}-" + ("average" if chosen.average else f"head{head}"),
        words.table_caption(block, head, chosen.average, chosen.hide_first),
        missing="not shown" if chosen.hide_first else "masked",
    )
    measured = heads.measured(scene.run)
    in_numbers(
        lambda: role_table(measured.roles, measured.writes), "heads", words.ROLES, "what each head does"
    )
    in_code(
        [MultiHeadAttention.forward],
        program(
            weights,
            scene.load,
            text=scene.text,
            block=block,
            head=head,
            average=chosen.average,
            hide_first=chosen.hide_first,
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )
