"""The vectors that go into block 0: token embedding + position embedding."""

from collections.abc import Sequence
from operator import itemgetter
from typing import cast

import numpy as np
import streamlit as st
import torch

from gptviz.analysis import embeddings
from gptviz.both import Both, alike
from gptviz.engine.architecture import position_vectors
from gptviz.figures import embeddings as figures, marks
from gptviz.figures.maps import Map
from gptviz.lessons import embedding as lesson, windows
from gptviz.tokenizer import get_encoding
from gptviz.ui import sheet, tables, words
from gptviz.ui.shell import navigation, state

PARTS_OF_SUM = ("token embedding", "+ position embedding", "= input of block 0")
# without added positions, and with them
LARGEST = ("the largest", "the largest of the sum")
MAPPED = ("Token embedding", "Token embedding, position embedding and sum")
TOKENS_ONLY = ("inputs", "tok_emb(inputs)")  # of the shapes of a batch
CALLED = ("vector", "three vectors")
MOST = 256  # tokens of the maps
SMALL_ROW = 3  # of the book's first table: the one that the book looks up
NORMS = ("token_norm", "sum_norm")  # of what enters block 0: without added positions, and with them
VECTORS = ("the token vector", "the position vector", "the input of block 0")

MEASURES = {"cosine": "cosine similarity", "dot": "dot product"}
DIMENSION: sheet.Param[int | None] = sheet.Param("emb_dim", int, None, sheet.if_there)


class MeasureParam(sheet.Param[str]):
    """In the address by its long name, as it is on the screen; by its short one as well."""

    def parse(self, text: str) -> str:
        return next(
            (name for name, label in MEASURES.items() if text in (name, label)), self.default
        )

    def written(self, value: str) -> str:
        return MEASURES[value]


MEASURE = MeasureParam("emb_measure", str, "cosine", sheet.if_there)

frame = sheet.start_page("Embeddings", choices=[DIMENSION, MEASURE, sheet.SHOWN])
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt, keep=[embeddings.sites])

at = scene.position
label = words.as_code(scene.label)
lm = scene.lm
tokens = scene.tokens
rows = sheet.of(scene, embeddings.embedding_rows)
lengths = sheet.of(scene, embeddings.lengths_table)
parts = rows.now  # (3, T, D), or (1, T, D): see `summed`
summed = len(parts) == 3  # whether a vector is added for the position
# (3, T) or (1, T)
moved = np.zeros(parts.shape[:2], bool) if rows.was is None else (parts != rows.was).any(axis=-1)
replaced = summed and rows.was is not None and not alike(parts[0, at] + parts[1, at], parts[2, at])

# ---- what the token is like, and its vector plus the position's ----

near = embeddings.nearest_tokens(lm.model.tok_emb.weight, tokens[at].id, k=10)
start = "The model starts from their sum."
if replaced:
    start = (
        "The model would start from their sum, but your change puts something else in its place."
    )
looked_up = f"row {tokens[at].id} of `tok_emb`"
source = f"The list is {looked_up}."
if summed:
    looked_up += f" and row {at} of `pos_emb`"
    source = f"The two lists are {looked_up}."
if moved[:2, at].any():
    lists = "the two lists" if summed else "the list"
    source = f"Without your change, {lists} would be {looked_up}."
nearest = words.as_code(words.show_id(lm, int(near["id"].iloc[0])))
text = f"The model looks up {label}'s numbers: they are most like those of {nearest}. "
if summed:
    text += f"A second list stands for position {at}. {start}"
else:
    text += "Nothing is added for its position: each block turns queries and keys by it."
terms = ("token", "dimension", "embedding", "block")
sites = [(site, None) for site in embeddings.sites(lm)]
sheet.say(scene, text, terms=terms, about=rows, what="the embeddings", sites=sites)
if not summed:
    navigation.link("positions", state.link(), label="Positions: what turning does to a score")
if rows.moved:
    which = words.listed([name for name, one in zip(VECTORS, moved, strict=False) if one.any()])
    norm = lengths.map(lambda t: t.loc[at, NORMS[summed]])
    text = (
        f"**Your change affects {which}** at {int(moved.any(axis=0).sum()):,} of "
        f"{words.counted(len(tokens), 'token')}. At {label}, the input of block 0 has norm "
        f"**{norm.arrow('3')}**."
    )
    if replaced:
        text += " The first two vectors do not add up to the third."
    words.prose(text)


