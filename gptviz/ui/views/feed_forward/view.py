"""A block's feed-forward on the selected token: GELU with its 4D numbers, and the units one by one."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import LanguageModel, Run
from gptviz.analysis import feed_forward as numbers
from gptviz.analysis.feed_forward import Curve, Readings, Units
from gptviz.analysis.logit_attribution import BREAKING, spread
from gptviz.analysis.shapes import run_first_block
from gptviz.both import alike
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Token, Trace
from gptviz.figures.expansion import expansion
from gptviz.figures.feed_forward import gelu_dots, unit_over_text
from gptviz.figures.token_axis import READABLE
from gptviz.model import GELU, FeedForward
from gptviz.ui import runs
from gptviz.ui.runs import Keep, per_run
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.same import why_same
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import BLOCK
from gptviz.ui.tables import STYLE
from gptviz.ui.views.block import block_input
from gptviz.ui.views.both import both
from gptviz.ui.views.change import Part, menu
from gptviz.ui.views.feed_forward import sample, tables, words
from gptviz.ui.views.feed_forward.snippet import writes
from gptviz.ui.views.index_input import index_input
from gptviz.ui.words import as_code, show_id

UNIT: Param[int | None] = Param("ff_unit", int, None, if_there)
PARAMS = (UNIT, sample.SAMPLE)

LARGEST = 10  # units in the table of those that write most
READ = 6  # tokens that a unit raises and lowers most
HERE = 5  # places of the text that excite it most


def needs(lm: LanguageModel, tokens: Sequence[Token]) -> tuple[Keep, tuple[Reduction, ...]]:
    """What the page reads of a pass: the chosen block's feed-forward (or the last one's), the last stream."""
    chosen, last = BLOCK.within(lm.config.n_layers), lm.config.n_layers - 1
    return [*numbers.sites(last if chosen is None else chosen), ("resid_post", last)], ()


def _trace(run: Run, block: int) -> Trace:
    return runs.get(run, [*numbers.sites(block), ("resid_post", runs.model(run).config.n_layers - 1)])


@per_run
def divisor(run: Run, block: int, position: int) -> float:
    """What the final LayerNorm divides by."""
    return spread(_trace(run, block), runs.model(run).model, position)


@per_run
def units_of(run: Run, block: int, position: int) -> Units:
    return numbers.units(_trace(run, block), runs.model(run).model, block, position)


@per_run
def read(run: Run, block: int, position: int, unit: int) -> Readings:
    """The direct effects of what the units that write most write here; last, of 1 of `unit`'s activation.

    At once, since most of the work is to read the output head.
    """
    found = units_of(run, block, position)
    chosen = found.largest(LARGEST)
    times = [*found.after[chosen].tolist(), 1.0]
    trace, model = _trace(run, block), runs.model(run).model
    return numbers.readings(trace, model, block, [*chosen, unit], times, READ, position)


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    sentences = st.container()
    last = scene.lm.config.n_layers - 1
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        block = block_input(last + 1, last, "the last", width=205)
        found = units_of(scene.run, block, scene.position)
        unit = _unit_input(found)
        menu(scene, Part("feed-forward", block), key="ff")
    label = scene.label
    with sentences:
        count, fired = len(found.before), int(found.fires.sum())
        said = words.what_to_see(block, label, count, fired, found.half(), found.size, found.is_replaced)
        prose(said, "block", "feed-forward")
        if scene.other is not None:
            prose(_what_changed(scene, found, units_of(scene.other, block, scene.position), block))
    _dots(scene, found, block, unit)
    _largest(scene, found, block, unit)
    _one_unit(scene, found, block, unit)
    _expansion(scene, found, block, unit)
    _details(scene, found, block, unit)


def _what_changed(scene: Scene, found: Units, old: Units, block: int) -> str:
    """What the app's changes did to this feed-forward at the selected token; or why nothing."""
    if alike(found.before, old.before) and alike(found.written, old.written):
        what = words.made_of(block, scene.label)
        return why_same(scene, what, numbers.sites(block), scene.position)
    fired = int(old.fires.sum()), int(found.fires.sum())
    moved = int((old.fires != found.fires).sum())
    return words.what_changed(scene.label, fired, (old.size, found.size), moved, len(found.before))


def _unit_input(found: Units) -> int:
    count, largest = len(found.before), found.largest(1)[0]
    chosen = index_input(
        UNIT,
        f"Unit, 0 to {count - 1:,}",
        count,
        f"{largest}, which writes most",
        320,
        "A click on a dot chooses it, too.",
    )
    return largest if chosen is None else chosen


def _dots(scene: Scene, found: Units, block: int, unit: int) -> None:
    low, high = float(found.before.min()), float(found.before.max())
    ghost = None
    if scene.other is not None:
        old = units_of(scene.other, block, scene.position)
        ghost = float(old.before[unit]), float(old.after[unit])
        low, high = min(low, ghost[0]), max(high, ghost[0])
    curve: Curve = numbers.activation_curve(scene.lm.model, block, min(low, -1.0), max(high, 1.0))
    scene.chart(
        gelu_dots(found.before, found.after, found.writes, unit, (curve.x, curve.y), scene.mode, ghost),
        key="gelu_dots",
        alt=words.dots_alt(block, scene.label, len(found.before)),
        on_select=_pick_unit,
        which=(f"block{block}",),
    )
    quiet = int((~found.fires).sum())
    prose(words.relu(curve.tanh, quiet, found.quiet, found.size), "GELU")
    example_row("A name comes back", "He and she", "Counting", "Once upon a time")


