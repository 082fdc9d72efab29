"""Every head on trial: what it does here and in general, whether its label holds, and what it is like."""

import math
from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from gptviz.analysis.head_formulas import ROLES, SHARES, role_keys, shares
from gptviz.analysis.head_general import General
from gptviz.analysis.head_roles import HeadRole, role_table
from gptviz.analysis.head_trial import Trial
from gptviz.analysis.shapes import run_first_block
from gptviz.figures.head_finder import Point, finder
from gptviz.figures.head_trial import Score, here_and_general
from gptviz.figures.role_colors import role_colors
from gptviz.model import MultiHeadAttention
from gptviz.ui.measuring import general_job
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import open_head
from gptviz.ui.views import change
from gptviz.ui.views.block import head_controls, head_sites
from gptviz.ui.views.both import both, caption
from gptviz.ui.views.change_actions import Part
from gptviz.ui.views.heads import labels, measures, portraits, together, trials, words
from gptviz.ui.views.heads.chosen import Chosen, choose
from gptviz.ui.views.heads.snippet import measured_heads
from gptviz.ui.views.heads.waiting import wait_for

PARAMS = (*measures.PARAMS, *trials.PARAMS)


def draw(scene: Scene) -> None:
    """The page under the prompt."""
    sentence, doing = st.columns([3, 1], gap="small")
    left, right = st.columns([6, 5], gap="medium")
    with right:
        block, head = head_controls(scene)
    general: General | None = wait_for(
        "heads_general", partial(general_job, scene.run.plain), words.working, words.STOPPED
    )
    chosen = choose(scene, general, block, head)
    colors = role_colors(scene.mode)
    _strip(scene, chosen)
    with left:
        _finder(scene, chosen, colors)
    with doing:
        change.menu(scene, Part("head", block, head), key="heads")
    with right:
        together.draw(chosen)
        _roles(scene, chosen, colors)
    prose(words.LOOK_FOR, "head", "induction head", "previous-token head")
    if scene.run.edits:
        st.markdown(words.CHANGED)
    example_row("A copied passage", "A name comes back", "A quotation closes", "Once upon a time")
    labels.draw(scene, chosen, colors)
    tried, portrayed = st.container(), st.container()
    with portrayed:  # asked for first: it is there in seconds, a trial in a minute
        painted = portraits.draw(scene, chosen)
    with tried:
        trial = trials.draw(scene, chosen)
    with sentence:
        said = words.sentence(
            chosen.role, scene.labels, chosen.in_general, chosen.hidden, chosen.unchanged_share
        )
        prose(f"{said} {trials.verdict(trial)}" if trial else said, "head", "block")
    _details(scene, chosen, trial, painted is not None)


def _strip(scene: Scene, chosen: Chosen) -> None:
    """Where the opened head looks from the selected token, drawn on the text itself."""
    trace = scene.get(head_sites(scene.lm.config, len(scene.tokens), chosen.block), scene.reduce)
    row = trace["attn", chosen.block][chosen.head, scene.position].tolist()
    scene.strip(weights=[*row[: scene.position + 1], *[None] * (len(row) - scene.position - 1)])


# ---- the finder ----


def _finder(scene: Scene, chosen: Chosen, colors: Mapping[str, str]) -> None:
    names = measures.boxes()
    across, up = (measures.axis(name, chosen.general, chosen.here) for name in names)
    of_this_text = chosen.general is None or any(name.startswith(measures.HERE) for name in names)
    points = [
        Point(role.block, role.head, float(x), float(y), *_role(chosen, role))
        for roles, xs, ys in zip(chosen.here.roles, across.values, up.values, strict=True)
        for role, x, y in zip(roles, xs, ys, strict=True)
    ]
    (scene if of_this_text else scene.unchanged).chart(
        finder(points, (across.title, up.title), colors, (chosen.block, chosen.head), scene.mode),
        key="heads_finder",
        alt=f"Every head by {across.title} and {up.title}",
        on_select=_open,
    )


def _role(chosen: Chosen, here: HeadRole) -> tuple[str, bool]:
    """What a head is coloured by, and whether it was withdrawn: its role in general, or, as long as that is
    not known, on this text."""
    if chosen.labels is None:
        return here.kind, False
    role, _ = chosen.labels[here.block, here.head]
    return role, chosen.verdict(here.block, here.head, role) == "withdrawn"


def _open() -> None:
    """A click on a point opens its head."""
    points = st.session_state["heads_finder"].selection.points
    if points:
        block, head, _ = points[0]["customdata"]
        open_head(int(block), int(head))


# ---- the opened head ----


def _roles(scene: Scene, chosen: Chosen, colors: Mapping[str, str]) -> None:
    block, head = chosen.block, chosen.head
    here, general = chosen.role.shares, chosen.general
    unchanged = {} if chosen.unchanged is None else chosen.unchanged.roles[block][head].shares
    row = None if general is None else general.row(block, head)
    scores = [
        Score(
            ROLES[name].label,
            here.get(name),
            None if row is None or math.isnan(row[name]) else float(row[name]),
            colors[name],
            unchanged.get(name),
        )
        for name in SHARES
    ]
    scene.chart(
        here_and_general(scores, scene.mode),
        key="heads_roles",
        alt=f"What block {block}, head {head} gives to each kind of token",
        which=(f"block{block}", f"head{head}"),
    )


# ---- details ----


def _here_table(chosen: Chosen) -> pd.DataFrame:
    """Every head on this text; of a changed model with what the model as it is has there."""
    here, other = role_table(chosen.here.roles, chosen.here.writes), chosen.unchanged
    unchanged = None if other is None else role_table(other.roles, other.writes)
    return both(here, unchanged, [name for name in here.columns if name not in ("block", "head")])


def _details(scene: Scene, chosen: Chosen, trial: Trial | None, painted: bool) -> None:
    in_numbers(
        lambda: _here_table(chosen),
        "heads-here",
        caption(words.HERE_NUMBERS, scene.other),
        "every head on this text",
        missing="–",
    )
    general = chosen.general
    if general is not None:
        counts = (general.sequences, general.random_tokens, general.windows, general.sample_tokens)
        in_numbers(
            general.table,
            "heads-general",
            f"{words.GENERAL_NUMBERS} {words.measured(*counts)}",
            "every head in general",
            missing="–",
        )
    in_code(
        [MultiHeadAttention.forward, role_keys, shares],
        program(
            measured_heads,
            scene.load,
            text=scene.text,
            block=chosen.block,
            head=chosen.head,
            in_general=general is not None,
            label=None if trial is None else trial.label,
            role=chosen.in_general[0] if painted and chosen.in_general else None,
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )
