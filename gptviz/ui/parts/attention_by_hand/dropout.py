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
from gptviz.ui.words import prose

WEIGHTS = Param("sc_weights", str, "ones", if_there)
P = Param("sc_p", float, 0.5, between)
SEED = Param("sc_seed", int, 123, between)
PARAMS = (WEIGHTS, P, SEED)

OFFERED = {"ones": "Ones", "journey": "“Your journey …”", "text": "This text"}
READABLE = 8  # rows of a square whose numbers are written into it
JOURNEY = ("Your", "journey", "starts", "with", "one", "step")


def draw(made: Frame) -> None:
    """Draw weights, mask and result: of the book's squares, or of a head of the model on the prompt."""
    above = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        source = WEIGHTS.choose("Weights", OFFERED)
        p = P.number(st.slider, "p", 0.0, 0.9, step=0.1, width=220)
        seed = SEED.number(st.number_input, "Seed", 0, 9999, step=1, width=130)
    result, labels, note, code = _found(made, source, p, seed)
    text = (
        f"**Dropout sets each weight to 0 with probability {p:g}.** Here it hit {result.gone} of "
    )
    text += f"{result.gone + result.kept}. The others are divided by 1 − {p:g} = {significant(1 - p, 2)}, so "
    text += "that *on average* a sum stays what it was."
    if source != "ones":
        rows = result.after.sum(-1)
        low = fixed(float(rows.min()), 2)
        high = fixed(float(rows.max()), 2)
        text += f" Rows that summed to 1 now sum to between {low} and {high}."
    with above:
        prose(text, "attention weight", "token")
    largest = max(1.0, float(result.after.max()))
    written = len(labels) <= READABLE
    squares = {"before": "Weights", "mask": "Mask", "after": f"Weights × mask ÷ {1 - p:.1f}"}
    for name, title in side_by_side(squares.items()):
        ends = (0.0, 1.0 if name == "mask" else largest)
        square = Map(
            title, Both(getattr(result, name).numpy()), "weight", "weight", ends, written=written
        )
        fig = maps([square], labels, labels, None, made.mode)
        alt = f"Dropout with p = {p:g}, seed {seed}: {title.lower()}"
        made.chart(fig, key=f"scaling_drop_{name}", which=(f"p{p:g}", f"seed{seed}"), alt=alt)
    book = ""
    if source != "text" and (p, seed) == (0.5, 123):
        book = " The book prints them in its section 3.5.2."
    st.caption(
        f"Dropout is used only in training. `torch.manual_seed({seed}); torch.nn.Dropout({p:g})(weights)` gives the "
        f"same numbers.{book}{note}"
    )
    with sheet.details():
        sheet.numbers_of(
            "dropout.csv",
            lambda: pd.DataFrame(result.after.numpy(), columns=labels),
            "The weights after dropout.",
        )
        code()


def _found(
    frame: Frame, source: str, p: float, seed: int
) -> tuple[Dropped, list[str], str, Callable[[], None]]:
    """The result of dropout, its labels, a sentence about the weights, and what names the program."""
    sources: list[Callable[..., object]] = [MultiHeadAttention.forward, drop]
    if source != "text":
        if source == "journey":
            labels = list(JOURNEY)
        else:
            labels = [str(i) for i in range(6)]
        return (
            dropped(source, p, seed),
            labels,
            "",
            partial(sheet.code_of, frame, sources, dropped, source, p, seed),
        )
    scene = sheet.trace(sheet.read_text(frame))
    block, head = opened_head(scene.lm.config, lambda: (0, 0))
    result = sheet.of(scene, dropped_attention, block, head, p, seed).now
    count = len(result.after)
    changed = "changed " if scene.other else ""
    note = f" The weights are those of block {block}, head {head}, of the {changed}model."
    if len(scene.tokens) > count:
        note += f" The first {count} of {len(scene.tokens)} tokens."
    code = partial(sheet.code_of, scene, sources, dropped_attention, block, head, p, seed)
    return result, [f"{i} {label}" for i, label in enumerate(scene.labels[:count])], note, code
