"""Why a page shows the same with and without the app's changes, in sentences."""

from types import SimpleNamespace

from gptviz import Edit
from gptviz.ui.sheet import why_same

HEAD, EMBED = "z.4.3=zero", "embed@1=zero"


def why(*edits, site=("embed", None), position=0):
    """Of a text of three tokens and a model of six blocks."""
    config, run = SimpleNamespace(n_layers=6), SimpleNamespace(edits=tuple(map(Edit.parse, edits)))
    labels = ["The", "·cat", "·sat"]
    scene = SimpleNamespace(lm=SimpleNamespace(config=config), run=run, tokens=labels, labels=labels)
    return why_same(scene, "the embeddings", [site], position)


def test_changes_that_could_matter_did_not_and_of_the_others_it_is_said_why():
    cannot = why(HEAD, EMBED)
    assert cannot.startswith("Block 4 head 3 off cannot matter for the embeddings: it changes what")
    assert "Embeddings at “·cat” (position 1) off cannot" in cannot and "changed nothing" not in cannot
    many = why(*[HEAD] * 5)
    assert many.count("cannot matter") == 3 and many.endswith("So it is with 2 more.")
    could = why(EMBED, HEAD, position=1)
    assert could.startswith("**Your changes changed nothing in the embeddings**: all is as it was. Block 4")
    assert why(EMBED, position=1) == "**Your change changed nothing in the embeddings**: all is as it was."
