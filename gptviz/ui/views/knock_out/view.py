"""Knock-out: a map of what muting each part takes away, the list of the largest, and one part opened."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz.analysis.ablation import BASELINES, knock_out, parts_of
from gptviz.analysis.shapes import run_first_block
from gptviz.analysis.shares import label_of
from gptviz.figures.knock_out import ranked_bars
from gptviz.model import TransformerBlock
from gptviz.ui.shell import state
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.navigation import page_target
from gptviz.ui.shell.params import Param, if_there, in_link
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import BLOCK, HEAD
from gptviz.ui.views import target
from gptviz.ui.views.both import both, caption
from gptviz.ui.views.change import Part, menu
from gptviz.ui.views.knock_out import words
from gptviz.ui.views.knock_out.snippet import muted as muted_in_python
from gptviz.ui.views.knock_out.words import Asked, Muted
from gptviz.ui.views.muted import KINDS, knocked, muted_map
from gptviz.ui.views.slow import is_asked_for
from gptviz.ui.views.target import Target, whole

BASELINE: Param[str] = Param("null", str, "zero", if_there)
MEASURE: Param[str] = Param("measure", str, "probability", if_there)
PART: Param[str] = Param("part", str, "head", if_there)  # of the block: its head, attention, feed-forward
MAP: Param[str | None] = Param("map", str, None, if_there)  # None: as long as it is quick
BESIDE: Param[str | None] = Param("map_unchanged", str, None, if_there)  # the unchanged model's, likewise
PARAMS = (*target.PARAMS, BASELINE, MEASURE, PART, MAP, BESIDE)

LISTED = 12
KEPT = 0.9  # of the probability: a head is not missed


@dataclass(frozen=True)
class Found:
    """`knock_out`'s rows, what is lost without each by the chosen measure, and their names.

    `old_table` and `old_lost` are the unchanged model's, where it is another and its map is worked out.
    """

    table: pd.DataFrame
    lost: NDArray[np.float64]
    labels: list[str]
    order: list[int]  # the rows, the largest loss first, whatever its sign
    asked: Asked
    old_table: pd.DataFrame | None = None
    old_lost: NDArray[np.float64] | None = None

    @property
    def strongest(self) -> int:
        """The row of the head whose muting changes most."""
        return next(row for row in self.order if self.table["kind"].iloc[row] == "head")

    def part(self, row: int) -> Muted:
        tables = [table for table in (self.table, self.old_table) if table is not None]
        found = [(float(t["logit"].iloc[row]), float(t["probability"].iloc[row])) for t in tables]
        return Muted(self.labels[row], *found[0], found[1] if len(found) > 1 else None)


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    explained = target.target_input(scene, "Token to watch")
    _controls()
    if not _is_wanted(scene):
        example_row("A copied passage", "A name comes back", "A quotation closes")
        _details(scene, explained, None, 0)
        return
    found = _found(scene, explained)
    opened = _opened(scene, found)
    asked = found.asked
    heads = found.table["kind"] == "head"
    harmless = int((found.table["probability"][heads] >= KEPT * asked.probability).sum())
    most, head = found.part(found.order[0]), found.part(found.strongest)
    said = words.sentence(asked, MEASURE.value, most, head, harmless, int(heads.sum()))
    prose(said, "logit", "block", "head")
    left, right = st.columns([5, 4], gap="medium")
    with left:
        _map(scene, found, opened)
    with right:
        _list(scene, found, opened)
    if scene.other is not None:  # here, so that the map stays in the first screen
        st.caption(words.changed(asked, MEASURE.value, found.old_table is not None))
        if found.old_table is None:
            st.button(words.BESIDE, key="knock_out_beside", on_click=BESIDE.set, args=("on",))
    _part(scene, found, opened)
    change = np.sign(found.table["probability"] - asked.probability)
    opposite = int((np.sign(found.table["effect"]) != change).sum())
    said = words.look_for(BASELINE.value, MEASURE.value, asked, opposite, len(found.table))
    prose(said, "residual stream", "feed-forward")
    example_row("A copied passage", "A name comes back", "A quotation closes")
    _details(scene, explained, found, opened)


# ---- choosing ----


def _controls() -> None:
    for param, possible in ((BASELINE, BASELINES), (MEASURE, tuple(words.MEASURES)), (PART, KINDS)):
        param.within(possible)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        BASELINE.widget(
            st.segmented_control,
            "A muted part gives",
            options=BASELINES,
            format_func=words.BASELINES.__getitem__,
            required=True,
        )
        MEASURE.widget(
            st.segmented_control,
            "What is lost is measured by the",
            options=tuple(words.MEASURES),
            format_func=words.MEASURES.__getitem__,
            required=True,
        )


def _is_wanted(scene: Scene) -> bool:
    """Whether the map is to be worked out: by itself where that is quick, else when somebody asks for it."""
    MAP.within(("on", "off"))
    parts, tokens = len(parts_of(scene.lm)), scene.position + 1
    if MAP.value == "on" or (MAP.value is None and not is_asked_for(scene.lm, tokens, parts)):
        return True
    if MAP.value == "off":
        st.info(words.STOPPED)
    st.button(words.ask(parts, tokens), key="knock_out_start", type="primary", on_click=MAP.set, args=("on",))
    return False


def _found(scene: Scene, explained: Target) -> Found:
    table = knocked(scene, explained, "knock_out_stop", lambda: MAP.set("off"), BASELINE.value)
    what = scene.position, explained.token, explained.against
    own, unchanged = whole(scene.run, *what), None if scene.other is None else whole(scene.other, *what)
    shown = explained.shown, explained.against_shown
    asked = Asked(scene.label, scene.position, *shown, *own, unchanged)
    values = _lost(table, own[1])
    labels = [label_of(*row) for row in zip(table["kind"], table["block"], table["head"], strict=True)]
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    found = Found(table, values, labels, order, asked)
    if scene.other is None or unchanged is None or not _is_beside(scene, len(table)):
        return found
    stop = ("knock_out_stop_beside", lambda: BESIDE.set("off"))
    old = knocked(scene, explained, *stop, BASELINE.value, scene.other)
    return replace(found, old_table=old, old_lost=_lost(old, unchanged[1]))


def _lost(table: pd.DataFrame, probability: float) -> NDArray[np.float64]:
    lost = probability - table["probability"] if MEASURE.value == "probability" else -table["effect"]
    return lost.to_numpy(float)


def _is_beside(scene: Scene, parts: int) -> bool:
    """Whether the unchanged model's map is worked out, too: where both are quick, or when it is asked for."""
    BESIDE.within(("on", "off"))
    quick = not is_asked_for(scene.lm, scene.position + 1, 2 * parts)
    return BESIDE.value == "on" or (BESIDE.value is None and quick)


