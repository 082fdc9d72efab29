"""The Overview page, and what every page has from the frame, through AppTest."""

import base64
import io

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from gptviz.figures.head_grid import mosaic
from gptviz.ui.shell.examples import EXAMPLES
from gptviz.ui.shell.navigation import PAGES, UI, page_file
from gptviz.ui.shell.state import DEFAULT_TEXT
from tests.conftest import WITHOUT_TEXT
from tests.pages.conftest import prompt_of
from tests.specs import given


def doors(at):
    return {door["page"]: door for door in given(at, "doors")["doors"]}


def test_a_first_visitor_sees_something(run_page):
    at = run_page("overview")
    assert prompt_of(at) == DEFAULT_TEXT
    names = [door["page"] for door in given(at, "doors")["doors"]]
    assert names == ["tokens", "embeddings", "layernorm", "attention", "feed_forward", "next_token"]


def test_the_doors_show_the_models_own_numbers(run_page, mini):
    text = "The king loved his daughter"
    at = run_page("overview", text=text, token=2)
    t = mini.trace(text, keep=())
    found = doors(at)
    assert [row["id"] for row in found["tokens"]["picture"]["tokens"]] == [token.id for token in t.tokens]
    expected = t.next_tokens(k=5, position=2)
    bars = found["next_token"]["picture"]["bars"]
    assert [bar["id"] for bar in bars] == expected["id"].tolist()
    assert [bar["probability"] for bar in bars] == pytest.approx(expected["probability"].tolist())
    strip = given(at, "chips")
    assert [chip["id"] for chip in strip["tokens"]] == [token.id for token in t.tokens]
    assert strip["selected"] == 2
    assert strip["next"]["id"] == int(t.next_tokens(k=1)["id"][0])


def test_the_door_of_the_feed_forward_shows_the_selected_tokens_units(run_page, mini):
    text = "The king loved his daughter"
    door = doors(run_page("overview", text=text, token=2))["feed_forward"]
    t = mini.trace(text)
    fired = int((t["mlp_pre", 5][2] > 0).sum())
    assert f" {fired:,} fire in block 5" in door["caption"][0]
    images = [base64.b64decode(part["image"].split(",")[1]) for part in door["picture"]["strips"]]
    pixels = [Image.open(io.BytesIO(image)) for image in images]
    assert [picture.size for picture in pixels] == [(64, 16), (64, 16), (32, 8)]
    before = np.asarray(pixels[0]).astype(int)  # orange is where a unit fires, blue where it does not
    act = t["mlp_pre", 5][2].numpy().reshape(16, 64)
    clear = np.abs(act) > 2
    assert ((before[..., 0] > before[..., 2]) == (act > 0))[clear].all() and clear.sum() > 100


def test_the_door_of_attention_shows_every_weight(run_page, mini):
    """Taken from what the pass made of the heads, its picture is that of the weights themselves."""
    text = "The king loved his daughter"
    image = doors(run_page("overview", text=text))["attention"]["picture"]["image"]
    t = mini.trace(text, keep=("attn",))
    expected = mosaic([t["attn", b].numpy() for b in range(mini.config.n_layers)], "light")
    assert base64.b64decode(image.split(",")[1]) == expected


