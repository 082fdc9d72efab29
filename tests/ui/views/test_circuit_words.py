"""The sentences of "Circuit", all of them, for small inputs."""

from gptviz.ui.views.circuit import words
from gptviz.ui.views.circuit.words import Held, Measured
from tests.golden_files import check


def test_every_sentence() -> None:
    one, pair = Measured("·mill", None), Measured("·mill", "·town")
    held, short = Held(0.906, 0.8697, 6.48e-5, 0.09059), Held(0.906, 0.47, 6.48e-5, 0.09059)
    over, logits = Held(0.175, 0.888, 0.02, 0.0155), Held(5.33, 7.2, -1.6, 0.693)
    check(
        "circuit_words",
        {
            "sentence": words.sentence(one, 16, 48, held, "sample", True),
            "sentence: the whole": words.sentence(one, 48, 48, held, "sample", True),
            "sentence: without feed-forwards": words.sentence(one, 48, 48, held, "mean", False),
            "sentence: one head": words.sentence(one, 1, 48, short, "mean", True),
            "sentence: nobody": words.sentence(one, 0, 48, Held(0.9, 0.0001, 0.0001, 0.08999), "zero", True),
            "sentence: too much": words.sentence(one, 11, 48, over, "zero", True),
            "sentence: difference": words.sentence(pair, 16, 48, logits, "sample", True),
            "sentence: lowered": words.sentence(pair, 16, 48, Held(-5.33, -7.2, -1.6, 0.37), "mean", True),
            "sentence: nothing to keep": words.sentence(one, 3, 48, Held(0.2, 0.2, 0.2, 1e-6), "mean", True),
            "axis": f"{one.axis}; {pair.axis}",
            "sheet": words.sheet(pair),
            "look for": words.LOOK_FOR,
            "stay": words.STAY,
            "searching": words.searching(473, 1176),
            "searches": "; ".join(words.SEARCHES.values()),
            "search help": words.SEARCH_HELP,
            "not searched": words.NOT_SEARCHED,
            "found: remove": words.found("remove", 16, one, held, "sample"),
            "found: add": words.found("add", 42, one, held, "zero"),
            "found: nothing": words.found("add", 11, one, over, "zero"),
            "point": words.point("remove", 16, "0.870", (5, 6)),
            "point: random": words.point("random", 1, "0.870", None),
            "curve": words.CURVE,
            "ask": words.ask(144),
            "ask for the score": words.ask_score(128),
            "unreadable": words.unreadable("'4' is no head"),
            "worth": words.WORTH,
            "definitions": words.definitions(pair),
            "worth: some sets": words.worth(one, held, 0.994, "0.1+0.4", 42, False),
            "worth: all sets": words.worth(pair, logits, 0.994, "", 4, True),
            "golf": words.golf(16, one, held),
            "golf: short": words.golf(9, one, short),
            "score holds": words.score_holds(16, "0.8697", True) + "\n" + words.score_holds(1, "0.1", False),
            "score differs": words.score_differs("0.9423", "0.8697"),
            "score differs: no number": words.score_differs("`x`", "0.8697"),
            "everywhere": words.EVERYWHERE,
            "table: heads": words.NUMBERS,
            "table: search": words.SEARCHED,
            "table: sets": words.SETS,
            "changed": words.changed("0.184", "0.906"),
        },
    )


def test_a_links_score_is_read_as_a_number_or_not_at_all() -> None:
    assert all(words.is_number(said) for said in ("0.8697", "-1.5", "3", "0"))
    assert not any(
        words.is_number(said) for said in ("", "nan", "1e9", "0,5", "inf", "٣", " 1", "--1", "1.2.3")
    )
