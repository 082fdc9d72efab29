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
            "cell: tried": "".join(words.TRIED.values()),
            "cell: hidden": words.hidden_cell(5, 0, "induction", "first", 0.62),
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


MISSED = {"zero": (-1.33, 0.308), "sample": (2.061, 0.249)}


def test_every_sentence_of_a_trial() -> None:
    def verdict(label: str, said: str, zero: str, sample: str) -> str:
        return trial_words.verdict(label, said, {"zero": zero, "sample": sample}, MISSED)

    check(
        "heads_trial_words",
        {
            "holds": verdict("induction", "holds", "enough", "enough"),
            "resting": verdict("first", "holds", "enough", "enough"),
            "withdrawn": verdict("previous", "withdrawn", "not enough", "not enough"),
            "not shown": verdict("copies", "not shown", "not missed", "not missed"),
            "not shown: two reasons": verdict("copies", "not shown", "as others", "anywhere"),
            "not decided: repeats": verdict("copies", "not decided", "not missed", "enough"),
            "not decided": verdict("nearby", "not decided", "enough", "not missed"),
            "stands in": trial_words.STANDS_IN,
            "table": trial_words.table_says(10),
            "waits": trial_words.WAITS,
            "no claim": trial_words.no_claim("mixed"),
            "no trial": trial_words.no_claim("favourite"),
            "intro": trial_words.intro("induction", 10, 63, 5, "0.0837", "4.32"),
            "intro: where it looks": trial_words.intro("previous", 10, 63, 1, "0.0837", "4.32"),
            "intro: resting": trial_words.intro("first", 10, 63, 0, "0.0837", "4.32"),
            "working": trial_words.working(12, 300),
            "stopped": trial_words.STOPPED,
            "all": trial_words.all_trials(27),
            "all: working": trial_words.all_working(3, 27),
            "tried: none": trial_words.tried({}, 27),
            "tried": trial_words.tried({"holds": 2, "not decided": 1}, 27),
            "numbers": trial_words.NUMBERS,
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
