"""Every LayerNorm: what it is given, what it makes of it, and why."""

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis import norms as numbers
from gptviz.analysis.norms import Steps
from gptviz.engine.layer_norms import NormStatistics, norms_of
from gptviz.figures.ghosts import UNCHANGED
from gptviz.figures.norm_inside import STAGES, norm_histograms, scale_and_shift
from gptviz.figures.norms import QUANTITIES, norm_depth, norm_grids
from gptviz.model import LayerNorm
from gptviz.ui import runs
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.runs import per_run
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.same import alike, why_same
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.shown import DIFFERENCE, SHOWN, scene_of, shown_input
from gptviz.ui.tables import STYLE
from gptviz.ui.views.both import both
from gptviz.ui.views.dimension import dimension_input
from gptviz.ui.views.layernorm import tables, words
from gptviz.ui.views.layernorm.snippet import before_and_after
from gptviz.ui.words import as_code

KEEP = ("resid_pre", "resid_mid", "resid_post")

NORM = Param("ln_norm", str, "block 0 · norm1", if_there)
DIMENSION: Param[int | None] = Param("ln_dim", int, None, if_there)
QUANTITY = Param("ln_quantity", str, QUANTITIES[0], if_there)
PARAMS = (NORM, DIMENSION, QUANTITY, SHOWN)


@per_run
def statistics(run: Run) -> NormStatistics:
    """Mean and variance of every token at every norm."""
    return runs.get(run, KEEP).norm_statistics()


@per_run
def steps_of(run: Run, name: str, position: int) -> Steps:
    """What the norm called `name` does to one token."""
    norm = numbers.find_norm(runs.model(run).model, name)
    return numbers.norm_steps(norm, numbers.norm_input(runs.get(run, KEEP), norm)[position])


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    sentences = st.container()
    quantity, name, shown = _choices(scene)
    with sentences:
        here = _say(scene, quantity, name, shown)
        if scene.other is None:
            prose(here)
    _grids(scene, quantity, name, shown)
    if scene.other is not None:  # so that the grids stay in the first screen
        prose(here)
    _depth(scene, quantity, name)

    @st.fragment
    def inside() -> None:
        """The chosen norm at work on the selected token, down to a single dimension."""
        _inside(scene, name)

    inside()
    _details(scene, quantity, name)


def _choices(scene: Scene) -> tuple[str, str, str]:
    """Mean or variance, which norm, and what is shown of a changed run.

    A click on a cell of the heatmaps chooses the norm and the token.
    """
    names = statistics(scene.run).names

    def pick(row: int, column: int) -> None:
        NORM.set(names[row])
        scene.select(column)

    NORM.within(names)
    QUANTITY.within(QUANTITIES)
    with st.container(horizontal=True, vertical_alignment="top"):
        quantity = QUANTITY.widget(
            st.segmented_control, "Of each token's values", options=QUANTITIES, required=True
        )
        name = NORM.widget(st.selectbox, "Norm", options=names, width=220)
        shown = shown_input(scene, _has_moved(scene, quantity))
        cell_clicks("layernorm_grids", len(names), len(scene.tokens), pick)
    return quantity, name, shown


def _has_moved(scene: Scene, quantity: str) -> bool:
    """Whether the app's changes reached any norm at all."""
    if scene.other is None:
        return False
    new, old = (statistics(run).grid(quantity) for run in (scene.run, scene.other))
    return not alike(new, old)


def _say(scene: Scene, quantity: str, name: str, shown: str) -> str:
    """What is seen in the grids; gives the sentence about the selected norm and token."""
    found, labels = statistics(scene.run), scene.labels
    before, after = found.grid(quantity), found.grid(f"{quantity}_after")
    row, size = found.names.index(name), scene.lm.config.emb_dim
    ends = numbers.extremes(before), numbers.extremes(after)
    prose(
        words.what_to_see(
            quantity, *ends, found.names, labels, size, drawn=scene.other is None or shown != DIFFERENCE
        ),
        "variance",
        "mean",
        "token",
        "residual stream",
    )
    at = row, scene.position
    said = words.here(quantity, labels[scene.position], name, float(before[at]), float(after[at]))
    if scene.other is not None:
        said += f" {_unchanged_here(scene, scene.other, quantity, name)}"
        prose(_what_changed(scene, scene.other, quantity, shown))
    return said


def _what_changed(scene: Scene, other: Run, quantity: str, shown: str) -> str:
    """What the app's changes did to what the norms are given; or why they did nothing to it."""
    found, old = statistics(scene.run), statistics(other)
    before, unchanged = found.grid(quantity), old.grid(quantity)
    moved = ~np.isclose(before, unchanged, rtol=1e-5, atol=1e-6)  # (N, T)
    if not moved.any():
        sources = [norm.source for norm in norms_of(scene.lm.model)]
        return why_same(scene, words.ALL_NORMS, sources)
    change = np.abs(numbers.changes(before, unchanged, quantity))
    row, position = divmod(int(change.argmax()), change.shape[1])
    return words.what_changed(
        quantity,
        int(moved.sum()),
        moved.size,
        found.names[int(moved.any(axis=1).argmax())],
        (scene.labels[position], found.names[row]),
        (float(unchanged[row, position]), float(before[row, position])),
        shown == DIFFERENCE,
    )


