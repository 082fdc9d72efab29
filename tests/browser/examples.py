"""An example of every component: `NAME(on)` draws it, and `on(event)` gets what it sends."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
import torch

from gptviz.analysis.next_token import candidates as most_probable
from gptviz.analysis.norms import norm_steps
from gptviz.both import Both
from gptviz.engine.architecture import GPT2
from gptviz.engine.layer_norms import Norm
from gptviz.engine.sampling import Sampling
from gptviz.engine.tokens import Token
from gptviz.figures.candidates import candidate_rows, column_heads, draw_rows
from gptviz.figures.head_grid import thumbnails
from gptviz.figures.next_token import surprise_rows
from gptviz.figures.norms import norm_stops
from gptviz.figures.theme import figure, palette
from gptviz.tokenizer import get_encoding, show_token
from gptviz.tokenizer.simple import UNK, Cut
from gptviz.tokenizer.steps import show_work
from gptviz.ui.components import theme_watch as watching
from gptviz.ui.components.arcs import arcs as draw_arcs
from gptviz.ui.components.birth import draw_birth
from gptviz.ui.components.branches import branch_tree
from gptviz.ui.components.candidates import candidate_bars
from gptviz.ui.components.cell_clicks import cell_clicks as listen
from gptviz.ui.components.changes import ACTS, change_strip
from gptviz.ui.components.chart import chart as draw_chart
from gptviz.ui.components.chips import chips as draw_chips
from gptviz.ui.components.class_cookie import class_cookie as keep_seat
from gptviz.ui.components.dials import dials as draw_dials
from gptviz.ui.components.draws import draws as draw_draws
from gptviz.ui.components.guide_look import look_at
from gptviz.ui.components.heads import head_grid
from gptviz.ui.components.kernel import happened, mode_shown
from gptviz.ui.components.lazy_section import lazy_section as come_near
from gptviz.ui.components.lens import Legend, encoded, lens_grid
from gptviz.ui.components.machine import (
    Paths,
    machine as draw_machine,
    paths as draw_paths,
)
from gptviz.ui.components.matrix import Panel, attention_panel, matrix as draw_matrix
from gptviz.ui.components.merges import merges as draw_merges
from gptviz.ui.components.path import draw_path
from gptviz.ui.components.prompt import prompt as draw_prompt
from gptviz.ui.components.saved import Saved
from gptviz.ui.components.spread import draw_spread
from gptviz.ui.components.surprise import surprise_chips
from gptviz.ui.components.token_cards import token_cards as draw_token_cards
from gptviz.ui.components.tokenizer_rows import tokenizer_rows as draw_tokenizer_rows
from gptviz.ui.components.windows import draw_windows
from gptviz.ui.components.worksheet import (
    Cell,
    Line,
    Sheet,
    Sign,
    Source,
    worksheet as draw_worksheet,
)
from gptviz.ui.components.writing import writing as draw_writing

On = Callable[[str], Callable[..., Any]]

WORDS = ["The", "·gypsy", "·cat", "⏎", "·`", "·extraordinarily", "·my", "·it"]


def tokens_of(*raws: bytes) -> list[Token]:
    return [Token(i, 100 + i, raw.decode("utf-8", "replace"), raw) for i, raw in enumerate(raws)]


def causal(n_tokens: int) -> np.ndarray:
    """Attention weights (T, T) with a pattern."""
    at = np.arange(n_tokens)
    scores = np.cos(0.7 * at[:, None] - 1.3 * at[None]) * 4 + 3 * (at[None] == 0)
    weights = np.tril(np.exp(scores))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)


def arcs(on: On) -> None:
    """Three heads of eight tokens, and one of 256."""
    for name, tokens, heads, query in (
        ("example", WORDS, 3, 7),
        ("example_long", [f"·word{i}" for i in range(256)], 1, 200),
    ):
        weights = np.stack([causal(len(tokens))] * heads)
        sends = on("pick"), on("head"), on("mass")
        draw_arcs(name, weights, tokens, query, None, 0, range(heads), 0, 90, *sends)


def birth(on: On) -> None:
    """Four points of a training of 30 steps: six letters, of which three come twice."""
    count = 6 * 7 // 2
    weights = [[(17 * i + 5 * point) % 101 for i in range(count)] for point in range(4)]
    levels = [("a blind guess", 1.6), ("what nobody can predict", 0.4)]
    scores = [0.05, 0.05, 0.5, 0.75]
    losses = [1.7, 1.5, 0.9, 0.5]
    steps = [0, 10, 20, 30]
    draw_birth(
        "example",
        weights,
        "abcabc",
        3,
        steps,
        scores,
        losses,
        levels,
        10,
        "Four points of a training",
    )


def branches(on: On) -> None:
    """A text with two branches, the second one from the first."""
    texts = [(None, 0, 8, " and so on"), (0, 2, 6, " but not"), (1, 4, 9, " a gypsy")]
    names = ("parent", "at", "length", "text")
    rows = [dict(zip(names, row, strict=True), log_p="−12.3", perplexity="7.1") for row in texts]
    branch_tree(rows, 1, 3, on("branch"))


# of a changed and of the unchanged model: 300 tokens, the last of the three that have names is a piece
LOGITS = torch.linspace(3.5, -290, 300)
UNCHANGED = LOGITS.roll(1) / 2


def named(token: int) -> str:
    return ["·had", "·gypsy", "\\xe4"][token]


def candidates(on: On) -> None:
    """Three candidates of a changed model, each with its ghost, the third cut by top-k; and the rest."""
    sampling = Sampling(top_k=2)
    found, unchanged = (most_probable(logits, 3, sampling) for logits in (LOGITS, UNCHANGED))
    rows, rest = candidate_rows(
        found, sampling, named, lambda token: token < 2, unchanged=unchanged
    )
    heads = column_heads(sampling, compared=True)
    candidate_bars(rows, rest, heads, on("append"), action="Append")


def cell_clicks(on: On) -> None:
    """A heatmap of two rows and three columns."""
    cells = figure([{"type": "heatmap", "z": [[1, 2, 3], [4, 5, 6]]}], {}, mode_shown(), 200)
    draw_chart(cells, "cells_example", "Six cells", None, Saved("cells", "Six cells"))
    listen("cells_example", 2, 3, on("cell"))


def chart(on: On) -> None:
    """Two curves, one of them with a gap."""
    said = {"type": "scatter", "hovertext": [*"abc"], "hoverinfo": "y+text"}
    curves = [said | {"y": y} for y in ([1, 2, 3], [6, None, 4])]
    made = figure(curves, {"hovermode": "closest"}, mode_shown(), 200)
    draw_chart(made, "curves_example", "Two curves", None, Saved("curves", "Two curves"))


def changes(on: On) -> None:
    """A head that is off, a change that does not fit; and the same, switched off."""
    made = {"text": "z.4.3=zero", "says": "block 4 head 3 off", "state": "made", "note": ""}
    refused = {"text": "z.9.3=zero", "says": "block 9 head 3 off", "state": "refused"}
    refused |= {"note": "no such block"}
    effect = {"after": "·old", "position": 7, "token": "·mill", "top": "·man", "nothing": False}
    effect |= {"before": 0.906, "before_text": "0.906", "now": 0.184, "now_text": "0.184"}
    effect |= {"top_now": 0.25, "top_text": "0.250", "kl": 2.25, "kl_text": "2.25"}
    acts = {act: (lambda act=act: on("act")(act)) for act in ACTS}
    notes = [["", "z.9.3=zero", " is not applied: there is no block 9. It stays in the list."]]
    change_strip([made, refused], effect, False, on("remove"), acts, notes=notes)
    off = [chip | {"state": "off"} for chip in (made, refused)]
    ask = ("Whether each of these did anything takes 2 passes.", "Look")
    change_strip(off, None, True, on("remove"), acts, ask=ask, key="changes_off")


def chips(on: On) -> None:
    """A text with a character in pieces; with the attention of its last token; a long one; with shares."""
    tokens = tokens_of(b"The", b" cat", b" sat", b" \xe4", b"\xbd", b"\xa0", b" and", b" gypsy")
    following = {"shown": "·had", "id": 7, "probability": 0.1234}
    draw_chips(
        tokens,
        7,
        on("position"),
        following=following,
        on_append=on("append"),
        highlight={7: "query"},
    )
    weights = [0.62, 0.2, 0.1, 0.05, 0.02, 0.009, 0.001, None]
    draw_chips(tokens, 6, on("position"), key="chips_weights", weights=weights)
    long = tokens_of(*(f" word{i}".encode() for i in range(225)))
    draw_chips(long, 180, on("position"), key="chips_long", coloured=True)
    shares = [0.4, -0.2, 0.001, 0.0, -0.8, 1.6]
    draw_chips(tokens, 5, on("position"), key="chips_shares", shares=shares)


def machine(on: On) -> None:
    """One block with one head, two tokens, and the numbers of an unchanged model beside its own."""

    def level(by: float) -> dict[str, Any]:
        bar = {"at": "logit.7", "shown": "·cat", "value": by / 4, "text": "25 %", "said": by}
        reads = [{"block": 0, "head": 0, "key": 0, "weight": 0.5, "brought": by}]
        sizes = {"stream": by * np.ones((3, 2)), "writes": np.ones((2, 2))}
        says = ["In goes ", {"code": "·cat"}, ", out comes ", by]
        return {"rows": [0, 1], "reads": reads, "next": [bar], "says": says} | sizes

    page = draw_machine(
        "machine",
        Both(level(1.0), level(2.0)),
        pd.DataFrame({"head": [0], "brought": [1.0]}),
        [("", "the machine")],
        ["The", "·cat"],
        1,
        [],
        GPT2.named.words,
        {"page": "residual_stream", "title": "Residual stream", "href": "./residual_stream"},
        [{"at": "", "says": "In the machine"}, {"at": "block.0", "says": "and into a block"}],
        on("at"),
        on("position"),
    )
    if page is not None:
        on("page")(page)
    few = {name: value for name, value in level(1.0).items() if name != "reads"}
    long = {"stream": np.ones((5, 2)), "writes": np.ones((4, 2)), "reads": []}
    with st.container(key="with_paths"):
        draw_paths(
            Both(few | long),
            Paths(
                effects=Both(np.array([[0.25, -0.5], [np.nan, np.nan]])),
                written=[["25 %", "−50 %"], ["", ""]],
                readers=[("q", 1, 0)],
                threads=[(0, 0, 1, 0.25), (0, 1, 0, -0.5)],
                unit=" of it",
                word="·a − ·b",
                key=["orange: up; blue: down"],
                also=False,
            ),
            pd.DataFrame({"head": [1], "effect": [-0.5]}),
            "the paths to one reader",
            GPT2.named.words,
            ["The", "·cat"],
            1,
            lambda block, head, also: on("reader")([block, head, also]),
            "machine_paths",
        )


def dials(on: On) -> None:
    """A fast pair and a slow one, their tokens 3 apart; nothing moves by itself."""
    draw_dials({0: 1.0, 5: 0.05}, 3, 8, 20, on("at"), moves=False)


def draws(on: On) -> None:
    """Three candidates, the second one drawn, and what is left; each with what it had unchanged."""
    found, unchanged = (most_probable(logits, 3) for logits in (LOGITS, UNCHANGED))
    drawn = draw_rows(found, Sampling(), 1, "drawn", named, unchanged)
    at = drawn.rows[1]["start"]
    names = ("unchanged", "changed")
    point = {"at": at, "text": f"{at:.3f}"}
    draw_draws(drawn.rows, drawn.segments, point, on("branch"), rest=drawn.rest, compared=names)


def guide_look(on: On) -> None:
    """A frame around a line of text; of itself it draws nothing."""
    with st.container(key="framed"):
        st.write("It is framed.")
    look_at("framed")


def lazy_section(on: On) -> None:
    """Far below the window; of itself it draws a button."""
    st.html('<div style="height: 300vh"></div>')
    come_near("example", on("near"))


def class_cookie(on: On) -> None:
    """Somebody in a class; of itself it draws nothing."""
    keep_seat("a-secret", "", on("taught"))


def heads(on: On) -> None:
    """Two blocks of three heads, and twelve of twelve, of which one is changed."""
    for key, blocks, count in (("heads_example", 2, 3), ("heads_many", 12, 12)):
        mixed = {"kind": "mixed", "label": "mixed"}
        row = [
            mixed | {"says": "mixed, over many. " * (1 + i % 3), "write": 1.0 + i}
            for i in range(count)
        ]
        moved = [role | {"moved": i / count} for i, role in enumerate(row)]
        roles = [row, *[moved] * (blocks - 1)]
        row[1] |= {"changed": True, "moved": 0.0}
        picture, side = thumbnails(np.tile(causal(6), (blocks, count, 1, 1)), mode_shown())
        head_grid(picture, side, roles, (1, 2), on("head"), key=key)


def lens(on: On) -> None:
    """Five tokens in three rows, two of them equal; 225 tokens in thirteen rows, some columns not read.

    The five have what the unchanged model says, another token in the last row.
    """
    words = [
        "·the",
        "·cat",
        "·sat",
        "·antidisestablishmentarianism",
        "⏎",
        "·`",
        "\\xe4",
        "·mat",
        "the",
        ".",
    ]
    legend = Legend(
        "probability of the token in the cell", "0", "1", palette(mode_shown()).attention
    )
    for key, count, depth, known in (
        ("lens_example", 5, 3, [(0, 5)]),
        ("lens_long", 225, 13, [(0, 64), (128, 225)]),
    ):
        columns = sum(stop - start for start, stop in known)
        row = np.arange(depth)[:, None, None]
        column = np.arange(columns)[None, :, None]
        ids = (row * 3 + column * 2 + np.arange(3)) % len(words)
        probabilities = np.array([0.6, 0.25, 0.05]) * (1 + row) / depth + 0 * column
        color = probabilities[..., 0]
        numbers = {"entropy": 3 - 2 * color, "rank of ·cat": 1 + ids[..., 1]}
        ghosts = (ids[..., 0] * (row[..., 0] < 2), color) if depth == 3 else None
        cells = encoded(
            known, ids, probabilities, color, numbers, dict(enumerate(words)), ghosts=ghosts
        )
        rows = [(f"row {i}", f"row {i} of {depth}") for i in range(depth)]
        tokens = [words[i % 3] for i in range(count)]
        lens_grid(cells, rows, tokens, (1, 3), legend, on("pick"), key=key)


def matrix(on: On) -> None:
    """A head of eight tokens; the steps of a smaller one; a head of 225 tokens, in a window."""
    head = attention_panel()
    draw_matrix("example", [head], {"weights": causal(8)}, WORDS, 7, 2, on("pick"))
    numbers = np.sin(np.arange(24, dtype=np.float32)).reshape(2, 4, 3)
    steps = [
        Panel("q", "q", "query", "dim", "signed", -1, 1, label="1 query", title="1 query", note="looks",
              says="Dimension {dim} of the query of {query} is {value}", color="query", idle="3 numbers"),
        Panel("scores", "scores", "query", "key", "signed", -2, 2, label="2 score", title="2 score",
              note="q · k", says="{query} · {key} = {value}"),
    ]  # fmt: skip
    scores = {"q": numbers[0], "k": numbers[1], "scores": ("q", "k")}
    draw_matrix("example_steps", steps, scores, WORDS[:4], 3, 1, on("pick"), small=True)
    long = [f"·word{i}" if i % 9 else "·antidisestablishmentarianism" for i in range(225)]
    draw_matrix("example_long", [head], {"weights": causal(225)}, long, 180, 100, on("pick"))


def merges(on: On) -> None:
    """The bundled vocabulary's way to a long word, its last token selected."""
    (piece,) = show_work(get_encoding("mini"), "understandably")
    last = len(piece.ids) - 1
    draw_merges(get_encoding("mini"), piece, last, last)


