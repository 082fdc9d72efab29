"""Every LayerNorm: what it is given, what it makes of it, and why."""

import streamlit as st

from gptviz.analysis import norms as numbers
from gptviz.figures.norm_inside import STAGES, norm_histograms, scale_and_shift
from gptviz.figures.norms import QUANTITIES, norm_depth, norm_grids
from gptviz.model import LayerNorm
from gptviz.tokenizer import show_token
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.dimension import dimension_input
from gptviz.ui.views.layernorm import words
from gptviz.ui.views.layernorm.snippet import before_and_after
from gptviz.ui.words import as_code, markdown_table

NORM = Param("ln_norm", str, "block 0 · norm1", if_there)
DIMENSION: Param[int | None] = Param("ln_dim", int, None, if_there)
QUANTITY = Param("ln_quantity", str, QUANTITIES[0], if_there)
PARAMS = (NORM, DIMENSION, QUANTITY)
TABLES = "<style>[data-testid=stMarkdown] table { display: block; overflow-x: auto; }</style>"  # for phones


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    position, mode = scene.position, scene.mode
    table = scene.trace.norms()
    names = numbers.norm_names(table)
    st.html(TABLES)
    size = scene.lm.config.emb_dim
    labels = [show_token(token.raw) for token in scene.tokens]
    label = labels[position]

    def pick_norm(row: int, column: int) -> None:
        """A click on a cell of either heatmap chooses its norm and its token."""
        NORM.set(names[row])
        scene.select(column)

    def pick_dimension() -> None:
        """A click on a bar of scale or shift chooses its dimension."""
        points = st.session_state["layernorm_weights"].selection.points
        if points:
            DIMENSION.set(int(points[0]["x"]))

    NORM.within(names)

    with st.container(horizontal=True, vertical_alignment="top"):
        QUANTITY.within(QUANTITIES)
        quantity = QUANTITY.widget(
            st.segmented_control,
            "Of each token's values",
            options=QUANTITIES,
            required=True,
        )
        name = NORM.widget(st.selectbox, "Norm", options=names, width=220)
        cell_clicks("layernorm_grids", len(names), len(labels), pick_norm)
    chosen = names.index(name)
    before, after = (numbers.norm_grid(table, column) for column in (quantity, f"{quantity}_after"))  # (N, T)
    limit = numbers.grid_limit(before, after, quantity)
    scene.chart(
        norm_grids(before, after, names, labels, quantity, limit, chosen, position, mode),
        key="layernorm_grids",
        alt=f"The {quantity} of every token's values before and after each of the {len(names)} LayerNorms",
    )
    st.markdown(words.what_to_see(table, labels, quantity, name, position, size))

    st.subheader(f"{as_code(label)} through the depth of the network", anchor=False)
    scene.chart(
        norm_depth(numbers.through_depth(table, position), quantity, label, chosen, mode),
        key="layernorm_depth",
        alt=f"The {quantity} of {label} (position {position}) before and after each norm",
    )
    norm = numbers.find_norm(scene.lm.model, name)
    steps = numbers.norm_steps(norm, numbers.norm_input(scene.trace, norm)[position])

    @st.fragment
    def inside() -> None:
        """The chosen norm at work on the selected token, down to a single dimension."""
        st.subheader(f"Inside {name}, for {as_code(label)} (position {position})", anchor=False)
        picked = dimension_input(
            DIMENSION,
            size,
            "the farthest from the mean",
            "A click on a bar of scale or shift chooses it, too.",
        )
        dimension = numbers.largest_dimension(steps) if picked is None else picked
        values = {stage: steps.stage(stage) for stage in STAGES}
        scene.chart(
            norm_histograms(
                {stage: numbers.histogram(x) for stage, x in values.items()},
                {stage: (float(x.mean()), float(x.var())) for stage, x in values.items()},
                {stage: float(x[dimension]) for stage, x in values.items()},
                dimension,
                mode,
            ),
            key="layernorm_histograms",
            alt=f"How the {size} values of {label} are spread before {name}, normalised, and after it",
        )
        st.caption(words.histograms(dimension))
        st.markdown(markdown_table(numbers.stage_table(steps), digits=4))
        st.markdown(words.why_not_one(steps))
        scene.chart(
            scale_and_shift(steps.scale, steps.shift if steps.has_shift else None, dimension, mode),
            key="layernorm_weights",
            alt=f"Scale and shift of {name}: one learned number of each for every dimension",
            on_select=pick_dimension,
        )
        st.caption(words.weights(steps))
        st.markdown(
            f"**Dimension {dimension}, step by step** (worked out with all digits, written with four)"
        )
        st.markdown(markdown_table(numbers.arithmetic_table(steps, dimension), digits=4))

    inside()

    in_numbers(table, "layernorm.csv", "A row for each norm and token, before and after.")
    in_code(
        [LayerNorm.forward, LayerNorm.formula],
        program(
            before_and_after,
            scene.load,
            text=scene.text,
            norm=name,
            position=position,
            quantity=quantity,
            special_tokens=scene.special,
        ),
        run=lambda: numbers.run_norm(scene.lm.model, name, scene.trace),
    )
