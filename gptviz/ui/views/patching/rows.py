"""Both texts, one above the other, a column a position: where they differ is marked, a missing token is a "
"gap."""

import html
from collections.abc import Sequence

import streamlit as st

from gptviz.figures.theme import Mode, palette

WHOLE = 90  # columns that are all drawn; of more only those near a difference
NEAR = 6

STYLE = """<style>
.gv-pair { display: flex; flex-wrap: wrap; row-gap: 6px; font-size: 0.9rem; align-items: stretch; }
.gv-pair div { display: grid; grid-template-rows: 1fr 1fr; gap: 2px; margin-right: 2px; }
.gv-pair span {
  padding: 0 5px; border-radius: 4px; background: PANEL; white-space: pre; min-width: 1ch; min-height: 1.5em;
}
.gv-pair .differs span { background: ACCENT; color: PAPER; font-weight: 650; }
.gv-pair .gap span:empty { background: transparent; border: 1.5px dashed ACCENT; }
.gv-pair b { font-weight: 600; opacity: 0.75; padding-right: 6px; white-space: nowrap; }
.gv-pair .equal span { background: transparent; opacity: 0.7; }
</style>"""


def pair_rows(
    names: tuple[str, str],
    one: Sequence[str],
    other: Sequence[str],
    ids: tuple[Sequence[int], Sequence[int]],
    columns: Sequence[tuple[int | None, int | None]],
    mode: Mode,
) -> None:
    """`columns` are both texts' positions, as `analysis.alignment.side_by_side` gives them."""
    kinds = []
    for here, there in columns:
        gap = here is None or there is None
        kinds.append("gap differs" if gap else "" if ids[0][here or 0] == ids[1][there or 0] else "differs")
    shown = _near([bool(kind) for kind in kinds])
    cells = [f"<div><b>{names[0]}</b><b>{names[1]}</b></div>"]
    left_out = 0
    for number, (here, there) in enumerate(columns):
        if not shown[number]:
            left_out += 1
            continue
        cells += _skipped(left_out)
        left_out = 0
        upper, lower = (
            "" if place is None else html.escape(labels[place])
            for place, labels in ((here, one), (there, other))
        )
        cells.append(
            f'<div class="{kinds[number]}" data-testid="pair-token" data-differs="{bool(kinds[number]):d}" '
            f'title="position {here if there is None else there}">'
            f"<span>{upper}</span><span>{lower}</span></div>"
        )
    colors = palette(mode)
    style = (
        STYLE.replace("ACCENT", colors.accent).replace("PAPER", colors.paper).replace("PANEL", colors.panel)
    )
    st.html(f'{style}<div class="gv-pair" data-testid="pair">{"".join([*cells, *_skipped(left_out)])}</div>')


def _near(differs: list[bool]) -> list[bool]:
    if len(differs) <= WHOLE:
        return [True] * len(differs)
    return [any(differs[max(0, i - NEAR) : i + NEAR + 1]) for i in range(len(differs))]


def _skipped(count: int) -> list[str]:
    return (
        [f'<div class="equal"><span>… {count} alike</span><span>… {count} alike</span></div>']
        if count
        else []
    )
