"""A head's portrait over the sample: its pairs, how far and how spread out, and its most telling passages."""

from collections.abc import Sequence
from functools import partial
from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis.head_formulas import ROLES, SHARES
from gptviz.analysis.head_portrait import Passage, Portrait
from gptviz.digits import significant, weight
from gptviz.figures.head_grid import sample
from gptviz.figures.head_portrait import distances, entropies
from gptviz.figures.theme import Mode, palette
from gptviz.ui.measuring import portrait_job
from gptviz.ui.shell.details import in_numbers
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.tables import STYLE, Cell, Row, number, table
from gptviz.ui.views.heads import portrait_words
from gptviz.ui.views.heads.chosen import Chosen
from gptviz.ui.views.heads.waiting import wait_for
from gptviz.ui.words import show_id

SHOWN = 12  # pairs, of those that the table has
AROUND = 7  # tokens to each side of what is shown of a passage
KEYS = 2  # of a place: those with the largest weights
LEAST = 0.005  # of the attention that colours a token
SHADES = 0.45  # of the scale of attention: on darker ground a token could not be read


def draw(scene: Scene, chosen: Chosen) -> Portrait | None:
    """The portrait of the opened head, None where it is not known yet."""
    block, head = chosen.block, chosen.head
    st.subheader(f"The portrait of block {block}, head {head}", anchor=False)
    if chosen.general is None or chosen.in_general is None:
        st.markdown(portrait_words.WAITS)
        return None
    role = chosen.in_general[0]
    find = partial(portrait_job, scene.run.plain, block, head, role if role in SHARES else None)
    found: Portrait | None = wait_for("heads_portrait", find, portrait_words.working, portrait_words.STOPPED)
    if found is None:
        return None
    said = portrait_words.portrait(block, head, found.sink, found.mean_entropy, found.queries)
    prose(said, "attention", "token")
    left, right = st.columns(2, gap="medium")
    which = (f"block{block}", f"head{head}")
    with left:
        st.markdown(portrait_words.DISTANCES)
        scene.unchanged.chart(
            distances(found.distances, scene.mode),
            key="heads_distances",
            alt=f"How far back block {block}, head {head} looks",
            which=which,
        )
        st.markdown(portrait_words.ENTROPY)
        scene.unchanged.chart(
            entropies(found.entropies, found.most_entropy, scene.mode),
            key="heads_entropy",
            alt=f"The entropy of the rows of block {block}, head {head}",
            which=which,
        )
    with right:
        st.markdown(portrait_words.PAIRS)
        st.html(STYLE)
        st.html(_pairs(scene.lm, found.pairs))
    st.markdown(portrait_words.places(None if found.role is None else ROLES[found.role].label))
    st.html(_places(scene.lm, found.passages, scene.mode))
    in_numbers(
        found.pairs,
        "heads-portrait",
        portrait_words.NUMBERS,
        "the portrait's pairs",
    )
    in_numbers(
        lambda: pd.DataFrame({"tokens back": range(len(found.distances)), "share": found.distances}),
        "heads-distances",
        portrait_words.DISTANCE_NUMBERS,
        "how far back",
    )
    return found


def _pairs(lm: LanguageModel, pairs: pd.DataFrame) -> str:
    rows = [
        Row(
            [
                Cell(show_id(lm, int(row.query_id)), "label"),
                Cell(show_id(lm, int(row.key_id)), "label"),
                number(weight(float(row.mean))),
                number(f"{row.times:,}"),
                number(significant(float(row.excess))),
            ]
        )
        for row in pairs[:SHOWN].itertuples()
    ]
    return table("pairs of tokens", ["from", "to", "#mean weight", "#times", "#excess"], rows)


# ---- the passages ----


def _places(lm: LanguageModel, places: Sequence[Passage], mode: Mode) -> str:
    """Each place as a line: its pieces of text, the keys coloured by their weights, the query framed."""
    return "".join(
        f'<p class="gv-place" data-testid="place" data-share="{place.share:.4f}" style="line-height: 1.9; '
        f'margin: 0 0 0.5rem 0">{_text(lm, place, mode)} <small style="opacity: 0.7; margin-left: 0.4em">'
        f"{escape(place.title)}, {weight(place.share)}</small></p>"
        for place in places
    )


def _text(lm: LanguageModel, place: Passage, mode: Mode) -> str:
    strongest = sorted(range(len(place.weights)), key=lambda i: -place.weights[i])[:KEYS]
    near = {i for at in (*strongest, place.query) for i in range(at - AROUND, at + AROUND + 1)}
    shown = [i for i in sorted(near) if 0 <= i < len(place.ids)]
    parts = ["… " if shown[0] else ""]
    for before, i in zip([shown[0] - 1, *shown], shown, strict=False):
        if i != before + 1:
            parts.append(" … ")
        parts.append(_token(lm, place, i, mode))
    return "".join(parts)


def _token(lm: LanguageModel, place: Passage, i: int, mode: Mode) -> str:
    given = place.weights[i]
    style = f"background: {_ground(given, mode)};" if given >= LEAST else ""
    if i == place.query:
        style += f" outline: 2px solid {palette(mode).query}; outline-offset: 1px;"
    text = escape(show_id(lm, place.ids[i])).replace("·", " ").replace("⏎", "⏎ ")
    return f'<span style="{style} border-radius: 3px" title="{weight(given)}">{text}</span>'


def _ground(given: float, mode: Mode) -> str:
    red, green, blue = sample(palette(mode).attention, np.array([SHADES * given]))[0]
    return f"rgb({red}, {green}, {blue})"
