"""What the Attention page draws: one head large, its steps small, and the arithmetic of one weight."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import streamlit as st
import torch

from gptviz import Run, Trace
from gptviz.analysis import attention
from gptviz.analysis.attention import CellArithmetic
from gptviz.digits import fixed
from gptviz.figures import attention as figures
from gptviz.figures.token_axis import window
from gptviz.ui import runs
from gptviz.ui.components.arcs import MASSES, arcs
from gptviz.ui.components.matrix import ATTENDS, MASKED, Panel, attention_panel, matrix
from gptviz.ui.components.saved import Saved
from gptviz.ui.runs import per_run
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.shown import scene_of
from gptviz.ui.shell.state import HEAD
from gptviz.ui.views.attention import change_words, comparing
from gptviz.ui.views.attention.choice import Choice
from gptviz.ui.views.attention.controls import MASS, picker

SIDE, SIDE_COMPARED = 520, 380  # pixels of the large matrix; less under the strip of changes, or beside arcs
WINDOW = 1024  # tokens that a matrix holds: a head's weights are then 2 MiB
ARCS_WINDOW = 256  # and arcs, of all heads of a block: twelve heads' weights are then 1.5 MiB


def draw_head(scene: Scene, chosen: Choice, drawn: torch.Tensor, which: str, key: int) -> None:
    """The large matrix, (T, T): weights, rescaled and NaN where the first token stands if that is hidden.

    `which` of two runs it is of, or their difference.
    """
    seen = window(scene.position, len(scene.tokens), WINDOW)
    panel = attention_panel(
        says=ATTENDS + (", rescaled without the first token" if chosen.hide_first else ""),
        says_nothing=change_words.HIDDEN,
    )
    if which == comparing.DIFFERENCE:
        panel = comparing.difference_panel(drawn)
    head = "average" if chosen.average else f"head{chosen.head}"
    saved = _saved(scene, which, "attention", chosen.title, f"block{chosen.block}", head)
    largest = SIDE_COMPARED if scene.other is not None or chosen.arcs else SIDE
    _matrix(scene, "head", [panel], {"weights": drawn[seen, seen].numpy()}, key, saved, largest=largest)


def draw_arcs(scene: Scene, trace: Trace, chosen: Choice, which: str, key: int) -> None:
    """The same weights as lines between two lines of the text, with the block's other heads at hand.

    `trace` is `which` of two runs.
    """
    seen = window(scene.position, len(scene.tokens), ARCS_WINDOW)
    weights = chosen.of_heads(trace)[:, seen, seen].numpy()  # (H, t, t)
    arcs(
        "head",
        weights,
        scene.labels[seen],
        scene.position,
        key if seen.start <= key < seen.stop else None,
        chosen.block,
        [chosen.head] if chosen.average else range(len(weights)),
        0 if chosen.average else chosen.head,
        MASS.within(MASSES),
        scene.mode,
        picker(scene),
        HEAD.set,
        MASS.set,
        first=seen.start,
        saved=_saved(scene, which, "attention_arcs", chosen.title, f"block{chosen.block}"),
    )
    _where(scene, seen)
    if seen.start:
        st.caption("What these tokens give to those before them is not drawn.")


@dataclass(frozen=True)
class HeadSteps:
    """Of `attention.steps`, what is drawn: scores and weights (T, T), z (T, d)."""

    scores: torch.Tensor
    weights: torch.Tensor
    z: torch.Tensor


@per_run
def head_steps(run: Run, block: int, head: int) -> HeadSteps:
    found = attention.steps(runs.get(run, (("q", block), ("k", block), ("v", block))), block, head)
    return HeadSteps(found.scores, found.weights, found.z)


def draw_steps(scene: Scene, trace: Trace, block: int, head: int, which: str, key: int) -> None:
    """The chosen head's queries, keys, scores ... output, side by side.

    `trace` is `which` of two runs.
    """
    seen, own = window(scene.position, len(scene.tokens), WINDOW), scene_of(scene, which)
    steps = head_steps(own.run, block, head)
    if scene.other is not None:
        st.markdown(change_words.steps_are(which))
    arrays = {name: trace[name, block][head, seen].numpy() for name in ("q", "k", "v")}
    arrays |= {"weights": steps.weights[seen, seen].numpy(), "z": steps.z[seen].numpy()}
    replaced = comparing.replaced(own, block, head)  # these are not what the steps before lead to
    if "attn" in replaced:
        arrays["weights"] = trace["attn", block][head, seen, seen].numpy()
    if replaced:
        arrays["z"] = trace["z", block][head, seen].numpy()
        st.markdown(change_words.steps(replaced))
    drawn = {**arrays, "scores": steps.scores[seen, seen].numpy()}
    reach = {name: float(np.abs(values).max()) or 1.0 for name, values in drawn.items()}
    divisor = arrays["q"].shape[1] ** 0.5
    d, root = fixed(divisor, 2), f"√{arrays['q'].shape[1]}"

    def vectors(
        name: str, array: str, axis: Literal["query", "key"], title: str, note: str, color: str
    ) -> Panel:
        what = title.split(" ", 1)[1]
        return Panel(
            name, array, axis, "dim", "signed", -reach[array], reach[array],
            label=title, title=title, note=note, color=color, idle=f"{arrays[array].shape[1]} numbers each",
            says=f"Dimension {{dim}} of the {what} of {{{axis}}} is {{value}}",
        )  # fmt: skip

    def pairs(
        name: str, title: str, note: str, says: str, masked: bool, divisor: float, color: str = ""
    ) -> Panel:
        return Panel(
            name, "scores", "query", "key", "signed", -reach["scores"] / divisor, reach["scores"] / divisor,
            label=title, title=title, note=note, color=color, says=says, says_masked=MASKED, masked=masked,
            divisor=divisor,
        )  # fmt: skip

    divided = f"{{product}} ÷ {d} = {{value}}, for {{query}} and {{key}}"
    panels = [
        vectors("q", "q", "query", "1 query", "what a token looks for", "query"),
        vectors("k", "k", "key", "2 key", "what a token offers", "key"),
        pairs("scores", "3 query · key", "a dot product a pair", "{query} · {key} = {value}", False, 1.0),
        pairs("scaled", f"4 ÷ {root}", f"every score by {d}", divided, False, divisor),
        pairs("masked", "5 masked", "later tokens hidden", divided, True, divisor),
        Panel(
            "weights", "weights", "query", "key", "attention", 0, 1,
            label="6 softmax", title="6 softmax", note="each row sums to 1", masked=True, digits="weight",
            says=ATTENDS, says_masked=MASKED, color="output",
        ),
        vectors("v", "v", "key", "7 value", "what a token hands over", "value"),
        vectors("z", "z", "query", "8 output", "weights × values", "output"),
    ]  # fmt: skip
    title = f"The steps of block {block}, head {head}"
    saved = _saved(scene, which, "attention_steps", title, f"block{block}", f"head{head}")
    _matrix(scene, "steps", panels, {**arrays, "scores": ("q", "k")}, key, saved, small=True)


def _saved(scene: Scene, which: str, name: str, title: str, *parts: str) -> Saved:
    """`Scene.saved` of the model that a picture is of; of two, `which` is in its title and file name."""
    if scene.other is None:
        return scene.saved(name, title, scene.lm.name, *parts)
    return scene_of(scene, which).saved(name, f"{title}, {which}", scene.lm.name, *parts, which)


def _matrix(
    scene: Scene,
    name: str,
    panels: list[Panel],
    arrays: Mapping[str, np.ndarray | tuple[str, str]],
    key: int,
    saved: Saved,
    small: bool = False,
    largest: int = SIDE,
) -> None:
    seen = window(scene.position, len(scene.tokens), WINDOW)
    inside = key if seen.start <= key < seen.stop else None
    matrix(
        name,
        panels,
        arrays,
        scene.labels[seen],
        scene.position,
        inside,
        scene.mode,
        picker(scene),
        small=small,
        largest=largest,
        first=seen.start,
        saved=saved,
    )
    _where(scene, seen)


def _where(scene: Scene, seen: slice) -> None:
    if seen.stop - seen.start < len(scene.tokens):
        st.caption(
            f"Of {len(scene.tokens):,} tokens, positions {seen.start} to {seen.stop - 1} are here: "
            "select another token to look elsewhere."
        )


def draw_arithmetic(
    scene: Scene, trace: Trace, lines: list[str], cell: CellArithmetic, block: int, head: int
) -> None:
    """The numbers behind one weight, as sentences and as bars."""
    tokens, mode = scene.labels, scene.mode
    query, key = tokens[cell.query], tokens[cell.key]
    which = (f"block{block}", f"head{head}", f"key{cell.key}")
    words, bars = st.columns([2, 3], gap="medium")
    with words:
        st.markdown("\n".join(f"{i}. {line}" for i, line in enumerate(lines, start=1)))
    with bars:
        scene.chart(
            figures.products(cell.q.numpy(), cell.k.numpy(), query, key, mode),
            key="attention_products",
            alt=f"Bars: the products of query and key in each dimension; their sum is {fixed(cell.score, 2)}",
            which=which,
        )
    if cell.weight is None:
        return
    row, part = st.columns(2, gap="medium")
    with row:
        softmax = cell.row
        scene.chart(
            figures.softmax_row(
                softmax.scaled.numpy(),
                softmax.exp.numpy(),
                softmax.weights.numpy(),
                tokens[: cell.query + 1],
                query,
                cell.key,
                mode,
            ),
            key="attention_softmax",
            alt=f"Bars for the keys that {query} can see: scaled scores, exponentials, weights",
            which=which,
        )
    with part:
        given = attention.weighted_values(trace, block, head, cell.query)
        scene.chart(
            figures.output(
                given[cell.key].numpy(), trace["z", block][head, cell.query].numpy(), query, key, mode
            ),
            key="attention_output",
            alt=f"Bars: the head's output for {query}, and the part of it that comes from {key}",
            which=which,
        )
