"""The Logit lens page's sentences, all of them, for small inputs."""

from gptviz.figures.lens import Bar
from gptviz.ui.views.logit_lens import words
from tests.golden_files import check

NAMES = ["embedding", "block 0 · attention", "block 0 · feed-forward", "block 1 · attention"]


def test_every_sentence():
    mill = Bar(1, "·mill", 0.0000024, 2301, 0.906, 1)
    dash = Bar(2, "`-`", 0.376, 1, 0.00016, 92)
    sure = Bar(1, "·mill", 0.5, 1, 0.99987, 1)
    check(
        "logit_lens_words",
        {
            "sentence": words.sentence("·old", 21, "·mill", 0.906, NAMES, 2, ("`-`", 0.376)),
            "sentence: from the first block on": words.sentence(
                "·old", 0, "·mill", 0.99987, NAMES, 1, ("·old", 1.0)
            ),
            "sentence: the last step": words.sentence("·old", 21, "·mill", 0.0012, NAMES, 3, ("·a", 0.1)),
            "sentence: from the beginning": words.sentence("·old", 21, "·mill", 0.9967, NAMES, 0, None),
            "sentence: changed": words.sentence(
                "·old", 21, "·mill", 0.184, NAMES, 2, ("`-`", 0.376), changed=True
            ),
            "unchanged": words.unchanged("·mill", 0.906, NAMES, 2),
            "unchanged: at every depth": words.unchanged("·`", 0.9999, NAMES, 0),
            "unchanged answer": words.unchanged_answer(NAMES[2], "·mill", (0.2, 0.01), (0.906, 0.184), False),
            "unchanged answer: the end": words.unchanged_answer(
                NAMES[3], "·mill", (0.906, 0.184), (0.906, 0.184), True
            ),
            "moved": words.MOVED,
            "look for": words.look_for(0, 22, True),
            "look for: a tied head": words.look_for(17, 22, True),
            "look for: another head": words.look_for(1, 22, False),
            "pieces": words.pieces(3, 286, "\\x8e"),
            "limit": words.limit(25, 1024, 66, 50257),
            "progress": words.progress(3, 32),
            "cell": words.cell(NAMES[2], "·old", 21, False),
            "cell: the embedding": words.cell(NAMES[0], "·old", 21, False),
            "cell: the end": words.cell(NAMES[3], "·old", 21, True),
            "distribution": words.distribution(NAMES[2], [dash, mill], 4.39, 17.15, 1.26, False),
            "distribution: the same token": words.distribution(NAMES[1], [sure], 4.39, 0.0012, 0.004, False),
            "distribution: the end": words.distribution(NAMES[3], [sure], 0.004, 0.0, 0.004, True),
            "followed": words.followed("·`-`", NAMES[2], 0.376, 0.00016, 1, 92, False),
            "followed: nobody chose": words.followed("·-", NAMES[0], 0.376, 0.00016, 1, 92, True),
            "leaders": words.LEADERS,
            "table: rows": words.ROWS,
            "table: cell": words.CELL,
            "table: curves": words.CURVES,
            "table: grid": words.GRID,
        },
    )
