"""A whole model drawn to scale, and what its other pictures share.

Query blue, key red, value green and output purple as everywhere; the feed-forward is orange, the tables
of the vocabulary and of the positions are grey, biases and LayerNorms are thin lines. A tensor whose numbers
are another's (a tied output head) is hatched: it adds nothing.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gptviz.analysis.anatomy import (
    ATTENTION,
    FEED_FORWARD,
    FINAL,
    HEAD,
    NORM,
    POSITION,
    TOKEN,
    Anatomy,
    Tensor,
)
from gptviz.digits import significant
from gptviz.figures.anatomy_layout import WIDTH, Box, Caption, lay_out, square_parameters
from gptviz.figures.figure import Figure
from gptviz.figures.theme import Mode, Palette, figure, palette

NUMBERED = 12  # pixels that a block must be wide to have its number above it

SHORT = {
    "att.W_query.weight": "Q",
    "att.W_key.weight": "K",
    "att.W_value.weight": "V",
    "att.out_proj.weight": "O",
    "ff.layers.0.weight": "ff 0",
    "ff.layers.2.weight": "ff 2",
}


# ---- words and colours ----


def percent(share: float) -> str:
    """A share as a person reads it: "0.36 %", "31.0 %"."""
    return "0 %" if share == 0 else f"{significant(100 * share, 3 if share >= 0.1 else 2)} %"


def sides(tensor: Tensor) -> str:
    return " × ".join(f"{n:,}" for n in tensor.shape)


def describe(tensor: Tensor, total: int) -> str:
    """ "trf_blocks.3.att.W_query.weight is 768 × 768: 589,824 parameters, 0.36 % of the model"."""
    if tensor.shared_with:
        return (
            f"{tensor.name} is {sides(tensor)}, but has no numbers of its own:<br>they are those of "
            f"{tensor.shared_with}, and are counted there"
        )
    share = f"{tensor.parameters:,} parameters, {percent(tensor.parameters / total)} of the model"
    if len(tensor.shape) == 1:
        return f"{tensor.name} has {share}"
    return f"{tensor.name} is {sides(tensor)}:<br>{share}"


def part_color(part: str, colors: Palette) -> str:
    return {
        TOKEN: colors.quiet,
        POSITION: colors.quiet,
        ATTENTION: colors.output,
        FEED_FORWARD: colors.positive,
        NORM: colors.ink,
        FINAL: colors.ink,
        HEAD: colors.quiet,
    }[part]


def _box_color(box: Box, colors: Palette) -> str:
    """The colour of what a box stands for; several vectors together are ink."""
    if not box.tensors:
        return colors.quiet
    if len(box.tensors) > 1:
        return colors.ink
    for name in ("query", "key", "value"):
        if f"W_{name}" in box.tensors[0].name:
            return getattr(colors, name)
    return part_color(box.tensors[0].part, colors)


# ---- pieces of a picture ----


def bars(boxes: Sequence[Box], texts: Sequence[str], colors: Palette, **hover: Any) -> dict[str, Any]:
    """A bar for each box, with a text inside where it fits.

    What is thinner than a pixel gets an outline of one, or it would not be seen.
    """
    shared = [bool(box.tensors and box.tensors[0].shared_with) for box in boxes]
    outlined = [min(box.width, box.height) < 1 or hatched for box, hatched in zip(boxes, shared, strict=True)]
    fills = [_box_color(box, colors) for box in boxes]
    marker: dict[str, Any] = {
        "color": fills,
        "line": {"color": fills, "width": np.array(outlined, dtype=np.float32)},
    }
    if any(shared):
        shapes = ["/" if hatched else "" for hatched in shared]
        marker["pattern"] = {"shape": shapes, "size": 9, "solidity": 0.15}
    return {
        "type": "bar",
        "x": np.array([box.x + box.width / 2 for box in boxes]),
        "width": np.array([box.width for box in boxes]),
        "base": np.array([box.y for box in boxes]),
        "y": np.array([box.height for box in boxes]),
        "marker": marker,
        "text": list(texts),
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "insidetextfont": {"color": colors.paper},
        **hover,
    }


def says(sentences: Sequence[str]) -> dict[str, Any]:
    """The hover of as many bars."""
    return {"customdata": list(sentences), "hovertemplate": "%{customdata}<extra></extra>"}


def note(text: str, x: float, y: float, color: str, size: int, yanchor: str = "bottom") -> dict[str, Any]:
    """A line of text whose left end is at (x, y)."""
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "x",
        "yref": "y",
        "xanchor": "left",
        "yanchor": yanchor,
        "align": "left",
        "borderpad": 0,
        "font": {"color": color, "size": size},
    }


def in_pixels(
    traces: Sequence[dict[str, Any]],
    notes: Sequence[dict[str, Any]],
    mode: Mode,
    width: float,
    height: float,
) -> Figure:
    """Axes that count pixels from the upper left corner, and stay alike on a narrower screen."""
    fixed = {"visible": False, "fixedrange": True, "constrain": "domain"}
    layout = {
        "annotations": list(notes),
        "barmode": "overlay",
        "uniformtext": {"minsize": 9, "mode": "hide"},
        "hovermode": "closest",
        "xaxis": fixed | {"range": [0, width], "constraintoward": "left"},
        "yaxis": fixed | {"range": [height, 0], "scaleanchor": "x", "constraintoward": "top"},
    }
    return figure(traces, layout, mode, height=math.ceil(height) + 12, l=2, r=2, t=4, b=8)


# ---- the whole model ----


def model_map(found: Anatomy, mode: Mode) -> Figure:
    """Every tensor to one scale, so that areas are parameters.

    Curve 0 is a bar for each box of `lay_out`, in its order; curve 1 is a square that says how large the
    scale is; curve 2 writes the blocks' numbers, where there is room. On a
    narrower screen than the layout's all of it is smaller.
    """
    colors, layout, total = palette(mode), lay_out(found), found.parameters
    texts = [SHORT.get(box.tensors[0].local_name, "") for box in layout.boxes]
    traces = [
        bars(layout.boxes, texts, colors, **says([_hover(box, total) for box in layout.boxes])),
        bars([layout.square], [""], colors, hoverinfo="skip"),
    ]
    notes, numbers = [], []
    for caption in layout.captions:
        if caption.about.isdigit():
            numbers.append(caption)
        elif caption.about == "scale":
            text = f"{square_parameters(layout.scale):,} parameters, to the same scale"
            notes.append(note(text, caption.x, caption.y, colors.quiet, 13, yanchor="middle"))
        else:
            notes.append(note(_band(caption.about, found), caption.x, caption.y, colors.ink, 14))
    if 4 * found.config.emb_dim * layout.scale >= NUMBERED:
        traces.append(_block_numbers(numbers, colors))
    return in_pixels(traces, notes, mode, WIDTH, layout.height)


def _block_numbers(captions: Sequence[Caption], colors: Palette) -> dict[str, Any]:
    """One trace for all: hundreds of annotations would take seconds."""
    return {
        "type": "scatter",
        "x": np.array([caption.x for caption in captions]),
        "y": np.array([caption.y for caption in captions]),
        "text": [caption.about for caption in captions],
        "mode": "text",
        "textposition": "top right",
        "textfont": {"color": colors.quiet, "size": 12},
        "hoverinfo": "skip",
    }


def _band(name: str, found: Anatomy) -> str:
    """The words above a band: what it is, its shape, its parameters, its share."""
    blocks = found.config.n_layers
    tensors = [t for t in found.tensors if t.name.startswith(f"{name}.")]
    count = sum(t.parameters for t in tensors)
    share = percent(count / found.parameters)
    if tensors[0].shared_with:
        words = f"{sides(tensors[0])} · the numbers of tok_emb once more, not counted again"
    elif name == "trf_blocks":
        words = f"{blocks} × {count // blocks:,} = {count:,} · {share}"
    elif name == "final_norm":
        words = f"{' and '.join(t.name.split('.')[1] for t in tensors)} · {count:,} · {share}"
    else:
        words = f"{sides(tensors[0])} = {count:,} · {share}"
    return f"<b>{name}</b> · {words}"


def _hover(box: Box, total: int) -> str:
    if len(box.tensors) == 1:
        return describe(box.tensors[0], total)
    count = sum(tensor.parameters for tensor in box.tensors)
    first = box.tensors[0]
    whose = "final_norm" if first.block is None else f"block {first.block}"
    parts = _wrapped([f"{t.local_name.removeprefix('final_norm.')} {t.parameters:,}" for t in box.tensors])
    thin = "<br>to scale they would be too thin to be seen" if min(box.width, box.height) < 1 else ""
    return (
        f"the {len(box.tensors)} vectors of {whose}: {count:,} parameters, "
        f"{percent(count / total)} of the model<br>{parts}{thin}"
    )


def _wrapped(parts: Sequence[str], each: int = 3) -> str:
    lines = [", ".join(parts[i : i + each]) for i in range(0, len(parts), each)]
    return ",<br>".join(lines)
