"""A whole model drawn to scale, one block of it enlarged, and the shares of its parts.

Query blue, key red, value green and output purple as everywhere; the feed-forward is gold, the tables
of the vocabulary and of the positions are grey, biases and norms are thin lines. A tensor whose numbers
are another's (a tied output head) is hatched: it adds nothing.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gptviz.analysis.anatomy import ATTENTION, FEED_FORWARD, HEAD, POSITION, TOKEN, Anatomy, Tensor
from gptviz.digits import significant
from gptviz.figures.anatomy_layout import (
    WIDTH,
    Box,
    Column,
    columns_of,
    high,
    lay_out,
    square_parameters,
    wide,
)
from gptviz.figures.marks import BARE, bar, line, names_down, note, safe, says, stroke
from gptviz.figures.theme import Figure, Mode, Palette, figure, palette, text_on

NUMBERED = 12  # pixels that a block must be wide to have its number above it

SHORT = {
    "att.W_query.weight": "Q",
    "att.W_key.weight": "K",
    "att.W_value.weight": "V",
    "att.out_proj.weight": "O",
    "ff.layers.0.weight": "ff 0",
    "ff.layers.2.weight": "ff 2",
    "ff.fc1.weight": "fc1",
    "ff.fc2.weight": "fc2",
    "ff.fc3.weight": "fc3",
}


# ---- words and colours ----


def percent(share: float) -> str:
    """A share as a person reads it: "0.36 %", "31.0 %"."""
    if share == 0:
        return "0 %"
    digits = 3 if share >= 0.1 else 2
    return f"{significant(100 * share, digits)} %"


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
    known = {
        ATTENTION: colors.output,
        FEED_FORWARD: colors.feed_forward,
        TOKEN: colors.quiet,
        POSITION: colors.quiet,
        HEAD: colors.quiet,
    }
    return known.get(part, colors.ink)  # the norms


def _box_color(box: Box, colors: Palette) -> str:
    """The colour of what a box stands for; several vectors together are ink."""
    if not box.tensors:
        return colors.quiet
    if len(box.tensors) > 1 or box.tensors[0].name.endswith("_norm.scale"):
        return colors.ink
    for name in ("query", "key", "value"):
        if f"W_{name}" in box.tensors[0].name:
            return getattr(colors, name)
    return part_color(box.tensors[0].part, colors)


# ---- pieces of a picture ----


def bars(
    boxes: Sequence[Box], texts: Sequence[str], colors: Palette, **hover: Any
) -> dict[str, Any]:
    """A bar for each box, with a text inside where it fits.

    What is thinner than a pixel gets an outline of one, or it would not be seen.
    """
    x, y, width, height = np.array([(box.x, box.y, box.width, box.height) for box in boxes]).T
    shared = [bool(box.tensors and box.tensors[0].shared_with) for box in boxes]
    fills = [_box_color(box, colors) for box in boxes]
    edge = {"color": fills, "width": ((np.minimum(width, height) < 1) | shared).astype(np.float32)}
    marker: dict[str, Any] = {"color": fills, "line": edge}
    if any(shared):
        shapes = ["/" if hatched else "" for hatched in shared]
        marker["pattern"] = {"shape": shapes, "size": 9, "solidity": 0.15}
    inside = _inside_of(texts, [text_on(fill) for fill in fills])
    return bar(x + width / 2, height, marker, width=width, base=y, **inside, **hover)


def _inside_of(texts: Sequence[str], color: str | Sequence[str]) -> dict[str, Any]:
    """Texts in the middle of as many bars."""
    middle = {"textposition": "inside", "insidetextanchor": "middle", "textangle": 0}
    return {"text": list(texts), "insidetextfont": {"color": color}} | middle


def _note(
    text: str, x: float, y: float, color: str, size: int, yanchor: str = "bottom"
) -> dict[str, Any]:
    return note(text, x, y, color, size, yanchor=yanchor, align="left", borderpad=0)


def in_pixels(
    traces: Sequence[dict[str, Any]],
    notes: Sequence[dict[str, Any]],
    mode: Mode,
    width: float,
    height: float,
) -> Figure:
    """Axes that count pixels from the upper left corner, and stay alike on a narrower screen."""
    fixed = {"visible": False, "constrain": "domain"}
    layout = {
        "annotations": list(notes),
        "uniformtext": {"minsize": 9, "mode": "hide"},
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
    colors = palette(mode)
    layout = lay_out(found)
    total = found.parameters
    texts = [SHORT.get(box.tensors[0].local_name, "") for box in layout.boxes]
    traces = [
        bars(layout.boxes, texts, colors, **says([_hover(box, total) for box in layout.boxes])),
        bars([layout.square], [""], colors, hoverinfo="skip"),
    ]
    notes = []
    numbers = []
    for caption in layout.captions:
        if caption.about.isdigit():
            numbers.append(caption)
        elif caption.about == "scale":
            text = f"{square_parameters(layout.scale):,} parameters, to the same scale"
            notes.append(_note(text, caption.x, caption.y, colors.quiet, 13, "middle"))
        else:
            notes.append(_note(_band(caption.about, found), caption.x, caption.y, colors.ink, 14))
    if layout.block_width >= NUMBERED:
        # one trace for all: hundreds of annotations would take seconds
        look: dict[str, Any] = {
            "text": [number.about for number in numbers],
            "textposition": "top right",
        }
        look |= {"textfont": {"color": colors.quiet, "size": 12}, "hoverinfo": "skip"}
        places = {"x": [caption.x for caption in numbers], "y": [caption.y for caption in numbers]}
        traces.append({"type": "scatter", "mode": "text"} | places | look)
    return in_pixels(traces, notes, mode, WIDTH, layout.height)


def _band(name: str, anatomy: Anatomy) -> str:
    """The words above a band: what it is, its shape, its parameters, its share."""
    blocks = anatomy.config.n_layers
    tensors = [t for t in anatomy.tensors if t.name.startswith(f"{name}.")]
    count = sum(t.parameters for t in tensors)
    share = percent(count / anatomy.parameters)
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
    if first.block is None:
        owner = "final_norm"
    else:
        owner = f"block {first.block}"
    vectors = [f"{t.local_name.removeprefix('final_norm.')} {t.parameters:,}" for t in box.tensors]
    parts = ",<br>".join(", ".join(vectors[i : i + 3]) for i in range(0, len(vectors), 3))
    thin = ""
    if min(box.width, box.height) < 1:
        thin = "<br>to scale they would be too thin to be seen"
    return (
        f"the {len(box.tensors)} vectors of {owner}: {count:,} parameters, "
        f"{percent(count / total)} of the model<br>{parts}{thin}"
    )


# ---- one block, enlarged until each of its tensors can be named ----

BLOCK_WIDTH = 1000.0  # pixels
SEAM = 6.0  # between the matrices of the attention
COLUMN = 46.0  # between it and the feed-forward
TITLE = 22.0  # the height of a norm's name
LABEL = 20.0  # and of what stands below a matrix
MORE = 17.0  # and of one more line of it
NAMED = 44.0  # pixels that a matrix must be high to have its name in it
LETTER = 7.0  # and that a letter of the words about the heads takes, at most
LINE = 18.0  # and a line of them
HEAD_LINES = 32  # heads; more of them are not drawn apart

_NORM_OF = {"att.W_query": "att.q_norm", "att.W_key": "att.k_norm"}  # of what they give


def enlargement(found: Anatomy) -> float:
    """The factor by which the sides are longer here than in `model_map`."""
    return block_scale(found.block(0)) / lay_out(found).scale


def _columns(tensors: Sequence[Tensor]) -> tuple[list[Column], Column]:
    """The attention's matrices, in columns, and those of the feed-forward, all in one.

    Key and value are in one column where a group shares them, so that they are lower than the query.
    """
    rows = {t.local_name: t.shape[0] for t in tensors}
    shared = 2 * rows["att.W_key.weight"] <= rows["att.W_query.weight"]
    attention = [t for t in tensors if t.part == ATTENTION]
    feed_forward = tuple(t for t in tensors if t.part == FEED_FORWARD and len(t.shape) == 2)
    return columns_of(attention, shared), feed_forward


def block_scale(tensors: Sequence[Tensor]) -> float:
    """Pixels for one row or column of a tensor: the block becomes BLOCK_WIDTH wide."""
    attention, feed_forward = _columns(tensors)
    room = BLOCK_WIDTH - COLUMN - (len(attention) - 1) * SEAM
    return room / (sum(map(wide, attention)) + wide(feed_forward))


def block_boxes(tensors: Sequence[Tensor]) -> list[Box]:
    """A box for each tensor of a block, in their order: what comes first in the forward pass is at the left.

    All sides are to one scale; a vector is one number thick. What a matrix has beside it is below it: its bias, and
    the norm of queries or keys.
    """
    scale = block_scale(tensors)
    attention, feed_forward = _columns(tensors)
    thick = max(scale, 1.0)  # what the place of a vector must hold
    top = TITLE + 2 * thick + 3 + LABEL
    places: dict[str, tuple[float, float]] = {}
    known = {tensor.local_name for tensor in tensors}
    x = 0.0
    starts = []
    for column in (*attention, feed_forward):
        if column is feed_forward:
            x += COLUMN - SEAM
        starts.append(x)
        y = top
        for matrix in column:
            module = matrix.local_name.removesuffix(".weight")
            height = high((matrix,)) * scale
            places[matrix.local_name] = (x, y)
            y += height + 3
            names = [f"{module}.bias", f"{_NORM_OF.get(module)}.scale"]
            beside = [name for name in names if name in known]
            for name in beside:
                places[name] = (x, y)
                y += thick + LABEL
                if height < NAMED and name.endswith(".bias"):
                    y += MORE
            if not beside:
                y += thick + LABEL
        x += wide(column) * scale + SEAM
    for norm, left in (("norm1", starts[0]), ("norm2", starts[-1])):
        places |= {f"{norm}.scale": (left, TITLE), f"{norm}.shift": (left, TITLE + thick + 3)}
    boxes = []
    for tensor in tensors:
        x, y = places[tensor.local_name]
        thin = 1
        if len(tensor.shape) == 2:
            thin = min(tensor.shape)
        boxes.append(Box((tensor,), x, y, max(tensor.shape) * scale, thin * scale))
    return boxes


def block_map(found: Anatomy, mode: Mode) -> Figure:
    """Block 0, whose tensors are as large as every other block's.

    Curve 0 is a bar for each tensor, in the order of the state_dict. The lines of curve 1 part the
    heads: each has some of the rows of W_query, and some of the columns of out_proj; and so has each group of
    heads some of the rows of W_key and W_value.
    """
    colors = palette(mode)
    config = found.config
    tensors = found.block(0)
    boxes = block_boxes(tensors)
    sentences = [describe(tensor, found.parameters) for tensor in tensors]
    traces = [bars(boxes, [_inside(box) for box in boxes], colors, **says(sentences))]
    notes = _notes(boxes, colors)
    height = max(box.y + box.height for box in boxes) + LABEL
    parted = {"W_query": config.n_heads, "W_key": config.n_kv_groups}
    parted |= {"W_value": config.n_kv_groups, "out_proj": config.n_heads}
    if 1 < config.n_heads <= HEAD_LINES:
        matrices = [
            (box, count)
            for box in boxes
            for name, count in parted.items()
            if box.tensors[0].local_name == f"att.{name}.weight"
        ]
        traces.append(_head_lines(matrices, colors))
        last = next(box for box in reversed(boxes) if len(box.tensors[0].shape) == 2)
        attention = [box for box in boxes if box.tensors[0].part == ATTENTION]
        words = _lines_say(found, max(box.x + box.width for box in attention))
        half = LINE * (1 + words.count("<br>")) / 2
        below = max(box.y + box.height for box in attention) + 2 * LABEL + half
        middle = max(height - LABEL - last.height / 2, below)
        height = max(height, middle + half)
        notes.append(_note(words, 0, middle, colors.quiet, 14, "middle"))
    return in_pixels(traces, notes, mode, BLOCK_WIDTH, height)


def _lines_say(found: Anatomy, width: float) -> str:
    """The words about the lines between heads, and between groups of them, as wide as the attention."""
    config = found.config
    if config.n_kv_groups == config.n_heads:
        return (
            f"The thin lines part the {config.n_heads} heads: {config.head_dim:,} rows each<br>"
            "of W_query, W_key and W_value, and as many columns of out_proj."
        )
    if config.n_kv_groups == 1:
        shared = "All heads share W_key and W_value."
    else:
        shared = (
            f"Each of the {config.n_kv_groups} groups of heads has {config.head_dim:,} rows of W_key and of "
            "W_value."
        )
    said = (
        f"The thin lines part the {config.n_heads} heads: {config.head_dim:,} rows each of W_query, and as many "
        f"columns of out_proj. {shared}"
    )
    return "<br>".join(textwrap.wrap(said, max(int(min(width, 420) / LETTER), 24)))


def _inside(box: Box) -> str:
    tensor = box.tensors[0]
    if len(tensor.shape) == 1 or box.height < NAMED:
        return ""
    name = tensor.local_name.removesuffix(".weight").removeprefix("att.")
    return f"<b>{name}</b><br>{sides(tensor)}<br>{tensor.parameters:,}"


def _notes(boxes: Sequence[Box], colors: Palette) -> list[dict[str, Any]]:
    """The notes of a block: a norm's name above its lines, and what stands below a matrix."""
    of_name = {box.tensors[0].local_name: box for box in boxes}
    notes = []
    for name, box in of_name.items():
        module, _, kind = name.rpartition(".")
        short = module.removeprefix("att.")
        size = f"{box.tensors[0].shape[0]:,}"
        bias = of_name.get(f"{module}.bias")
        color = colors.quiet
        if kind == "weight":
            words = []
            if box.height < NAMED:
                words.append(f"<b>{short}</b> · {sides(box.tensors[0])}")
                color = colors.ink
            if bias is not None:
                words.append(f"bias, {bias.tensors[0].shape[0]:,}")
            if words:
                notes.append(_below("<br>".join(words), bias or box, color))
        elif module in ("norm1", "norm2") and kind == "scale":
            words = [f"<b>{module}</b>", f"scale, {size}"]
            if f"{module}.shift" in of_name:
                words[1] = f"scale and shift, {size} each"
            notes.append(_note(" · ".join(words), box.x, box.y - 2, colors.ink, 14))
        elif kind == "scale":  # of queries or keys
            notes.append(_below(f"{short} · scale, {size}", box, color))
    return notes


