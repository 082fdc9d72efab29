"""Every head of every block, one of them large, its steps, and the arithmetic behind one weight."""

import math

import pandas as pd
import streamlit as st
import torch

from gptviz import Trace
from gptviz.analysis import attention
from gptviz.analysis.shapes import run_first_block
from gptviz.figures.ghosts import CHANGED, UNCHANGED
from gptviz.model import MultiHeadAttention
from gptviz.ui import heads, runs
from gptviz.ui.shell import change_menu
from gptviz.ui.shell.block import head_controls, head_sites
from gptviz.ui.shell.change_menu import Part
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.attention import change_words, comparing, controls, panels, words
from gptviz.ui.views.attention.choice import Choice
from gptviz.ui.views.attention.snippet import weights


def draw(scene: Scene) -> None:
    """The page under the prompt."""
    sentence, doing = st.columns([3, 1], gap="small")
    if controls.ARCS.value:  # the matrix, the arcs beside it, and the grid of heads below
        picture, lines = left, _ = st.columns([6, 7], gap="medium")
        grid, paragraph = st.columns([6, 7], gap="medium")
    else:
        left, picture = st.columns([4, 5], gap="medium")
        grid, paragraph, lines = left, st.container(), None
    steps, arithmetic = st.container(), st.container()

    with left:  # all that chooses stands above the grid of heads, however many heads there are
        block, head = head_controls(scene)
        chosen = Choice(block, head, *controls.options())
    keep = head_sites(scene.lm.config, len(scene.tokens), block)
    trace = scene.get(keep, scene.reduce)
    own, drawn = chosen.weights(trace)
    with picture:
        which = comparing.choose(scene)
    compared = comparing.compared(scene, chosen, trace, keep, which)
    with arithmetic:
        st.subheader("One weight, worked out", anchor=False)
        key = controls.key_control(scene, drawn)

    _strip(scene, drawn)
    with sentence:
        said = _sentence(scene, chosen, own)
        if compared is not None:
            said += f" {comparing.says(scene, chosen, compared)}"
        prose(said, "block", "head", "attention")
    with doing:
        _menu(scene, chosen, key)
    with picture:
        panels.draw_head(scene, chosen, drawn if compared is None else compared.picture, which, key)
    one = CHANGED if which == comparing.DIFFERENCE else which  # a difference has no lines, and no steps
    shown = runs.get(scene.other, keep) if scene.other and one == UNCHANGED else trace
    if lines is not None:
        with lines:
            if which == comparing.DIFFERENCE:
                st.caption(change_words.LINES)
            panels.draw_arcs(scene, shown, chosen, one, key)
    with grid:
        controls.draw_grid(scene, block, head)
    with paragraph:
        prose(_look_for(scene, chosen, own), "query", "key", "causal mask")
        _sink(scene, trace, chosen)
    with steps:
        st.subheader(f"The steps of block {block}, head {head}", anchor=False)
        if note := words.steps_of(block, head, trace.config.n_heads, chosen.average, chosen.hide_first):
            st.markdown(note)
        panels.draw_steps(scene, shown, block, head, one, key)
    with arithmetic:
        _arithmetic(scene, trace, chosen, own, key)
    _details(scene, chosen, drawn if compared is None else compared.picture, which)


def _menu(scene: Scene, chosen: Choice, key: int) -> None:
    """What can be done to what is looked at: the head, its block, the chosen key."""
    block, head = chosen.block, None if chosen.average else chosen.head
    parts = [Part("attention", block), Part("feed-forward", block), Part("token", block, head, key)]
    change_menu.menu(scene, *([] if head is None else [Part("head", block, head)]), *parts, key="attention")


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
        if (chosen.block, chosen.head) in heads.withdrawn(scene.run):
            what += f" {words.WITHDRAWN}"
    if chosen.hide_first:
        return f"{what} {words.rescaled_row(shown, row)}"
    return f"{what} {words.row(shown, row)}" if chosen.average else what


def _look_for(scene: Scene, chosen: Choice, own: torch.Tensor) -> str:
    """What stands below: how to read the picture, and the selected row of it."""
    parts = [words.LOOK_FOR, words.LOOK_FOR_ARCS if chosen.arcs else ""]
    if scene.other is not None:
        parts.append(change_words.LOOK_FOR)
    if not (chosen.hide_first or chosen.average):  # else it stands above
        row = own[scene.position, : scene.position + 1].tolist()
        parts.append(("" if scene.other is None else change_words.OF) + words.row(scene.labels, row))
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
        used = trace["attn", chosen.block][chosen.head, cell.query, key].item()
        if "attn" in comparing.replaced(scene, chosen.block, chosen.head):
            lines.append(change_words.weight(cell.weight, used))
    if scene.other is not None:
        sites = (("q", chosen.block), ("k", chosen.block))
        old = attention.cell(runs.get(scene.other, sites), chosen.block, chosen.head, scene.position, key)
        lines.append(change_words.unchanged(old.score, old.weight))
    panels.draw_arithmetic(scene, trace, lines, cell, chosen.block, chosen.head)


def _role_table(scene: Scene) -> pd.DataFrame:
    table = heads.role_table(scene.run)
    return table.assign(moved=heads.moved(scene.run).by.flatten().numpy()) if scene.run.edits else table


def _details(scene: Scene, chosen: Choice, drawn: torch.Tensor, which: str) -> None:
    block, head = chosen.block, chosen.head
    name = f"attention-block{block}-" + ("average" if chosen.average else f"head{head}")
    in_numbers(
        lambda: attention.table(drawn, scene.labels),
        name if scene.other is None else f"{name}-{which}",
        words.table_caption(block, head, chosen.average, chosen.hide_first)
        + ("" if scene.other is None else f" {change_words.which(which)}"),
        missing="not shown" if chosen.hide_first else "masked",
    )
    in_numbers(
        lambda: _role_table(scene),
        "heads",
        f"{words.ROLES_NUMBERS} {heads.CALLED}." + ("" if scene.other is None else f" {change_words.MOVED}"),
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
            average=chosen.average,
            hide_first=chosen.hide_first,
            pattern=which,
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )
