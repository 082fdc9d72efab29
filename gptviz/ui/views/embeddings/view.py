"""The rows that go into block 0: token embedding + position embedding."""

from typing import Any

import streamlit as st

from gptviz import GPTModel
from gptviz.analysis import embeddings as numbers
from gptviz.analysis.shapes import run_first_block
from gptviz.figures.embeddings import embedding_rows, embedding_sum
from gptviz.figures.heatmaps import similarity_curve, similarity_matrix
from gptviz.figures.neighbors import MEASURES, neighbor_bars
from gptviz.tokenizer import show_token
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.dimension import dimension_input
from gptviz.ui.views.embeddings import words
from gptviz.ui.views.embeddings.snippet import embedding_rows as rows_in_python
from gptviz.ui.words import as_code, show_id, term

DIMENSION: Param[int | None] = Param("emb_dim", int, None, if_there)


class Measure(Param[str]):
    """In the address by its long name, as it is on the screen; by its short one as well."""

    def parse(self, text: str) -> str:
        return next((name for name, label in MEASURES.items() if text in (name, label)), self.default)

    def written(self, value: str) -> str:
        return MEASURES[value]


MEASURE = Measure("emb_measure", str, "cosine", if_there)
PARAMS = (DIMENSION, MEASURE)


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    model, position, mode = scene.lm.model, scene.position, scene.mode
    parts = numbers.embedding_parts(scene.trace)  # (3, T, D)
    size = parts.shape[2]
    lengths = numbers.embedding_lengths(scene.trace)
    scale = numbers.shared_scale(parts)
    labels = [show_token(token.raw) for token in scene.tokens]
    label = labels[position]

    def pick_dimension(part: int, dimension: int) -> None:
        """A click on a value of the three rows chooses its dimension."""
        DIMENSION.set(dimension)

    @st.fragment
    def this_row_plus_this_row() -> None:
        """The selected token's three rows and, about the chosen dimension, their digits."""
        picture = st.container()
        picked = dimension_input(
            DIMENSION,
            size,
            "the sum's largest",
            "A click on the rows chooses it, too. Left empty, it is where the sum is farthest from zero.",
        )
        dimension = numbers.largest_dimension(parts, position) if picked is None else picked
        window = numbers.window_around(dimension, size)
        cells = [numbers.addition(parts, position, d).written() for d in window]
        first, second, total = numbers.addition(parts, position, dimension).written()
        strips = embedding_sum(
            parts[:, position], label, position, dimension, window, cells, scale.limit, mode
        )
        with picture:
            scene.chart(
                strips,
                key="embedding_sum",
                alt=f"{label} at position {position}, dimension {dimension}: "
                f"{first} + {term(second)} = {total}",
            )
            cell_clicks("embedding_sum", 3, size, pick_dimension)
        st.markdown(words.this_plus_this(scene.tokens, position, lengths, dimension, (first, second, total)))

    this_row_plus_this_row()

    st.subheader("Every token of the prompt", anchor=False)
    norms = lengths[["token_norm", "position_norm", "sum_norm"]].to_numpy().T  # (3, T)
    scene.chart(
        embedding_rows(parts, labels, norms, scale.limit, position, mode),
        key="embedding_rows",
        alt=f"Token embedding, position embedding and sum of {len(labels)} tokens, {size} dimensions each",
    )
    st.caption(numbers.scale_words(scale))

    @st.fragment
    def neighbors() -> None:
        """The tokens whose rows are most like the selected token's."""
        st.subheader(f"The nearest neighbours of {as_code(label)}", anchor=False)
        MEASURE.within(MEASURES)
        measure: Any = MEASURE.widget(
            st.segmented_control,
            "Measure",
            options=list(MEASURES),
            format_func=MEASURES.__getitem__,
            required=True,
            label_visibility="collapsed",
        )
        near = numbers.nearest_tokens(model.tok_emb.weight, scene.tokens[position].id, k=10, measure=measure)
        names = [show_id(scene.lm, i) for i in near["id"].tolist()]
        scene.chart(
            neighbor_bars(names, near["id"].tolist(), near[measure].to_numpy(), measure, label, mode),
            key="embedding_neighbors",
            alt=f"The tokens nearest to {label}: " + ", ".join(names),
        )
        st.markdown(words.nearest(near, names[0], label, measure, model.tok_emb.num_embeddings))

    neighbors()

    box = st.expander(
        "Which positions are alike?", icon=":material/straighten:", on_change="rerun", key="emb_positions"
    )
    if box.open:
        with box:
            similarity = numbers.position_similarity(model.pos_emb.weight)  # (C, C)
            square, shown = numbers.thin(similarity)
            left, right = st.columns(2)
            with left:
                scene.chart(
                    similarity_matrix(square, shown, position, mode),
                    key="embedding_positions",
                    alt="The cosine of every learned position with every other",
                )
            with right:
                scene.chart(
                    similarity_curve(similarity[position], position, len(labels), mode),
                    key="embedding_position",
                    alt=f"The cosine of position {position} with every other position",
                )
            st.markdown(words.positions(similarity, len(labels), len(shown)))

    in_numbers(
        lambda: numbers.row_table(parts, position),
        "embedding.csv",
        f"The three rows of {as_code(label)} (position {position}), a line a dimension.",
        "the rows",
    )
    in_numbers(
        lambda: lengths,
        "embedding_lengths.csv",
        "The length of each row; the cosine of token and position.",
        "the lengths",
    )
    in_code(
        [GPTModel.final_hidden],
        program(rows_in_python, scene.load, text=scene.text, position=position, special_tokens=scene.special),
        run=lambda: run_first_block(scene.lm, [token.id for token in scene.tokens]),
    )
