"""The Anatomy page's sentences, all of them, for small configs and GPT-2's."""

import pytest

from gptviz.analysis.anatomy import anatomy
from gptviz.engine.config import GPTConfig
from gptviz.ui.views.anatomy import words
from gptviz.ui.views.anatomy.form import PRESETS
from tests.golden_files import check

SMALL = GPTConfig(vocab_size=61, context_length=24, emb_dim=16, n_heads=1, n_layers=1, qkv_bias=True)


def test_every_sentence():
    small, gpt2, book = (
        anatomy(config) for config in (SMALL, PRESETS["GPT-2 small"], PRESETS["the book's 124M"])
    )
    xl = PRESETS["XL"]
    said = {
        "headline": words.headline(gpt2),
        "about: itself": words.about(gpt2, gpt2, "gpt2"),
        "about: as many": words.about(anatomy(GPTConfig(**{**SMALL.to_dict(), "n_heads": 4})), small, "a_b*"),
        "about: larger": words.about(book, gpt2, "gpt2"),
        "about: much larger": words.about(gpt2, small, "small"),
        "about: smaller": words.about(small, gpt2, "gpt2"),
        "numbers": words.NUMBERS,
    }
    for name, shown in {"small": small, "gpt2": gpt2, "the book's": book}.items():
        said[f"look for: {name}"] = words.look_for(shown)
        said[f"larger: {name}"] = words.larger(shown, xl)
        said[f"heads: {name}"] = words.heads(shown)
        said[f"weights only: {name}"] = words.weights_only(shown)
        said[f"alt: {name}"] = words.alt(shown)
    check("anatomy_words", said)


@pytest.mark.parametrize(
    ("size", "written"),
    [(0, "0"), (999, "999 bytes"), (999_499, "999 kB"), (999_500, "1.00 MB"), (497_759_232, "498 MB")],
)
def test_bytes_as_disks_are_sold(size, written):
    assert words.memory(size) == written
