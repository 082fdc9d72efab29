"""The Overview page, and what every page has from the frame, through AppTest."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from gptviz.tokenizer import END_OF_TEXT
from gptviz.ui.shell import scene
from gptviz.ui.shell.examples import OF_THE_BOOKS
from gptviz.ui.shell.navigation import PAGES
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.conftest import WITHOUT_TEXT
from tests.pages.conftest import prompt_of, turn, whole_app
from tests.specs import floats, given, keys, links


def test_a_first_visitor_sees_the_machine_with_the_models_own_floats(run_page, mini):
    at = run_page("overview")
    assert prompt_of(at) == UNSAID_TEXT
    found = given(at, "machine")
    t = mini.trace(UNSAID_TEXT)
    assert found["at"] == "" and found["kind"] == "machine" and found["tokens"][-1] == "·red"
    stream = floats(found["level"]["stream"]["of"]).reshape(13, 16)
    assert stream[0] == pytest.approx(t["resid_pre", 0].norm(dim=-1).numpy(), rel=1e-5)
    assert stream[-1] == pytest.approx(t["resid_post", 5].norm(dim=-1).numpy(), rel=1e-5)
    expected = t.next_tokens(k=10)["probability"]
    assert [one["value"] for one in found["level"]["next"]] == pytest.approx([*expected], rel=1e-5)
    assert len(json.dumps({**found, "way": []})) < 60_000


@pytest.mark.parametrize("at, kind, page", [
    ("embedding", "embedding", "embeddings"), ("block.2", "block", "residual_stream"),
    ("block.2.norm2", "norm2", "layernorm"), ("block.4.attention", "attention", "attention"),
    ("block.4.head.3", "head", "attention"), ("block.4.head.3.cell.9.4", "cell", "attention"),
    ("block.4.head.3.cell.0.0", "cell", "attention"),
    ("block.1.feed_forward", "feed_forward", "feed_forward"), ("block.1.unit.17", "unit", "feed_forward"),
    ("final_norm", "final_norm", "layernorm"), ("out_head", "out_head", "next_token"),
    ("logit.best", "logit", "why"),
])  # fmt: skip
def test_an_address_opens_a_place_with_both_runs_numbers_and_the_page_about_it(
    run_page, at, kind, page
):
    found = given(run_page("overview", at=at, edits="z.0.2=zero"), "machine")
    assert (found["kind"], found["more"]["page"]) == (kind, page)
    assert found["path"][0][0] == "" and found["path"][-1][0] == found["at"]
    # nothing before the change moved
    assert ("was" in json.dumps(found["level"])) == (kind != "embedding")
    assert len(json.dumps({**found, "way": []})) < 60_000
    columns, *rows = found["table"]
    assert len(rows) > 1 and all(len(row) == len(columns) for row in rows)
    if kind == "cell":
        assert found["position"] == int(at.split(".")[-2])
    of_head = {"block": ["4"], "head": ["3"]}
    wanted = {"head": of_head, "cell": of_head, "final_norm": {"ln_norm": ["final"]}}.get(kind, {})
    assert wanted.items() <= parse_qs(urlsplit(found["more"]["href"]).query).items()


def test_the_first_token_of_a_changed_model_reads_no_other(run_page):
    found = given(run_page("overview", text="one two", token=0, edits="z.0.2=zero"), "machine")
    assert found["level"]["reads"] == [] and "was" in json.dumps(found["level"])


def test_a_block_whose_attention_is_off_brings_the_token_nothing(run_page):
    found = given(run_page("overview", text="one two", edits="attn_out.*=zero"), "machine")["level"]
    assert found["reads"] == [] and "was" in json.dumps(found)


def test_without_a_place_a_guess_is_shown_and_with_one_the_machine_is_open(run_page, mini):
    page = run_page("overview")
    found = given(page, "machine")
    cut, looks_back, thinks, guess = ("".join(caption) for caption in found["guess"])
    assert cut == "16 tokens. A dot (·) is a space."
    assert looks_back == "·red looks back, and takes most from ·mill, ·red, ·the."
    assert thinks == "6 times: look back (purple), then feed-forward (gold), each token by itself."
    assert guess.startswith("The model's guess after ·red: ·mill, ")
    best = mini.trace(UNSAID_TEXT).next_tokens(k=1)["probability"][0]
    assert f"{best:.0%}".replace("%", " %") in guess.replace("\u202f", " ").replace("\xa0", " ")
    assert links(page)["Why this?"].page.endswith("why")
    assert links(page)["Switch a head off"].page.endswith("knock_out")
    for at in ("machine", "block.2"):
        opened = run_page("overview", at=at)
        assert "Why this?" not in links(opened)
        inside = given(opened, "machine")
        assert "guess" not in inside
        assert inside["kind"] == at.split(".")[0]


def test_next_word_writes_the_likeliest_token_of_the_run_and_keeps_all_else(run_page, mini):
    changed = "z.0.2=zero"
    at = run_page("overview", text="Once upon a time", token=1, at="block.2", edits=changed)
    lm = mini.edited(changed)
    text = "Once upon a time"
    for _ in range(2):
        at.button(key="next_word").click().run()
        text += lm.decode([int(lm.trace(text).logits(-1).argmax())])
        assert prompt_of(at) == at.query_params["text"] == text
    found = given(at, "machine")
    assert found["position"] == len(found["tokens"]) - 1 == len(lm.encode(text)) - 1
    assert (found["at"], at.query_params["edits"]) == ("block.2", changed)
    full = run_page("overview", text="word " * 300)
    full.button(key="next_word").click().run()
    assert prompt_of(full) == "word " * 300
    assert any("reads at most 256 tokens" in one.value for one in full.caption)
    assert not keys(run_page("overview", text=""), "next_word")


def test_where_the_text_would_end_next_word_says_so_and_writes_nothing(run_page, mini, monkeypatch):
    (end,) = mini.encode(END_OF_TEXT, special_tokens=True)
    best = {"shown": END_OF_TEXT, "id": end, "probability": 0.5}
    monkeypatch.setattr(scene, "most_probable", lambda run: best)
    at = run_page("overview", text="The end.")
    at.button(key="next_word").click().run()
    said = "The model ends the text here"
    assert prompt_of(at) == "The end."
    assert any(said in one.value for one in at.caption)
    at.button(key="example_1").click().run()
    assert not any(said in one.value for one in at.caption)


def test_another_token_is_followed_in_the_same_cell_row_and_no_place_is_refused(run_page):
    at = run_page("overview", at="block.4.head.3.cell.9.4", token=6)
    assert given(at, "machine")["at"] == "block.4.head.3.cell.6.4"
    for wrong in ("block.99", "block.1.head.1.cell.4000.1", "nope", "logit.99999999", "<script>"):
        found = given(run_page("overview", at=wrong, text="Hi"), "machine")
        assert found["kind"] in ("machine", "head", "cell")


def test_of_a_page_one_comes_back_to_its_place(run_page):
    at = run_page("attention", block=2, head=1)
    assert parse_qs(links(at)["In the picture"].query_string)["at"] == ["block.2.head.1"]
    at = run_page("layernorm", ln_norm="block 3 · norm2")
    assert parse_qs(links(at)["In the picture"].query_string)["at"] == ["block.3.norm2"]


def test_an_empty_prompt_is_a_sentence_and_offers_texts_and_the_way_on():
    at = whole_app(text="")
    for name in sorted(PAGES.keys() - WITHOUT_TEXT):
        turn(at, name)
        assert "Your text is empty" in at.info[0].value
        assert [part.key for part in at.get("bidi_component")] == ["gptviz_theme_watch", "prompt"]
        assert [b.label for b in at.button if b.key.startswith("example_")] == [*OF_THE_BOOKS]
        assert any(PAGES[name].on_next == element.value for element in at.markdown)
    at.button(key="example_1").click().run()
    assert not at.info
    assert prompt_of(at) == at.query_params["text"] == [*OF_THE_BOOKS.values()][1].text


@pytest.mark.parametrize(
    ("query", "is_said"),
    [
        ({"model": "mini"}, True),
        ({"model": "mini", "edits": "z.4.3=zero"}, False),
        ({"model": "mini", "edits": "z.4.3=zero", "edits_off": "on"}, True),
        ({"model": "mini-untrained"}, False),
    ],
)
def test_what_to_look_at_is_said_of_the_bundled_models_as_they_are(run_page, query, is_said):
    """No other model has been tried: GPT-2 counts on."""
    example = OF_THE_BOOKS["Counting"]
    at = run_page("overview", text=example.text, **query)
    told = [one.value for one in at.caption if one.value == example.look]
    assert told == ([example.look] if is_said else [])
    helps = {b.help for b in at.button if str(b.key).startswith("example_")}
    assert (example.look in helps) == is_said


@pytest.mark.parametrize("page", ["feed_forward", "why"])
def test_a_page_that_takes_apart_offers_what_suits_it(run_page, page):
    """Those of the Overview's prompts that do."""
    at = run_page(page, text="a")
    offered = [
        int(b.key.removeprefix("example_")) for b in at.button if str(b.key).startswith("example_")
    ]
    assert 3 <= len(offered) < len(OF_THE_BOOKS)
    for number in (offered[0], offered[-1]):
        at.button(key=f"example_{number}").click().run()
        assert at.query_params["text"] == [*OF_THE_BOOKS.values()][number].text


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
    assert at.query_params["special"] == "on"
    for visit in (at, run_page("overview")):
        assert not keys(visit, "special_on")


def test_a_selected_token_beyond_the_text_is_the_last(run_page):
    at = run_page("overview", text="Hi", token=99)
    strip = given(at, "chips")
    assert strip["selected"] == len(strip["tokens"]) - 1
