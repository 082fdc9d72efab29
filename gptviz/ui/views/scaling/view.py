"""Why attention divides by the square root of d; softmax times ten; dropout; what attention costs."""

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.both import alike
from gptviz.figures import scaling as figures
from gptviz.lessons import cost, dropout
from gptviz.lessons import scaling as lesson
from gptviz.model import MultiHeadAttention
from gptviz.ui import runs
from gptviz.ui.heads import changed_in
from gptviz.ui.runs import per_run
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, between, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.same import why_same
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import BLOCK, HEAD
from gptviz.ui.views.block import block_and_head_inputs
from gptviz.ui.views.both import both, caption
from gptviz.ui.views.scaling import measuring, regularizing, words
from gptviz.ui.views.scaling.snippet import sizes

SIZE = Param("sc_d", int, 64, if_there)
QUERY = Param("sc_query", int, 0, between)
FACTOR = Param("sc_factor", int, 10, between)
PARAMS = (SIZE, QUERY, FACTOR, *regularizing.PARAMS)

CHARTS = {
    "variance": "variance of the scores",
    "largest": "weight of the best key",
    "gradient": "gradient left",
}


@per_run
def heads_of(run: Run, block: int) -> pd.DataFrame:
    """One block's heads with and without the division: `scaling.undivided`."""
    trace = runs.get(run, (("q", block), ("k", block)))
    return lesson.undivided(trace["q", block], trace["k", block])


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    table = lesson.by_size()
    _sizes(scene, table)
    st.subheader("One query and its eight keys", anchor=False)
    _one_query(scene)
    st.subheader("In this model", anchor=False)
    block = _own_heads(scene)
    st.subheader("Softmax times ten", anchor=False)
    _sharper(scene)
    st.subheader("Dropout: weights put out at random", anchor=False)
    regularizing.draw(scene)
    st.subheader("What attention costs", anchor=False)
    measuring.draw(scene)
    _details(scene, table, block)


def _sizes(scene: Scene, table: pd.DataFrame) -> None:
    sentence = st.container()
    SIZE.within(lesson.SIZES)
    d = SIZE.widget(st.select_slider, "d, the numbers of a query and of a key", options=lesson.SIZES)
    with sentence:
        prose(
            words.what_to_see(table.set_index("d", drop=False).loc[d].to_dict()),
            "variance", "softmax", "query", "key",
        )  # fmt: skip
    for column, (name, title) in zip(st.columns(3), CHARTS.items(), strict=True):
        with column:
            scene.chart(
                figures.by_size(table, name, title, d, scene.mode, log=name == "variance"),
                key=f"scaling_{name}",
                which=(f"d{d}",),
                alt=f"For d from 1 to 1,024: {title}, of dot products as they are and divided by √d",
            )
    st.caption(words.what_is_left())


def _one_query(scene: Scene) -> None:
    QUERY.within((0, lesson.QUERIES - 1))
    number, d = QUERY.value, SIZE.value
    raw = lesson.scores()[d][number]
    values = raw, raw / np.sqrt(d)
    weights = tuple(map(lesson.softmax, values))
    prose(words.one_query(number, d, float(weights[0].max()), float(weights[1].max())))
    keys = [f"key {i}" for i in range(lesson.KEYS)]
    names = figures.UNDIVIDED, figures.DIVIDED
    for column, key, title, rows in zip(
        st.columns(2, gap="medium"),
        ("scores", "weights"),
        ("score", "weight"),
        (values, weights),
        strict=True,
    ):
        with column:
            scene.chart(
                figures.pairs_of_bars(rows, names, keys, title, scene.mode, shares=key == "weights"),
                key=f"scaling_{key}",
                which=(f"d{d}", f"query{number}"),
                alt=f"Query {number}, d = {d}: the {title}s of its {len(keys)} keys, undivided and divided",
            )
    QUERY.widget(
        st.number_input, "Another query", min_value=0, max_value=lesson.QUERIES - 1, step=1, width=150
    )


