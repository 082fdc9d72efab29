"""The sentences of "Why this token?", all of them, for small inputs."""

from gptviz.analysis.shares import Group
from gptviz.ui.views.why import words
from gptviz.ui.views.why.words import Moved, Source
from tests.golden_files import check

MOVED = [Moved("the heads of block 5", 7.67, 0.841), Moved("the feed-forward of block 5", 6.09, -0.901)]


def test_every_sentence() -> None:
    heads = Group("the heads of block 5", 5, True, 4.8662)
    forward = Group("the feed-forward of block 5", 5, False, 1.9894)
    mill, start = Source("·mill", 10, 3.92, 0.88), Source("S", 0, 0.0012, 0.61)
    check(
        "why_words",
        {
            "sentence": words.sentence("·old", 21, "·mill", "·town", 5.3284, [heads, forward], mill),
            "sentence: below": words.sentence("·old", 21, "·town", "·mill", -5.33, [forward, heads], mill),
            "sentence: alone": words.sentence("·old", 21, "·mill", None, -2.5, [forward], None),
            "sum": words.summed(63, 5.32837, 5.32838, "·town"),
            "sum: one token": words.summed(63, -12.05, -12.05, None),
            "sum: changed": words.summed(63, 5.32837, 5.32838, "·town", True),
            "word": words.word("·mill", "·town", "·old"),
            "what changed": words.what_changed("·mill", None, 12.05, -1.59, MOVED, None),
            "what changed: another first": words.what_changed(
                "·man", "·town", -2.11, 4.89, MOVED[:1], "·mill"
            ),
            "head unchanged": words.head_unchanged(1.78),
            "grid: changes": words.GRID_CHANGES,
            "sources: changes": words.SOURCES_CHANGES,
            "look for": words.look_for(27.4651, True, None),
            "look for: no shift": words.look_for(27.4651, False, "·town"),
            "grid": words.GRID,
            "edited": words.EDITED,
            "rounded": words.ROUNDED,
            "head": words.head(5, 3, 0.967, "·mill", "·town", [mill]),
            "head: nothing read": words.head(5, 3, 0.0, "·mill", None, []),
            "rests": words.rests(start),
            "sources": words.SOURCES,
            "value bias": words.value_bias(-0.21),
            "no sources: muted": words.no_sources(True),
            "no sources": words.no_sources(False),
            "offer": words.offer(60),
            "to knock-out": words.TO_KNOCK_OUT,
            "total effect": words.total_effect(4, 3, 0.466, 3.645, "·mill", "·town"),
            "total effect: rises": words.total_effect(4, 3, 0.466, -0.1, "·mill", None),
            "farthest": words.farthest("block 0 · head 1", 0.281, 5.97),
            "why different": words.WHY_DIFFERENT,
            "table: parts": words.NUMBERS,
            "table: sources": words.SOURCE_NUMBERS,
            "table: muting": words.MUTED_NUMBERS,
        },
    )
