"""The head that is opened, and what is known of all of them: what the page's parts need beside the Scene."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gptviz.analysis.head_formulas import SHARES
from gptviz.analysis.head_general import General
from gptviz.analysis.head_roles import HeadRole
from gptviz.analysis.head_scores import HeadScores
from gptviz.analysis.head_trial import Trial
from gptviz.ui import heads
from gptviz.ui.heads import Measured
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.heads.verdicts import verdicts

Head = tuple[int, int]  # block and head
Label = tuple[str, float | None]  # a role and its share, None for a role that has none


@dataclass(frozen=True)
class Chosen:
    """`here`: every head on this text, and `unchanged` by the model as it is, where the pass is changed.

    `general`: every head in general, and `labels` what each is called by that; None while it is not known.
    `tried`: the trials of these labels that were held. `hidden`: the roles that this text cannot show.
    """

    block: int
    head: int
    here: Measured
    unchanged: Measured | None
    general: General | None
    labels: Mapping[Head, Label] | None
    tried: Mapping[Head, Trial]
    hidden: tuple[str, ...]

    @property
    def role(self) -> HeadRole:
        """What the opened head does on this text."""
        return self.here.roles[self.block][self.head]

    def verdict(self, block: int, head: int, role: str) -> str:
        """How the trial of this label of a head ended; "" where it was not tried."""
        trial = self.tried.get((block, head))
        return trial.verdict if trial is not None and trial.label == role else ""

    @property
    def unchanged_share(self) -> float | None:
        """The share of that role by the model as it is; None where nothing is changed, or it has none."""
        if self.unchanged is None:
            return None
        return self.unchanged.roles[self.block][self.head].shares.get(self.role.kind)

    @property
    def in_general(self) -> Label | None:
        """What it does in general; None as long as that is not known."""
        return None if self.labels is None else self.labels[self.block, self.head]


def choose(scene: Scene, general: General | None, block: int, head: int) -> Chosen:
    rows = HeadScores.of(scene.tokens).targets.rows
    hidden = tuple(name for name in SHARES if not rows[name])
    plain = scene.run.plain
    here, unchanged = heads.measured(scene.run), heads.measured(plain) if scene.run.edits else None
    labels = None if general is None else _labels(general)
    tried = {} if labels is None else verdicts(plain, labels)
    return Chosen(block, head, here, unchanged, general, labels, tried, hidden)


def _labels(general: General) -> dict[Head, Label]:
    columns = (general.table[name].tolist() for name in ("block", "head", "role", "share"))
    return {
        (block, head): (role, None if math.isnan(share) else share)
        for block, head, role, share in zip(*columns, strict=True)
    }