def _own_heads(scene: Scene) -> int:
    config = scene.lm.config
    BLOCK.within(config.n_layers)
    HEAD.within(config.n_heads)
    block = BLOCK.value or 0
    found = heads_of(scene.run, block)
    old = None if scene.other is None else heads_of(scene.other, block)
    d = config.emb_dim // config.n_heads
    pairs = [("variance", "variance_scaled"), ("largest", "largest_scaled")][: len(scene.tokens)]
    means = [
        (float(found[name].mean()), None if old is None else float(old[name].mean()))
        for pair in pairs
        for name in pair
    ]
    prose(words.in_this_model(block, d, means), "block", "head")
    if old is not None:
        prose(_changed(scene, block, alike(found.to_numpy(), old.to_numpy())))
    scene.chart(
        figures.pairs_of_bars(
            [found["largest"].to_numpy(), found["largest_scaled"].to_numpy()],
            (f"not divided by √{d}", f"divided by √{d}"),
            [f"head {i}" for i in found["head"].astype(int)],
            "largest weight",
            scene.mode,
            None if old is None else [old["largest"].to_numpy(), old["largest_scaled"].to_numpy()],
        ),
        key="scaling_heads",
        which=(f"block{block}",),
        alt=f"Block {block}: each head's mean largest weight, with and without the division by √{d}",
    )
    with st.container(horizontal=True, gap="small"):
        block_and_head_inputs(config, block, HEAD.value or 0)
    return block


def _changed(scene: Scene, block: int, same: bool) -> str:
    """What the changes are to these numbers: nothing, and why; or what the outlines are."""
    said = why_same(scene, words.scores_of(block), [("q", block), ("k", block)]) if same else words.OUTLINES
    heads = range(scene.lm.config.n_heads)
    given = [h for h in heads if any(edit.site == "attn" for edit in changed_in(scene.run, block, h))]
    return said + (words.given(given) if given else "")


def _sharper(scene: Scene) -> None:
    FACTOR.within((1, 20))
    factor = FACTOR.widget(st.slider, "The scores times", min_value=1, max_value=20, step=1, width=420)
    before, after = lesson.sharpened(1), lesson.sharpened(factor)
    prose(words.sharper(factor, float(before.max()), float(after.max())), "softmax")
    left, right = st.columns(2, gap="medium")
    with left:
        scene.chart(
            figures.pairs_of_bars(
                [before.numpy(), after.numpy()],
                ("× 1", f"× {factor}"),
                [str(score).replace("-", "−") for score in lesson.SLIDE],
                "softmax",
                scene.mode,
            ),
            key="scaling_sharper",
            which=(f"times{factor}",),
            alt=f"The softmax of five scores, and of the same times {factor}",
        )
    with right:
        st.code(
            f"scores = torch.tensor({list(lesson.SLIDE)})\n\n"
            f"torch.softmax(scores, dim=-1)\n{before}\n\ntorch.softmax(scores * {factor}, dim=-1)\n{after}",
            language="python",
            wrap_lines=True,
        )


def _heads_table(scene: Scene, block: int) -> pd.DataFrame:
    found, old = heads_of(scene.run, block), None if scene.other is None else heads_of(scene.other, block)
    return both(found, old, list(found.columns[1:]))


def _details(scene: Scene, table: pd.DataFrame, block: int) -> None:
    in_numbers(table, "scaling.csv", "A row for each d; _scaled is after the division by √d.", "for every d")
    in_numbers(
        lambda: _heads_table(scene, block),
        "scaling_heads.csv",
        caption(
            f"The heads of block {block} on this text: variance of the scores, mean largest weight.",
            scene.other,
        ),
        "this model's heads",
        missing="one key only",
    )
    found = cost.table(measuring.measured(scene))
    if len(found):
        in_numbers(found, "attention_cost.csv", what="the measurement", missing="the first")
    in_code(
        [MultiHeadAttention.forward, lesson.gradient_left, lesson.jacobian, dropout.drop, cost.attend],
        program(
            sizes,
            scene.load,
            text=scene.text,
            block=block,
            factor=FACTOR.value,
            p=regularizing.P.value,
            seed=regularizing.SEED.value,
            special_tokens=scene.special,
        ),
    )
