"""The Baselines page's sentences, all of them, for small inputs."""

from gptviz.lessons.compared import Counted
from gptviz.lessons.mlp import Recipe
from gptviz.ui.views.baselines import words
from tests.golden_files import check

BITS = Counted(characters=72, blind=6.17, unigram=4.54, bigram=3.868, strength=4.0)
MODEL = ("mini", 1.541)


def test_every_sentence():
    one, three = Recipe(context=1, steps=50), Recipe()
    check(
        "baselines_words",
        {
            "headline": words.headline(words.CHAPTER, 11217, BITS, MODEL),
            "headline: the model not measured": words.headline(words.PROMPTED, 85, BITS, None),
            "look for": words.look_for(20, 2.6891, 2.2866, "h", "e", 0.4999),
            "look for: before the first step": words.look_for(0, 4.598, 2.2866, "q", "u", 1.0),
            "look for: the first step": words.look_for(1, 4.442, 2.2866, "·", "t", 0.9999),
            "learnt": words.learnt(0) + "\n" + words.learnt(1) + "\n" + words.learnt(20),
            "shown": words.shown_of(30, 59),
            "shown: all": words.shown_of(19, 19),
            "falling": words.falling(4.598, 4.078, 2.2866, 2.28755, 400),
            "falling: from below, to the end": words.falling(0.5, 0.69, 0.1, 0.10001, 400),
            "after": words.after("h", 584),
            "after: nothing": words.after("z", 0),
            "mlp": words.mlp(three, 7384, 72),
            "mlp: one back": words.mlp(one, 5384, 72),
            "mlp result": words.mlp_result(600, 2.58, 3.57, (550, 3.56), 3.868, True),
            "mlp result: by heart": words.mlp_result(600, 1.1, 4.2, (150, 3.7), 3.868, False),
            "mlp result: as the bigram": words.mlp_result(50, 3.9, 3.867, (50, 3.867), 3.868, False),
            "scale": words.scale(BITS, 600, MODEL),
            "scale: nothing yet": words.scale(BITS, 0, None),
            "no model": words.no_model("nanogpt"),
            "ask": words.ask("gpt2", 15),
            "reading": words.reading(3, 15),
            "training": words.training(150, 600),
            "too short": words.too_short(3, 20),
            "too many": words.too_many(812, 300),
            "cut": words.cut(100_000),
            "samples": words.SAMPLES,
            "numbers": "\n".join((words.NUMBERS, words.STEPS, words.LEARNING, words.SCALE)),
        },
    )
