"""The grid's columns: those around the selected token at once, the rest on request.

They are read some positions at a time, and what has been read is kept: a click that interrupts loses little.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gptviz import Run
from gptviz.both import Both
from gptviz.engine.kinds import Config
from gptviz.ui import runs, sheet
from gptviz.ui.lens_cells import lens_cells
from gptviz.ui.parts.logit_lens.lenses import LENSES
from gptviz.ui.runs import per_run

# multiply-adds at the output head: GPT-2 124M's 25 rows at 64 tokens, a second or two
UNASKED = 2**36
LONGEST = 64  # positions of a part, where the vocabulary is small

Part = tuple[int, int]  # positions from the first to before the second


def work(config: Config) -> int:
    """Multiply-adds at the output head for the rows of one position."""
    return (1 + 2 * config.n_layers) * config.vocab_size * config.emb_dim


def parts_of(config: Config, n_tokens: int) -> tuple[Part, ...]:
    """All positions in parts, equally long but for the last."""
    length = max(1, min(LONGEST, UNASKED // 2 // work(config)))
    return tuple((start, min(start + length, n_tokens)) for start in range(0, n_tokens, length))


def unasked(config: Config, n_tokens: int, position: int) -> tuple[Part, ...]:
    """The parts of a text to read unasked: all if that is quick, else those near `position`."""
    parts = parts_of(config, n_tokens)
    part_number = position // parts[0][1]
    if n_tokens * work(config) <= UNASKED:
        return parts
    return parts[max(0, part_number - 1) : part_number + 1]


def columns(run: Run, parts: tuple[Part, ...], numbers: Callable[..., Any], *args: object) -> Any:
    """`cells` or `followed_cells` of neighbouring parts as one: (R, K, ...)."""
    pieces = [sheet.once(run, numbers, *part, *args) for part in parts]
    # (R, K of a part, ...) -> (R, K, ...)
    arrays = zip(*(vars(piece).values() for piece in pieces), strict=True)
    return type(pieces[0])(
        *(np.concatenate(arrays_of_one_name, axis=1) for arrays_of_one_name in arrays)
    )


@per_run
def drawn(
    run: Run,
    other: Run | None,
    parts: tuple[Part, ...],
    measure: str,
    token: int | None,
    lens: str,
) -> dict[str, Any]:
    """The cells as the browser gets them; `token` is the one whose ranks colour them, if they do."""
    read = LENSES[lens]
    grids = Both(run, other).map(lambda side: columns(side, parts, read.cells))
    if token is None:
        ranks = None
    else:
        ranks = (token, columns(run, parts, read.followed_cells, (token,)).ranks[..., 0])
    return lens_cells(runs.model(run), grids, (parts[0][0], parts[-1][1]), measure, ranks)
