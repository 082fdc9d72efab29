"""A head's portrait over a sample of books: what it ties together, and the places where it is most itself."""

import math
from collections.abc import Sequence
from functools import partial
from html import escape

import numpy as np
import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis.head_formulas import ROLES, SHARES
from gptviz.analysis.head_portrait import Passage, Portrait
from gptviz.digits import fixed, percent, weight
from gptviz.figures.head_grid import sample
from gptviz.figures.theme import Mode, palette
from gptviz.ui import measuring
from gptviz.ui.pages.heads.waiting import wait_for
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import as_code, show_id

PAIRS = 3  # that the sentence names
AROUND = 7  # tokens to each side of what is shown of a passage
KEYS = 2  # of a place: those with the largest weights
LEAST = 0.005  # of the attention that colours a token
SHADES = 0.45  # of the scale of attention: on darker ground a token could not be read


def draw(scene: Scene, block: int, head: int, role: str | None) -> Portrait | None:
    """The portrait of the opened head, whose role in general is `role`; None where it is not known yet."""
    st.subheader(f"The portrait of block {block}, head {head}", anchor=False)
    if role is None:
        st.markdown("A portrait is painted by what a head does in general, and that is not known yet.")
        return None
    find = partial(measuring.portrait_job, scene.run.plain, block, head, role if role in SHARES else None)
    found = wait_for("heads_portrait", find, "The portrait, windows read", "The portrait was stopped.")
    if found is None:
        return None
    pairs = [
        f"{as_code(show_id(scene.lm, pair.query_id))} to {as_code(show_id(scene.lm, pair.key_id))} "
        f"({weight(pair.mean)})"
        for pair in found.pairs[:PAIRS].itertuples()
    ]
    most = f" Most attention beyond an even head's goes from {', '.join(pairs)}." if pairs else ""
    prose(
        f"Over {found.queries:,} tokens of books, it gives {percent(found.sink)} of its attention to the "
        f"first token. Its rows have an entropy of {fixed(found.mean_entropy, 2)} nats on average, as if it "
        f"looked at {fixed(math.exp(found.mean_entropy), 1)} tokens alike.{most}",
        "attention",
        "token",
    )
    by = (
        "the largest weight on one token"
        if found.role is None
        else f"its share of *{ROLES[found.role].label}*"
    )
    st.markdown(
        f"**Where it is most itself**, by {by}: the framed token looks, and the stronger a token's colour, "
        "the more of the attention goes there."
    )
    st.html(_places(scene.lm, found.passages, scene.mode))
    return found


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
        parts += [" … "] * (i != before + 1) + [_token(lm, place, i, mode)]
    return "".join(parts)


def _token(lm: LanguageModel, place: Passage, i: int, mode: Mode) -> str:
    given, style = place.weights[i], ""
    if given >= LEAST:
        red, green, blue = sample(palette(mode).attention, np.array([SHADES * given]))[0]
        style = f"background: rgb({red}, {green}, {blue});"
    if i == place.query:
        style += f" outline: 2px solid {palette(mode).query}; outline-offset: 1px;"
    text = escape(show_id(lm, place.ids[i])).replace("·", " ").replace("⏎", "⏎ ")
    return f'<span style="{style} border-radius: 3px" title="{weight(given)}">{text}</span>'
