"""Run: which forward pass some numbers belong to. Everything on a screen belongs to one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gptviz.engine.edits import Edit, edits_of
from gptviz.engine.tokens import token_ids


@dataclass(frozen=True)
class Run:
    """A model (by the name or key that its owner has for it), token ids, and the edits made to the pass.

    Frozen and hashable: the key of every cache. Two runs are equal exactly if the same pass is meant.
    `ids` and `edits` may be given as any iterable and become tuples. Raises ValueError for what is not
    such a thing, and for an edit by a Python function: two functions cannot be compared, so nothing
    that is kept under such a name could be found again (`lm.trace(ids, edits=[...])` takes them).
    """

    model: str
    ids: tuple[int, ...]
    edits: tuple[Edit, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model:
            raise ValueError(f"a run's model is {self.model!r}; give its name")
        ids = tuple(token_ids(self.ids))
        edits = edits_of(self.edits)
        if not ids or min(ids) < 0:
            raise ValueError(f"a run's ids are {self.ids!r}: give at least one, and whole numbers from 0 on")
        for edit in edits:
            if callable(edit.value):
                raise ValueError(
                    f"a run cannot have the edit of {edit.site!r} by a Python function: two functions cannot "
                    "be compared, so the run could not be found again; name a value, or use "
                    "lm.trace(ids, edits=...)"
                )
            edit.check_form()
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "edits", edits)

    def __len__(self) -> int:
        return len(self.ids)

    def edited(self, *edits: Edit) -> "Run":
        """This run with these edits after its own."""
        return replace(self, edits=(*self.edits, *edits))

    @property
    def plain(self) -> "Run":
        """The same text through the model as it is, without edits."""
        return replace(self, edits=())


def alike(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of leading token ids that both have in common."""
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter]:
        return shorter
    return next(place for place in range(shorter) if one[place] != other[place])
