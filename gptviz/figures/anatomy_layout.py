"""Where each tensor lies when a whole model is drawn to one scale. Geometry only.

Lengths are pixels of a picture WIDTH wide; `scale` is pixels for one row or column of a tensor. A
matrix lies on its longer side. A block's matrices stand side by side in rows, attention's above the
feed-forward's, as wide as leaves least space empty: GPT-2's in a rectangle without gaps. A block's vectors
(biases, norms) are laid end to end, in lines as long as the block is wide: together they are one thin box
of the right area. So is the final norm, as long as emb_dim. Nothing is enlarged: a box may be thinner than a
pixel.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gptviz.analysis.anatomy import ATTENTION, Anatomy, Tensor

WIDTH = 1000
TALLEST = 560  # that a picture may become
CAPTION = 22  # the line of words above each band
NUMBER = 14  # the line above each row of blocks, for their numbers
GAP = 10  # below a band
BETWEEN = 6  # one block and the next
SEAM = 1  # between the rows of a block
NEARLY = 0.9  # of the largest scale is enough where it saves a row of blocks
SQUARE = 30  # the most that the scale's square may have a side
BANDS = ("tok_emb", "pos_emb", "trf_blocks", "final_norm", "out_head")
FINAL = 2  # lines of emb_dim that the final norm has at most: scale and shift


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

    about: str  # one of BANDS, "scale", or a block's number
    x: float
    y: float


@dataclass(frozen=True)
class Layout:
    boxes: tuple[Box, ...]
    captions: tuple[Caption, ...]
    scale: float  # pixels for one row or column of a tensor
    height: float
    square: Box  # of no tensors, and `square_parameters` large
    block_width: float


def square_parameters(scale: float) -> int:
    """The largest of 1, 2, 5, 10, 20 ... parameters whose square has a side of at most SQUARE pixels."""
    most = max((SQUARE / scale) ** 2, 1)
    power = 10 ** math.floor(math.log10(most))
    return max(step * power for step in (1, 2, 5) if step * power <= most)


def lay_out(found: Anatomy) -> Layout:
    """Bands from top to bottom in the order of the forward pass, with the blocks in the columns that let
    the scale be largest."""
    bands = {
        name: tuple(t for t in found.tensors if t.name.startswith(f"{name}.")) for name in BANDS
    }
    bands = {name: tensors for name, tensors in bands.items() if tensors}
    packing = _pack(found.block(0))
    columns, scale = _best_columns(found, packing, len(bands))
    boxes: list[Box] = []
    captions: list[Caption] = []
    y = 0.0
    for name, tensors in bands.items():
        y += CAPTION
        captions.append(Caption(name, 0, y))
        if name == "trf_blocks":
            y = _blocks(found, packing, columns, scale, y, boxes, captions) + GAP
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
    width = packing.width * scale
    return Layout(tuple(boxes), tuple(captions), scale, y + GAP + side, square, width)


# ---- the matrices of a block ----

Column = tuple[Tensor, ...]  # matrices, one below the other


@dataclass(frozen=True)
class _Packing:
    """The rows of a block's matrices, and its width, in rows and columns of a tensor."""

    rows: tuple[tuple[Column, ...], ...]
    width: int

    @property
    def height(self) -> int:
        """The height of all rows, without the vectors and what is between."""
        return sum(max(map(high, row)) for row in self.rows)


def wide(column: Column) -> int:
    """The width of matrices that lie one below the other, each on its longer side."""
    return max(max(t.shape) for t in column)


def high(column: Column) -> int:
    """Their height."""
    return sum(min(t.shape) for t in column)


def columns_of(tensors: Sequence[Tensor], stacked: bool) -> list[Column]:
    """A block's matrices in the order of the pass, key and value one below the other if they are `stacked`."""
    columns: list[Column] = []
    for tensor in tensors:
        if len(tensor.shape) != 2:
            continue
        if stacked and "W_value" in tensor.name:
            columns[-1] = (*columns[-1], tensor)
        else:
            columns.append((tensor,))
    return columns


