"""The sidebar: few doors, and what opens behind them."""

import pytest

from gptviz.engine.architecture import ARCHITECTURES
from gptviz.ui.shell.navigation import PAGES, SECTIONS, UNLISTED
from gptviz.ui.shell.picker import size_of
from tests.llama_models import both
from tests.pages.test_any_model import use
from tests.specs import links

DOORS = ["Guess", "Tokens", "Embeddings", "LayerNorm"]
DOORS += ["Attention", "Feed-forward", "Next token", "Generate"]
HEADINGS = ["With the book, by chapter", "Explain", "Which part did it?"]


def headings(at):
    """The folded headings of the sidebar: whether each is open."""
    return {box.label: box.proto.expanded for box in at.sidebar.expander}


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("next_token", ""),
        ("loss", HEADINGS[0]),
        ("logit_lens", HEADINGS[1]),
        ("why", HEADINGS[2]),
    ],
)
def test_the_sidebar_has_eight_doors_three_headings_and_one_line(run_page, name, heading):
    at = run_page(name, text="one two", token=1)
    assert headings(at) == {each: each == heading for each in HEADINGS}
    folded = [label for box in at.sidebar.expander for label in links(box)]
    every = links(at.sidebar)
    seen = [label for label in every if label not in folded]
    assert seen == DOORS
    assert all("text=one+two" in link.query_string for link in every.values())
    beside = {PAGES[page].title for page in UNLISTED}
    titles = {door.name for door in PAGES.values()}
    assert titles <= {*every} | beside
    lines = at.sidebar.get("popover")
    assert [line.proto.popover.label for line in lines] == ["**mini** · 7 million numbers"]


def test_the_norms_page_is_called_norm_where_the_norm_is_another(run_page, monkeypatch):
    """In the list, above the heading, on the way to it and while somebody presents; its address stays."""
    lm, _ = both("qwen3")
    use(lm, "qwen3", monkeypatch)
    at = run_page("layernorm", text="The cat sat")
    assert [*links(at.sidebar)][:4] == ["Guess", "Tokens", "Embeddings", "Norm"]
    assert "Norm" in [caption.value for caption in at.caption]
    assert "LayerNorm" not in [caption.value for caption in at.caption]
    # the head is drawn before the model is known, its doors when it is
    for session in ({}, {"gptviz_called": {"layernorm": "Norm"}}):
        at = run_page("embeddings", session, present="on")
        assert {"Norm"} <= links(at).keys() and "LayerNorm" not in links(at)
    monkeypatch.undo()
    at = run_page("layernorm", {"gptviz_called": {"layernorm": "Norm"}}, text="The cat sat")
    assert "Norm" not in [*links(at.sidebar), *(caption.value for caption in at.caption)]
    assert "LayerNorm" in links(at.sidebar)
    for kind in ARCHITECTURES:
        assert kind.called.keys() <= PAGES.keys()


def test_every_address_of_the_list_is_one_of_before():
    assert {page for doors in SECTIONS.values() for page in doors} == {*PAGES} - {*UNLISTED}


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (6_897_152, "7 million numbers"),
        (124_439_808, "124 million numbers"),
        (1_557_611_200, "1.56 billion numbers"),
        (9_408, "9,408 numbers"),
        (1_200_000, "1.20 million numbers"),
    ],
)
def test_a_size_at_a_glance(count, words):
    assert size_of(count) == words
