"""The Generate page's sentences, all of them, for small inputs."""

from gptviz.ui.views.generate import words
from tests.golden_files import check


def test_every_sentence() -> None:
    check(
        "generate_words",
        {
            "drawn": words.drawn(3, 12, "·cat", 0.7312, 0.61, 0.74, 0.13),
            "drawn: a narrow stretch": words.drawn(3, 12, "·`cat`", 0.970053, 0.970032, 0.970131, 0.0000995),
            "greedy": words.greedy(3, 12, "·cat", 0.43),
            "put": words.put(3, 12, "·cat", 0.000031, 1041, 8192),
            "to come": words.to_come("·cat", 0.7312, 0.61, 0.74, 0.13),
            "to come: greedy": words.to_come("·cat", None, 0, 1, 1),
            "ended": words.ended(""),
            "ended: a stop string": words.ended("."),
            "longest": words.longest(256),
            "full": words.full(256, 1),
            "full: more": words.full(1024, 1030),
            "in the middle": words.in_the_middle("·cat", 4),
            "look for": words.look_for(7),
            "look for: greedy": words.look_for(None),
            "chip": words.chip("·cat", 0.43, False),
            "chip: put": words.chip("·cat", 0.0, True),
            "short": " ".join(words.short(p) for p in (0.0, 1.0, 0.4312, 0.0969, 0.0000099)),
            "how": ", ".join(words.how(*how) for how in ((True, False, True), (False, True, True))),
            "how: greedy, to come": ", ".join(
                words.how(*how) for how in ((False, False, True), (True, False, False))
            ),
            "branches: one": words.branches(1),
            "branches": words.branches(4),
            "beams": words.beams(3, (8, -10.56), (8, -12.52), (8, -20.17)),
            "beams: one": words.beams(1, (8, -12.52), (8, -12.52), (8, -20.17)),
            "beams: one ended": words.beams(3, (1, -1.56), (8, -12.52), (8, -20.17)),
            "beams: nothing drawn": words.beams(3, (8, -10.56), (8, -12.52), None),
            "table: beams": words.BEAMS,
            "beams: ends": words.BEAM_ENDS,
            "progress": words.progress(16, 200),
            "table: steps": words.STEPS,
            "unchanged step": words.unchanged_step(0.90634, 1, "·mill", True, True),
            "unchanged step: another": words.unchanged_step(0.00012, 1234, "·`", False, False),
            "branch unchanged": words.branch_unchanged(-12.345, -30.1),
            "branch unchanged: long": words.branch_unchanged(-12.345, None),
            "unchanged text": words.unchanged_text("·mill⏎.", 1, 3),
            "unchanged text: later": words.unchanged_text("·mill.", 2, 2),
            "unchanged text: the same": words.unchanged_text("·mill", None, 1),
            "left out": words.left_out(["z.4.3@21=zero"]),
            "left out: two": words.left_out(["z.4.3@21=zero", "attn.0=hide21"]),
            "table: candidates": words.CANDIDATES,
            "table: branches": words.BRANCHES,
        },
    )