def draw_rows(dimension: int, cells: Sequence[Sequence[str]], alt: str) -> None:
    """The vectors as rows of colours, and around a dimension their digits, `cells`."""
    window = embeddings.window_around(dimension, parts.shape[2])
    limit = sheet.once(scene.run, embeddings.rows_scale).limit
    shown = parts[:, at], scene.label, at, dimension, window, cells, limit
    scene.chart(
        figures.embedding_sum(*shown, scene.mode, not replaced),
        key="embedding_sum",
        which=(f"dimension{dimension}",),
        alt=alt,
        on_cell=lambda _, place: DIMENSION.set(place),
    )


def said_alone(dimension: int) -> None:
    """What the picture of the token's one vector shows."""
    value = float(parts[0, at, dimension])
    norm = words.significant(lengths.now.loc[at, "token_norm"])
    same = ""
    others = embeddings.same_token_elsewhere(tokens, at)
    if others and np.array_equal(*parts[0, [at, others[0]]]):
        same = f" At position {others[0]} the same token has the same vector."
    words.prose(
        f"**The token's vector.** In dimension {dimension} it is **{words.fixed(value, 4)}**. Its norm is "
        f"{norm}. It is what block 0 is given. {source}{same}"
    )


@st.fragment
def the_rows() -> None:
    """The selected token's three vectors, or its one, and about the chosen dimension their digits."""
    size = parts.shape[2]
    picture = st.container()
    which = "the sum" if summed else "it"
    about = f"You can also click the picture. If empty: the dimension where {which} is farthest from zero."
    largest = embeddings.largest_dimension(parts, at)
    dimension = DIMENSION.index("Dimension", size, largest, LARGEST[summed], width=260, help=about)
    window = embeddings.window_around(dimension, size)
    if not summed:
        with picture:
            draw_rows(
                dimension,
                [(words.fixed(float(parts[0, at, d]), 4),) for d in window],
                f"{scene.label} at position {at}, dimension {dimension}",
            )
        said_alone(dimension)
        return
    cells = [embeddings.addition(parts, at, d).written() for d in window]
    first, second, total = embeddings.addition(parts, at, dimension).written()
    addition = f"{first} + {words.term(second)} = **{total}**"
    third = "their sum"
    if replaced:
        addition = f"{first} and {second} are added up, but block 0 is given **{total}** instead"
        third = "the input of block 0"
    with picture:
        alt = f"{scene.label} at position {at}, dimension {dimension}: {addition.replace('*', '')}"
        draw_rows(dimension, cells, alt)
    own = lengths.now.loc[at]
    norms = (
        f"The norms: {words.significant(own['token_norm'])} for the token, "
        f"{words.significant(own['position_norm'])} for the position, "
        f"{words.significant(own['sum_norm'])} for {third}."
    )
    if own["token_norm"] and own["position_norm"]:  # a vector of zeros has no direction
        norms += f" The cosine between token and position is {words.fixed(own['cosine'], 2)}."
    words.prose(f"**Token plus position.** In dimension {dimension}, {addition}. {norms}", "cosine")
    where = source
    others = embeddings.same_token_elsewhere(tokens, at)
    # a change may give one of the two another row, or both positions the same
    if others and [np.array_equal(*part[[at, others[0]]]) for part in parts[:2]] == [True, False]:
        where += f" At position {others[0]} the same token has the same token vector, but another position vector."
    words.prose(where)


