"""The circuit: a sheet of heads that are in or out, the curve of the search, and what the circuit is "
"worth."""

from functools import partial
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz.analysis.circuit_passes import Passes, edits_of
from gptviz.analysis.circuit_search import Circuit, Score, subsets, written
from gptviz.analysis.shapes import run_first_block
from gptviz.digits import significant
from gptviz.figures.circuit import Curve, circuit_curve
from gptviz.model import MultiHeadAttention
from gptviz.ui.shell import changes, state
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.params import in_link
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.sample import read_sample
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views import target
from gptviz.ui.views.both import both, caption
from gptviz.ui.views.circuit import derived, words
from gptviz.ui.views.circuit.choice import (
    CIRCUIT,
    FORWARDS,
    NOBODY,
    OTHERS,
    PARAMS,
    SCORE,
    SEARCH,
    Chosen,
    buttons,
    chosen_of,
    controls,
    searches_of,
    take,
)
from gptviz.ui.views.circuit.derived import Asked
from gptviz.ui.views.circuit.sheet import Brought, sheet
from gptviz.ui.views.circuit.snippet import kept as kept_in_python
from gptviz.ui.views.circuit.words import Held, Measured
from gptviz.ui.views.slow import is_asked_for

# A link's score has four digits that mean something, and another machine other last ones of its logits.
AGREES, OF_LOGITS = 0.005, 2e-5  # of the score, and at least


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    explained = target.target_input(scene, "Token to keep", "nothing: the probability")
    controls()
    if OTHERS.value == "sample":
        read_sample(scene.lm, "circuit_sample_stop", partial(OTHERS.set, "mean"))
    asked = Asked(scene.position, explained.token, explained.against, OTHERS.value, FORWARDS.value)
    sentence = st.container()
    buttons(scene)
    searches = searches_of(scene, asked)
    chosen = chosen_of(scene, asked, searches, Measured(explained.shown, explained.against_shown))
    with sentence:
        _say(scene, chosen)
        score = _worth(scene, asked, chosen)
    left, right = st.columns([5, 4], gap="medium")
    with left:
        brought = sheet(scene, asked, chosen)
    with right:
        _curve(scene, asked, chosen, searches)
    _golf(scene, asked, chosen)
    prose(words.LOOK_FOR, "head")
    st.caption(words.STAY)
    with st.expander(words.WORTH, icon=":material/balance:"):
        st.markdown(words.definitions(chosen.measured))
    example_row("A copied passage", "A name comes back", "A quotation closes")
    _details(scene, asked, chosen, searches, brought, score)


# ---- what is said ----


def _say(scene: Scene, chosen: Chosen) -> None:
    prose(
        words.sentence(
            chosen.measured,
            len(chosen.heads),
            chosen.of,
            chosen.held,
            OTHERS.value,
            FORWARDS.value,
        ),
        "head",
        "logit",
        "mean",
    )
    value = chosen.held.value
    if chosen.unchanged is not None:
        st.caption(words.changed(*map(chosen.measured.number, (chosen.held.whole, chosen.unchanged))))
    if SCORE.value is not None and CIRCUIT.value is not None:
        shown, most = significant(value, 4), max(AGREES * abs(value), OF_LOGITS)
        if words.is_number(SCORE.value) and abs(float(SCORE.value) - value) <= most:
            st.success(words.score_holds(len(chosen.heads), shown, chosen.held.kept))
        else:
            st.warning(words.score_differs(SCORE.value, shown))


def _golf(scene: Scene, asked: Asked, chosen: Chosen) -> None:
    """The link that holds the circuit and its score."""
    if len(chosen.heads) < chosen.of or not asked.feed_forwards:
        edits = edits_of(scene.lm, chosen.heads, asked.others, asked.feed_forwards)
        st.button(words.EVERYWHERE, key="circuit_everywhere", on_click=changes.add, args=edits)
    st.markdown(words.golf(len(chosen.heads), chosen.measured, chosen.held))
    own = {
        CIRCUIT.name: written(chosen.heads) or NOBODY,
        SCORE.name: f"{chosen.held.value:.4g}",
        SEARCH.name: None,
    }
    query = urlencode(state.link() | in_link(PARAMS, own), safe="+")
    st.code(f"{(st.context.url or '').partition('?')[0]}?{query}", language=None, wrap_lines=True)


# ---- the pictures ----


