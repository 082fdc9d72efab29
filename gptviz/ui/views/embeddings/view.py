"""The rows that go into block 0: token embedding + position embedding."""

from typing import cast

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import GPTModel, Run
from gptviz.analysis import embeddings as numbers
from gptviz.analysis.embeddings import Measure as MeasureName
from gptviz.analysis.embeddings import Rows, Scale
from gptviz.analysis.shapes import run_first_block
from gptviz.both import alike
from gptviz.figures.embeddings import embedding_rows, embedding_sum
from gptviz.figures.ghosts import UNCHANGED
from gptviz.figures.heatmaps import similarity_curve, similarity_matrix
from gptviz.figures.neighbors import MEASURES, neighbor_bars
from gptviz.ui import runs
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.runs import per_run
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.same import why_same
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.shown import DIFFERENCE, SHOWN, scene_of, shown_input
from gptviz.ui.views.both import both
from gptviz.ui.views.dimension import dimension_input
from gptviz.ui.views.embeddings import words
from gptviz.ui.views.embeddings.snippet import embedding_rows as rows_in_python
from gptviz.ui.words import as_code, show_id, term

KEEP = ("tok_emb", "pos_emb", "embed")
LENGTHS = ("token_norm", "position_norm", "sum_norm", "cosine")

DIMENSION: Param[int | None] = Param("emb_dim", int, None, if_there)


class Measure(Param[str]):
    """In the address by its long name, as it is on the screen; by its short one as well."""

    def parse(self, text: str) -> str:
        return next((name for name, label in MEASURES.items() if text in (name, label)), self.default)

    def written(self, value: str) -> str:
        return MEASURES[value]


MEASURE = Measure("emb_measure", str, "cosine", if_there)
PARAMS = (DIMENSION, MEASURE, SHOWN)


@per_run
def rows_of(run: Run) -> Rows:
    """Token, position and summed embedding of every token: (3, T, D)."""
    return numbers.embedding_parts(runs.get(run, KEEP))


@per_run
def lengths_of(run: Run) -> pd.DataFrame:
    return numbers.embedding_lengths(runs.get(run, KEEP))


@per_run
def scale_of(run: Run) -> Scale:
    return numbers.shared_scale(rows_of(run))


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    position = scene.position
    others = numbers.same_token_elsewhere(scene.tokens, position)
    prose(
        words.this_plus_this(scene.label, scene.tokens[position].id, position, others),
        "token",
        "dimension",
        "embedding",
        "block",
    )
    if scene.other is not None:
        prose(_what_changed(scene, scene.other))

    @st.fragment
    def this_row_plus_this_row() -> None:
        """The selected token's three rows and, about the chosen dimension, their digits."""
        _three_rows(scene)

    @st.fragment
    def neighbors() -> None:
        """The tokens whose rows are most like the selected token's."""
        _neighbors(scene)

    this_row_plus_this_row()
    _every_token(scene)
    neighbors()
    _positions(scene)
    _details(scene)


def _moved(scene: Scene) -> NDArray[np.bool_]:
    """(3, T): which rows are others than in the unchanged model."""
    if scene.other is None:
        return np.zeros((3, len(scene.tokens)), dtype=bool)
    moved: NDArray[np.bool_] = (rows_of(scene.run) != rows_of(scene.other)).any(axis=-1)
    return moved


def _what_changed(scene: Scene, other: Run) -> str:
    """What the app's changes did to the rows; or why they did nothing to them."""
    moved, position = _moved(scene), scene.position
    if not moved.any():
        return why_same(scene, words.WHAT, [(site, None) for site in KEEP])
    parts = [words.PARTS[i] for i in range(3) if moved[i].any()]
    lengths = [float(lengths_of(run).loc[position, "sum_norm"]) for run in (other, scene.run)]
    said = words.what_changed(
        parts, int(moved.any(axis=0).sum()), len(scene.tokens), scene.label, (lengths[0], lengths[1])
    )
    return f"{said} {words.REPLACED}" if _is_replaced(scene) else said


def _is_replaced(scene: Scene) -> bool:
    """Whether a change put something else in place of the selected token's sum."""
    token, place, total = rows_of(scene.run)[:, scene.position]
    return scene.other is not None and not alike(token + place, total)


def _three_rows(scene: Scene) -> None:
    parts, position, label = rows_of(scene.run), scene.position, scene.label
    size = parts.shape[2]
    picture = st.container()
    picked = dimension_input(
        DIMENSION,
        size,
        "the sum's largest",
        "A click on the rows chooses it, too. Left empty, it is where the sum is farthest from zero.",
    )
    dimension = numbers.largest_dimension(parts, position) if picked is None else picked
    window = numbers.window_around(dimension, size)
    cells = [numbers.addition(parts, position, d).written() for d in window]
    first, second, total = written = numbers.addition(parts, position, dimension).written()
    limit = scale_of(scene.run).limit
    with picture:
        scene.chart(
            embedding_sum(parts[:, position], label, position, dimension, window, cells, limit, scene.mode),
            key="embedding_sum",
            which=(f"dimension{dimension}",),
            alt=f"{label} at position {position}, dimension {dimension}: {first} + {term(second)} = {total}",
        )
        cell_clicks("embedding_sum", 3, size, _pick_dimension)
    lengths = lengths_of(scene.run).loc[position]
    prose(words.one_dimension(dimension, written, lengths, _is_replaced(scene)), "cosine")


