"""Run: the name of a forward pass, made of a model's name, token ids and edits.

The pages keep traces and results in caches, and a Run is the key under which they are found again. It holds
no numbers of the pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gptviz.engine.edits import Edit, edits_of
from gptviz.engine.tokens import token_ids


@dataclass(frozen=True)
class Run:
    """A model's name, token ids, and the edits (`Edit`) that are made in the pass.

    Frozen and hashable, so that it can be the key of a cache. Two runs are equal if they name the same pass.
    `ids` and `edits` may be given as any iterable, and become tuples. `model` is whatever name or key the
    caller's store of models uses.

    Raises ValueError for an empty name, no ids or something that is no id, and for an edit by a Python
    function: two functions cannot be compared, so a result under such a key would never be found again. Use
    `lm.trace(ids, edits=[...])` for those.
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
            raise ValueError(
                f"a run's ids are {self.ids!r}: give at least one, and whole numbers from 0 on"
            )
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
        """This run with further edits, after those that it has."""
        return replace(self, edits=(*self.edits, *edits))

    @property
    def plain(self) -> "Run":
        """The run of the same model and ids without edits."""
        return replace(self, edits=())


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of leading token ids that both have in common."""
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter]:  # the usual case, which is fast
        return shorter
    return next(position for position in range(shorter) if one[position] != other[position])
