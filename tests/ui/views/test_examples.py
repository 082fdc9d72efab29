"""The examples, held to what they promise of the bundled model."""

import pytest

from gptviz.ui.views.examples import EXAMPLES


def best(mini, label, k=1):
    text = next(example.text for example in EXAMPLES if example.label == label)
    return mini.trace(text, keep=()).next_tokens(k=k)["token"].tolist()


def test_there_are_six_and_each_says_what_to_watch():
    assert len({example.text for example in EXAMPLES}) == len(EXAMPLES) == 6
    assert all(example.watch.endswith(".") for example in EXAMPLES)


@pytest.mark.parametrize(
    "label, token", [("A copied passage", " mill"), ("A name comes back", " Z"), ("Counting", " I")]
)
def test_the_model_takes_it_from_the_text(mini, label, token):
    assert best(mini, label) == [token]


def test_the_quotation_closes(mini):
    assert '"' in best(mini, "A quotation closes")[0]


def test_him_and_her(mini):
    assert {" him", " her"} == set(best(mini, "He and she", k=2))
