"""The head that is opened, and what is known of all of them: what the page's parts need beside the Scene."""

import math
from dataclasses import dataclass

from gptviz.analysis.head_formulas import SHARES
from gptviz.analysis.head_general import General
from gptviz.analysis.head_roles import HeadRole
from gptviz.analysis.head_scores import HeadScores
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views import heads
from gptviz.ui.views.heads import Measured


@dataclass(frozen=True)
class Chosen:
    """`here`: every head on this text, and `unchanged` by the model as it is, where the pass is changed.

    `general`: every head in general, None as long as that is not known. `hidden`: the roles that this text
    cannot show.
    """

    block: int
    head: int
    here: Measured
    unchanged: Measured | None
    general: General | None
    hidden: tuple[str, ...]

    @property
    def role(self) -> HeadRole:
        """What the opened head does on this text."""
        return self.here.roles[self.block][self.head]

    @property
    def unchanged_share(self) -> float | None:
        """The share of that role by the model as it is; None where nothing is changed, or it has none."""
        if self.unchanged is None:
            return None
        return self.unchanged.roles[self.block][self.head].shares.get(self.role.kind)

    @property
    def in_general(self) -> tuple[str, float | None] | None:
        """What it does in general, a role and its share; None as long as that is not known."""
        return general_role(self.general, self.block, self.head)


def general_role(general: General | None, block: int, head: int) -> tuple[str, float | None] | None:
    """A head's role in general with its share, None for a role that has none."""
    if general is None:
        return None
    row = general.table.iloc[block * (general.table["head"].max() + 1) + head]
    return str(row["role"]), None if math.isnan(row["share"]) else float(row["share"])


def choose(scene: Scene, general: General | None, block: int, head: int) -> Chosen:
    rows = HeadScores.of(scene.tokens).targets.rows
    hidden = tuple(name for name in SHARES if not rows[name])
    unchanged = heads.measured(scene.run.plain) if scene.run.edits else None
    return Chosen(block, head, heads.measured(scene.run), unchanged, general, hidden)