def path(on: On) -> None:
    """Two blocks of a changed model: the second one's first step is long, and the start is tiny."""
    stops = [[0.0, 1.0], [10.0, 60.0], [20.0, 100.0], [90.0, 60.0], [120.0, 10.0]]
    names = [f"block {s // 2} · {part}" for s, part in enumerate(["attention", "feed-forward"] * 2)]
    drawn = {
        "stops": stops,
        "tips": stops[1:],
        "was": [*stops[:3], [80.0, 50.0], [130.0, 0.0]],
        "jumps": [False] * 4,
        "begins": {"part": None, "says": ["the embedding", "begins the stream"]},
        "steps": [
            {"block": s // 2, "part": s % 2, "says": [name, "adds a vector"]}
            for s, name in enumerate(names)
        ],
        "shown": [0, 2],
        "longest": 2,
        "longest_said": "longest: 90",
        "ends": "end: norm 120",
        "across": "the end's direction",
        "up": "distance",
    }
    draw_path("path_example", drawn, 0, "Four steps", on("block"))


def prompt(on: On) -> None:
    """A text to type over."""
    draw_prompt("one two", "", False, on("run"))


def spread(on: On) -> None:
    """Sixteen numbers of a changed model: four stops, squeezed so much that the axis is zoomed."""
    found = Both(90 * np.sin(np.arange(16.0) ** 2) + 30, 60 * np.cos(np.arange(16.0)))
    scale = torch.full((16,), 0.5)
    norm = Norm("final", None, ("resid_post", 0), 1e-5, scale, torch.arange(16) / 8)
    steps = found.map(lambda values: norm_steps(norm, values))
    draw_spread("example", norm_stops(steps, 3), 3, "Sixteen numbers")


def surprise(on: On) -> None:
    """Five tokens, two of them parts of a character; the third is the one that the page is about.

    Each has what the unchanged model was surprised by.
    """
    raws = [b"The", b" cat", b" \xc3", b"\xa9", b" sat"]
    bits = np.array([np.nan, 1.5, 3, 4.5, 6])
    table = pd.DataFrame(
        {"bits": bits, "probability": 2**-bits, "rank": [0, 10, 100, 1000, 10_000]}
    )
    table, unchanged = (table.assign(bits=b, nats=b * np.log(2)) for b in (bits, bits / 3))
    shown = [show_token(raw) for raw in raws]
    rows, legend = surprise_rows(table, shown, 8192, mode_shown(), unchanged=unchanged)
    surprise_chips(rows, 2, legend, on("position"), raws=raws)


def theme_watch(on: On) -> None:
    """It draws nothing: what it sends is a change of the browser's own theme."""
    watching._component("theme_example", {}, {"changed": (happened, on("changed"))})


def token_cards(on: On) -> None:
    """A word of three tokens, a special token, and a character in three, after a blank."""
    pieces = show_work(get_encoding("mini"), "understandably<|endoftext|> 你", special_tokens=True)
    tokens = tokens_of(*(raw for piece in pieces for raw in piece.parts))
    draw_token_cards(pieces, tokens, 3, on("position"))


def tokenizer_rows(on: On) -> None:
    """Three tokenizers: one that knows the text, one that loses a word, one of bytes; and a long row."""
    raw = "a 你".encode()
    cuts = [
        Cut("whole", 50257, ("a", "·你"), (64, 220), 0, (b"a", raw[1:])),
        Cut("words", 300, ("a", UNK), (7, 299), 1, (b"a", raw[1:])),
        Cut(
            "bytes",
            256,
            tuple(f"{b:02x}" for b in raw),
            tuple(raw),
            0,
            tuple(bytes([b]) for b in raw),
        ),
        Cut("letters", 26, ("b",) * 300, (1,) * 300, 0, (b"b",) * 300),
    ]
    draw_tokenizer_rows(cuts)


def windows(on: On) -> None:
    """Four windows over nine tokens, the last one dropped; many long ones, as bars; and one that slides."""
    words = [*WORDS, "·burn"]
    short = [(i, i) for i in range(4)]
    draw_windows(words, 0, short, 4, 1, on("window"), dropped=3)
    long = [(i, 32 * i) for i in range(2, 9)]
    draw_windows(["·a"] * 300, 64, long, 64, 4, on("window"), key="windows_long")
    draw_windows(words, 0, short, 4, 0, on("window"), key="windows_slide")


def worksheet(on: On) -> None:
    """Three words of two numbers, their products, and weights of which some are masked."""
    words = ["one", "·two", "猫"]
    dims = ["0", "1"]

    def cell(i: int, j: int) -> Cell:
        number = f"0.{i + 1}{j + 1}"
        return Cell(number, 0.2 + 0.1 * (i + j), f"row {i}, column {j} " * (i + 1), number)

    numbers = [[cell(i, j) for j in range(2)] for i in range(3)]
    hidden = Cell(None, None, "masked: it comes later")
    triangle = [[hidden if j > i else cell(i, j) for j in range(3)] for i in range(3)]
    sources = (Source("x", "row", "row"), Source("x", "row", "column"))
    vectors = Sheet(
        "x", "1 vectors", "given", words, dims, numbers, edit=True, words=True, scale="signed"
    )
    weights = Sheet(
        "weights", "2 weights", "softmax", words, words, triangle, "attention", "output", sources
    )
    later = Sheet("context", "3 context", "comes later", words, dims, numbers, later=True)
    line = Line(
        [vectors, Sign("→", "softmax"), weights, Sign("→", "mix", later=True), later], "One head"
    )
    sends = {"on_number": on("number"), "on_word": on("word"), "on_row": on("row")}
    draw_worksheet("example", [line], 1, "Point at a number.", **sends)


def writing(on: On) -> None:
    """Four tokens after a text, one put there, two that share a character; below, one that plays a turn."""
    raws = [b" a", b" gypsy", b" \xc3", b"\xa9"]
    tokens = [
        {"shown": show_token(raw), "id": i, "probability": p, "p_text": f"{p:.2f}", "put": i == 1}
        | {"sentence": f"had probability {p:.2f}"}
        for i, (raw, p) in enumerate(zip(raws, (0.41, 0.02, 0.1, 0.9), strict=True))
    ]
    draw_writing("Once upon a time there was", tokens, 1, on("step"), raws=raws)
    plays = {"delay": 10, "on_turn": on("turn"), "key": "writing_plays"}
    draw_writing("It plays:", tokens[:1], 0, on("step"), **plays)
