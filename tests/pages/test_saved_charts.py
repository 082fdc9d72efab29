"""What the saved picture of each chart is called and says, page by page."""

import json

import pytest

from tests.specs import opened

TEXT = "the king and the queen and the king"


def saved(at, *components):
    """Of a page's charts, or of these components: what their files are called and say."""
    return [
        json.loads(part.proto.json)["saved"]
        for part in at.get("bidi_component")
        if part.proto.component_name in (components or ("gptviz.chart",))
    ]


@pytest.mark.parametrize("name", ["embeddings", "layernorm", "next_token", "feed_forward"])
def test_a_saved_chart_says_of_what_text_token_and_model_it_is(run_page, name):
    at = run_page(name, text=TEXT, token=4)
    files = saved(at)
    assert files and len(files) == len(at.get("plotly_chart"))
    # no two pictures of a page have one name
    assert len({file["stem"] for file in files}) == len(files)
    for file in files:
        assert file["stem"].startswith("gptviz-") and file["stem"].endswith("-token4")
        assert file["title"]
        said = " ".join(file["lines"])
        assert TEXT in said and "·queen" in said and "mini" in said


def test_the_bars_of_a_weight_say_their_head_and_key_and_a_page_without_a_text_its_model(run_page):
    bars = saved(run_page("attention", text=TEXT, token=4, block=2, head=3, key=1))
    assert all(file["stem"].endswith("-block2-head3-key1-token4") for file in bars)
    files = saved(run_page("anatomy"))  # a page without a text
    assert files and all(file["title"] and "mini" in " ".join(file["lines"]) for file in files)
    others = saved(run_page("baselines")) + saved(run_page("attention_by_hand"), "gptviz.worksheet")
    # of no model that is chosen
    assert len(others) > 3 and not any(file["lines"] for file in others)


def test_the_picture_of_a_changed_model_says_so(run_page):
    edits = "z.4.3=zero,mlp_out.2=mean"
    for query, changed in (({}, False), ({"edits": edits}, True)):
        (picture,) = saved(run_page("next_token", text=TEXT, **query))
        assert picture["stem"].endswith("-changed") == changed
        assert any("z.4.3=zero, mlp_out.2=mean" in line for line in picture["lines"]) == changed


@pytest.mark.parametrize(
    "name, query, pictures",
    [
        ("attention", {"pattern": "unchanged", "arcs": "on"}, 3),
        ("attention", {"pattern": "difference", "arcs": "on", "block": 4}, 0),
        ("layernorm", {"shown": "unchanged"}, 1),
        ("why", {"shown": "unchanged"}, 2),
        ("embeddings", {"shown": "unchanged"}, 1),
    ],
)
def test_the_picture_of_the_unchanged_model_is_its_own(run_page, name, query, pictures):
    """Nothing of it says a change, though one is made; all others of the page say it."""
    at = run_page(name, text=TEXT, edits="z.0.1=zero,embed@1=zero", **query)
    opened(at, "emb_rows", "map_why")  # where the picture is behind an expander, or in Details
    files = saved(at, "gptviz.chart", "gptviz.matrix", "gptviz.arcs")
    own = [file for file in files if "unchanged" in file["stem"].split("-")]
    assert len(own) == pictures and len(files) > pictures
    for file in files:
        changed = "Changed: z.0.1=zero, embed@1=zero" in file["lines"]
        assert changed == file["stem"].endswith("-changed") == (file not in own)
    assert all("unchanged" in file["title"] for file in own)


def test_each_side_s_picture_says_its_own_model_text_and_changes(run_page):
    def matrices(**query):
        files = saved(run_page("compare", text=TEXT, edits="z.4.3=zero", **query), "gptviz.matrix")
        assert len(files) == 3
        return files

    left, right, between = matrices(vs="model")
    assert "Model: mini" in left["lines"] and "Changed: z.4.3=zero" in left["lines"]
    assert "Model: mini-untrained" in right["lines"] and not right["stem"].endswith("-changed")
    assert not any(line.startswith("Changed:") for line in right["lines"])
    for file in (left, between):
        assert "mini (changed)" in file["title"]
    assert "mini-untrained" in between["title"]

    left, right, _ = matrices(vs="text", vs_text="the queen and the king")
    assert f"Text: {TEXT}" in left["lines"] and "Text: the queen and the king" in right["lines"]
    assert (
        "Changed: z.4.3=zero" in right["lines"] and "Selected: ·king (position 4)" in right["lines"]
    )

    left, right, _ = matrices(vs="edits", vs_edits="mlp_out.2=mean")
    assert (
        "Changed: mlp_out.2=mean" in right["lines"] and "Changed: z.4.3=zero" not in right["lines"]
    )


def test_the_pass_with_other_positions_is_saved_as_changed(run_page):
    files = saved(run_page("positions", text=TEXT), "gptviz.matrix")
    own, changed = (
        [f for f in files if f["stem"].startswith(f"gptviz-positions-{n}")]
        for n in ("own", "changed")
    )
    assert len(own) == len(changed) == 1
    for file, says in ((own[0], False), (changed[0], True)):
        assert any(line.startswith("Changed: pos_emb") for line in file["lines"]) == says
