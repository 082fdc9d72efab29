"""The Positions page's sentences, all of them, for small inputs."""

from gptviz.ui.views.positions import words
from tests.golden_files import check


def test_every_sentence():
    numbers = (256, 32, 3, 12.27, 12.27, 12.27, 35333.1)
    changes = {"Learned": 6.15, "Sinusoidal": 3.67, "RoPE": 3.6e-15, "None": 0.0}
    odd = {name: value for name, value in changes.items() if name != "RoPE"}
    check(
        "positions_words",
        {
            **{f"what to see: {s}": words.what_to_see(s, *numbers) for s in ("sinusoidal", "rope", "none")},
            "what to see: learned": words.what_to_see("learned", 256, 256, 1, 0.99, 0.716, 1.75, 1.0),
            "cut down": words.cut_down((128, 256), (1024, 768)),
            "cut down: positions": words.cut_down((128, 256), (256, 256)),
            "cut down: nothing": words.cut_down((64, 32), (64, 32)),
            "a step": words.a_step(3, 256, 2.3e-13),
            "dials": words.dials(8, 5, 16, 12.272),
            "along": words.along("·old", "·the", 2, 3, changes),
            "along: an odd head": words.along("·old", "·the", 2, 1, odd),
            **{f"what if: {value}": words.what_if(value) for value in words.WHAT_IF},
            "moved": words.attention_moved(2, 5, 0.93, 0.11, 0.82),
            "moved: one token": words.attention_moved(2, 5, None, None, 0.0),
            "prediction": words.prediction("·old", "·mill", 0.906, 0.122, "·mill", (4.31, 6.3)),
            "prediction: another": words.prediction("·old", "·mill", 0.906, 0.02, "·man", None),
            "compared": words.COMPARED,
            "changed already: weights": words.OWN_WEIGHTS,
            "changed already": words.on_top("·old", "·mill", 0.906, 0.184),
            **{f"changed already: {value}": words.same_site(value) for value in words.WHAT_IF},
            "nothing more": words.NOTHING_MORE,
            "order": words.ORDER,
        },
    )