def test_the_doors_of_a_changed_model_have_the_unchanged_beside_it(run_page, mini):
    """The lines of the LayerNorms, the strips of the units, and the marks on the heads, of two traces."""
    edit, last = "z.4.3=zero", mini.config.n_layers - 1
    found = doors(run_page("overview", edits=edit))
    new, old = (mini.trace(DEFAULT_TEXT, edits=edits) for edits in ([edit], []))
    marks = found["attention"]["picture"]["marks"]
    for b, row in enumerate(marks["heads"]):
        rows = (new["attn", b] - old["attn", b]).abs().sum(-1) / 2  # (H, T)
        assert [head["moved"] for head in row] == pytest.approx(rows[:, 1:].mean(-1).tolist(), abs=1e-6)
        assert [head["changed"] for head in row] == [(b, h) == (4, 3) for h in range(len(row))]
    image = base64.b64decode(found["attention"]["picture"]["image"].split(",")[1])
    wide, high = (n * (marks["side"] + marks["gap"]) - marks["gap"] for n in (len(row), len(marks["heads"])))
    assert Image.open(io.BytesIO(image)).size == (wide, high)  # the marks lie on the heads

    position = len(old.tokens) - 1
    fired = [int((t["mlp_pre", last][position] > 0).sum()) for t in (new, old)]
    assert fired[0] != fired[1]
    assert all(f"{count:,}" in found["feed_forward"]["caption"][0] for count in fired)
    for strip, site in zip(
        found["feed_forward"]["picture"]["strips"], ("mlp_pre", "mlp_act", "mlp_out"), strict=True
    ):
        picture = base64.b64decode(strip["unchanged"]["image"].split(",")[1])
        pixels = np.asarray(Image.open(io.BytesIO(picture))).astype(int)
        values = old[site, last][position].numpy().reshape(pixels.shape[:2])
        clear = np.abs(values) > np.abs(values).max() / 4
        assert ((pixels[..., 0] > pixels[..., 2]) == (values > 0))[clear].all() and clear.sum() > 5
    lines = found["layernorm"]["picture"]["svg"].split("<polyline")
    assert ["dasharray" in line for line in lines[1:]] == [True, True, False, False]
    assert all("unchanged" not in strip for strip in found["embeddings"]["picture"]["strips"])


def test_a_change_that_a_door_does_not_see_gives_it_no_ghosts(run_page):
    found = doors(run_page("overview", edits="mlp_out.5@3=zero,embed@2=zero", token=1))
    strips = [found[name]["picture"]["strips"] for name in ("embeddings", "feed_forward")]
    assert ["unchanged" in strip for strip in strips[0]] == [False, False, True]
    assert not any("unchanged" in strip for strip in strips[1])
    assert "dasharray" not in found["layernorm"]["picture"]["svg"]


def test_an_empty_prompt_is_a_sentence_and_offers_texts_and_the_way_on():
    at = AppTest.from_file(str(UI.parents[1] / "app.py"), default_timeout=240)
    at.query_params["text"] = ""
    at.run()
    for name in sorted(PAGES.keys() - WITHOUT_TEXT):
        at.switch_page(str(page_file(name))).run()
        assert not at.exception and "The prompt is empty" in at.info[0].value
        assert [part.key for part in at.get("bidi_component")] == ["gptviz_theme_watch", "prompt"]
        assert [b.label for b in at.button if b.key.startswith("example_")] == [*EXAMPLES]
        assert any(PAGES[name].because in element.value for element in at.markdown)
    at.button(key="example_1").click().run()
    assert not at.exception and not at.info
    assert prompt_of(at) == at.query_params["text"] == [*EXAMPLES.values()][1]


def test_a_long_prompt_is_kept_and_says_so(run_page, mini):
    text = "word " * 300
    at = run_page("overview", text=text)
    assert prompt_of(at) == text
    assert "reads at most 256" in at.warning[0].value
    strip = given(at, "chips")
    assert len(strip["tokens"]) == 256 and strip["next"] is None


@pytest.mark.parametrize("special, is_one", [("on", True), ("off", False)])
def test_the_special_token_is_text_unless_switched_on(run_page, special, is_one):
    at = run_page("overview", text="<|endoftext|>", special=special)
    assert (len(given(at, "chips")["tokens"]) == 1) == is_one
    assert at.toggle[0].value is is_one


def test_where_the_special_token_is_typed_its_switch_is_at_hand(run_page):
    """On every page: see test_any_address.py."""
    at = run_page("tokens", text="the end<|endoftext|>")
    at.button(key="special_on").click().run()
    assert not at.exception and at.query_params["special"] == "on"
    for visit in (at, run_page("overview")):
        assert not [b for b in visit.button if b.key == "special_on"]


def test_a_selected_token_beyond_the_text_is_the_last(run_page):
    at = run_page("overview", text="Hi", token=99)
    strip = given(at, "chips")
    assert strip["selected"] == len(strip["tokens"]) - 1