def _curve(scene: Scene, asked: Asked, chosen: Chosen, searches: dict[str, Circuit]) -> None:
    number = chosen.measured.number
    for way, found in searches.items():
        held = Held(found.whole, found.value, found.empty, found.allowed)
        st.markdown(words.found(way, len(found.heads), chosen.measured, held, asked.others))
    if not searches:
        st.markdown(words.NOT_SEARCHED)
    curves = [
        Curve(way, found.steps["size"].tolist(), found.steps["value"].tolist(), _says(found, way, chosen))
        for way, found in searches.items()
    ]
    if searches:
        values = derived.random(scene.run, asked)
        says = [words.point("random", size, number(value), None) for size, value in enumerate(values)]
        curves.insert(0, Curve("random", list(range(len(values))), values, says))
    by_way = {way: found.stages for way, found in searches.items()}

    def pick() -> None:
        points = st.session_state["circuit_curve"].selection.points
        way, place = points[0].get("customdata", ("", 0)) if points else ("", 0)
        if way in by_way:
            take(by_way[way][int(place)])

    scene.chart(
        circuit_curve(
            curves,
            words.CURVES,
            (chosen.held.whole, chosen.held.allowed),
            (len(chosen.heads), chosen.held.value),
            chosen.of,
            chosen.measured.axis,
            scene.mode,
            chosen.unchanged,
        ),
        key="circuit_curve",
        alt=f"F against the number of heads: {chosen.measured.axis}",
        on_select=pick,
    )
    st.caption(words.CURVE)


def _says(found: Circuit, way: str, chosen: Chosen) -> list[str]:
    steps = found.steps
    rows = zip(steps["size"], steps["block"], steps["head"], steps["value"], strict=True)
    return [
        words.point(way, size, chosen.measured.number(value), None if pd.isna(block) else (block, head))
        for size, block, head, value in rows
    ]


def _worth(scene: Scene, asked: Asked, chosen: Chosen) -> Score | None:
    """Faithfulness and completeness, where that is quick or asked for; of the model itself both are 0."""
    sets, everything = subsets(chosen.heads)
    passes, ask, stopped = 2 * len(sets), "circuit_score_ask", "circuit_score_stopped"
    if len(chosen.heads) == chosen.of and asked.feed_forwards:
        return None
    waits = st.session_state.get(stopped) == chosen.heads or is_asked_for(scene.lm, len(scene.tokens), passes)
    if waits and not st.toggle(words.ask_score(passes), key=ask):
        return None
    stop = partial(st.session_state.update, {stopped: chosen.heads, ask: False})
    score = derived.score(scene.run, asked, chosen.heads, stop)
    prose(words.worth(chosen.measured, chosen.held, score.completeness, score.worst, len(sets), everything))
    return score


# ---- the details ----


def _details(
    scene: Scene,
    asked: Asked,
    chosen: Chosen,
    searches: dict[str, Circuit],
    brought: Brought,
    score: Score | None,
) -> None:
    def table() -> pd.DataFrame:
        n_heads = scene.lm.config.n_heads
        old = None if brought.unchanged is None else _table(chosen, brought.unchanged, n_heads)
        return both(_table(chosen, brought.own, n_heads), old, ("brings",))

    in_numbers(table, "circuit", caption(words.NUMBERS, brought.unchanged), "every head")
    if score is not None:
        in_numbers(score.table, "circuit-sets", words.SETS, "the sets K")
    if searches:
        steps = [found.steps.assign(way=words.CURVES[way]) for way, found in searches.items()]
        values = derived.random(scene.run, asked)
        steps.append(
            pd.DataFrame({"size": range(len(values)), "value": values, "way": words.CURVES["random"]})
        )
        in_numbers(
            lambda: pd.concat(steps, ignore_index=True), "circuit-search", words.SEARCHED, "the curves"
        )
    in_code(
        [Passes.of, edits_of, MultiHeadAttention.forward],
        program(
            kept_in_python,
            scene.load,
            text=scene.text,
            position=scene.position,
            token=asked.token,
            against=asked.against,
            heads=written(chosen.heads),
            others=asked.others,
            feed_forwards=asked.feed_forwards,
            search=next(iter(searches), None),
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )


def _table(chosen: Chosen, brings: NDArray[np.float64] | None, n_heads: int) -> pd.DataFrame:
    rows = [divmod(i, n_heads) for i in range(chosen.of)]
    inside = [head in chosen.heads for head in rows]
    table = pd.DataFrame(rows, columns=["block", "head"]).assign(inside=inside)
    if brings is None:
        return table
    change = brings.ravel()
    value = chosen.held.value
    with_it = [value if one else value + d for one, d in zip(inside, change, strict=True)]
    without = [value - d if one else value for one, d in zip(inside, change, strict=True)]
    return table.assign(**{"F with it": with_it, "F without it": without, "brings": change})
