"""One block of a model, enlarged until each of its tensors can be named."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gptviz.analysis.anatomy import Anatomy, Tensor
from gptviz.figures.anatomy import bars, describe, in_pixels, note, says, sides
from gptviz.figures.anatomy_layout import Box, lay_out
from gptviz.figures.figure import Figure
from gptviz.figures.theme import Mode, Palette, palette

SIDE = 117.0  # pixels of emb_dim
SEAM, COLUMN = 6.0, 46.0  # between the matrices of the attention, and between it and the feed-forward
TITLE, LABEL = 22.0, 20.0  # the height of a norm's name, and of a bias's
HEAD_LINES = 32  # heads; more of them are not drawn apart

ATTENTION = ("W_query", "W_key", "W_value", "out_proj")
_PARTED = [f"att.{name}.weight" for name in ATTENTION]
RIGHT = 4 * SIDE + 3 * SEAM + COLUMN  # where the feed-forward begins
BLOCK_WIDTH = RIGHT + 4 * SIDE


def enlargement(found: Anatomy) -> float:
    """How many times longer than in `model_map` the sides are here."""
    return SIDE / found.config.emb_dim / lay_out(found).scale


def block_boxes(tensors: Sequence[Tensor], emb_dim: int) -> list[Box]:
    """A box for each tensor of a block, in their order: what comes first in the forward pass is at the left.

    All sides are to one scale, SIDE pixels for emb_dim; a vector is one number thick.
    """
    scale = SIDE / emb_dim
    thick = max(scale, 1.0)  # what the place of a vector must hold
    top = TITLE + 2 * thick + 3 + LABEL
    below = SIDE + 3 + thick + LABEL
    places: dict[str, tuple[float, float]] = {}
    for norm, x in (("norm1", 0.0), ("norm2", RIGHT)):
        places |= {f"{norm}.scale": (x, TITLE), f"{norm}.shift": (x, TITLE + thick + 3)}
    columns = [(f"att.{name}", i * (SIDE + SEAM), top) for i, name in enumerate(ATTENTION)]
    columns += [("ff.layers.0", RIGHT, top), ("ff.layers.2", RIGHT, top + below)]
    for module, x, y in columns:
        places |= {f"{module}.weight": (x, y), f"{module}.bias": (x, y + SIDE + 3)}
    boxes = []
    for tensor in tensors:
        x, y = places[tensor.local_name]
        thin = min(tensor.shape) if len(tensor.shape) == 2 else 1
        boxes.append(Box((tensor,), x, y, max(tensor.shape) * scale, thin * scale))
    return boxes


def block_map(found: Anatomy, mode: Mode) -> Figure:
    """Block 0, whose tensors are as large as every other block's.

    Curve 0 is a bar for each tensor, in the order of the state_dict. The lines of curve 1 part the
    heads: each has some of the rows of W_query, W_key and W_value, and some of the columns of out_proj.
    """
    colors, config, tensors = palette(mode), found.config, found.block(0)
    boxes = block_boxes(tensors, config.emb_dim)
    sentences = [describe(tensor, found.parameters) for tensor in tensors]
    traces = [bars(boxes, [_inside(tensor) for tensor in tensors], colors, **says(sentences))]
    notes = [text for box in boxes for text in _vector_note(box, config.norm_bias, colors)]
    height = max(box.y + box.height for box in boxes) + LABEL
    if 1 < config.n_heads <= HEAD_LINES:
        matrices = [box for box in boxes if box.tensors[0].local_name in _PARTED]
        traces.append(_head_lines(matrices, config.n_heads, colors))
        text = (
            f"The thin lines part the {config.n_heads} heads: {config.head_dim:,} rows each<br>"
            "of W_query, W_key and W_value, and as many columns of out_proj."
        )
        notes.append(note(text, 0, height - LABEL - SIDE / 2, colors.quiet, 14, yanchor="middle"))
    return in_pixels(traces, notes, mode, BLOCK_WIDTH, height)


def _inside(tensor: Tensor) -> str:
    if len(tensor.shape) == 1:
        return ""
    name = tensor.local_name.removesuffix(".weight").removeprefix("att.")
    return f"<b>{name}</b><br>{sides(tensor)}<br>{tensor.parameters:,}"


def _vector_note(box: Box, norm_bias: bool, colors: Palette) -> list[dict[str, Any]]:
    """A norm's name stands above its lines, a bias's under its own; what else there is has none."""
    name, size = box.tensors[0].local_name, f"{box.tensors[0].shape[0]:,}"
    if name.endswith(".scale"):
        what = f"scale and shift, {size} each" if norm_bias else f"scale, {size}"
        return [note(f"<b>{name.removesuffix('.scale')}</b> · {what}", box.x, box.y - 2, colors.ink, 14)]
    if name.endswith(".bias"):
        below = box.y + max(box.height, 1) + 2
        return [note(f"bias, {size}", box.x, below, colors.quiet, 12, yanchor="top")]
    return []


def _head_lines(boxes: Sequence[Box], heads: int, colors: Palette) -> dict[str, Any]:
    """A line between every two heads: across Q, K and V, and down out_proj. One trace, broken by NaN."""
    points: list[tuple[float, float]] = []
    for box in boxes:
        for part in np.arange(1, heads) / heads:
            if "out_proj" in box.tensors[0].name:
                x = box.x + part * box.width
                points += [(x, box.y), (x, box.y + box.height), (np.nan, np.nan)]
            else:
                y = box.y + part * box.height
                points += [(box.x, y), (box.x + box.width, y), (np.nan, np.nan)]
    return {
        "type": "scatter",
        "x": np.array([x for x, _ in points]),
        "y": np.array([y for _, y in points]),
        "mode": "lines",
        "line": {"color": colors.paper, "width": 0.5},
        "opacity": 0.55,
        "hoverinfo": "skip",
    }
