"""What the model would say if it stopped at each depth: the grid, a cell beside the end, tokens followed."""

import math

import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis.lens import logit_lens
from gptviz.figures.lens import Trail, beside_the_end, ends_of, scale_of, short_name, through_the_depth
from gptviz.model import LayerNorm
from gptviz.ui.components.lens import Legend, lens_grid
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.target import Target, target_input
from gptviz.ui.views.both import both, caption
from gptviz.ui.views.logit_lens import choice, derived, streaming, tables, words
from gptviz.ui.views.logit_lens.derived import Depth, Part
from gptviz.ui.views.logit_lens.snippet import says_next
from gptviz.ui.words import show_id

PARAMS = choice.PARAMS


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    found = derived.depth(scene.run, scene.position)
    names = derived.names(scene.run)
    prose(_sentence(scene, found, names), "block", "embedding", "attention", "feed-forward")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="lens_controls"):
        measure = choice.colour()
        target = target_input(scene, "Token to follow", against=None)
    row = choice.depth(names, found.telling)
    place = st.empty()
    ranked = target.token if measure == "rank" else None
    parts = streaming.read(scene, ranked, place)
    bar = streaming.offer(scene, ranked, place)
    _grid(scene, parts, measure, target, names, row)
    here = derived.around(parts, scene.position)
    prose(
        words.look_for(
            derived.itself(scene.run, parts, here), here[1] - here[0], scene.lm.config.tie_embeddings
        )
        + words.pieces(*derived.pieces(scene.run, parts))
        + (words.MOVED if scene.other else ""),
        *("token", "residual stream", "LayerNorm", "logit lens", "entropy"),
    )
    example_row("A copied passage", "A quotation closes", "He and she", "Counting")
    _cell(scene, found, names, row)
    lines = _followed(scene, found, names, row, target)
    _details(scene, found, names, row, parts, target, ranked, lines)
    if bar is not None:
        streaming.go_on(scene, ranked, bar)


def _sentence(scene: Scene, found: Depth, names: list[str]) -> str:
    lm, reading = scene.lm, found.reading
    before = None
    if found.settled:
        at = found.settled - 1
        before = show_id(lm, int(found.top[at])), float(reading.probabilities[at, 0])
    said = words.sentence(
        scene.label,
        scene.position,
        show_id(lm, int(found.top[-1])),
        float(reading.probabilities[-1, 0]),
        names,
        found.settled,
        before,
        changed=scene.other is not None,
    )
    if scene.other is None:
        return said
    was = derived.depth(scene.other, scene.position)
    top, p = show_id(lm, int(was.top[-1])), float(was.reading.probabilities[-1, 0])
    return f"{said} {words.unchanged(top, p, names, was.settled)}"


# ---- the grid ----


def _grid(
    scene: Scene, parts: tuple[Part, ...], measure: str, target: Target, names: list[str], row: int
) -> None:
    vocabulary = scene.lm.config.vocab_size
    title = {
        "probability": "probability of the token in the cell",
        "rank": f"rank of {target.shown}",
        "entropy": "entropy of the reading",
        "kl": "distance to the end (KL divergence)",
    }[measure]
    legend = Legend(title, *ends_of(measure, vocabulary), scale_of(measure, scene.mode))

    def pick(row: int | None, position: int | None) -> None:
        if row is not None:
            choice.ROW.set(row)
        if position is not None:
            scene.select(position)

    lens_grid(
        derived.drawn(scene.run, parts, measure, target.token if measure == "rank" else -1, scene.other),
        [
            (_short(name, i == len(names) - 1), _full(name, i == len(names) - 1))
            for i, name in enumerate(names)
        ],
        scene.labels,
        (row, scene.position),
        legend,
        scene.mode,
        pick,
        saved=scene.saved("logit_lens", f"What the model would say at each depth: {title}", measure),
    )


def _short(name: str, last: bool) -> str:
    """Beside a row of the grid: "3 attention"."""
    return "output" if last else short_name(name)


def _full(name: str, last: bool) -> str:
    return f"After {words.place(name)}" + (": the model's own output" if last else "")


# ---- a cell ----


