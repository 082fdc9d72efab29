"""What a page is made of: numbers of both runs, said, drawn, tabled and programmed, each in one call.

The only module that knows how before and after are shown.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import LanguageModel, Run, Trace
from gptviz.analysis.reach import Unseen, unseen
from gptviz.analysis.reads import sites_of
from gptviz.analysis.shapes import run_first_block
from gptviz.both import Both
from gptviz.digits import significant
from gptviz.engine.architecture import architecture_of
from gptviz.engine.reduction import Reduction
from gptviz.engine.sites import Key
from gptviz.figures import bars as bar_mark, curves as curve_mark, maps as map_mark
from gptviz.figures.maps import Map
from gptviz.figures.marks import CHANGED, DIFFERENCE, UNCHANGED
from gptviz.ui import runs, tables
from gptviz.ui.buttons import button
from gptviz.ui.components.lazy_section import lazy_section
from gptviz.ui.heads import looks
from gptviz.ui.runs import per_run
from gptviz.ui.shell.address import end_page
from gptviz.ui.shell.block import (
    block_and_head_inputs,
    head_controls,
    head_reductions,
    head_sites,
    opened_head,
)
from gptviz.ui.shell.change_words import cannot_matter, says
from gptviz.ui.shell.details import csv, details, in_code, panel, side_by_side, sideways, tab
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.page import read_text, start_page, trace
from gptviz.ui.shell.params import Param, at_most_last, between, choosing, if_there, in_link
from gptviz.ui.shell.scene import Frame, Prompt, Scene
from gptviz.ui.shell.slow import all_worked, is_asked_for, is_wanted, read_sample, several, worked
from gptviz.ui.shell.state import GUIDE, WHOLE
from gptviz.ui.tables import joined
from gptviz.ui.teach import claim, guess_first
from gptviz.ui.words import capital, listed, prose, show_id

# what pages take from the shell, by one door
__all__ = [
    "Frame",
    "Param",
    "Prompt",
    "Scene",
    "all_worked",
    "at_most_last",
    "between",
    "block_and_head_inputs",
    "button",
    "choosing",
    "details",
    "end_page",
    "example_row",
    "guess_first",
    "head_controls",
    "head_reductions",
    "head_sites",
    "if_there",
    "in_code",
    "in_link",
    "is_asked_for",
    "is_wanted",
    "looks",
    "opened_head",
    "panel",
    "read_sample",
    "read_text",
    "several",
    "side_by_side",
    "sideways",
    "start_page",
    "tab",
    "trace",
    "worked",
]

P = ParamSpec("P")
R = TypeVar("R")
Table: TypeAlias = pd.DataFrame | Both[pd.DataFrame]


SHOWN = Param("shown", str, DIFFERENCE, if_there, once="pattern")  # as it was called on Attention
SEEN = "gptviz_seen"  # in the session: where its reader has been
LISTED = 3  # changes of one reason that are named; of more it is said how many there are


class Code(str):
    """An argument of a program that is written as it is: the Python that gives a model, say."""

    __repr__ = str.__str__


@per_run
def once(run: Run, numbers: Callable[..., Any], *args: Any) -> Any:
    """`numbers(lm, trace, *args)` of a run, worked out once: see `of`."""
    lm = runs.model(run)
    return numbers(lm, runs.get(run, sites_of(numbers, lm, *args)), *args)


def of(
    scene: Scene,
    numbers: Callable[Concatenate[LanguageModel, Trace, P], R],
    *args: P.args,
    **none: P.kwargs,
) -> Both[R]:
    """`numbers(lm, trace, *args)` of the run and, if something is changed, of the unchanged one.

    It must be a public function of a module, marked by `reads`; the arguments must be hashable.
    """
    return Both(scene.run, scene.other).map(lambda run: once(run, numbers, *args))


@per_run
def reduced(run: Run, reduction: Reduction) -> Any:
    """The results of a reduction, without keeping the site that it reads; worked out once a run."""
    return runs.get(run, (), (reduction,)).reduced(reduction)


@per_run
def _compared(run: Run, right: Run, compare: Callable[..., Any], *args: Any) -> Any:
    keep = sites_of(compare, runs.model(run), *args)
    return compare(runs.get(run, keep), runs.get(right, keep), *args)


def compared(
    run: Run,
    right: Run,
    numbers: Callable[Concatenate[Trace, Trace, P], R],
    *args: P.args,
    **none: P.kwargs,
) -> R:
    """`numbers(left, right, *args)` of two runs' traces, worked out once."""
    found: R = _compared(run, right, numbers, *args)
    return found


