"""Every head's label as a sheet, and texts that show what this one cannot."""

from collections.abc import Mapping, Sequence

import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import HeadRole
from gptviz.analysis.head_scores import HeadScores
from gptviz.figures.role_sheet import Cell, role_sheet
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell import state
from gptviz.ui.shell.examples import EXAMPLES, Example
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import open_head
from gptviz.ui.views.heads import words
from gptviz.ui.views.heads.chosen import Chosen


def draw(scene: Scene, chosen: Chosen, colors: Mapping[str, str]) -> None:
    """This text's labels beside those in general, and below them what this text cannot show."""
    st.subheader("The labels, here and in general", anchor=False)
    if chosen.labels is None:
        _sheet(scene, chosen, colors, _here(chosen), "heads_here", "on this text")
    else:
        prose(words.LABELS, "head", "attention")
        left, right = st.columns(2, gap="medium")
        here, general = _here(chosen), _general(chosen)
        with left:
            _sheet(scene, chosen, colors, here, "heads_here", "on this text")
        with right:
            _sheet(scene.unchanged, chosen, colors, general, "heads_general", "in general")
        pairs = [pair for rows in zip(here, general, strict=True) for pair in zip(*rows, strict=True)]
        same = sum(one.role == other.role and not one.hidden for one, other in pairs)
        st.markdown(words.differ(same, len(pairs), sum(one.hidden for one, _ in pairs)))
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
    """What each head does on this text; hidden where this text cannot show its label in general."""

    def cell(role: HeadRole) -> Cell:
        general, _ = (chosen.labels or {}).get((role.block, role.head), (role.kind, None))
        if general in chosen.hidden:
            says = words.hidden_cell(role.block, role.head, general, role.kind, role.share)
            return Cell(general, ROLES[general].label, says, hidden=True)
        says = words.cell(role.block, role.head, role.kind, role.share)
        return _tried(chosen, role.block, role.head, role.kind, says)

    return [[cell(role) for role in row] for row in chosen.here.roles]


def _general(chosen: Chosen) -> list[list[Cell]]:
    def cell(block: int, head: int) -> Cell:
        assert chosen.labels is not None
        found = chosen.labels[block, head]
        return _tried(chosen, block, head, found[0], words.cell(block, head, *found))

    return [[cell(role.block, role.head) for role in row] for row in chosen.here.roles]


def _tried(chosen: Chosen, block: int, head: int, role: str, says: str) -> Cell:
    """A label's cell, with how its trial ended if it has had one."""
    verdict = chosen.verdict(block, head, role)
    return Cell(role, ROLES[role].label, says + words.TRIED[verdict], verdict)


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
