"""Where each tensor lies when a whole model is drawn to one scale. Geometry only.

Lengths are pixels of a picture WIDTH wide; `scale` is pixels for one row or column of a tensor. A
matrix lies on its longer side. A block's vectors (biases, LayerNorms) are laid end to end, in lines as
long as the block is wide: together they are one thin box of the right area. So is the final LayerNorm, as
long as emb_dim. Nothing is enlarged: a box may be thinner than a pixel.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gptviz.analysis.anatomy import Anatomy, Tensor

WIDTH = 1000
TALLEST = 560  # that a picture may become
CAPTION = 22  # the line of words above each band
NUMBER = 14  # the line above each row of blocks, for their numbers
GAP = 10  # below a band
BETWEEN = 6  # one block and the next
SEAM = 1  # between the rows of a block
NEARLY = 0.9  # of the largest scale is enough where it saves a row of blocks
SQUARE = 30  # the most that the scale's square may have a side


@dataclass(frozen=True)
class Box:
    """A rectangle to scale, `x` and `y` its upper left corner, and the tensors that it stands for."""

    tensors: tuple[Tensor, ...]
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Caption:
    """Words above a band (or, for a block's number, above the block): their left end and baseline."""

    # "tok_emb", "pos_emb", "trf_blocks", "final_norm", "out_head", "scale", or a block's number
    about: str
    x: float
    y: float


@dataclass(frozen=True)
class Layout:
    boxes: tuple[Box, ...]
    captions: tuple[Caption, ...]
    scale: float  # pixels for one row or column of a tensor
    height: float
    square: Box  # of no tensors, and `square_parameters` large


def square_parameters(scale: float) -> int:
    """The largest of 1, 2, 5, 10, 20 ... parameters whose square has a side of at most SQUARE pixels."""
    most = max((SQUARE / scale) ** 2, 1)
    power = 10 ** math.floor(math.log10(most))
    return max(step * power for step in (1, 2, 5) if step * power <= most)


def lay_out(found: Anatomy) -> Layout:
    """Bands from top to bottom in the order of the forward pass, with the blocks in the columns that let
    the scale be largest."""
    columns, scale = _best_columns(found)
    boxes: list[Box] = []
    captions: list[Caption] = []
    y = 0.0
    for name in ("tok_emb", "pos_emb", "trf_blocks", "final_norm", "out_head"):
        tensors = tuple(t for t in found.tensors if t.name.startswith(f"{name}."))
        y += CAPTION
        captions.append(Caption(name, 0, y))
        if name == "trf_blocks":
            y = _blocks(found, columns, scale, y, boxes, captions) + GAP
            continue
        norm = name == "final_norm"
        boxes.append(
            _line(tensors, found.config.emb_dim, 0, y, scale)
            if norm
            else _matrix(tensors[0], 0, y, scale)
        )
        y += boxes[-1].height + GAP
    side = math.sqrt(square_parameters(scale)) * scale
    square = Box((), 0, y + GAP, side, side)
    captions.append(Caption("scale", side + 8, y + GAP + side / 2))
    return Layout(tuple(boxes), tuple(captions), scale, y + GAP + side, square)


def _best_columns(anatomy: Anatomy) -> tuple[int, float]:
    """The number of blocks in a row, and the scale: nearly the largest, in few rows."""
    config = anatomy.config
    size = config.emb_dim
    tables = [
        sorted(t.shape)
        for t in anatomy.tensors
        if t.local_name in ("tok_emb.weight", "pos_emb.weight")
    ]
    tables.append(tables[0])  # the output head
    longest = max(table[1] for table in tables)
    heights = sum(table[0] for table in tables) + 2  # and the final LayerNorm
    vectors = sum(t.shape[0] for t in anatomy.block(0) if len(t.shape) == 1)
    block = 3 * size + vectors / (4 * size)
    scales = {}
    for columns in range(1, config.n_layers + 1):
        rows = math.ceil(config.n_layers / columns)
        fixed = 5 * (CAPTION + GAP) + rows * (NUMBER + BETWEEN + 3 * SEAM) + GAP + SQUARE
        scales[columns] = min(
            WIDTH / longest,
            (WIDTH - (columns - 1) * BETWEEN) / (columns * 4 * size),
            (TALLEST - fixed) / (heights + rows * block),
        )
    enough = NEARLY * max(scales.values())
    rows = min(
        math.ceil(config.n_layers / columns) for columns in scales if scales[columns] >= enough
    )
    fitting = [columns for columns in scales if math.ceil(config.n_layers / columns) == rows]
    best = max(fitting, key=lambda columns: scales[columns])
    return best, scales[best]


def _blocks(
    anatomy: Anatomy,
    columns: int,
    scale: float,
    y: float,
    boxes: list[Box],
    captions: list[Caption],
) -> float:
    """Add every block, and return where the last row ends."""
    width = 4 * anatomy.config.emb_dim * scale
    bottom = y
    for number in range(anatomy.config.n_layers):
        row, column = divmod(number, columns)
        if column == 0:
            y = bottom + NUMBER + (BETWEEN if row else 0)
        x = column * (width + BETWEEN)
        block = _block(anatomy.block(number), anatomy.config.emb_dim, x, y, scale)
        captions.append(Caption(str(number), x, y))
        boxes += block
        bottom = max(box.y + box.height for box in block)
    return bottom


def _block(tensors: Sequence[Tensor], size: int, x: float, y: float, scale: float) -> list[Box]:
    """Query, key, value and output side by side; the feed-forward's two below; the vectors as one line."""
    matrices = {t.local_name: t for t in tensors if len(t.shape) == 2}
    side = size * scale
    boxes = [
        _matrix(matrices[f"att.{name}.weight"], x + i * side, y, scale)
        for i, name in enumerate(("W_query", "W_key", "W_value", "out_proj"))
    ]
    for i in (0, 2):
        y = boxes[-1].y + boxes[-1].height + SEAM
        boxes.append(_matrix(matrices[f"ff.layers.{i}.weight"], x, y, scale))
    y = boxes[-1].y + boxes[-1].height + SEAM
    vectors = tuple(t for t in tensors if len(t.shape) == 1)
    return [*boxes, _line(vectors, 4 * size, x, y, scale)]


def _matrix(tensor: Tensor, x: float, y: float, scale: float) -> Box:
    return Box((tensor,), x, y, max(tensor.shape) * scale, min(tensor.shape) * scale)


def _line(tensors: tuple[Tensor, ...], long: int, x: float, y: float, scale: float) -> Box:
    numbers = sum(math.prod(t.shape) for t in tensors)
    return Box(tensors, x, y, long * scale, numbers / long * scale)
