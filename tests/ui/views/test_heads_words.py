"""The sentences of "Heads on trial", all of them, for small inputs."""

from gptviz.analysis.head_roles import HeadRole
from gptviz.ui.views.heads import portrait_words, trial_words, words
from tests.golden_files import check

SHOWN = ["The", "·cat", "·sat"]


def role(kind: str, share: float | None, favourite: int | None = None, rest: float = 0.0) -> HeadRole:
    return HeadRole(4, 3, kind, {kind: share}, {kind: (1, 2)}, favourite, 1.5, rest)


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
            "some at rest": words.sentence(role("previous", 0.38, rest=0.41), SHOWN, ("previous", 0.88), ()),
            "measure": words.measure("induction"),
            "measure: here": words.measure("here_previous"),
            "working": words.working(12, 72),
            "waiting": words.WAITING,
            "left": "|".join(words.left(seconds) for seconds in (None, 4.9, 41.0, 89.0, 200.0)),
            "stopped": words.STOPPED,
            "measured": words.measured(16, 3072, 42, 10361),
            "changed": words.CHANGED,
            "look for": words.LOOK_FOR,
            "labels": words.LABELS,
            "cannot show": words.cannot_show(["induction", "copies", "marks"]),
            "cannot show: one": words.cannot_show(["nearby"]),
            "cell": words.cell(4, 3, "previous", 0.912),
            "cell: failed": words.FAILED,
            "cell: hidden": words.hidden_cell(5, 0, "induction", "first", 0.62),
            "cell: held": words.HELD,
            "together": words.switch_off(5, 5, "induction", "here"),
            "together: general": words.switch_off(2, 3, "previous", "general"),
            "together: undo": words.switch_on(5, 5, "induction", "here"),
            "together: who": words.who(5, [0, 3, 4, 5, 7], "induction", "here"),
            "together: who, general": words.who(2, [0, 4], "previous", "general"),
            "together: means": words.TOGETHER,
            "differ": words.differ(30, 48, 0),
            "differ: hidden": words.differ(8, 48, 1),
            "cell: mixed": words.cell(0, 0, "mixed", None),
            "offer": words.offer("A copied passage", ["induction", "copies"]),
            "table: general": words.GENERAL_NUMBERS,
            "table: here": words.HERE_NUMBERS,
        },
    )


RISES = {
    "repeated": 0.442,
    "unrepeated": 0.048,
    "extra": 0.394,
    "rise": 0.245,
    "even": 0.229,
    "forced": -0.0005,
}


# what is missed of other heads of the block, and whether they bear the label: block 5 beside its head 0
MIXED = [(0.0010, False), (0.0761, True), (0.0929, True), (0.0912, True), (0.0339, True)]
UNLIKE = [(0.001, False), (-0.002, False), (0.004, False)]


def test_every_sentence_of_a_trial() -> None:
    verdict = trial_words.verdict
    check(
        "heads_trial_words",
        {
            "enough: one unlike": verdict("induction", "enough", RISES, MIXED),
            "enough: several unlike": verdict("induction", "enough", RISES, [*MIXED[:4], (0.003, False)]),
            "enough: all alike": verdict("induction", "enough", RISES, MIXED[1:]),
            "enough: none alike": verdict("induction", "enough", RISES, UNLIKE),
            "enough: one other, alike": verdict("induction", "enough", RISES, [(0.09, True)]),
            "enough: one other, unlike": verdict("induction", "enough", RISES, [(0.09, False)]),
            "enough: alone": verdict("induction", "enough", RISES, []),
            "anywhere": verdict("previous", "anywhere", RISES, MIXED),
            "anywhere: repeats": verdict("copies", "anywhere", RISES, UNLIKE),
            "as others: one unlike": verdict("copies", "as others", RISES, [(0.5, False), (0.2, True)]),
            "as others": verdict("copies", "as others", RISES, [(0.5, False), (0.4, False)]),
            "not missed": verdict("induction", "not missed", RISES, MIXED),
            "not missed: where it looks": verdict("previous", "not missed", RISES, MIXED),
            "resting": verdict("first", "enough", RISES, MIXED),
            "enough": verdict("previous", "enough", RISES, MIXED),
            "not enough": verdict("previous", "not enough", RISES, []),
            "outcome": trial_words.outcome("previous", True),
            "outcome: withdrawn": trial_words.outcome("first", False),
            "waits": trial_words.WAITS,
            "no claim": trial_words.no_claim("mixed"),
            "no trial": trial_words.no_claim("favourite"),
            "intro": trial_words.intro("induction", 10, 63),
            "intro: where it looks": trial_words.intro("previous", 10, 63),
            "intro: resting": trial_words.intro("first", 10, 63),
            "working": trial_words.working(12, 140),
            "stopped": trial_words.STOPPED,
            "all": trial_words.all_trials(27),
            "all: working": trial_words.all_working(3, 27),
            "tried: none": trial_words.tried(0, 27, 0),
            "tried": trial_words.tried(3, 27, 1),
            "table: trial": trial_words.NUMBERS,
        },
    )


def test_every_sentence_of_a_portrait() -> None:
    check(
        "heads_portrait_words",
        {
            "portrait": portrait_words.portrait(4, 3, 0.0039, 0.081, 10319),
            "pairs": portrait_words.PAIRS,
            "distances": portrait_words.DISTANCES,
            "entropy": portrait_words.ENTROPY,
            "places": portrait_words.places("previous token"),
            "places: no role": portrait_words.places(None),
            "waits": portrait_words.WAITS,
            "working": portrait_words.working(12, 42),
            "stopped": portrait_words.STOPPED,
            "table: pairs": portrait_words.NUMBERS,
            "table: distances": portrait_words.DISTANCE_NUMBERS,
        },
    )
