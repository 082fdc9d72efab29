"""Four ways to say where a token stands: what each makes, whether it knows distance, and what if not."""

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import GPTModel
from gptviz.analysis.embeddings import shared_scale
from gptviz.analysis.shapes import run_first_block
from gptviz.engine.edits import Edit
from gptviz.figures import positions as figures
from gptviz.figures.positions import Dial
from gptviz.lessons import positions as lesson
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, between, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.tables import STYLE
from gptviz.ui.views.both import caption
from gptviz.ui.views.positions import schemes, shuffle, tables, words
from gptviz.ui.views.positions.schemes import SCHEMES
from gptviz.ui.views.positions.snippet import position_rows

SCHEME = Param("pos_scheme", str, "learned", if_there)
DISTANCE = Param("pos_distance", int, 3, between)
AT = Param("pos_at", int, 8, between)
PARAMS = (SCHEME, DISTANCE, AT, *shuffle.PARAMS)

DIALS = 4  # of the pairs of dimensions that are drawn as arrows


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    st.html(STYLE)
    SCHEME.within(SCHEMES)
    known = _scheme(scene)
    st.subheader("A pair of tokens moves along the text", anchor=False)
    _moved(scene, known)
    if scene.other is not None:
        st.caption(words.OWN_WEIGHTS)
    st.subheader("What if the model's own positions were changed?", anchor=False)
    seen = shuffle.draw(scene)
    _details(scene, seen)


# ---- one scheme ----


def _scheme(scene: Scene) -> dict[str, pd.DataFrame]:
    """Draw it; gives its dot products by distance."""
    sentence = st.container()
    name = SCHEME.widget(
        st.segmented_control,
        "Positions",
        options=list(SCHEMES),
        format_func=SCHEMES.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    rows = schemes.rows_of(scene.lm, name)
    count, size = rows.shape
    table = schemes.distances(scene.lm, name)
    distance = _distance(count)
    row = table.iloc[distance]
    slowest = 2 * np.pi / float(lesson.frequencies(size)[-1])
    with sentence:
        prose(
            words.what_to_see(name, count, size, distance, row["mean"], row["least"], row["most"], slowest),
            "position",
            "dot product",
            "causal mask",
            "head",
            "query",
            "key",
        )
    cells, dimensions = schemes.shown(rows)
    left, right = st.columns(2, gap="medium")
    with left:
        scene.chart(
            figures.position_rows(
                cells, dimensions, shared_scale(cells, share=0.98).limit, scene.position, scene.mode
            ),
            key="position_rows",
            which=(name,),
            alt=f"{SCHEMES[name]}: {len(cells)} positions, a row each; line at the selected one",
        )
        if said := words.cut_down((len(cells), len(dimensions)), (count, size)):
            st.caption(said)
    with right:
        scene.chart(
            figures.by_distance(table, distance, scene.mode),
            key="position_distance",
            which=(name,),
            alt=f"{SCHEMES[name]}: the dot product of two rows by how far apart they stand",
        )
    if name == "sinusoidal" and size % 2 == 0:
        step = lesson.shift_matrix(distance, size)
        error = float((rows[: count - distance] @ step.T - rows[distance:]).abs().max())
        prose(words.a_step(distance, size, error))
    return {name: table}


def _distance(count: int) -> int:
    """How far apart the two tokens of every comparison stand."""
    DISTANCE.within((0, count - 1))
    return DISTANCE.value


# ---- a pair that moves ----


def _moved(scene: Scene, known: dict[str, pd.DataFrame]) -> None:
    lm, count = scene.lm, scene.lm.config.context_length
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        distance = _distance(count)
        picked = DISTANCE.widget(
            st.number_input, "Tokens apart", min_value=0, max_value=count - 1, step=1, width=130
        )
        distance = distance if picked is None else int(picked)
        at = _place(distance, count)
    prose("**RoPE, as arrows.** In four pairs of a head's dimensions, the slowest on the right:")
    size = lesson.even_part(lm.config.emb_dim // lm.config.n_heads)
    speeds = lesson.frequencies(size)
    pairs = sorted({int(i) for i in np.linspace(0, len(speeds) - 1, min(DIALS, len(speeds)))})
    halves = [half for half in (pairs[: DIALS // 2], pairs[DIALS // 2 :]) if half]
    for number, (column, half) in enumerate(zip(st.columns(len(halves)), halves, strict=True)):
        with column:  # two charts: side by side they would be too small on a phone
            scene.chart(
                figures.dials([Dial(i, float(speeds[i])) for i in half], at, at - distance, scene.mode),
                key=f"position_dials_{number}",
                which=(f"at{at}",),
                alt=f"RoPE: a query at position {at}, a key at {at - distance}; "
                f"pairs {' and '.join(map(str, half))}",
            )
    turned = lesson.rotations(count, size)
    prose(words.dials(at, at - distance, len(speeds), float(turned[at] @ turned[at - distance])))

    query, key, found = _scores(scene, distance)
    changes = {name: float(np.ptp(values)) for name, values in found.items()}
    prose(words.along(query, key, shuffle.head_of_block_0(scene), distance, changes), "query", "key")
    scene.chart(
        figures.scores_along(found, distance, at, scene.mode),
        key="position_scores",
        alt=f"The score of {query} for {key}, {distance} before it, at every place of the text",
    )
    st.html(tables.compared(schemes.properties(lm, found, known)))
    st.caption(words.COMPARED)


def _place(distance: int, count: int) -> int:
    """Where the query stands: from `distance` on, so that there is a key."""
    if count - 1 == distance:
        return distance
    AT.within((distance, count - 1))
    chosen = AT.widget(
        st.slider, "Position of the query", min_value=distance, max_value=count - 1, step=1, width="stretch"
    )
    return distance if chosen is None else int(chosen)


def _scores(scene: Scene, distance: int) -> tuple[str, str, dict[str, np.ndarray]]:
    """The selected token, the one before it (or itself), and their scores along the text."""
    before = scene.tokens[max(0, scene.position - 1)]
    found = schemes.scores(
        scene.lm, scene.tokens[scene.position].id, before.id, shuffle.head_of_block_0(scene), distance
    )
    return scene.label, scene.labels[before.position], dict(found)


# ---- details ----


def _details(scene: Scene, seen: shuffle.Head) -> None:
    in_numbers(lambda: _by_distance(scene), "position_products.csv", what="dot products by distance")
    in_numbers(
        lambda: _along(scene),
        "position_scores.csv",
        "The score of the selected token's query for the token before it, at every place.",
        "a pair along the text",
    )
    in_numbers(
        lambda: shuffle.losses(scene),
        "position_losses.csv",
        caption(words.LOSSES, scene.other),
        "the changed pass",
        missing="nothing before it",
    )
    in_code(
        [GPTModel.final_hidden, lesson.sinusoidal.__wrapped__, lesson.rotate, Edit.apply],
        program(
            position_rows,
            scene.load,
            text=scene.text,
            scheme=SCHEME.value,
            distance=DISTANCE.value,
            position=scene.position,
            edit=str(shuffle.edit()),
            block=seen.block,
            head=seen.head,
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )


def _by_distance(scene: Scene) -> pd.DataFrame:
    frames = [schemes.distances(scene.lm, scheme).assign(scheme=name) for scheme, name in SCHEMES.items()]
    return pd.concat(frames, ignore_index=True)


def _along(scene: Scene) -> pd.DataFrame:
    _, _, found = _scores(scene, DISTANCE.value)
    positions = range(DISTANCE.value, DISTANCE.value + len(next(iter(found.values()))))
    return pd.DataFrame({"query at": positions, **found})