def _pack(tensors: Sequence[Tensor]) -> _Packing:
    """The rows that leave least space empty: of the widths that are those of some columns side by side."""
    return min(_packings(tensors), key=lambda packing: packing.width * packing.height)


def _packings(tensors: Sequence[Tensor]) -> Iterator[_Packing]:
    for stacked in (False, True):
        columns = columns_of(tensors, stacked)
        attention = [column for column in columns if column[0].part == ATTENTION]
        feed_forward = columns[len(attention) :]
        widest = max(map(wide, columns))
        widths = {
            sum(map(wide, columns[start:end]))
            for end in range(1, len(columns) + 1)
            for start in range(end)
        }
        for width in sorted(width for width in widths if width >= widest):
            yield _Packing((*_rows(attention, width), *_rows(feed_forward, width)), width)


def _rows(columns: Sequence[Column], width: int) -> Iterator[tuple[Column, ...]]:
    """Fill one row after the other, each with as many columns as fit."""
    row: tuple[Column, ...] = ()
    for column in columns:
        if sum(map(wide, (*row, column))) > width:
            yield row
            row = ()
        row = (*row, column)
    yield row


def _best_columns(anatomy: Anatomy, packing: _Packing, bands: int) -> tuple[int, float]:
    """The number of blocks in a row, and the scale: nearly the largest, in few rows."""
    config = anatomy.config
    tables = [
        sorted(t.shape)
        for t in anatomy.tensors
        if t.local_name in ("tok_emb.weight", "pos_emb.weight")
    ]
    tables.append(tables[0])  # the output head
    longest = max(table[1] for table in tables)
    heights = sum(table[0] for table in tables) + FINAL
    vectors = sum(t.shape[0] for t in anatomy.block(0) if len(t.shape) == 1)
    block = packing.height + vectors / packing.width
    seams = len(packing.rows) * SEAM
    scales = {}
    for columns in range(1, config.n_layers + 1):
        rows = math.ceil(config.n_layers / columns)
        fixed = bands * (CAPTION + GAP) + rows * (NUMBER + BETWEEN + seams) + GAP + SQUARE
        scales[columns] = min(
            WIDTH / longest,
            (WIDTH - (columns - 1) * BETWEEN) / (columns * packing.width),
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
    packing: _Packing,
    columns: int,
    scale: float,
    y: float,
    boxes: list[Box],
    captions: list[Caption],
) -> float:
    """Add every block, and return where the last row ends."""
    width = packing.width * scale
    bottom = y
    for number in range(anatomy.config.n_layers):
        row, column = divmod(number, columns)
        if column == 0:
            y = bottom + NUMBER + (BETWEEN if row else 0)
        x = column * (width + BETWEEN)
        block = _block(anatomy.block(number), packing, x, y, scale)
        captions.append(Caption(str(number), x, y))
        boxes += block
        bottom = block[-1].y + block[-1].height
    return bottom


def _block(
    tensors: Sequence[Tensor], packing: _Packing, x: float, y: float, scale: float
) -> list[Box]:
    """A block's matrices, packed as those of block 0; and below them its vectors as one line."""
    of_name = {t.local_name: t for t in tensors}
    boxes = []
    for row in packing.rows:
        left = 0
        for column in row:
            top = 0
            for first in column:
                tensor = of_name[first.local_name]
                boxes.append(_matrix(tensor, x + left * scale, y + top * scale, scale))
                top += min(tensor.shape)
            left += wide(column)
        y += max(map(high, row)) * scale + SEAM
    vectors = tuple(t for t in tensors if len(t.shape) == 1)
    return [*boxes, _line(vectors, packing.width, x, y, scale)]


def _matrix(tensor: Tensor, x: float, y: float, scale: float) -> Box:
    return Box((tensor,), x, y, max(tensor.shape) * scale, min(tensor.shape) * scale)


def _line(tensors: tuple[Tensor, ...], long: int, x: float, y: float, scale: float) -> Box:
    numbers = sum(math.prod(t.shape) for t in tensors)
    return Box(tensors, x, y, long * scale, numbers / long * scale)
