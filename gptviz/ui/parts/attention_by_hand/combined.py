"""The book's final class, `MultiHeadAttention` with `out_proj`: its shapes, and what it prints."""

import pandas as pd
import streamlit as st
import torch

from gptviz.both import Both
from gptviz.figures.maps import Map, maps
from gptviz.lessons.combined import SEED, books_attention, books_batch, combined, shapes
from gptviz.lessons.sentences import SENTENCES
from gptviz.model import MultiHeadAttention
from gptviz.ui import sheet
from gptviz.ui.parts.attention_by_hand.sheets import four, vector
from gptviz.ui.sheet import Frame, side_by_side
from gptviz.ui.tables import STYLE, Cell, Row, table
from gptviz.ui.words import as_code, prose

WORDS = SENTENCES["Your journey starts with one step"].words
WORD = 1  # "journey", which the other ways work out, too


def draw(made: Frame) -> None:
    """Draw both heads' weights, the table of shapes, and what goes into out_proj and comes out."""
    st.html(STYLE)
    result = combined()
    before, after = (vector(rows[0, WORD].tolist()) for rows in (result.context, result.output))
    prose(
        f"**One more matrix mixes the heads' results.** For {as_code(WORDS[WORD])} the two heads give "
        f"{before}, one number each. `out_proj` turns these into **{after}**, as printed in the book.",
        "head",
    )
    future = torch.ones(len(WORDS), len(WORDS), dtype=torch.bool).triu(diagonal=1)
    seen = result.weights[0].masked_fill(future, torch.nan)  # what is masked has no number
    for head, weights in side_by_side(enumerate(seen)):
        square = Map(
            f"Weights of head {head}",
            Both(weights.numpy()),
            "weight",
            "weight",
            (0.0, 1.0),
            written=True,
        )
        fig = maps([square], WORDS, WORDS, None, made.mode)
        alt = f"The attention weights of head {head}, after torch.manual_seed({SEED})"
        made.chart(fig, key=f"combined_head_{head}", which=(f"head{head}",), alt=alt)
    st.caption("Empty cells are masked: a word cannot see what comes later.")
    prose(
        "Here the heads share their matrices: `W_query` makes all queries at once, and each head takes its own "
        "columns. With two numbers and two heads, each head gets one.",
        "head",
    )
    st.markdown("#### The shape at every step")
    rows = [
        Row([Cell(what, "code"), " × ".join(map(str, shape)), says])
        for what, shape, says in shapes(result)
    ]
    st.html(table("shapes", ["step", "#shape", "what it says"], rows))
    st.caption(
        "The batch contains the sentence twice, as in the book. Both copies give the same result."
    )
    st.markdown("#### In and out of out_proj")
    rows = []
    for position, word in enumerate(WORDS):
        numbers = [*result.context[0, position].tolist(), *result.output[0, position].tolist()]
        rows.append(
            Row(
                [Cell(word, "word"), *map(four, numbers)],
                "line chosen" if position == WORD else "line",
            )
        )
    st.html(table("out_proj", ["word", "#head 0", "#head 1", "#output 0", "#output 1"], rows))
    st.code(
        "torch.manual_seed(123)\n\n"
        "batch_size, context_length, d_in = batch.shape\n"
        "d_out = 2\n"
        "mha = MultiHeadAttention(d_in, d_out, context_length, 0.0, num_heads=2)\n\n"
        f"mha(batch)\n{result.output}",
        language="python",
    )
    with sheet.details():
        sheet.numbers_of(
            "combined",
            lambda: in_rows(),
            "A row per word: what goes into out_proj, and its output.",
        )
        run = lambda: books_attention(3, len(WORDS))(books_batch())  # noqa: E731
        sheet.code_of(made, [MultiHeadAttention.forward, books_attention], combined, run=run)


def in_rows() -> pd.DataFrame:
    """A row per word: the heads' numbers and the output."""
    result = combined()
    table = pd.DataFrame({"word": WORDS})
    for name, values in {"head": result.context[0], "output": result.output[0]}.items():
        for column in range(values.shape[1]):
            table[f"{name} {column}"] = values[:, column].numpy()
    return table