def _below(words: str, box: Box, color: str) -> dict[str, Any]:
    return _note(words, box.x, box.y + max(box.height, 1) + 2, color, 12, "top")


def _head_lines(matrices: Sequence[tuple[Box, int]], colors: Palette) -> dict[str, Any]:
    """Lines that part each matrix into so many heads, or groups: the rows of W_query, W_key and W_value, and the
    columns of out_proj. One trace, broken by NaN. Of a matrix that is higher than wide, which lies, rows run on to the
    right."""
    points: list[tuple[float, float]] = []
    for box, count in matrices:
        rows, columns = box.tensors[0].shape
        across = rows <= columns  # rows lie one below the other
        if "out_proj" in box.tensors[0].name:
            across = columns < rows
        for part in np.arange(1, count) / count:
            if across:
                y = box.y + part * box.height
                points += [(box.x, y), (box.x + box.width, y), (np.nan, np.nan)]
            else:
                x = box.x + part * box.width
                points += [(x, box.y), (x, box.y + box.height), (np.nan, np.nan)]
    x, y = np.array(points).T
    return stroke(x, y, line(colors.paper, 0.5), opacity=0.55)


# ---- which part has which share ----


def share_bars(tables: Mapping[str, pd.DataFrame], mode: Mode) -> Figure:
    """A bar for each model, from 0 to 100 %, cut into its parts: curve i is the i-th part of all models.

    `tables`: a name for the screen -> `part_table`, of at least one model.
    """
    colors = palette(mode)
    names = [*map(safe, tables)]
    traces = []
    for i, part in enumerate(next(iter(tables.values()))["part"]):
        rows = [table.iloc[i] for table in tables.values()]
        fill = part_color(part, colors)
        texts = [f"{part} {percent(row['share'])}" if row["share"] else "" for row in rows]
        hovers = [
            f"{part}: {row['parameters']:,} parameters, {percent(row['share'])} of {name}"
            for name, row in zip(names, rows, strict=True)
        ]
        widths = np.array([100 * row["share"] for row in rows])
        marker = {"color": fill, "line": line(colors.paper, 1)}
        drawn = bar(widths, np.arange(len(rows)), marker, orientation="h", name=part)
        traces.append(drawn | _inside_of(texts, text_on(fill)) | says(hovers))
    layout = {
        "barmode": "stack",
        "bargap": 0.2,
        "uniformtext": {"minsize": 12, "mode": "hide"},
        "xaxis": {"range": [0, 100], "visible": False},
        "yaxis": BARE
        | names_down(len(names))
        | {"ticktext": names, "showticklabels": len(names) > 1},
    }
    return figure(traces, layout, mode, height=20 + 52 * len(names), l=2, r=2, t=4, b=8)
