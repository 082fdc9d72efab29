"""The Scaling page's sentences, all of them, for small inputs."""

from gptviz.ui.views.scaling import words
from tests.golden_files import check


def test_every_sentence():
    row = {"d": 64, "variance": 62.94, "largest": 0.934, "gradient": 0.124}
    row |= {"variance_scaled": 0.983, "largest_scaled": 0.36, "gradient_scaled": 0.862}
    check(
        "scaling_words",
        {
            "what to see": words.what_to_see(row),
            "what is left": words.what_is_left(),
            "one query": words.one_query(3, 64, 0.9987, 0.4312),
            "in this model": words.in_this_model(
                2, 32, [(41.2, None), (1.29, None), (0.92, None), (0.45, None)]
            ),
            "in this model: one token": words.in_this_model(0, 32, [(0.0, None), (0.0, None)]),
            "in this model: changed": words.in_this_model(
                2, 32, [(41.2, 40.1), (1.29, 1.25), (0.92, 0.9), (0.45, 0.46)]
            ),
            "outlines": words.OUTLINES + words.given([3]),
            "given": words.scores_of(2) + words.given([0, 5]),
            "whose": words.whose(2, 6, False) + " " + words.whose(2, 6, True),
            "sharper": words.sharper(10, 0.2979, 0.93515),
            "dropout": words.dropout(0.5, 15, 21, None),
            "dropout: attention": words.dropout(0.1, 3, 18, (0.62, 1.11)),
            "source: the book's": words.dropout_source("ones", 0.5, 123),
            "source: this text": words.dropout_source("text", 0.5, 123),
            "source: another seed": words.dropout_source("journey", 0.5, 7),
            "first tokens": words.first_tokens(24, 225),
            "first tokens: all": words.first_tokens(7, 7),
            "cost": words.cost(8, 32, 1024),
            "measured": words.measured(1024, 0.0412, 64 * 2**20, 4.3),
            "measured: one size": words.measured(64, 0.0002, 262144, None),
        },
    )