@st.fragment
def neighbors() -> None:
    """The tokens whose vectors are most like the selected token's."""
    picture = st.container()
    measure = MEASURE.choose("Measure", MEASURES, label_visibility="collapsed")
    table = lm.model.tok_emb.weight
    found = near
    if measure != "cosine":
        found = embeddings.nearest_tokens(
            table, tokens[at].id, k=10, measure=cast(embeddings.Measure, measure)
        )
    ids = found["id"].tolist()
    names = [words.show_id(lm, i) for i in ids]
    best = found.iloc[0]
    chance = embeddings.best_by_chance(len(table) - 1, table.shape[1])
    if best["cosine"] > 1.4 * chance:
        meaning = (
            "Nobody tells a model which tokens are alike. Training pulls together tokens that appear "
            "in similar places"
        )
        if lm.config.tie_embeddings:
            # the output head's row of a token that never comes is only ever pushed away
            # from what does come
            meaning += ", and tokens that hardly ever appear at all"
        meaning += "."
    else:
        meaning = (
            f"Among {len(table):,} random vectors, the nearest would have a cosine of about "
            f"{words.fixed(chance, 2)}. This likeness may well be chance, not something learned."
        )
    values = found[measure]
    unit = MEASURES[measure]
    pairs = zip(names, ids, values, strict=True)
    says = [
        f"`{name}` (id {i}) and `{scene.label}`: {unit} {words.fixed(value, 4)}"
        for name, i, value in pairs
    ]
    with picture:
        sheet.bars(
            scene,
            "embedding_neighbors",
            Both(values),
            names,
            unit,
            f"The tokens nearest to {scene.label}: " + ", ".join(names),
            which=(measure,),
            lying=True,
            colors=scene.palette.quiet,
            text=Both([words.fixed(value, 3 if measure == "cosine" else 2) for value in values]),
            says=Both(says),
            height=66 + 22 * len(names),
        )
    words.prose(
        f"**Nearest neighbours.** By {MEASURES[measure]}, {words.as_code(names[0])} is nearest to {label} among "
        f"all {len(table):,} token vectors: cosine {words.fixed(best['cosine'], 3)}, dot product "
        f"{words.fixed(best['dot'], 2)} (which also counts the norms). {meaning}",
        "dot product",
    )


left, right = st.columns([4, 7], gap="medium")
with left:
    neighbors()
with right:
    the_rows()

# ---- every token, and every position ----


def pick(dimension: int, position: int) -> None:
    """A click on a cell chooses dimension and token."""
    DIMENSION.set(dimension)
    scene.select(position)


def cells_of(part: int, few: slice) -> Both[np.ndarray]:
    """(D, n): of a part of the sum, a column a token."""
    return rows.map(lambda all_parts: all_parts[part, few].T)


with sheet.panel("Every token of the prompt", ":material/grid_on:", "emb_rows") as is_open:
    if is_open:
        few = marks.window(at, len(tokens), MOST)
        scale = sheet.once(scene.run, embeddings.rows_scale)
        adds_up = summed and alike(parts[0] + parts[1], parts[2])
        sheet.sideways("embedding_rows", 760)
        titles = VECTORS[: len(parts)]
        if adds_up:
            titles = PARTS_OF_SUM
        ends = (-scale.limit, scale.limit)
        panels = [
            Map(title, cells_of(part, few), "signed", title, ends)
            for part, title in enumerate(titles)
        ]
        dimensions = [f"dimension {d}" for d in range(parts.shape[2])]
        alt = f"{MAPPED[summed]} of {words.counted(len(tokens), 'token')}"
        cell = None, at
        sheet.maps(
            scene, "embedding_rows", panels, dimensions, alt, cell, pick, joint=True, few=few
        )
        text = (
            f"Each column is a token, each row a dimension. {scale.outside:,} of {scale.count:,} "
            "values lie beyond the colour scale; the largest is "
            f"{words.significant(scale.largest)} away from zero."
        )
        if len(tokens) > MOST:
            text += f" The picture shows {MOST} tokens around the selected one."
        st.caption(text)
        lines = {
            part: lengths.map(itemgetter(f"{part}_norm")) for part in embeddings.PARTS[: len(parts)]
        }
        alt = f"The norm of each token's {CALLED[summed]}"
        axis = marks.token_ticks(scene.labels, 80) | {"showgrid": False}
        sheet.curves(scene, "embedding_lengths", lines, scene.labels, "norm", alt, at=at, axis=axis)


