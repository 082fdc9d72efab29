"""The head that is opened, and what is known of all of them: what the page's parts need beside the Scene."""

from dataclasses import dataclass

from gptviz.analysis.head_roles import HeadRole
from gptviz.analysis.head_scores import SHARES, HeadScores
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views import heads
from gptviz.ui.views.heads import Measured


@dataclass(frozen=True)
class Chosen:
    """`here`: every head on this text. `hidden`: the roles that this text cannot show."""

    block: int
    head: int
    here: Measured
    hidden: tuple[str, ...]

    @property
    def role(self) -> HeadRole:
        """What the opened head does on this text."""
        return self.here.roles[self.block][self.head]


def choose(scene: Scene, block: int, head: int) -> Chosen:
    rows = HeadScores.of(scene.tokens).targets.rows
    hidden = tuple(name for name in SHARES if not rows[name])
    return Chosen(block, head, heads.measured(scene.run), hidden)
