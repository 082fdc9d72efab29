"""What the Logit lens page works out once for a run: columns in parts, and one position through the depth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gptviz import Run
from gptviz.analysis import logit_lens as lens_of
from gptviz.analysis.lens import (
    KEEP,
    Cells,
    Followed,
    cells,
    contenders,
    followed,
    followed_cells,
    leaders,
    reading,
    row_names,
    settled_from,
)
from gptviz.figures.lens import Bar, Trail, colors_of, grid_values
from gptviz.ui import runs
from gptviz.ui.components.lens import LensCells, Number, encoded
from gptviz.ui.runs import per_run
from gptviz.ui.words import is_piece, show_id

Part = tuple[int, int]  # positions from the first to before the second


def names(run: Run) -> list[str]:
    return row_names(runs.model(run).config)


# ---- one position ----


@per_run
def logits(run: Run, position: int) -> torch.Tensor:
    """(R, V): GPT-2's 25 rows are 5 MB."""
    return lens_of(runs.get(run, KEEP), runs.model(run).model, position)


@dataclass(frozen=True)
class Depth:
    """One position through the depth: what each row says, (R,), and who is worth following.

    From the row `settled` on the token on top is the final one. `leaders` are tokens that some row has on
    top, the final one first; `contenders` those that some row has among its ten, by their highest
    probability.
    """

    reading: Cells
    settled: int
    leaders: list[int]
    contenders: list[int]

    @property
    def top(self) -> np.ndarray:
        return self.reading.ids[:, 0]

    @property
    def telling(self) -> int:
        """The row that a page opens with: the last that would have said something else, else the first."""
        return max(0, self.settled - 1)


@per_run
def depth(run: Run, position: int) -> Depth:
    found = reading(logits(run, position))
    top = found.ids[:, 0]
    return Depth(found, settled_from(top), leaders(top), contenders(logits(run, position)))


@per_run
def lines(run: Run, position: int, ids: tuple[int, ...]) -> list[Trail]:
    """Tokens through the depth, at one position."""
    lm, found = runs.model(run), followed(logits(run, position), ids)
    return [Trail(i, show_id(lm, i), found.probabilities[:, n], found.ranks[:, n]) for n, i in enumerate(ids)]


@per_run
def bars(run: Run, position: int, row: int, other: Run | None = None) -> list[Bar]:
    """The ten first of a row, and those of the last row's that are not among them, by what they have here.

    And what `other` has on top in both.
    """
    lm, found = runs.model(run), depth(run, position).reading
    ids = dict.fromkeys([*found.ids[row].tolist(), *found.ids[-1].tolist()])
    if other is not None:
        ids |= dict.fromkeys(depth(other, position).top[[row, -1]].tolist())
    both = followed(logits(run, position)[[row, -1]], list(ids))
    own = None if other is None else followed(logits(other, position)[[row, -1]], list(ids)).probabilities
    made = [
        Bar(
            id=i,
            shown=show_id(lm, i),
            here=float(both.probabilities[0, n]),
            here_rank=int(both.ranks[0, n]),
            final=float(both.probabilities[1, n]),
            final_rank=int(both.ranks[1, n]),
            was=None if own is None else (float(own[0, n]), float(own[1, n])),
        )
        for n, i in enumerate(ids)
    ]
    return sorted(made, key=lambda bar: bar.here_rank)


def token_names(run: Run, ids: tuple[int, ...]) -> dict[int, str]:
    """As the screen shows them, no two alike."""
    lm = runs.model(run)
    shown = {i: show_id(lm, i) for i in ids}
    twice = len(set(shown.values())) < len(shown)
    return {i: f"{text} (id {i})" for i, text in shown.items()} if twice else shown


# ---- the grid ----


@per_run
def part(run: Run, start: int, stop: int) -> Cells:
    """The columns of some positions: what takes long, with a large vocabulary."""
    return cells(runs.get(run, KEEP), runs.model(run).model, start, stop)


@per_run
def part_followed(run: Run, start: int, stop: int, token: int) -> Followed:
    return followed_cells(runs.get(run, KEEP), runs.model(run).model, start, stop, [token])


@per_run
def columns(run: Run, parts: tuple[Part, ...]) -> Cells:
    """All that has been read, (R, K)."""
    found = [vars(part(run, *positions)) for positions in parts]
    return Cells(**{name: np.concatenate([one[name] for one in found], axis=1) for name in found[0]})


@per_run
def ranks(run: Run, parts: tuple[Part, ...], token: int) -> Followed:
    """One token's probability and rank in all that has been read, (R, K)."""
    found = [part_followed(run, *positions, token) for positions in parts]
    return Followed(
        np.concatenate([one.probabilities for one in found], axis=1)[..., 0],
        np.concatenate([one.ranks for one in found], axis=1)[..., 0],
    )


@per_run
def drawn(
    run: Run, parts: tuple[Part, ...], measure: str, token: int, other: Run | None = None
) -> dict[str, Any]:
    """The grid's cells as the browser gets them; `token` is the one whose ranks colour them."""
    lm, found = runs.model(run), columns(run, parts)
    own = ranks(run, parts, token) if measure == "rank" else None
    numbers = [Number("entropy", found.entropy, "bits"), Number("to the end", found.kl, "bits")]
    ghosts, named = None, found.ids
    if other is not None:
        was = columns(other, parts)
        ghosts = was.ids[..., 0], was.probabilities[..., 0]
        named = np.append(found.ids, ghosts[0])
        numbers.append(Number("entropy unchanged", was.entropy, "bits"))
    if own is not None:
        numbers.append(Number(f"{show_id(lm, token)} has rank", own.ranks, "rank"))
    values = grid_values(
        measure, found.probabilities[..., 0], found.entropy, found.kl, None if own is None else own.ranks
    )
    return encoded(
        LensCells(
            known=joined(parts),
            ids=found.ids,
            probabilities=found.probabilities,
            color=colors_of(measure, values, lm.config.vocab_size),
            numbers=numbers,
            shown={int(i): show_id(lm, int(i)) for i in np.unique(named)},
            pieces=[int(i) for i in np.unique(named) if is_piece(lm, int(i))],
            ghosts=ghosts,
        )
    )


def joined(parts: Sequence[Part]) -> list[Part]:
    """Parts that touch as one, in their order."""
    whole: list[Part] = []
    for start, stop in parts:
        if whole and whole[-1][1] == start:
            whole[-1] = (whole[-1][0], stop)
        else:
            whole.append((start, stop))
    return whole


def around(parts: Sequence[Part], position: int) -> Part:
    """All that has been read without a gap around a position that has been read."""
    return next((start, stop) for start, stop in joined(parts) if start <= position < stop)


def pieces(run: Run, parts: tuple[Part, ...]) -> tuple[int, int, str | None]:
    """Return how many cells have a piece of a character on top, of how many that are read, and the first."""
    lm, top = runs.model(run), columns(run, parts).ids[..., 0]
    found = [int(i) for i in np.unique(top) if is_piece(lm, int(i))]
    first = next((show_id(lm, int(i)) for i in top.flat if i in found), None)
    return int(np.isin(top, found).sum()), top.size, first


def itself(run: Run, parts: tuple[Part, ...], here: Part) -> int:
    """In how many columns of `here` the embedding, read as it is, gives back the token that it stands for."""
    top, positions = columns(run, parts).ids[0, :, 0], np.concatenate([np.arange(*part) for part in parts])
    inside = (positions >= here[0]) & (positions < here[1])
    return int((top == np.array(run.ids)[positions])[inside].sum())