def say(
    scene: Scene,
    text: str,
    terms: Iterable[str] = (),
    *,
    about: Both[Any] | None = None,
    what: str = "this picture",
    sites: Iterable[Key] = (),
    position: int | None = None,
) -> None:
    """Draw a sentence; the first occurrence of each of these terms explains itself.

    Where a change left `about` as it was, the reason follows (see `why_same`); without `sites`, only that it
    is as it was.
    """
    prose(text, *terms)
    if about is not None and about.was is not None and not about.moved:
        prose(why_same(scene, what, sites, position))


def why_same(
    scene: Scene,
    what: str,
    places: Iterable[Key],
    position: int | None = None,
    head: int | None = None,
) -> str:
    """Say why numbers are the same in the scene's two runs. `what` names them, "the embeddings".

    They are made of what stands at these sites, at this position and in this head, or at all. Changes that
    could have mattered there did not, and of the others it is said why they cannot.
    """
    places = tuple(places)
    config = scene.lm.config
    count = len(scene.tokens)
    without_effect: dict[Unseen, list[str]] = {}  # the changes that cannot matter, by the reason
    for edit in scene.run.edits:
        reasons = [
            unseen(edit, site, block, config, count, head, position) for site, block in places
        ]
        if reasons and reasons[0] is not None and None not in reasons:
            change = says(edit, scene.labels, partial(show_id, scene.lm), config)
            without_effect.setdefault(reasons[0], []).append(change)
    sentences = []
    made = len(scene.run.edits)
    if sum(map(len, without_effect.values())) < made:
        your_changes = "Your changes"
        verb = "have"
        if made == 1:
            your_changes = "Your change"
            verb = "has"
        sentences.append(
            f"**{your_changes} {verb} no effect on {what}**: the numbers are the same as before."
        )
    for why, changes in without_effect.items():
        named = changes
        if len(changes) > LISTED:
            named = [*changes[:2], f"{len(changes) - 2} more"]
        reason = cannot_matter(why, what, len(changes) > 1)
        sentences.append(f"{capital(listed(named))} {reason}.")
    return " ".join(sentences)


# ---- drawn ----


def is_near(key: str) -> bool:
    """Whether a page goes on below `end_unless_near` of this key."""
    seen: set[str] = st.session_state.setdefault(SEEN, set())
    return key in seen or GUIDE.value is not None or WHOLE.value


def end_unless_near(key: str) -> None:
    """End the page here until its reader is near, or a guide may speak of what comes."""
    if not is_near(key):
        seen: set[str] = st.session_state[SEEN]
        lazy_section(f"near_{key}", lambda _: seen.add(key))
        end_page()


def shown(scene: Scene, *numbers: Both[Any], label: str = "Shown") -> str:
    """DIFFERENCE, CHANGED or UNCHANGED, as chosen: what pictures show of a changed run.

    CHANGED, without a choice, where nothing is changed or none of these numbers is another.
    """
    if scene.other is None or not any(one.moved for one in numbers):
        return CHANGED
    return SHOWN.choose(label, {one: one.capitalize() for one in (DIFFERENCE, CHANGED, UNCHANGED)})


def scene_of(scene: Scene, shown: str) -> Scene:
    """The scene of the model that a picture shows; only the changed one's file names the changes.

    `shown` is DIFFERENCE, CHANGED or UNCHANGED. For `Scene.chart` and `Scene.saved`.
    """
    return scene.unchanged if shown == UNCHANGED else scene


def maps(
    scene: Scene,
    key: str,
    panels: Sequence[Map],
    rows: Sequence[str],
    alt: str,
    at: tuple[int | None, int | None] | None = None,
    pick: Callable[[int, int], Any] | None = None,
    show: str | None = None,
    joint: bool = False,
    which: Iterable[object] = (),
    few: slice = slice(None),
) -> None:
    """Maps of rows and tokens, side by side: see `figures.maps`. A click on a cell is `pick(row, position)`.

    Without `show` the choice is drawn above them. `few` are the positions that the cells are of.
    """
    if show is None:
        show = shown(scene, *(panel.cells for panel in panels))
    changed = [show] if any(panel.cells.was is not None for panel in panels) else []
    positions = range(len(scene.tokens))[few]
    cell = None
    if at is not None:
        row, position = at
        cell = (row, None if position is None else position - positions[0])
    if len(panels) > 1 and not joint:
        sideways(key)  # or their scales would lie one over the other
    fig = map_mark.maps(panels, rows, scene.labels[few], cell, scene.mode, show, joint, positions)
    # a click's place is among those that are drawn
    on_cell = None if pick is None else lambda row, i: pick(row, positions[0] + i)
    alt = f"{alt} ({show})" if changed else alt
    scene_of(scene, show).chart(fig, key=key, alt=alt, which=(*which, *changed), on_cell=on_cell)