def _unchanged_here(scene: Scene, other: Run, quantity: str, name: str) -> str:
    """The same two numbers of the unchanged model; where they are no others, why."""
    found, old = statistics(scene.run), statistics(other)
    at = found.names.index(name), scene.position
    new_ends, ends = (np.array([s.grid(quantity)[at], s.grid(f"{quantity}_after")[at]]) for s in (found, old))
    if alike(new_ends, ends):
        norm = numbers.find_norm(scene.lm.model, name)
        return why_same(scene, words.one_norm(name, scene.label), [norm.source], scene.position)
    return words.unchanged_here(float(ends[0]), float(ends[1]))


def _grids(scene: Scene, quantity: str, name: str, shown: str) -> None:
    found = statistics(scene.run)
    unchanged = None
    if scene.other is not None and shown == UNCHANGED:
        found = statistics(scene.other)
    before, after = found.grid(quantity), found.grid(f"{quantity}_after")
    limit = numbers.grid_limit(before, after, quantity)
    if scene.other is not None and shown == DIFFERENCE:
        old = statistics(scene.other)
        unchanged = old.grid(quantity), old.grid(f"{quantity}_after")
        limit = numbers.change_limit(
            [numbers.changes(n, o, quantity) for n, o in zip((before, after), unchanged, strict=True)],
            quantity,
        )
    row, position, labels = found.names.index(name), scene.position, scene.labels
    what = f"The {quantity} of every token's values before and after each of the {len(found.names)} norms"
    scene_of(scene, shown).chart(
        norm_grids(before, after, found.names, labels, quantity, limit, row, position, scene.mode, unchanged),
        key="layernorm_grids",
        which=(quantity, *([shown] if scene.other else [])),
        alt=f"{what} ({shown})" if scene.other else what,
    )


def _depth(scene: Scene, quantity: str, name: str) -> None:
    found, position = statistics(scene.run), scene.position
    label = scene.label
    old = None if scene.other is None else numbers.through_depth(statistics(scene.other), position)
    st.subheader(f"{as_code(label)} through the depth of the network", anchor=False)
    scene.chart(
        norm_depth(
            numbers.through_depth(found, position), quantity, label, found.names.index(name), scene.mode, old
        ),
        key="layernorm_depth",
        which=(quantity,),
        alt=f"The {quantity} of {label} (position {position}) before and after each norm",
    )


def _inside(scene: Scene, name: str) -> None:
    label = scene.label
    steps = steps_of(scene.run, name, scene.position)
    st.html(STYLE)
    st.subheader(f"Inside {name}, for {as_code(label)} (position {scene.position})", anchor=False)
    picked = dimension_input(
        DIMENSION,
        len(steps.before),
        "the farthest from the mean",
        "A click on a bar of scale or shift chooses it, too.",
    )
    dimension = numbers.largest_dimension(steps) if picked is None else picked
    _histograms(scene, steps, dimension, name)
    prose(words.why_not_one(steps, numbers.variance_parts(steps)), "variance", "dimension")
    scene.chart(
        scale_and_shift(steps.scale, steps.shift if steps.has_shift else None, dimension, scene.mode),
        key="layernorm_weights",
        which=(*_named(name), f"dimension{dimension}"),
        alt=f"Scale and shift of {name}: one learned number of each for every dimension",
        on_select=_pick_dimension,
    )
    st.caption(words.weights(steps.has_shift))
    st.markdown(words.step_by_step(dimension))
    st.html(tables.worked_out(steps, dimension))


def _named(norm: str) -> list[str]:
    """ "block 2 · norm1" as parts of a file's name."""
    return norm.replace("block ", "block").split(" · ")


def _histograms(scene: Scene, steps: Steps, dimension: int, name: str) -> None:
    values = {stage: steps.stage(stage) for stage in STAGES}
    unchanged = None if scene.other is None else steps_of(scene.other, name, scene.position)
    old = {} if unchanged is None else {stage: unchanged.stage(stage) for stage in STAGES}
    old = {stage: x for stage, x in old.items() if not alike(values[stage], x)}
    scene.chart(
        norm_histograms(
            {stage: numbers.histogram(x, also=old.get(stage)) for stage, x in values.items()},
            {stage: (float(x.mean()), float(x.var())) for stage, x in values.items()},
            {stage: float(x[dimension]) for stage, x in values.items()},
            dimension,
            scene.mode,
            {
                stage: (numbers.histogram(x, also=values[stage])[0], float(x[dimension]))
                for stage, x in old.items()
            },
        ),
        key="layernorm_histograms",
        which=(*_named(name), f"dimension{dimension}"),
        alt=f"How the {len(steps.before)} values of {scene.label} are spread "
        f"before {name}, normalised, and after it",
    )
    st.caption(words.histograms(dimension, bool(old)))
    st.html(tables.stages(steps, unchanged if old else None))


def _pick_dimension() -> None:
    """A click on a bar of scale or shift chooses its dimension."""
    points = st.session_state["layernorm_weights"].selection.points
    if points:
        DIMENSION.set(int(points[0]["x"]))


def _details(scene: Scene, quantity: str, name: str) -> None:
    in_numbers(lambda: _table(scene), "layernorm.csv", "A row for each norm and token, before and after.")
    in_code(
        [LayerNorm.forward, LayerNorm.formula],
        program(
            before_and_after,
            scene.load,
            text=scene.text,
            norm=name,
            position=scene.position,
            quantity=quantity,
            special_tokens=scene.special,
        ),
        run=lambda: numbers.run_norm(scene.lm.model, name, scene.trace),
    )


def _table(scene: Scene) -> pd.DataFrame:
    unchanged = None if scene.other is None else runs.get(scene.other, KEEP).norms()
    return both(scene.trace.norms(), unchanged, NormStatistics.COLUMNS)
