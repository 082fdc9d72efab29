"""Every head on trial: what it does here and in general, whether its label holds, and what it is like."""

from collections.abc import Mapping

import streamlit as st

from gptviz.analysis.head_roles import role_table
from gptviz.analysis.head_scores import SHARES, HeadScores
from gptviz.analysis.shapes import run_first_block
from gptviz.figures.head_finder import Point, finder, role_colors
from gptviz.figures.head_trial import Score, here_and_general
from gptviz.model import MultiHeadAttention
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.attention import controls
from gptviz.ui.views.examples import example_row
from gptviz.ui.views.heads import labels, measures, words
from gptviz.ui.views.heads.chosen import Chosen, choose
from gptviz.ui.views.heads.snippet import on_trial

PARAMS = measures.PARAMS

needs = controls.needs


def draw(scene: Scene) -> None:
    """The page under the prompt."""
    sentence = st.container()
    left, right = st.columns([6, 5], gap="medium")
    with right:
        chosen = choose(scene, *controls.controls(scene))
    colors = role_colors(list(words.SHORT), words.QUIET, scene.mode)
    _strip(scene, chosen)
    with sentence:
        prose(words.sentence(chosen.role, scene.labels), "head", "block")
    with left:
        _finder(scene, chosen, colors)
    with right:
        _roles(scene, chosen, colors)
    prose(words.LOOK_FOR, "head", "induction head", "previous-token head")
    example_row("A copied passage", "A name comes back", "A quotation closes", "Once upon a time")
    labels.draw(scene, chosen, colors)
    _details(scene, chosen)


def _strip(scene: Scene, chosen: Chosen) -> None:
    """Where the opened head looks from the selected token, drawn on the text itself."""
    trace = scene.get(controls.sites(scene.lm.config, len(scene.tokens), chosen.block), scene.reduce)
    row = trace["attn", chosen.block][chosen.head, scene.position].tolist()
    scene.strip(weights=[*row[: scene.position + 1], *[None] * (len(row) - scene.position - 1)])


# ---- the finder ----


def _finder(scene: Scene, chosen: Chosen, colors: Mapping[str, str]) -> None:
    across, up = (measures.axis(name, chosen.here) for name in measures.boxes())
    points = [
        Point(role.block, role.head, float(across.values[b, h]), float(up.values[b, h]), role.kind)
        for b, row in enumerate(chosen.here.roles)
        for h, role in enumerate(row)
    ]
    scene.chart(
        finder(
            points, (across.title, up.title), words.TITLES, colors, (chosen.block, chosen.head), scene.mode
        ),
        key="heads_finder",
        alt=f"Every head by {across.title} and {up.title}",
        on_select=_open,
    )


def _open() -> None:
    """A click on a point opens its head."""
    points = st.session_state["heads_finder"].selection.points
    if points:
        block, head, _ = points[0]["customdata"]
        controls.open_head(int(block), int(head))


# ---- the opened head ----


def _roles(scene: Scene, chosen: Chosen, colors: Mapping[str, str]) -> None:
    shares = chosen.role.shares
    scores = [Score(words.SHORT[name], shares.get(name), None, colors[name]) for name in SHARES]
    scene.chart(
        here_and_general(scores, scene.mode),
        key="heads_roles",
        alt=f"What block {chosen.block}, head {chosen.head} gives to each kind of token",
        which=(f"block{chosen.block}", f"head{chosen.head}"),
    )


# ---- details ----


def _details(scene: Scene, chosen: Chosen) -> None:
    in_numbers(
        lambda: role_table(chosen.here.roles, chosen.here.writes),
        "heads-here",
        words.HERE_NUMBERS,
        "every head on this text",
        missing="–",
    )
    in_code(
        [MultiHeadAttention.forward, HeadScores.__call__],
        program(
            on_trial,
            scene.load,
            text=scene.text,
            block=chosen.block,
            head=chosen.head,
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )
