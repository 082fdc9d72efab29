"""Where a page shows the same with and without the app's changes: they cannot matter there, or did not."""

from collections.abc import Iterable, Sequence

from gptviz import Edit
from gptviz.analysis.reach import Unseen, unseen
from gptviz.engine.sites import Key
from gptviz.ui.shell.change_words import cannot_matter, capital, says
from gptviz.ui.shell.scene import Scene

LISTED = 3  # changes whose reason is given; of more it is said how many there are


def why_same(
    scene: Scene, what: str, places: Iterable[Key], position: int | None = None, head: int | None = None
) -> str:
    """Of numbers that are the same in the scene's two runs: why. `what` names them, "the embeddings".

    They are made of what stands at these sites, at this position and in this head, or at all.
    """
    places, layers, count = tuple(places), scene.lm.config.n_layers, len(scene.tokens)
    reasons = [(edit, _unseen(edit, places, layers, count, position, head)) for edit in scene.run.edits]
    return same(what, reasons, scene.labels)


def _unseen(
    edit: Edit, places: Sequence[Key], layers: int, count: int, position: int | None, head: int | None
) -> Unseen | None:
    """Why an edit can be seen at none of these; None if it can at one."""
    found = [unseen(edit, site, block, layers, count, head, position) for site, block in places]
    return None if None in found else found[0]


def same(what: str, reasons: Sequence[tuple[Edit, Unseen | None]], labels: Sequence[str]) -> str:
    """The sentence: changes that could have mattered did not, and of the others why they cannot."""
    silent = [(edit, why) for edit, why in reasons if why is not None]
    said = [f"{capital(says(edit, labels))} {cannot_matter(why, what)}." for edit, why in silent[:LISTED]]
    if len(silent) > LISTED:
        said.append(f"So it is with {len(silent) - LISTED} more.")
    if len(silent) < len(reasons):
        said.insert(
            0, f"**Your change{'s' * (len(reasons) > 1)} changed nothing in {what}**: all is as it was."
        )
    return " ".join(said)
