"""The Next token page's sentences, all of them, for small inputs."""

from gptviz.analysis.next_token import Entropy
from gptviz.ui.views.next_token import words
from gptviz.ui.words import nameless
from tests.golden_files import check


def test_every_sentence() -> None:
    entropy, warmer = Entropy(0.8755), Entropy(2.3)
    check(
        "next_token_words",
        {
            "sentence": words.sentence("·old", 21, "·mill", 0.90634, entropy),
            "sentence: changed": words.changed_sentence(
                "·old", 21, "·mill", 0.18412, warmer, "·mill", 0.90634, 0.18412, entropy
            ),
            "sentence: changed, another on top": words.changed_sentence(
                "·old", 21, "·the", 0.12, warmer, "·mill", 0.90634, 0.000213, entropy
            ),
            "came next: changed": words.came_next("·mill", 0.000012, 1234, (0.90634, 1)),
            "came next": words.came_next("·`mill`", 0.000012, 1234),
            "uncertainty": words.uncertainty(entropy, 8192),
            "uncertainty: changed": words.uncertainty(warmer, 8192, entropy),
            "look for: changed": words.look_for(8192, warmer, warmer, False, (entropy, entropy)),
            "look for: changed, settings": words.look_for(8192, warmer, entropy, True, (entropy, warmer)),
            "along the prompt: changed": words.along_the_prompt(22, 3.5531, 2.2527),
            "curve: changed": words.CURVE_CHANGED,
            "look for": words.look_for(8192, entropy, entropy, False),
            "look for: settings": words.look_for(8192, entropy, warmer, True),
            "along the prompt": words.along_the_prompt(22, 3.5531),
            "along the prompt: one token": words.along_the_prompt(1, float("nan")),
            "drew": words.drew(41, "·mill", 0.90634),
            "nameless": nameless("<id 50300>"),
            "curve": words.CURVE,
            "table: candidates": words.NUMBERS,
            "table: how unsure": words.SURE,
            "table: surprise": words.SURPRISES,
        },
    )
