"""Two passes side by side: what each expects next, where their heads look, how far their streams are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from gptviz.analysis.compare import ROUNDING, align
from gptviz.analysis.shapes import run_first_block
from gptviz.engine.trace import Token
from gptviz.figures import compare as figures
from gptviz.figures import shares
from gptviz.figures.compare import Row
from gptviz.model import GPTModel
from gptviz.tokenizer import show_token
from gptviz.ui import runs
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.components.chips import chips
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.slow import is_asked_for
from gptviz.ui.shell.state import BLOCK, HEAD, open_head
from gptviz.ui.views.compare import derived, patterns, sides, tables, words
from gptviz.ui.views.compare.sides import MODEL, VS_ALL, Sides
from gptviz.ui.views.compare.snippet import Code, side_by_side
from gptviz.ui.words import Place, show_id

RANKED = 10  # of the heads that differ most, as buttons


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="compare_sides"):
        kind = sides.differs(scene)
        other = sides.right(scene, kind)
    if other is None:
        return
    found = _sides(scene, kind, other)
    if not found.pairs:
        st.info(words.NO_PAIRS)
        return
    _other_strip(scene, found)
    if found.identical:
        st.info(words.IDENTICAL)
    sentence = st.container()
    left, right = st.columns(2, gap="medium")
    with left:
        said = _next(scene, found)
    with right:
        apart = _heads(scene, found)
    with sentence:
        terms = () if kind == sides.EDITS else ("head", "block")  # a change's name may begin with one
        prose(f"{said} {_most(apart)}".strip(), "KL divergence", *terms)
    st.markdown(words.HOW)
    patterns.draw(scene, found, _default_head(scene, apart))
    _streams(scene, found)
    _details(scene, found, apart)


def _sides(scene: Scene, kind: str, other: sides.Right) -> Sides:
    tokens = sides.tokens_of(other.run)
    pairs = align(scene.tokens, tokens, one_text=kind != sides.TEXT)
    return Sides(
        kind,
        scene.run,
        other.run,
        scene.tokens,
        tokens,
        pairs,
        pairs.nearest(scene.position),
        sides.names(scene, kind, other),
        other.code,
        other.text,
    )


def place(tokens: Sequence[Token], position: int) -> Place:
    return Place(show_token(tokens[position].raw), position)


def _other_strip(scene: Scene, found: Sides) -> None:
    """The right side's tokens, where they are others; a click selects the token that belongs to it."""
    if [t.raw for t in found.tokens] == [t.raw for t in found.other_tokens]:
        return

    def pick(position: int) -> None:
        scene.select(found.partner(position))

    st.caption(f"On the right, {found.names[1]}:")
    chips(found.other_tokens, found.at[1], scene.mode, pick, key="chips_right")


# ---- what comes next ----


def _next(scene: Scene, found: Sides) -> str:
    """The bars; gives the sentence about them."""
    table = derived.expected(found.run, found.other, *found.at)
    lm, other = runs.model(found.run), runs.model(found.other)

    def shown(row: Any) -> str:
        return show_id(lm, int(row.left_id)) if row.left == row.left else show_id(other, int(row.right_id))

    rows = [
        Row(
            shown(row),
            None if row.left != row.left else row.left,
            None if row.right != row.right else row.right,
        )
        for row in table.itertuples()
    ]
    scene.chart(
        figures.back_to_back(rows, found.names, scene.mode),
        key="compare_next",
        alt=f"What comes next: {found.names[0]} on the left, {found.names[1]} on the right",
    )
    here = (place(found.tokens, found.at[0]), place(found.other_tokens, found.at[1]))
    number = table[["left", "right"]].to_numpy()
    best = np.nanargmax(number, axis=0)  # the row of each side's first choice
    bits = derived.divergence(found.run, found.other, *found.at)
    said = words.what_comes_next(
        found.names,
        here,
        (rows[best[0]].shown, rows[best[1]].shown),
        (float(number[best[0], 0]), float(number[best[1], 1])),
        (float(number[best[0], 1]), float(number[best[1], 0])),
        None if bits is None else _apart_words(found, bits),
    )
    if found.at[0] != scene.position:
        said = f"{words.no_own_pair(place(scene.tokens, scene.position), here[0])} {said}"
    return said


def _apart_words(found: Sides, bits: tuple[float, float]) -> tuple[float, str, str]:
    """The left side is what holds, but beside a changed model the unchanged one, as in the strip."""
    left, right = found.names
    if found.differs == sides.EDITS and not found.other.edits:
        return bits[1], right, left
    return bits[0], left, right


# ---- heads ----


def _heads(scene: Scene, found: Sides) -> NDArray[np.float64] | None:
    """The map of heads; gives it, or None where there is none."""
    if not derived.one_shape(found.run, found.other):
        shapes = tuple(_shape(runs.model(run).config) for run in (found.run, found.other))
        st.markdown(words.other_shape(_models(found), (shapes[0], shapes[1])))
        return None
    if len(found.pairs) < 2:
        st.markdown(words.ONE_TOKEN)
        return None
    apart = _apart(scene, found)
    if apart is None:
        return None
    chosen, columns = _default_head(scene, apart), [f"head {h}" for h in range(apart.shape[1])]
    scene.chart(
        shares.share_grid(apart, columns, chosen, "elsewhere is", scene.mode, signed=False),
        key="compare_heads",
        alt=f"How much of each head's attention stands elsewhere: {found.names[0]} and {found.names[1]}",
    )
    cell_clicks("compare_heads", len(apart), len(columns), open_head, scene.mode)
    _ranked(apart, chosen)
    if found.differs == MODEL:
        st.caption(words.trained_apart(_models(found)))
    return apart


def _models(found: Sides) -> tuple[str, str]:
    """The models' own names, for what is said of the two whatever is changed in them."""
    return runs.model(found.run).name, runs.model(found.other).name


def _ranked(apart: NDArray[np.float64], chosen: tuple[int, int]) -> None:
    """The heads that differ most as a row of buttons, each of which opens its head."""
    first = tables.heads_table(apart).query("elsewhere >= @ROUNDING")[:RANKED]
    if first.empty:
        return
    st.caption(words.RANKED)
    with st.container(horizontal=True, gap="xsmall", key="compare_ranked"):
        for row in first.itertuples():
            place = int(row.block), int(row.head)
            st.button(
                words.ranked(*place, float(row.elsewhere)),
                key=f"compare_rank_{row.Index}",
                type="primary" if place == chosen else "secondary",
                on_click=open_head,
                args=place,
            )


def _shape(config: Any) -> str:
    return f"{config.n_layers} × {config.n_heads} heads and {config.emb_dim} numbers a token"


def _apart(scene: Scene, found: Sides) -> NDArray[np.float64] | None:
    """The numbers of the map; of long texts when somebody asks for them."""
    passes = derived.passes(found.run, found.other)
    if is_asked_for(scene.lm, len(found.run), passes) and not VS_ALL.value:
        st.button(f"Compare all heads: {passes} passes", key="compare_all", on_click=VS_ALL.set, args=(True,))
        return None
    return derived.heads_apart(found.run, found.other, found.pairs)


def _most(apart: NDArray[np.float64] | None) -> str:
    if apart is None:
        return ""
    block, head = np.unravel_index(apart.argmax(), apart.shape)
    return words.heads_differ(
        int(block), int(head), float(apart.max()), int((apart < ROUNDING).sum()), apart.size
    )


def _default_head(scene: Scene, apart: NDArray[np.float64] | None) -> tuple[int, int]:
    """The app's head, where one is chosen, else the one that differs most."""
    best = (0, 0) if apart is None else divmod(int(apart.argmax()), apart.shape[1])
    block, head = BLOCK.within(scene.lm.config.n_layers), HEAD.within(scene.lm.config.n_heads)
    return best[0] if block is None else block, best[1] if head is None else head


# ---- streams, details ----


def _streams(scene: Scene, found: Sides) -> None:
    if not derived.one_shape(found.run, found.other):
        return
    st.subheader("How far apart are the residual streams?", anchor=False)
    distances = derived.streams_apart(found.run, found.other, found.pairs)
    shown, others = (
        [show_token(tokens[i].raw) for i in positions]
        for tokens, positions in (
            (found.tokens, found.pairs.left),
            (found.other_tokens, found.pairs.right),
        )
    )
    scene.chart(
        figures.streams_map(distances, shown, others, found.chosen, scene.mode),
        key="compare_streams",
        alt=f"How far apart the residual streams are: {found.names[0]} and {found.names[1]}",
    )
    cell_clicks(
        "compare_streams",
        len(distances),
        len(found.pairs),
        lambda _, pair: scene.select(found.pairs.left[pair]),
        scene.mode,
    )
    prose(words.STREAMS, "residual stream", "cosine")


def _details(scene: Scene, found: Sides, apart: NDArray[np.float64] | None) -> None:
    in_numbers(
        lambda: derived.expected(found.run, found.other, *found.at, count=50).assign(
            **_bits(derived.divergence(found.run, found.other, *found.at))
        ),
        "compare-next",
        words.NEXT_NUMBERS,
        "what comes next",
    )
    if apart is not None:
        in_numbers(lambda: tables.heads_table(apart), "compare-heads", words.HEADS_NUMBERS, "the heads")
    if derived.one_shape(found.run, found.other):
        in_numbers(
            lambda: tables.streams_table(derived.streams_apart(found.run, found.other, found.pairs), found),
            "compare-streams",
            words.STREAMS_NUMBERS,
            "the streams",
        )
    in_code(
        [GPTModel.forward],
        program(
            side_by_side,
            scene.load,
            text=scene.text,
            other=Code(found.code, found.other.edits),
            position=found.at[0],
            other_text=None if found.one_text else found.text,
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )


def _bits(divergence: tuple[float, float] | None) -> dict[str, float]:
    names = ("kl_bits_left_right", "kl_bits_right_left")
    return {} if divergence is None else dict(zip(names, divergence, strict=True))
