"""The examples, held to what they promise of the bundled model."""

import pytest

from gptviz.ui.shell.examples import EXAMPLES


def best(mini, label, k=1):
    return mini.trace(EXAMPLES[label], keep=()).next_tokens(k=k)["token"].tolist()


@pytest.mark.parametrize(
    "label, token", [("A copied passage", " mill"), ("A name comes back", " Z"), ("Counting", " I")]
)
def test_the_model_takes_it_from_the_text(mini, label, token):
    assert best(mini, label) == [token]


def test_the_quotation_closes(mini):
    assert '"' in best(mini, "A quotation closes")[0]


def test_him_and_her(mini):
    assert {" him", " her"} == set(best(mini, "He and she", k=2))