def alike_positions() -> None:
    """Draw which of the learned position vectors are alike."""
    table = position_vectors(lm.model)  # (C, D)
    count = len(table)
    places = embeddings.spread(count)
    square = embeddings.position_similarity(table, places)[:, places]  # (n, n)
    own = embeddings.position_similarity(table, [at])[0]  # (C,)
    beside = embeddings.similarity_apart(table, min(1, count - 1))
    apart = embeddings.similarity_apart(table, count // 2)
    text = (
        f"`pos_emb` has a vector for each of {count:,} positions; your text uses the first "
        f"{len(tokens):,} (shaded). Neighbouring positions have a cosine of "
        f"{words.fixed(beside, 2)} on average, positions {count // 2:,} apart "
        f"{words.fixed(apart, 2)}. Nothing tells a model that 7 comes after 6: it has to learn "
        "that."
    )
    if len(places) < count:
        text += f" The square shows {len(places)} of the positions, evenly spread."
    st.markdown(text)
    left, right = st.columns(2)
    with left:
        alt = "The cosine of every learned position with every other"
        fig = figures.similarity_matrix(square, list(places), at, scene.mode)
        scene.chart(fig, key="embedding_positions", alt=alt)
    with right:
        sheet.curves(
            scene,
            "embedding_position",
            {"cosine": Both(own)},
            [f"position {at} and position {i}" for i in range(count)],
            f"cosine with position {at}",
            f"The cosine of position {at} with every other position",
            at=at,
            rest=0.0,
            height=430,
            axis={"title": {"text": "position"}, "range": [-0.5, count - 0.5]},
            up={"range": [-1.05, 1.1]},
            used=len(tokens),
        )


if summed:
    with sheet.panel(
        "Which positions are alike?", ":material/straighten:", "emb_positions"
    ) as is_open:
        if is_open:
            alike_positions()

with sheet.panel(
    "A small example: the book's first table", ":material/view_compact:", "emb_small"
) as is_open:
    if is_open:
        small = lesson.first_table()
        one = lesson.looked_up(small, SMALL_ROW)
        st.html(tables.STYLE)
        words.prose(
            f"The book starts with {len(small)} tokens and gives each {small.shape[1]} random "
            f"numbers, after `torch.manual_seed({lesson.SEED})`. To embed token {SMALL_ROW}, look up "
            f"row {SMALL_ROW}. A linear layer gives the same for a **one-hot** vector: zeros, and a 1 "
            f"at place {SMALL_ROW}. Looking up saves the multiplication.",
            "token",
            "one-hot",
        )
        small_rows = []
        for place, values in enumerate(small.tolist()):
            kind = "line"
            if place == SMALL_ROW:
                kind = "line chosen"
            hot = words.fixed(float(one.one_hot[place]), 0)
            small_rows.append(
                tables.Row([str(place), hot, *(words.fixed(value, 4) for value in values)], kind)
            )
        product = [words.fixed(value, 4) for value in one.product.tolist()]
        small_rows.append(tables.Row(["one-hot × table", "", *product], "sum"))
        head = ["row", "#one-hot", *(f"#dimension {d}" for d in range(small.shape[1]))]
        st.html(tables.table("first table", head, small_rows))
        st.markdown(
            "**A batch has a vector for each of its tokens.** The book's batch has 8 windows of 4 "
            "tokens. Your text, in this model, is a batch of one."
        )
        inputs, _ = windows.Windows(
            tuple(get_encoding("gpt2").encode(windows.VERDICT)), 4, 4, 8
        ).batch(0)
        shapes = lesson.batch_shapes(inputs, lesson.BOOKS_VOCABULARY, lesson.BOOKS_DIMENSIONS)
        own = lesson.batch_shapes(
            torch.tensor([scene.run.ids]), lm.config.vocab_size, lm.config.emb_dim
        )
        shape_rows = [
            tables.Row(
                [
                    tables.Cell(name, "code"),
                    " × ".join(map(str, shape)),
                    " × ".join(map(str, own[name])) if summed or name in TOKENS_ONLY else "none",
                ]
            )
            for name, shape in shapes.items()
        ]
        head = ["", "#the book's batch", "#your text"]
        st.html(tables.table("batch shapes", head, shape_rows))
        with sheet.details("the small table"):
            sheet.code_of(
                scene,
                [lesson.looked_up, lesson.batch_shapes],
                lesson.first_table,
                key="in_code_small",
                what="the small table",
            )

told = f"The {CALLED[summed]} of {label} (position {at}), one line per dimension."
with sheet.details():
    sheet.numbers_of(
        "embedding",
        lambda: rows.map(lambda r: embeddings.row_table(r, at)),
        told,
        what="the vectors",
    )
    sheet.numbers_of("embedding_lengths", lengths, what="the norms")
    sheet.code_of(scene, ["hidden"], embeddings.embedding_rows)
