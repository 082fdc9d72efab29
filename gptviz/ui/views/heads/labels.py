"""Every head's label as a sheet, and texts that show what this one cannot."""

from collections.abc import Mapping, Sequence

import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis.head_scores import HeadScores
from gptviz.figures.role_sheet import Cell, role_sheet
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell import state
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.attention.controls import open_head
from gptviz.ui.views.examples import EXAMPLES, Example
from gptviz.ui.views.heads import words
from gptviz.ui.views.heads.chosen import Chosen


def draw(scene: Scene, chosen: Chosen, colors: Mapping[str, str]) -> None:
    """The sheet of this text's labels, and below it what this text cannot show."""
    st.subheader("The labels", anchor=False)
    prose(words.LABELS, "head", "induction head", "attention")
    _sheet(scene, chosen, colors, _here(chosen), "heads_here", "on this text")
    _offers(scene.lm, chosen.hidden)


def _sheet(
    scene: Scene,
    chosen: Chosen,
    colors: Mapping[str, str],
    cells: Sequence[Sequence[Cell]],
    key: str,
    where: str,
) -> None:
    st.markdown(f"**{where.capitalize()}**")
    scene.chart(
        role_sheet(cells, colors, (chosen.block, chosen.head), scene.mode),
        key=key,
        alt=f"Every head's label {where}",
    )
    cell_clicks(key, len(cells), len(cells[0]), open_head, scene.mode)


def _here(chosen: Chosen) -> list[list[Cell]]:
    return [
        [
            Cell(role.kind, words.SHORT[role.kind], words.cell(role.block, role.head, role.kind, role.share))
            for role in row
        ]
        for row in chosen.here.roles
    ]


# ---- what this text cannot show ----


def _offers(lm: LanguageModel, hidden: Sequence[str]) -> None:
    """Which roles that is, and texts that show them, at a click."""
    if not hidden:
        return
    st.markdown(words.cannot_show(hidden))
    offered = dict.fromkeys(found for role in hidden if (found := _showing(lm, role)))
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="heads_offers"):
        for number, example in enumerate(offered):
            shown = [role for role in hidden if role in _shows(lm, example)]
            st.button(
                words.offer(example.label, shown),
                key=f"heads_offer_{number}",
                on_click=_choose,
                args=(example.text,),
            )


def _showing(lm: LanguageModel, role: str) -> Example | None:
    """The first of the examples in which some token can do it."""
    return next((example for example in EXAMPLES if role in _shows(lm, example)), None)


def _shows(lm: LanguageModel, example: Example) -> set[str]:
    """The roles that heads can show on an example as this model reads it; none where it cannot read it."""
    ids = lm.encode(example.text)[: lm.config.context_length]
    if max(ids) >= lm.config.vocab_size:
        return set()
    rows = HeadScores.of(lm.tokens(ids)).targets.rows
    return {name for name, asked in rows.items() if asked}


def _choose(text: str) -> None:
    state.change(text=text, token=None)
