"""The last step: why attention divides by √d, on random numbers and in the model's own heads."""

from operator import itemgetter

import numpy as np
import streamlit as st
import torch

from gptviz.both import Both
from gptviz.digits import fixed, significant
from gptviz.engine.sites import scored
from gptviz.figures.theme import palette
from gptviz.lessons import scaling as lesson
from gptviz.lessons.scaling import by_size, own_heads, sharpened
from gptviz.model import MultiHeadAttention
from gptviz.ui import sheet
from gptviz.ui.heads import changed_in
from gptviz.ui.sheet import (
    Frame,
    Param,
    between,
    block_and_head_inputs,
    if_there,
    opened_head,
    side_by_side,
)
from gptviz.ui.words import prose

SIZE = Param("sc_d", int, 64, if_there)
QUERY = Param("sc_query", int, 0, between)
FACTOR = Param("sc_factor", int, 10, between)
PARAMS = (SIZE, QUERY, FACTOR)

DIVIDED = "q · k ÷ √d"  # what a bar is
UNDIVIDED = "q · k"  # and its outline
CHARTS = {
    "variance": "variance of scores",
    "largest": "weight of the best key",
    "gradient": "gradient left",
}


def draw(made: Frame) -> None:
    """Draw every d from 1 to 1,024, one query of it, softmax of large numbers, and this model's heads."""
    table = by_size()
    container = st.container()
    d = SIZE.choose("d, the numbers of a query and of a key", lesson.SIZES, st.select_slider)
    row = table.set_index("d").loc[d]
    with container:
        prose(
            f"**A score adds up d products, so its variance is about d.** At d = {d} it is "
            f"**{significant(row['variance'])}**, and the best of {lesson.KEYS} keys gets a weight of "
            f"{significant(row['largest'], 2)} on average. Dividing by √d = {significant(d**0.5)} makes the "
            f"variance **{significant(row['variance_scaled'])}** and the best weight "
            f"{significant(row['largest_scaled'], 2)}: about the same for every d.",
            "variance", "softmax", "query", "key",
        )  # fmt: skip
    for name, title in side_by_side(CHARTS.items(), "small"):
        sheet.curves(
            made, f"scaling_{name}", {"q · k": Both(table[name]), "÷ √d": Both(table[f"{name}_scaled"])},
            [str(size) for size in table["d"]], title,
            f"For d from 1 to 1,024: {title}, of dot products as they are and divided by √d",
            which=(f"d{d}",), at=lesson.SIZES.index(d), log=name == "variance", height=265,
        )  # fmt: skip
    gradient, gradient_scaled = (
        f"{fixed(100 * row[name], 0)} %" for name in ("gradient", "gradient_scaled")
    )
    size, *printed = lesson.PRINTED
    st.caption(
        f"Over d: {lesson.QUERIES} random queries meet {lesson.KEYS} random keys each, every number with "
        "variance 1. The gradient is the sum of w · (1 − w) over the weights, as a share of what even "
        f"weights let pass: at d = {d} it is {gradient}, and divided {gradient_scaled}. Where one key has "
        "all the weight, these scores get no gradient: queries and keys learn nothing there. Values and "
        f"out_proj do. For d = {size} a notebook after *Let's build GPT* prints a variance of "
        f"{significant(printed[0], 4)} and, divided, {significant(printed[1])}."
    )
    _one_query(made, d)
    _sharper(made)
    with sheet.details():
        sheet.numbers_of(
            "scaling.csv", table, "The scores as they are, and divided by √d.", "for every d"
        )
        sheet.code_of(
            made,
            [MultiHeadAttention.forward, lesson.scores, lesson.gradient_left, sharpened],
            by_size,
        )
    _own_heads(made)


def _one_query(frame: Frame, d: int) -> None:
    QUERY.within((0, lesson.QUERIES - 1))
    raw = lesson.scores()[d][QUERY.value]
    scores = Both(raw / np.sqrt(d), raw)
    weights = scores.map(lambda row: torch.from_numpy(row).softmax(-1).numpy())
    best, divided = (significant(float(row.max())) for row in weights.all)
    st.subheader("One query and its eight keys", anchor=False)
    gets = f"the best key of query {QUERY.value} gets **{best}** of the attention"
    prose(f"Undivided, {gets}; divided, **{divided}**.")
    for title, rows in side_by_side({"score": scores, "weight": weights}.items()):
        sheet.bars(
            frame, f"scaling_{title}s", rows, [f"key {i}" for i in range(lesson.KEYS)], title,
            f"Query {QUERY.value}, d = {d}: the {title}s of its {lesson.KEYS} keys, undivided and "
            "divided",
            which=(f"d{d}", f"query{QUERY.value}"), called=(DIVIDED, UNDIVIDED),
            colors=palette(frame.mode).output,
        )  # fmt: skip
    QUERY.number(st.number_input, "Another query", 0, lesson.QUERIES - 1, step=1, width=150)


