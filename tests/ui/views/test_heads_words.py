"""The sentences of "Heads on trial", all of them, for small inputs."""

from gptviz.analysis.head_roles import HeadRole
from gptviz.ui.views.heads import words
from tests.golden_files import check

SHOWN = ["The", "·cat", "·sat"]


def role(kind: str, share: float | None, favourite: int | None = None) -> HeadRole:
    return HeadRole(4, 3, kind, {kind: share}, {kind: (1, 2)}, favourite, 1.5)


def test_every_sentence() -> None:
    check(
        "heads_words",
        {
            "not yet": words.sentence(role("previous", 0.912), SHOWN, None, ()),
            "the same": words.sentence(role("previous", 0.912), SHOWN, ("previous", 0.88), ()),
            "one token": words.sentence(role("favourite", 0.5, 1), SHOWN, ("mixed", None), ("copies",)),
            "cannot": words.sentence(role("first", 0.6), SHOWN, ("induction", 0.72), ("induction",)),
            "changed: here": words.sentence(
                role("induction", 0.51), SHOWN, ("induction", 0.72), (), unchanged=0.84
            ),
            "measure": words.measure("induction"),
            "measure: here": words.measure("here_previous"),
            "working": words.working(12, 72),
            "stopped": words.STOPPED,
            "measured": words.measured(16, 3072, 42, 10361),
            "changed": words.CHANGED,
            "look for": words.LOOK_FOR,
            "labels": words.LABELS,
            "cannot show": words.cannot_show(["induction", "copies", "marks"]),
            "cannot show: one": words.cannot_show(["nearby"]),
            "cell": words.cell(4, 3, "previous", 0.912),
            "cell: hidden": words.hidden_cell(5, 0, "induction", "first", 0.62),
            "differ": words.differ(30, 48, 0),
            "differ: hidden": words.differ(8, 48, 1),
            "cell: mixed": words.cell(0, 0, "mixed", None),
            "offer": words.offer("A copied passage", ["induction", "copies"]),
            "table: general": words.GENERAL_NUMBERS,
            "table: here": words.HERE_NUMBERS,
        },
    )
