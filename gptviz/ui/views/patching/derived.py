"""What the page "Patching" works out once for a pair of runs."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from gptviz import Edit, Run
from gptviz.analysis import counterpart as counterparts
from gptviz.analysis.activation_patching import Ends, ends_of
from gptviz.analysis.counterpart import Counterpart
from gptviz.analysis.patches import HEAD_SITES, value_of
from gptviz.analysis.reach import unseen
from gptviz.ui import runs
from gptviz.ui.runs import per_run
from gptviz.ui.views.target import logits_at


@dataclass(frozen=True)
class Pair:
    """`own` is the prompt's run without the patches that were made here, `other` the other text's.

    `source` is the ids that the values come from, `patches` the edits of the app's run that take from there.
    """

    own: Run
    other: Run
    patches: tuple[Edit, ...]

    @property
    def plain(self) -> "Pair":
        """The same two texts in the model without its changes."""
        return Pair(self.own.plain, self.other.plain, ())

    @property
    def source(self) -> tuple[int, ...]:
        return self.other.ids

    def clean_and_corrupt(self, denoising: bool) -> tuple[Run, Run]:
        return (self.other, self.own) if denoising else (self.own, self.other)


def pair_of(run: Run, ids: tuple[int, ...]) -> Pair:
    """The app's run, and the other text's ids."""
    patches = tuple(edit for edit in run.edits if edit.value == value_of(ids))
    own = replace(run, edits=tuple(edit for edit in run.edits if edit not in patches))
    return Pair(own, replace(own, ids=ids), patches)


@per_run
def counterpart(run: Run, position: int, special: bool) -> Counterpart | None:
    """The other text that is made from the prompt."""
    return counterparts.counterpart(runs.model(run), run.ids, position, special)


@per_run
def ends(clean: Run, corrupt: Run, position: int, token: int | None, against: int | None) -> Ends:
    """The scale; what nobody has chosen is what the model says first. ValueError as `ends_of`."""
    logits = [logits_at(run, position) for run in (clean, corrupt)]
    target = tuple(
        int(own.argmax()) if chosen is None else chosen
        for chosen, own in zip((token, against), logits, strict=True)
    )
    return ends_of(runs.model(clean), logits[0], logits[1], (target[0], target[1]))


@per_run
def first_choice(run: Run, position: int) -> tuple[int, float]:
    """What the model says first, and how probable it is."""
    logits = logits_at(run, position).double()
    token = int(logits.argmax())
    return token, float(torch.softmax(logits, dim=0)[token])


def reached(patches: tuple[Edit, ...], site: str, n_layers: int, n_tokens: int) -> np.ndarray:
    """(L, T): where these patches can change what a site holds, beyond the cells that they replace."""
    cells = np.zeros((n_layers, n_tokens), dtype=bool)
    for edit in patches:
        for block in range(n_layers):
            for position in range(n_tokens):
                own = (edit.site, edit.block) == (site, block) and position in (edit.positions or ())
                if not own and unseen(edit, site, block, n_layers, n_tokens, position=position) is None:
                    cells[block, position] = True
    return cells


def cells_of(patches: tuple[Edit, ...], site: str) -> list[tuple[int, int]]:
    """(block, position) or, for what a head has, (block, head) of the patches of a site."""
    at = "heads" if site in HEAD_SITES else "positions"
    return [
        (int(edit.block or 0), place)
        for edit in patches
        if edit.site == site and isinstance(edit.block, int)
        for place in getattr(edit, at) or ()
    ]


def made(run: Run, position: int, ends: Ends) -> tuple[float, float]:
    """With all patches that are made: the difference of the two logits, and where that is on the scale."""
    logits = logits_at(run, position).double()
    logit = float(logits[ends.token] - logits[ends.against])
    return logit, ends.metric(logit)