def curves(
    scene: Frame,
    key: str,
    lines: Mapping[str, Both[Any]],
    names: Sequence[str],
    unit: str,
    alt: str,
    pick: Callable[[int, float], Any] | None = None,
    which: Iterable[object] = (),
    **more: Any,
) -> None:
    """Lines over the same places, the unchanged ones dashed: see `figures.curves`, which takes `more`.

    A click on a point is `pick(place, value)`.
    """
    fig = curve_mark.curves(
        {name: values.map(np.asarray) for name, values in lines.items()},
        names,
        scene.mode,
        unit,
        **more,
    )
    picked = None if pick is None else lambda point: pick(int(point["x"]), float(point["y"]))
    scene.chart(fig, key=key, alt=alt, pick=picked, which=which)


def bars(
    scene: Frame,
    key: str,
    values: Both[Any],
    names: Sequence[str],
    unit: str,
    alt: str,
    pick: Callable[[int], Any] | None = None,
    which: Iterable[object] = (),
    **more: Any,
) -> None:
    """A bar a place, the unchanged ones outlined: see `figures.bars`, which takes `more`.

    A click on a bar is `pick(place)`.
    """
    fig = bar_mark.bars(values.map(np.asarray), names, scene.mode, unit, **more)
    place = "y" if more.get("lying") else "x"
    picked = None if pick is None else lambda point: pick(int(point[place]))
    scene.chart(fig, key=key, alt=alt, pick=picked, which=which)


# ---- tabled and programmed ----


def table(
    name: str, numbers: Both[pd.DataFrame], digits: int = 4, chosen: int | None = None
) -> None:
    """A small table on the page, called `name`; below each row that is another, the unchanged one.

    The row `chosen` stands out.
    """
    frames = [[*frame.itertuples(index=False, name=None)] for frame in numbers.all]
    rows = []
    for place, (was, now) in enumerate(zip(frames[0], frames[-1], strict=True)):
        rows.append(tables.Row(_cells(now, digits), "line chosen" if place == chosen else "line"))
        if was is not now and _cells(now, 6) != _cells(was, 6):
            rows.append(tables.Row([f"{was[0]}, {UNCHANGED}", *_cells(was, digits)[1:]]))
    heads = []
    for column, kind in numbers.now.dtypes.items():
        mark = "#" if pd.api.types.is_numeric_dtype(kind) else ""  # a column of numbers
        heads.append(f"{mark}{column}")
    st.html(tables.STYLE + tables.table(name, heads, rows))


def _cells(row: Sequence[Any], digits: int) -> list[str]:
    """Texts and counts as they are, numbers with so many digits; what is left of rounding is 0, NaN "–"."""

    def cell(value: Any) -> str:
        if isinstance(value, str | int | np.integer):
            return str(value)
        if pd.isna(value):
            return "–"
        return significant(0.0 if abs(value) < 1e-12 else float(value), digits)

    return [cell(value) for value in row]


def numbers_of(
    name: str,
    table: Table | Callable[[], Table],
    caption: str = "",
    what: str = "",
    missing: str | None = None,
    headings: Mapping[str, str] | None = None,
) -> None:
    """Name a tab *Table* in the box of details: the table behind the picture, and its download as CSV.

    Of both runs the unchanged numbers stand beside those that are others. `table` may be a function, which
    runs only when the tab is opened. `name` ("attention.csv" or "attention") is unique on its page, and is
    the file's. `what` tells one table of a page from another. `missing` is the word for a number that is not
    there, None where all are. `headings` are what the screen calls columns whose names would be misread; the
    file has their names.
    """
    stem = name.removesuffix(".csv")
    called = headings or {}
    tab(
        "Table", what, f"numbers_{stem}", lambda: _draw_table(stem, table, caption, missing, called)
    )


def _draw_table(
    stem: str,
    table: Table | Callable[[], Table],
    caption: str,
    missing: str | None,
    headings: Mapping[str, str],
) -> None:
    found = table() if callable(table) else table
    frame = joined(found) if isinstance(found, Both) else found
    if caption:
        st.caption(caption)
    columns = {}
    for column in frame:
        width = None
        if missing and frame[column].isna().any():
            width = 80  # for the word, beside numbers of few digits
        if width or column in headings:
            columns[column] = st.column_config.Column(headings.get(column), width=width)
    st.dataframe(
        frame,
        hide_index=True,
        key=f"table_{stem}",
        placeholder=missing,
        column_config=columns or None,
    )
    st.download_button(
        "CSV",
        csv(frame),
        f"{stem}.csv",
        "text/csv",
        f"csv_{stem}",
        "With every digit. A text that a spreadsheet could run as a formula begins with an apostrophe.",
        on_click="ignore",
        icon=":material/download:",
    )


