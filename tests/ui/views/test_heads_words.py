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
            "here": words.sentence(role("previous", 0.912), SHOWN),
            "here: one token": words.sentence(role("favourite", 0.5, 1), SHOWN),
            "here: mixed": words.sentence(role("mixed", None), SHOWN),
            "look for": words.LOOK_FOR,
            "labels": words.LABELS,
            "cannot show": words.cannot_show(["induction", "copies", "marks"]),
            "cannot show: one": words.cannot_show(["nearby"]),
            "cell": words.cell(4, 3, "previous", 0.912),
            "cell: mixed": words.cell(0, 0, "mixed", None),
            "offer": words.offer("A copied passage", ["induction", "copies"]),
            "table: here": words.HERE_NUMBERS,
        },
    )