def _sharper(frame: Frame) -> None:
    st.subheader("Softmax times ten", anchor=False)
    factor = FACTOR.number(st.slider, "The scores times", 1, 20, step=1, width=420)
    before = sharpened(1)
    after = sharpened(factor)
    low, high = (significant(float(weights.max()), 4) for weights in (before, after))
    text = f"Multiply five scores by {factor}, and the largest weight goes from {low} to **{high}**. The "
    text += "larger the scores, the more softmax picks one and forgets the others."
    prose(text, "softmax")
    left, right = st.columns(2, gap="medium")
    with left:
        scores = [str(score).replace("-", "−") for score in lesson.SLIDE]
        sheet.bars(
            frame, "scaling_sharper", Both(after.numpy(), before.numpy()), scores, "weight",
            f"The softmax of five scores, and of the same times {factor}", which=(f"times{factor}",),
            called=(f"× {factor}", "× 1"), colors=palette(frame.mode).output,
        )  # fmt: skip
    with right:
        code = f"scores = torch.tensor({list(lesson.SLIDE)})\n\ntorch.softmax(scores, dim=-1)\n{before}\n\n"
        code += f"torch.softmax(scores * {factor}, dim=-1)\n{after}"
        st.code(code, language="python", wrap_lines=True)


def _own_heads(frame: Frame) -> None:
    st.subheader("In this model", anchor=False)
    above = st.container()
    scene = sheet.trace(sheet.read_text(frame))
    config = scene.lm.config
    count = len(scene.tokens)
    block, head = opened_head(config, lambda: (0, 0))
    d = config.emb_dim // config.n_heads
    measures = sheet.of(scene, own_heads, block)

    def mean(name: str) -> Both[float]:
        return measures.map(lambda table: float(table[name].mean()))

    text = f"In this model queries and keys are learned, with d = {d} numbers each. In block {block} the "
    text += f"scores of a head have a variance of {mean('variance').arrow('3')}, and of "
    text += (
        f"{mean('variance_scaled').arrow('3')} after the division by √{d} = {significant(d**0.5)}."
    )
    if count > 1:  # a single key gets everything
        text += f" A query's largest weight is {mean('largest_scaled').arrow('2')}; if this block did not divide, it "
        text += f"would be {mean('largest').arrow('2')}."
    heads = range(config.n_heads)
    if replaced := [
        str(h)
        for h in heads
        if any(edit.site == "attn" for edit in changed_in(scene.run, block, h))
    ]:
        text += f" The weights of head {', '.join(replaced)} are replaced: here is what queries and keys give."
    with above:
        sites = [(site, block) for site in scored(scene.lm)]
        sheet.say(
            scene,
            text,
            ["block", "head"],
            about=measures,
            what=f"the scores of block {block}",
            sites=sites,
        )

    theme = palette(scene.mode)
    ways = ("largest_scaled", "divided", theme.output), ("largest", "not divided", theme.quiet)
    for name, division, color in side_by_side(ways):
        st.markdown(f"**Largest weight, {division} by √{d}**")
        sheet.bars(
            scene, f"scaling_heads_{name}", measures.map(itemgetter(name)),
            [f"head {i}" for i in range(config.n_heads)], "weight",
            f"Block {block}: each head's mean largest weight, {division} by √{d}",
            which=(f"block{block}",), colors=color,
        )  # fmt: skip
    with st.container(horizontal=True, gap="small"):
        block_and_head_inputs(config, block, head)
    caption = (
        f"The heads of block {block} on this text: variance of the scores, mean largest weight."
    )
    with sheet.details("this model's heads"):
        sheet.numbers_of(
            "scaling_heads", measures, caption, what="this model's heads", missing="one key only"
        )
        sheet.code_of(scene, [lesson.undivided], own_heads, block, key="in_code_heads")
