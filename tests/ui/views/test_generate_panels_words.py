"""The sentences of the Generate page's panels, all of them, for small inputs."""

import pytest

from gptviz.ui.views.generate.panels import loop_words as loops
from gptviz.ui.views.generate.panels import words
from gptviz.ui.words import Place
from tests.golden_files import check

FIRST, MILL, OLD = Place("Seven", 0), Place("·mill", 10), Place("·old", 21)


def test_every_sentence():
    check(
        "generate_panels_words",
        {
            "looked": words.looked(1, "·mill", OLD, 5, 3, (MILL, 0.9312), 0.0213),
            "looked: not written yet": words.looked(4, None, OLD, 0, 7, (FIRST, 0.5), 0.25),
            "looked: one token": words.looked(1, "·a", FIRST, 0, 0, None, 1.0),
            "looked at": words.LOOKED_AT,
            "head map": words.head_map(MILL, 5, 0, 0.4321, 20),
            "head map: one step": words.head_map(FIRST, 0, 1, 0.0123, 1),
            "left out": words.left_out(28, 256),
            "left out: a change": words.left_out(28, None),
            "ask for passes": words.ask_passes(28, 256),
            "row table": words.ROW_TABLE,
            "heads table": words.HEADS_TABLE,
            "saved": words.saved(9, 30, 29, 7_200_000, 150_000_000),
            "saved: first step": words.saved(1, 22, 0, 107_000_000, 107_000_000),
            "saved: full": words.saved(40, 256, 0, 1.41e9, 1.41e9),
            "saved: no cache": words.saved(9, 30, 0, 1.5e8, 1.5e8, False),
            "totals: no cache": words.totals_without(20, 630, 3.1e9, 4.4e9),
            "totals": words.totals(20, 41, 630, 2.5e8, 3.1e9, 4.4e9),
            "memory": words.memory(368_640, 30, 6, 256, 4, 3_145_728, 256),
            "measured": words.measured(20, 4.123, 21.97, 20, 20),
            "measured: one way, other tokens": words.measured(20, None, 21.97, 19, 20),
            "measured: one step": words.measured(1, 9.0, None, 1, 1),
            "took": words.took(7, 1234.5),
            "not counted": words.NOT_COUNTED,
            "cost table": words.COST_TABLE,
            "times table": words.TIMES_TABLE,
            "nothing written": words.NOTHING_WRITTEN,
            "some left": words.some_left(7, 200),
            "check": words.check(2.1e-6, 8192, True),
            "check: failed": words.check(0.31, 8192, False),
            "deleted: the sink": words.deleted(FIRST, 0.61, True),
            "deleted": words.deleted(MILL, 0.034, False),
            "swapped values": words.swapped_values(FIRST, MILL),
            "swapped": words.swapped(FIRST, MILL),
            "frozen": words.frozen(OLD, MILL, "·town", 22),
            "frozen: itself": words.frozen(MILL, MILL, "·town", 22),
            "frozen: before": words.frozen(MILL, OLD, "·town", 22),
            "frozen: the sink": words.frozen(FIRST, MILL, "·town", 22),
            "frozen: the last": words.frozen(MILL, MILL, "·town", 10),
            "became: another": words.became("·mill", 0.93, "·town", 0.21, 0.0012, 3.21),
            "became: the same": words.became("·mill", 0.93, "·mill", 0.88, 0.88, 0.0),
            "became: unchanged": words.became_unchanged("·mill", 0.906, 0.12, 2.4),
            "not operated": words.not_operated("an edit depends on the whole text"),
            "unfrozen": words.unfrozen("·town", 0.81, "·mill", 0.0002),
            "unfrozen: the same": words.unfrozen("·see", 0.81, "·see", 0.81),
            "one token": words.ONE_TOKEN,
            "surgery table": words.SURGERY_TABLE,
            "loops": loops.loops((0.83, 0.041), (60, 60), 3, 1.0, 7),
            "loops: one ended": loops.loops((0.83, 0.041), (60, 31), 3, 0.7, 1),
            "loops: unchanged": loops.loops_unchanged((0.83, 0.041)),
            "goes round": loops.goes_round(31, 17, "said·the·old·miller."),
            "goes round: one token": loops.goes_round(2, 1, "⏎"),
            "no loop": loops.NO_LOOP,
            "induction": loops.induction(5, 0, 0.7976, 5, True),
            "induction: one head": loops.induction(5, 0, 0.7976, 1, True),
            "induction: no loop": loops.induction(5, 0, 0.7976, 5, False),
            "induction: unchanged": loops.induction_unchanged(5, 0, 0.7976),
            "no induction": loops.no_induction(3, 1, 0.0312),
            "muted": loops.muted(
                [(5, 0), (5, 5)], 0.797, 0.5995, "the greedy text's 60 tokens", (0.77, 5), None
            ),
            "muted: one": loops.muted(
                [(5, 0)], 0.797, 0.6936, "the greedy text's 60 tokens", (0.78, 5), 0.81
            ),
            "muted: no others": loops.muted(
                [(5, 0)], 0.797, 0.6936, "the greedy text's 30 tokens", None, None
            ),
            "window": loops.window(256),
            "whole text": loops.WHOLE_TEXT,
            "repeats": loops.REPEATS,
            "loops table": loops.LOOPS_TABLE,
            "nothing repeats": loops.NOTHING_REPEATS,
            "ask to write": loops.ask_write(120, 2),
            "ask to write: changed": loops.ask_write(120, 4),
        },
    )


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (999, "999"),
        (1234567, "1.23 million"),
        (4.5e10, "45.0 billion"),
        (2e13, "20.0 trillion"),
        (1e4, "10,000"),
    ],
)
def test_large_numbers_can_be_compared_at_a_glance(number, said):
    assert words.many(number) == said


@pytest.mark.parametrize(
    ("size", "said"), [(512, "512 bytes"), (3_145_728, "3.15 MB"), (2e9, "2.00 GB"), (4096, "4.10 kB")]
)
def test_sizes(size, said):
    assert words.size(size) == said
