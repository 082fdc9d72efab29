"""Why a page shows the same with and without the app's changes, in sentences."""

import numpy as np

from gptviz import Edit
from gptviz.both import alike
from gptviz.ui.shell.same import same

LABELS = ["The", "·cat", "·sat"]
HEAD, EMBED = Edit.parse("z.4.3=zero"), Edit.parse("embed@1=zero")


def test_changes_that_could_matter_did_not_and_of_the_others_it_is_said_why():
    cannot = same("the embeddings", [(HEAD, "later"), (EMBED, "later position")], LABELS)
    assert cannot.startswith("Block 4 head 3 off cannot matter for the embeddings: it changes what")
    assert "Embeddings at “·cat” (position 1) off cannot" in cannot and "changed nothing" not in cannot
    many = same("the embeddings", [(HEAD, "later")] * 5, LABELS)
    assert many.count("cannot matter") == 3 and many.endswith("So it is with 2 more.")
    could = same("the embeddings", [(EMBED, None), (HEAD, "beside")], LABELS)
    assert could.startswith("**Your changes changed nothing in the embeddings**: all is as it was. Block 4")


def test_alike_is_up_to_rounding():
    one = np.array([1.0, 200.0, np.nan])
    assert alike(one, one * (1 + 1e-6)) and not alike(one, one * 1.001)