def _cell(scene: Scene, found: Depth, names: list[str], row: int) -> None:
    last = row == len(names) - 1
    bars = derived.bars(scene.run, scene.position, row, scene.other)
    token = scene.label
    st.subheader(words.cell(names[row], token, scene.position, last), anchor=False)
    entropy, kl = found.reading.entropy, found.reading.kl
    said = words.distribution(names[row], bars, float(entropy[row]), float(kl[row]), float(entropy[-1]), last)
    if scene.other is not None:
        end = int(derived.depth(scene.other, scene.position).top[-1])
        answer = next(bar for bar in bars if bar.id == end)
        was = answer.was or (math.nan, math.nan)
        both = (was[0], answer.here), (was[1], answer.final)
        said += " " + words.unchanged_answer(names[row], answer.shown, *both, last)
    prose(said, "entropy", "KL divergence")
    ids = [bar.id for bar in bars]

    def chosen() -> None:
        points = st.session_state["lens_cell"].selection.points
        if points:
            choice.pin(ids[int(points[0]["y"])])

    scene.chart(
        beside_the_end(bars, names[row], last, scene.mode),
        key="lens_cell",
        alt="The most probable tokens "
        + ("" if last else f"after {words.place(names[row])}, and ")
        + "in the end",
        on_select=chosen,
        which=(f"row{row}",),
    )


# ---- tokens through the depth ----


def _followed(scene: Scene, found: Depth, names: list[str], row: int, target: Target) -> list[Trail]:
    st.subheader("Tokens through the depth", anchor=False)
    pinned = choice.pinned(scene, found.contenders)
    ids = tuple(dict.fromkeys([target.token, *(pinned or found.leaders)]))
    lines = derived.lines(scene.run, scene.position, ids)
    vocabulary = scene.lm.config.vocab_size
    scene.chart(
        through_the_depth(lines, names, row, vocabulary, scene.mode, _unchanged(scene, lines)),
        key="lens_lines",
        alt="Probability and rank of " + ", ".join(line.shown for line in lines) + " at each depth",
        on_select=_pick_row,
    )
    loser = max(lines, key=lambda line: float(line.probabilities.max() - line.probabilities[-1]))
    peak = int(loser.probabilities.argmax())
    if peak < len(names) - 1 and loser.ranks[-1] > loser.ranks[peak]:
        said = words.followed(
            loser.shown,
            names[peak],
            float(loser.probabilities[peak]),
            float(loser.probabilities[-1]),
            int(loser.ranks[peak]),
            int(loser.ranks[-1]),
            not pinned,
        )
        st.markdown(said)
    elif not pinned:
        st.markdown(words.LEADERS)
    return lines


def _unchanged(scene: Scene, lines: list[Trail]) -> list[Trail]:
    """The same tokens in the unchanged model."""
    if scene.other is None:
        return []
    return derived.lines(scene.other, scene.position, tuple(line.id for line in lines))


def _pick_row() -> None:
    points = st.session_state["lens_lines"].selection.points
    if points:
        choice.ROW.set(int(points[0]["x"]))


# ---- details ----


def _details(
    scene: Scene,
    found: Depth,
    names: list[str],
    row: int,
    parts: tuple[Part, ...],
    target: Target,
    ranked: int | None,
    lines: list[Trail],
) -> None:
    lm, run, position = scene.lm, scene.run, scene.position

    def show(i: int) -> str:
        return show_id(lm, i)

    other = scene.other

    def grid_of(run: Run) -> pd.DataFrame:
        own = None if ranked is None else (target.shown, derived.ranks(run, parts, ranked))
        return tables.grid_table(derived.columns(run, parts), parts, names, scene.labels, show, own)

    def grid() -> pd.DataFrame:
        own = None if other is None else grid_of(other)
        return both(grid_of(run), own, [] if own is None else list(own)[4:])

    def column() -> pd.DataFrame:
        own = None if other is None else derived.depth(other, position).reading
        return tables.rows_table(found.reading, names, show, own)

    in_numbers(column, "logit_lens", caption(words.ROWS, other), "the selected token")
    in_numbers(
        lambda: tables.bars_table(derived.bars(run, position, row, other)),
        f"logit_lens_row{row}",
        caption(words.CELL, other),
        "a depth beside the end",
    )
    in_numbers(
        lambda: tables.lines_table(lines, names, _unchanged(scene, lines)),
        "logit_lens_followed",
        caption(words.CURVES, other),
        "tokens through the depth",
    )
    in_numbers(grid, "logit_lens_grid", caption(words.GRID, other), "every cell")
    here = derived.around(parts, position)
    in_code(
        [logit_lens, LayerNorm.forward],
        program(
            says_next,
            scene.load,
            text=scene.text,
            position=position,
            row=row,
            start=here[0],
            stop=here[1] if here[1] < len(scene.tokens) else None,
            follow=tuple(line.id for line in lines),
            special_tokens=scene.special,
        ),
        run=lambda: logit_lens(scene.trace, lm.model, position),
    )