def _pick_unit() -> None:
    """A click on a dot chooses its unit."""
    points = st.session_state["gelu_dots"].selection.points
    if points:
        UNIT.set(int(points[0]["customdata"]))


def _largest(scene: Scene, found: Units, block: int, unit: int) -> None:
    chosen = found.largest(LARGEST)
    found_readings = read(scene.run, block, scene.position, unit)
    largest = [found_readings[row] for row in range(len(chosen))]
    lm = scene.lm
    st.subheader("The units that write most", anchor=False)
    prose(words.largest(len(chosen)), "logit")
    st.html(STYLE)
    old = None if scene.other is None else units_of(scene.other, block, scene.position)
    st.html(tables.largest(found, chosen, largest, unit, lambda token: show_id(lm, token), old))
    cut = bool({edit.site for edit in scene.run.edits} & (set(BREAKING) - {"embed", "attn_out"}))
    st.caption(words.READING + (f" {words.CUT}" if cut else ""))


def _one_unit(scene: Scene, found: Units, block: int, unit: int) -> None:
    lm, label = scene.lm, scene.label
    st.subheader(f"Unit {unit} of block {block}", anchor=False)
    figures = (found.before, found.after, found.columns, found.shares)
    said = words.unit(unit, label, *(float(values[unit]) for values in figures))
    if scene.other is not None:
        old = units_of(scene.other, block, scene.position)
        said += " " + words.unchanged_unit(float(old.before[unit]), float(old.after[unit]))
    prose(said)
    left, right = st.columns([3, 5], gap="large")
    with left:
        by = divisor(scene.run, block, scene.position)
        prose(words.column(unit, label, by), "logit", "LayerNorm")
        column = read(scene.run, block, scene.position, unit)[-1]
        st.html(tables.reading(column, lambda token: show_id(lm, token)))
    with right:
        _over_text(scene, block, unit)

    @st.fragment
    def in_the_sample() -> None:
        """What excites the unit elsewhere: only when it is asked for, since that takes passes of its own."""
        sample.draw(scene, block, unit)

    in_the_sample()


def _over_text(scene: Scene, block: int, unit: int) -> None:
    activations = numbers.excites(scene.get(numbers.sites(block)), block, unit)
    labels = scene.labels
    best, fired = int(activations.argmax()), int((activations > 0).sum())
    prose(words.over_text(unit, fired, len(labels), labels[best], best, float(activations[best])), "token")
    old = None
    if scene.other is not None:
        old = numbers.excites(runs.get(scene.other, numbers.sites(block)), block, unit)
    scene.chart(
        unit_over_text(activations, labels, unit, scene.position, scene.mode, old),
        key="unit_over_text",
        alt=f"Unit {unit} of block {block} at every token of the text",
        on_select=lambda: _pick_token(scene),
        which=(f"block{block}", f"unit{unit}"),
    )
    if len(labels) > READABLE:  # a shorter text stands under the bars as it is
        places = np.argsort(-activations, kind="stable")[:HERE].tolist()
        st.html(tables.excerpts([(float(activations[i]), labels, i, f"position {i}") for i in places]))


def _pick_token(scene: Scene) -> None:
    """A click on a bar selects its token."""
    points = st.session_state["unit_over_text"].selection.points
    if points:
        scene.select(int(points[0]["x"]))


def _strips(found: Units) -> list[numbers.Floats]:
    return [found.given, found.before, found.after, found.written]


def _expansion(scene: Scene, found: Units, block: int, unit: int) -> None:
    size, count = len(found.given), len(found.before)
    unchanged = found if scene.other is None else units_of(scene.other, block, scene.position)
    old = [None if alike(*p) else p[1] for p in zip(_strips(found), _strips(unchanged), strict=True)]
    st.subheader(f"From {size:,} to {count:,} and back", anchor=False)
    prose(words.expansion(size, count, float(found.after.min()), any(s is not None for s in old)), "GELU")
    scene.chart(
        expansion(_strips(found), unit, scene.mode, old),
        key="expansion",
        alt=f"{size} numbers of {scene.label} become {count} units of block {block}, and {size} again",
        which=(f"block{block}",),
    )
    prose(words.adds_up(found.difference, scene.lm.dtype, found.is_replaced), "bias")


def _details(scene: Scene, found: Units, block: int, unit: int) -> None:
    what = f"the units of block {block} at {as_code(scene.label)}"
    in_numbers(lambda: _table(scene, found, block), f"feed-forward-block{block}", words.TABLE, what)
    in_code(
        [FeedForward.forward, GELU.forward, GELU.formula],
        program(
            writes,
            scene.load,
            text=scene.text,
            block=block,
            position=scene.position,
            unit=unit,
            special_tokens=scene.special,
            sample=sample.is_read(scene.lm),
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )


def _table(scene: Scene, found: Units, block: int) -> pd.DataFrame:
    table, old = numbers.unit_table(found), None
    if scene.other is not None:  # in the order of this run's
        old = numbers.unit_table(units_of(scene.other, block, scene.position))
        old = old.set_index("unit").loc[table["unit"]].reset_index()
    return both(table, old, ("before", "after", "writes", "share"))
