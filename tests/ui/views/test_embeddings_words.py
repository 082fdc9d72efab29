"""The Embeddings page's sentences, all of them, for small inputs."""

import torch

from gptviz.analysis.embeddings import Scale, best_by_chance
from gptviz.ui.views.embeddings import words
from tests.golden_files import check

LENGTHS = {"token_norm": 1.41, "position_norm": 0.995, "sum_norm": 1.8, "cosine": -0.104}


def test_every_sentence():
    check(
        "embeddings_words",
        {
            "this plus this": words.this_plus_this("·old", 651, 21, []),
            "this plus this: twice in the text": words.this_plus_this("·`old`", 651, 21, [9, 12]),
            "one dimension": words.one_dimension(198, ("−0.208", "−0.119", "−0.327"), LENGTHS),
            "one dimension: replaced": words.one_dimension(198, ("−0.208", "−0.119", "0.000"), LENGTHS, True),
            "what changed": words.what_changed(words.PARTS[2:], 1, 22, "·old", (2.19, 0.0)),
            "what changed: two rows": words.what_changed(words.PARTS[1:], 20, 22, "·old", (1.8, 1.8)),
            "replaced": words.REPLACED,
            "difference": words.difference(0.53),
            "colours": words.colours(Scale(0.284, 0.284, 0, 16896)),
            "colours: some beyond": words.colours(Scale(0.284, 0.656, 337, 16896)),
            "nearest": words.nearest("·old", "·young", 0.575, 1.2, "cosine", 8192, 0.265),
            "nearest: by dot product": words.nearest("·old", "·the", 0.45, 1.9, "dot", 50257, 0.168),
            "nearest: by chance": words.nearest("·old", "Ġx", 0.171, 0.05, "cosine", 50257, 0.168),
            "positions": words.positions(256, 22, 256, 0.961, 0.123),
            "positions: not all drawn": words.positions(1024, 300, 256, 0.961, -0.2),
        },
    )


def test_the_best_of_random_rows_is_about_what_is_said():
    rows = torch.randn(20_000, 64, generator=torch.Generator().manual_seed(0))
    cosine = torch.nn.functional.normalize(rows, dim=1) @ torch.nn.functional.normalize(rows[:50], dim=1).T
    cosine[torch.arange(50), torch.arange(50)] = -1
    best = cosine.max(dim=0).values.mean().item()
    assert abs(best - best_by_chance(20_000, 64)) < 0.1 * best
