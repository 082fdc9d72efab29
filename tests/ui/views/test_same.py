"""Why a page shows the same with and without the app's changes, in sentences."""

import numpy as np

from gptviz import Edit
from gptviz.both import alike
from gptviz.ui.shell.same import same
from tests.golden_files import check

LABELS = ["The", "·cat", "·sat"]
HEAD, EMBED = Edit.parse("z.4.3=zero"), Edit.parse("embed@1=zero")


def test_every_sentence():
    what = "the embeddings"
    check(
        "same_words",
        {
            "cannot": same(what, [(HEAD, "later")], LABELS),
            "cannot: two": same(what, [(HEAD, "later"), (EMBED, "later position")], LABELS),
            "cannot: many": same(what, [(HEAD, "later")] * 5, LABELS),
            "could": same(what, [(EMBED, None)], LABELS),
            "could: one of two": same(what, [(EMBED, None), (HEAD, "beside")], LABELS),
        },
    )


def test_alike_is_up_to_rounding():
    one = np.array([1.0, 200.0, np.nan])
    assert alike(one, one * (1 + 1e-6)) and not alike(one, one * 1.001)
