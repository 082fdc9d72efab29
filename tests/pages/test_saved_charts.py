"""What the saved picture of each chart is called and says, page by page."""

import json

import pytest

TEXT = "the king and the queen and the king"


def saved(at):
    return [
        json.loads(part.proto.json)["saved"]
        for part in at.get("bidi_component")
        if part.proto.component_name == "gptviz.chart"
    ]


@pytest.mark.parametrize(
    "name", ["attention", "embeddings", "layernorm", "next_token", "residual_stream", "feed_forward"]
)
def test_a_saved_chart_says_of_what_text_token_and_model_it_is(run_page, name):
    at = run_page(name, text=TEXT, token=4)
    files = saved(at)
    assert files and len(files) == len(at.get("plotly_chart"))
    assert len({file["stem"] for file in files}) == len(files)  # no two pictures of a page have one name
    for file in files:
        assert file["stem"].startswith("gptviz-") and file["stem"].endswith("-token4")
        assert file["title"]
        said = " ".join(file["lines"])
        assert TEXT in said and "·queen" in said and "mini" in said


def test_a_page_without_a_text_says_the_model(run_page):
    files = saved(run_page("anatomy"))
    assert files and all(file["title"] and "mini" in " ".join(file["lines"]) for file in files)


def test_the_bars_of_a_weight_say_of_which_head_and_key(run_page):
    files = saved(run_page("attention", text=TEXT, token=4, block=2, head=3, key=1))
    assert all(file["stem"].endswith("-block2-head3-key1-token4") for file in files)


def test_the_picture_of_a_changed_model_says_so(run_page):
    edits = "z.4.3=zero,mlp_out.2=mean"
    for query, changed in (({}, False), ({"edits": edits}, True)):
        (picture,) = saved(run_page("next_token", text=TEXT, **query))
        assert picture["stem"].endswith("-changed") == changed
        assert any("z.4.3=zero, mlp_out.2=mean" in line for line in picture["lines"]) == changed