def code_of(
    scene: Frame,
    sources: Sequence[str | Callable[..., Any]],
    numbers: Callable[..., Any],
    *args: object,
    run: Callable[[], object] | None = None,
    key: str = "in_code",
    what: str = "",
    **named: object,
) -> None:
    """Name a tab *Code* in the box of details: the model's lines, the very function whose numbers are drawn,
    and the lines that call it. The page's own, of a text, has a tab *Claim* behind it.

    `numbers` has `lm`, or `lm` and a trace, as its first parameters, or neither; `args` and `named` follow.
    `run` comes by some of `sources`, whose shapes are then shown: without it, for a text, it is the pass of
    the model's first block. `what` tells one of a page from another. A source may be one of the model's own, by its
    name in `Architecture.lines`.
    """
    functions = [
        architecture_of(scene.lm.config).lines[one] if isinstance(one, str) else one
        for one in sources
    ]
    if run is None and sources and isinstance(scene, Scene):
        lm = scene.lm
        ids = scene.run.ids
        run = lambda: run_first_block(lm, ids)  # noqa: E731
    in_code([*functions, numbers], program(scene, numbers, *args, **named), key, run, what)
    if isinstance(scene, Scene) and key == "in_code":
        tab("Claim", "", "claim_offer", partial(claim.offer, scene))


def program(scene: Frame, numbers: Callable[..., Any], *args: object, **named: object) -> str:
    """A few lines of Python that run as they are; `picture` is what is drawn, `unchanged` the same before.

    `numbers` is given the model where its first parameter is `lm`, a trace where the second is `t`, and the
    prompt where that is `text`; `args` and `named` follow.
    """
    parameters = inspect.signature(numbers).parameters
    first = [*parameters][:2]
    named = {n: v for n, v in named.items() if v != parameters[n].default}
    given = [*(repr(arg) for arg in args), *(f"{name}={arg!r}" for name, arg in named.items())]
    lines = ["import gptviz"] if first[:1] == ["lm"] else []
    named_in: list[Any] = [numbers, *(type(one) for one in (*args, *named.values()))]
    ours = dict.fromkeys(
        one for one in named_in if one.__module__.startswith("gptviz.") and one is not Code
    )
    lines += [*(f"from {one.__module__} import {one.__name__}" for one in ours), ""]
    runs_of = [("lm", "t", "picture")]
    if first[:1] == ["lm"]:
        lines.append(f"lm = {scene.load}")
        if isinstance(scene, Scene) and scene.other is not None:
            runs_of.append(("lm.plain", "u", "unchanged"))
    for lm, traced, name in runs_of:
        heads = [lm] if first[:1] == ["lm"] else []
        if first == ["lm", "t"]:
            assert isinstance(scene, Scene)
            heads.append(traced)
            keep = sites_of(numbers, scene.lm, *args)
            lines.append(f"{traced} = {lm}.trace({read(scene)}, keep={keep!r})")
        if first == ["lm", "text"] and "text" not in named:
            assert isinstance(scene, Scene)
            heads.append(_ids(scene))
        call = f"{name} = {numbers.__name__}("
        short = f"{call}{', '.join([*heads, *given])})"
        lines += (
            [short]
            if len(short) <= 100
            else [call, *(f"    {one}," for one in [*heads, *given]), ")"]
        )
    return "\n".join(lines) + "\n"


def _ids(scene: Scene) -> str:
    """The prompt as a function takes it that encodes a text itself, but no special tokens."""
    said = read(scene)
    return f"lm.encode({said})" if said.endswith("special_tokens=True") else said


def read(scene: Scene) -> str:
    """The prompt as `LanguageModel.trace` takes it: the text, or the ids of what fits or is no text."""
    special = ", special_tokens=True" if scene.special else ""
    ids = [token.id for token in scene.tokens]
    if scene.lm.encode(scene.text, special_tokens=scene.special)[: len(ids)] != ids:
        return repr(ids)
    if scene.truncated:
        return f"lm.encode({scene.text!r}{special})[: lm.config.context_length]"
    return f"{scene.text!r}{special}"