def _opened(scene: Scene, found: Found) -> int:
    """The row of the opened part: the app's block and head, or the strongest head as long as nobody chose."""
    block, head = BLOCK.within(scene.lm.config.n_layers), HEAD.within(scene.lm.config.n_heads)
    if block is None or (PART.value == "head" and head is None):
        return found.strongest
    return block * (scene.lm.config.n_heads + 2) + _column(PART.value, head, scene.lm.config.n_heads)


def _column(kind: str, head: int | None, n_heads: int) -> int:
    return int(head or 0) if kind == "head" else n_heads + KINDS.index(kind) - 1


def _open(n_heads: int, block: int, column: int) -> None:
    """Callback: a part is opened, by its place on the map."""
    BLOCK.set(block)
    PART.set(KINDS[max(0, column - n_heads + 1)])
    if column < n_heads:
        HEAD.set(column)


# ---- the pictures ----


def _map(scene: Scene, found: Found, opened: int) -> None:
    columns = scene.lm.config.n_heads + 2
    st.caption(words.GRID)
    muted_map(
        scene,
        found.table,
        found.lost,
        divmod(opened, columns),
        "knock_out_map",
        f"What muting each part takes away from the {words.MEASURES[MEASURE.value]} of {found.asked.token}",
        lambda block, column: _open(columns - 2, block, column),
        found.old_lost,
    )


def _list(scene: Scene, found: Found, opened: int) -> None:
    rows, asked = found.order[:LISTED], found.asked
    parts = [found.part(row) for row in rows]

    def pick() -> None:
        points = st.session_state["knock_out_list"].selection.points
        if points:
            columns = scene.lm.config.n_heads + 2
            _open(columns - 2, *divmod(rows[int(points[0]["y"])], columns))

    st.caption(words.listed(len(rows), MEASURE.value))
    scene.chart(
        ranked_bars(
            [part.label for part in parts],
            found.lost[rows],
            [asked.number(MEASURE.value, part.logit, part.probability) for part in parts],
            [words.bar(part.label, asked, part) for part in parts],
            rows.index(opened) if opened in rows else None,
            scene.mode,
            None if found.old_lost is None else found.old_lost[rows],
        ),
        key="knock_out_list",
        alt=f"The parts whose muting changes the {words.MEASURES[MEASURE.value]} of {asked.token} most",
        on_select=pick,
    )


def _part(scene: Scene, found: Found, opened: int) -> None:
    """The opened part: what muting it does, the way to its page, and the menu that changes it for the app."""
    part, row = found.part(opened), found.table.iloc[opened]
    block, head = int(row["block"]), row["head"]
    if row["effect"] == 0:
        st.markdown(words.unmoved(found.asked, part))
    else:
        rank = found.order.index(opened) + 1
        prose(words.opened(found.asked, part, rank, len(found.table), BASELINE.value))
    one = None if pd.isna(head) else int(head)
    menu(scene, Part(row["kind"], block, one), key="knock_out")
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        own = {"block": block} | ({} if pd.isna(head) else {"head": int(head)})
        page, label = "attention", words.TO_ATTENTION if "head" in own else words.TO_BLOCK
        if row["kind"] == "feed-forward":
            page, label = "feed_forward", words.TO_FEED_FORWARD
        there = state.link() | in_link((BLOCK, HEAD), own)
        st.page_link(page_target(page), label=label.format(**own), query_params=there)
        same = state.link() | in_link(target.PARAMS)
        st.page_link(page_target("why"), label=words.TO_WHY, query_params=same)
        st.page_link(page_target("circuit"), label=words.TO_CIRCUIT, query_params=same)


# ---- the details ----


def _details(scene: Scene, explained: Target, found: Found | None, opened: int) -> None:
    def table() -> pd.DataFrame:
        if found is None:
            return pd.DataFrame({"token": scene.labels, "position": range(len(scene.labels))})
        lost = found.asked.probability - found.table["probability"]
        own, old = found.table.assign(lost=lost), found.old_table
        if old is not None and found.asked.unchanged is not None:
            old = old.assign(lost=found.asked.unchanged[1] - old["probability"])
        return both(own, old, ("logit", "probability", "effect", "lost"))

    if found is not None:
        in_numbers(table, "knock-out", caption(words.NUMBERS, found.old_table), "every part")
    block, column = divmod(opened, scene.lm.config.n_heads + 2)
    in_code(
        [knock_out, TransformerBlock.forward],
        program(
            muted_in_python,
            scene.load,
            text=scene.text,
            position=scene.position,
            token=explained.token,
            against=explained.against,
            baseline=BASELINE.value,
            block=block,
            head=min(column, scene.lm.config.n_heads - 1),
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )
