"""Dropout on attention weights, as the book shows it between the causal mask and several heads."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from gptviz.both import Both
from gptviz.digits import fixed, significant
from gptviz.figures.maps import Map, maps
from gptviz.lessons.dropout import Dropped, drop, dropped, dropped_attention
from gptviz.model import MultiHeadAttention
from gptviz.ui import sheet
from gptviz.ui.sheet import Frame, Param, between, if_there, opened_head, side_by_side
from gptviz.ui.shell.page import read
from gptviz.ui.words import prose

WEIGHTS = Param("sc_weights", str, "ones", if_there)
P = Param("sc_p", float, 0.5, between)
SEED = Param("sc_seed", int, 123, between)
PARAMS = (WEIGHTS, P, SEED)

OFFERED = {"ones": "Ones", "journey": "“Your journey …”", "text": "This text"}
READABLE = 8  # rows of a square whose numbers are written into it
JOURNEY = ("Your", "journey", "starts", "with", "one", "step")


def draw(made: Frame) -> None:
    """Weights, mask, and what is left; of the book's squares, or of a head of the model on the prompt."""
    above = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        of = WEIGHTS.choose("Weights", OFFERED)
        p = P.number(st.slider, "p", 0.0, 0.9, step=0.1, width=220)
        seed = SEED.number(st.number_input, "Seed", 0, 9999, step=1, width=130)
    found, labels, whose, code = _found(made, of, p, seed)
    text = f"**Dropout puts out each weight with probability {p:g}**, here {found.gone} of "
    text += f"{found.gone + found.kept}. What is left is divided by 1 − {p:g} = {significant(1 - p, 2)}, so "
    text += "that a sum stays what it was *on average*."
    if of != "ones":
        rows = found.after.sum(-1)
        low = fixed(float(rows.min()), 2)
        high = fixed(float(rows.max()), 2)
        text += f" Rows that summed to 1 now sum to between {low} and {high}."
    with above:
        prose(text, "attention weight", "token")
    largest = max(1.0, float(found.after.max()))
    written = len(labels) <= READABLE
    squares = {"before": "Weights", "mask": "Mask", "after": f"Weights × mask ÷ {1 - p:.1f}"}
    for name, title in side_by_side(squares.items()):
        ends = (0.0, 1.0 if name == "mask" else largest)
        square = Map(title, Both(getattr(found, name).numpy()), "weight", "weight", ends, written=written)
        fig = maps([square], labels, labels, None, made.mode)
        alt = f"Dropout with p = {p:g}, seed {seed}: {title.lower()}"
        made.chart(fig, key=f"scaling_drop_{name}", which=(f"p{p:g}", f"seed{seed}"), alt=alt)
    book = ""
    if of != "text" and (p, seed) == (0.5, 123):
        book = " The book prints them in its section 3.5.2."
    st.caption(
        f"It is for training only. `torch.manual_seed({seed}); torch.nn.Dropout({p:g})(weights)` gives the "
        f"same numbers.{book}{whose}"
    )
    sheet.numbers_of(
        "dropout.csv", lambda: pd.DataFrame(found.after.numpy(), columns=labels), "The weights after dropout."
    )
    code()


def _found(made: Frame, of: str, p: float, seed: int) -> tuple[Dropped, list[str], str, Callable[[], None]]:
    """The weights before and after dropout, their labels, a sentence about them, and *In code*."""
    sources: list[Callable[..., object]] = [MultiHeadAttention.forward, drop]
    if of != "text":
        if of == "journey":
            labels = list(JOURNEY)
        else:
            labels = [str(i) for i in range(6)]
        return dropped(of, p, seed), labels, "", partial(sheet.code_of, made, sources, dropped, of, p, seed)
    shown = read(made)
    shown.strip()
    block, head = opened_head(shown.lm.config, lambda: (0, 0))
    found = sheet.of(shown, dropped_attention, block, head, p, seed).now
    count = len(found.after)
    changed = "changed " if shown.other else ""
    whose = f" The weights are those of block {block}, head {head}, of the {changed}model."
    if len(shown.tokens) > count:
        whose += f" The first {count} of {len(shown.tokens)} tokens."
    code = partial(sheet.code_of, shown, sources, dropped_attention, block, head, p, seed)
    return found, [f"{i} {label}" for i, label in enumerate(shown.labels[:count])], whose, code
