"""The sentences of the Compare page, all of them, for small inputs."""

from gptviz.ui.views.compare import words
from gptviz.ui.words import Place
from tests.golden_files import check


def test_every_sentence() -> None:
    old, here, there = Place("·old", 21), Place("·old", 9), Place("·the", 8)
    pair = ("mini", "mini-untrained")
    check(
        "compare_words",
        {
            "both expect the same": words.what_comes_next(
                ("block 4 head 3 off", "unchanged"),
                (old, old),
                ("·mill", "·mill"),
                (0.184, 0.906),
                (0.906, 0.184),
                (1.8, "unchanged", "block 4 head 3 off"),
            ),
            "two models": words.what_comes_next(
                pair, (old, old), ("·mill", "·old"), (0.906, 0.0004), (0.000178, 0.000175), (11.26, *pair)
            ),
            "two texts": words.what_comes_next(
                ("your text", "the other text"),
                (old, here),
                ("·mill", "·man"),
                (0.906, 0.0797),
                (0.000237, 4.36e-5),
                (10.75, "your text", "the other text"),
            ),
            "two vocabularies": words.what_comes_next(
                ("mini", "gpt2"), (old, here), ("·mill", "·`x"), (0.9, 0.5), (0.4, float("nan")), None
            ),
            "heads": words.heads_differ(4, 3, 0.87, 0, 48),
            "heads: many the same": words.heads_differ(5, 0, 0.23, 40, 48),
            "heads: all the same": words.heads_differ(0, 0, 0.0, 48, 48),
            "other shape": words.other_shape(
                ("mini", "gpt2-untrained"),
                ("6 × 8 heads and 256 numbers a token", "12 × 12 heads and 768 numbers a token"),
            ),
            "trained apart": words.trained_apart(pair),
            "no own pair": words.no_own_pair(there, here),
            "changed by": words.changed_by(["block 4 head 3 off", "block 2 feed-forward at its mean"]),
            "changed": words.changed("mini"),
            "changed: text": words.by_changed("your text"),
            "ranked": words.ranked(4, 3, 0.8712),
            "ranked: what": words.RANKED,
            "less": words.less(("mini (changed)", "gpt2"), ((4, 3), (11, 0))),
            "no edit": words.no_edit("'z' is no edit; an edit is written site=value"),
            "left out": words.left_out(["“·old” (position 21) hidden"]),
            "no other text": words.NO_OTHER_TEXT,
            "no pairs": words.NO_PAIRS,
            "identical": words.IDENTICAL,
            "one token": words.ONE_TOKEN,
            "how": words.HOW,
            "streams": words.STREAMS,
            "difference": words.DIFFERENCE,
            "one head": words.one_head(4, 3),
            "table: next": words.NEXT_NUMBERS,
            "table: heads": words.HEADS_NUMBERS,
            "table: streams": words.STREAMS_NUMBERS,
        },
    )
