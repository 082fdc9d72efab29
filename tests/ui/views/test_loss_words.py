"""The Loss page's sentences, all of them, for small inputs."""

import math

from gptviz.ui.views.loss import words
from tests.golden_files import check


def test_every_sentence() -> None:
    uniform = math.log(8192)
    dear = [("·green", "even", 9.594), ("·sang", "ots", 8.72)]
    check(
        "loss_words",
        {
            "sentence": words.sentence(4.3069, uniform, 8192, "·old", 21),
            "sentence: no better than a guess": words.sentence(9.5, uniform, 8192, "`", 1),
            "sentence: changed": words.sentence(4.76, uniform, 8192, "·old", 21, 4.3069),
            "moved": words.moved([("·`", "·old", 0.1, 1.69), ("·mill", "·old", 8.0, 0.02)], 17, 21),
            "moved: one": words.moved([("·mill", "·old", 8.0, 0.02)], 0, 1),
            "moved: nothing": words.moved([], 0, 21),
            "step: unchanged": words.unchanged_line(0.90634, 0.0983),
            "one token": words.no_target("·", uniform, 8192),
            "look for": words.costliest(dear, 90.4, 21),
            "look for: one position": words.costliest(dear[:1], 9.594, 1),
            "shown instead": words.shown_instead("·old", 21),
            "step": words.step_title("even", 1, "·green"),
            "steps": "\n".join(words.steps(-3.8245, 5.7692, 6.82e-5, 9.5937, 8192)),
            "steps: sure": "\n".join(words.steps(15.0, 15.0001, 0.9999, 0.0001, 8192)),
            "mean": words.mean_line([5.81, 9.59, 6.62, 0.001], 5.505),
            "mean of one": words.mean_line([5.81], 5.81),
            "others": words.others(8186),
            "bar": words.bar("even", 1, "·green", 6.82e-5, 611, 9.5937),
            "slides": words.slides(["2.1516 where this is 2.1515"]),
            "slides: all the same": words.slides([]),
            "notebook": words.notebook(65, 4.4837, math.log(65)),
            "table": words.NUMBERS,
        },
    )