def _pick_dimension(part: int, dimension: int) -> None:
    """A click on a value of the three rows chooses its dimension."""
    DIMENSION.set(dimension)


def _every_token(scene: Scene) -> None:
    st.subheader("Every token of the prompt", anchor=False)
    parts, scale = rows_of(scene.run), scale_of(scene.run)
    labels = scene.labels
    shown, lengths, ghosts = shown_input(scene, bool(_moved(scene).any())), _lengths(scene.run), None
    caption = words.colours(scale)
    if scene.other is not None and shown == DIFFERENCE:
        parts = parts - rows_of(scene.other)
        limit = float(np.abs(parts).max())
        lengths, caption = np.linalg.norm(parts, axis=-1), words.difference(limit)
    else:
        limit = scale.limit
        if scene.other is not None and shown == UNCHANGED:
            parts, lengths, scale = rows_of(scene.other), _lengths(scene.other), scale_of(scene.other)
            limit, caption = scale.limit, words.colours(scale)
        elif scene.other is not None:
            ghosts = _lengths(scene.other)
    what = f"{len(labels)} tokens, {parts.shape[2]} dimensions each"
    scene_of(scene, shown).chart(
        embedding_rows(parts, labels, lengths, limit, scene.position, scene.mode, ghosts),
        key="embedding_rows",
        which=(shown,) if scene.other else (),
        alt=f"Token embedding, position embedding and sum of {what}" + (f" ({shown})" if scene.other else ""),
    )
    st.caption(caption)


def _lengths(run: Run) -> NDArray[np.float64]:
    """(3, T): of each of the three rows."""
    found: NDArray[np.float64] = lengths_of(run)[["token_norm", "position_norm", "sum_norm"]].to_numpy().T
    return found


def _neighbors(scene: Scene) -> None:
    label, lm = scene.label, scene.lm
    st.subheader(f"The nearest neighbours of {as_code(label)}", anchor=False)
    MEASURE.within(MEASURES)
    measure = MEASURE.widget(
        st.segmented_control,
        "Measure",
        options=list(MEASURES),
        format_func=MEASURES.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    near = numbers.nearest_tokens(
        lm.model.tok_emb.weight, scene.tokens[scene.position].id, k=10, measure=cast(MeasureName, measure)
    )
    ids, names = near["id"].tolist(), [show_id(lm, i) for i in near["id"].tolist()]
    rows = lm.model.tok_emb.num_embeddings
    best = near.iloc[0]
    prose(
        words.nearest(
            label,
            names[0],
            best["cosine"],
            best["dot"],
            measure,
            rows,
            numbers.best_by_chance(rows, lm.config.emb_dim),
        ),
        "dot product",
    )
    scene.chart(
        neighbor_bars(names, ids, near[measure].to_numpy(), measure, label, scene.mode),
        key="embedding_neighbors",
        which=(measure,),
        alt=f"The tokens nearest to {label}: " + ", ".join(names),
    )


def _positions(scene: Scene) -> None:
    box = st.expander(
        "Which positions are alike?", icon=":material/straighten:", on_change="rerun", key="emb_positions"
    )
    if not box.open:
        return
    similarity = numbers.position_similarity(scene.lm.model.pos_emb.weight)  # (C, C)
    position, used = scene.position, len(scene.tokens)
    square, shown = numbers.thin(similarity)
    count = len(similarity)
    beside, apart = (numbers.similarity_apart(similarity, d) for d in (min(1, count - 1), count // 2))
    with box:
        st.markdown(words.positions(count, used, len(shown), beside, apart))
        left, right = st.columns(2)
        with left:
            scene.chart(
                similarity_matrix(square, shown, position, scene.mode),
                key="embedding_positions",
                alt="The cosine of every learned position with every other",
            )
        with right:
            scene.chart(
                similarity_curve(similarity[position], position, used, scene.mode),
                key="embedding_position",
                alt=f"The cosine of position {position} with every other position",
            )


def _details(scene: Scene) -> None:
    def one(run: Run) -> pd.DataFrame:
        return numbers.row_table(rows_of(run), scene.position)

    in_numbers(
        lambda: both(one(scene.run), one(scene.other) if scene.other else None, numbers.PARTS),
        "embedding.csv",
        f"The three rows of {as_code(scene.label)} (position {scene.position}), a line a dimension.",
        "the rows",
    )
    in_numbers(
        lambda: both(lengths_of(scene.run), lengths_of(scene.other) if scene.other else None, LENGTHS),
        "embedding_lengths.csv",
        "The length of each row; the cosine of token and position.",
        "the lengths",
    )
    in_code(
        [GPTModel.final_hidden],
        program(
            rows_in_python,
            scene.load,
            text=scene.text,
            position=scene.position,
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )
