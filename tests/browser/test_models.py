"""Models in the browser: downloaded from a hub on this machine, and brought as files by a person."""

import re
from urllib.parse import urlencode

import pytest
import torch

import gptviz
from gptviz.ui.shell.navigation import PAGES
from tests.browser.conftest import (
    address,
    behind_the_line,
    model_line,
    more_models,
    press,
    settled,
    start_server,
    stop_server,
    type_prompt,
)
from tests.browser.test_shell import chips, selected, title
from tests.conftest import WITHOUT_TEXT
from tests.models.checkpoints import makers
from tests.models.checkpoints.hostile import HOSTILE
from tests.models.checkpoints.hub_server import Hub

TEXT = "Seven green parrots"


@pytest.fixture(scope="module")
def truth():
    return makers.hf_model(vocab_size=50257, n_embd=48, n_head=3, n_layer=2, n_positions=32)


@pytest.fixture(scope="module")
def hub(truth, tmp_path_factory):
    served = Hub(makers.save_hf(truth, tmp_path_factory.mktemp("repository") / "tiny"))
    yield served
    served.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def fresh(browser, hub, home):
    """A server of its own, that nobody has visited, and whose hub is ours."""
    process, url = start_server(
        home, HF_ENDPOINT=hub.url, HF_HOME=str(home / "hf"), HF_HUB_OFFLINE="0"
    )
    yield url
    stop_server(process)


def facts(page):
    """What the sidebar says of the model, of which all but a line is shut."""
    said = behind_the_line(page).inner_text()
    page.keyboard.press("Escape")
    return said


def bring(page, *files):
    """Put files into the window of models and load them: its button does nothing while one is on its way."""
    window = page.get_by_role("dialog")
    window.locator("input[type=file]").set_input_files(files)
    window.get_by_test_id("stFileChip").first.wait_for()
    settled(page)
    window.get_by_role("button", name="Load these files").click()


def shown_probability(page):
    """Of the most probable next token, as the end of the strip says it."""
    title = page.locator("[data-testid=chips] [title*='most probable next token']").get_attribute(
        "title"
    )
    return float(re.search(r"probability (0\.\d+)", title)[1])


def test_deep_links_to_a_fresh_server_and_the_first_click_counts(fresh, open_page):
    """A page about a text first, one about none, the root last: it would mend a routing that is broken
    without it. Every other page's own tests open it by its link, on a server that knows the way."""
    page = open_page("tokens", base=fresh, text=TEXT, token=1)
    more_models(page)
    page.get_by_role("dialog").get_by_role("tab", name="Your own file").wait_for()
    for name in ("tokens", "training", "attention", "overview"):
        if name != "tokens":  # a new visit each, by a browser that has the files already
            path = "" if name == "overview" else name
            page.goto(f"{fresh}/{path}?{urlencode({'text': TEXT, 'token': 1})}")
            settled(page)
        assert title(page) == PAGES[name].question
        assert page.locator(".st-key-prompt").count() == (name not in WITHOUT_TEXT)
        if name not in WITHOUT_TEXT:
            chips(page).first.wait_for()
            assert selected(page) == 1
        assert not page.get_by_test_id("stException").count()


def test_a_download_is_stopped_resumed_and_used(fresh, hub, truth, open_page):
    hub.slow_seconds = 0.05
    page = open_page("next_token", base=fresh, text=TEXT, model="someone/tiny")
    assert "is not on this machine" in page.get_by_test_id("stAlert").inner_text()
    assert not hub.requests  # opening a link asks nobody for anything
    page.get_by_role("button", name="Download").click()
    page.get_by_text(re.compile(r"[\d.]+ MB of [\d.]+ MB, [\d.]+ MB/s, .* left")).wait_for()
    page.get_by_role("button", name="Stop the download").click()
    page.get_by_text("The download was stopped. The part that has arrived is kept.").wait_for()
    assert "you see mini" in facts(page)
    hub.slow_seconds = 0.0
    page.get_by_role("button", name="Go on with the download").click()
    model_line(page).get_by_text("someone/tiny").wait_for()
    settled(page)
    assert "2 blocks × 3 heads, 48 dimensions" in facts(page)
    ranges = [span for _, path, span in hub.requests if span and path.endswith("model.safetensors")]
    assert ranges, "the second download began anew"
    ids = gptviz.load("gpt2-untrained").encode(TEXT)
    with torch.no_grad():
        expected = truth(torch.tensor([ids])).logits[0, -1].softmax(-1).max().item()
    assert shown_probability(page) == pytest.approx(expected, abs=0.0006)


def test_uploads_belong_to_their_browser_are_told_apart_and_leave_the_uploader_empty(
    fresh, open_page, tmp_path
):
    """Heads and a tokenizer that a file does not say are asked for: tests/pages/test_models.py."""
    torch.save(makers.nanogpt_checkpoint(makers.hf_model()), tmp_path / "ckpt.pt")
    makers.save_meta(tmp_path / "meta.pkl", makers.character_meta(61))
    expected = gptviz.load(tmp_path).trace("% % %").next_tokens(1)["probability"].item()
    page = open_page("next_token", base=fresh, text="% % %")
    (tmp_path / "noise.pth").write_bytes(bytes(range(256)) * 9)
    window = page.get_by_role("dialog")

    def load(*names):
        if not window.count():
            more_models(page)
        bring(page, *(tmp_path / name for name in names))

    more_models(page)
    window.locator("input[type=file]").set_input_files(tmp_path / "noise.pth")
    window.get_by_test_id("stFileChip").wait_for()
    page.keyboard.press("Escape")  # it is wanted no more
    window.wait_for(state="detached")
    load("meta.pkl")
    window.get_by_text("you uploaded meta.pkl without weights").wait_for()
    assert window.get_by_test_id("stFileChip").count() == 0
    for _ in range(2):
        load("ckpt.pt", "meta.pkl")
        window.wait_for(state="detached")
        model_line(page).get_by_text("ckpt").wait_for()
        settled(page)
    page.reload()  # another session of the same browser
    model_line(page).get_by_text("ckpt").wait_for()
    settled(page)
    assert "2 blocks × 4 heads, 16 dimensions" in facts(page)
    assert shown_probability(page) == pytest.approx(expected, abs=0.0006)
    other = open_page("next_token", base=fresh, **address(page))
    assert "only the browser that uploaded it" in other.get_by_test_id("stAlert").inner_text()
    more_models(page)
    window.get_by_role("button", name="Remove").first.wait_for()
    assert window.get_by_role("button", name="Remove").count() == 2
    window.get_by_role("button", name="Remove").first.click()
    window.wait_for(state="detached")
    settled(page)
    assert "2 blocks × 4 heads" in facts(page)  # the other one is in use
    load("noise.pth")
    page.get_by_text("noise (yours) cannot be loaded").wait_for()
    settled(page)
    press(page.get_by_role("button", name="Remove it"))
    assert page.get_by_text("noise (yours)").count() == 0 and "2 blocks × 4 heads" in facts(page)


def test_a_file_made_to_stop_a_server_stops_nobody(fresh, home, open_page, tmp_path):
    mine, theirs = (open_page("tokens", base=fresh, text="a b") for _ in range(2))
    HOSTILE["a dict's key"](tmp_path)  # it is read for ever; test_apart.py reads them all
    more_models(mine)
    bring(mine, *sorted(tmp_path.iterdir()))
    mine.get_by_role("dialog").wait_for(state="detached")
    type_prompt(theirs, "a a a b")  # while it is read
    assert theirs.get_by_test_id("chips").locator("[data-position]").count() >= 4
    mine.get_by_text("cannot be loaded").wait_for()
    settled(mine)
    press(mine.get_by_role("button", name="Remove it"))
    assert "Traceback" not in (home / "server.log").read_text()


def test_a_click_in_the_table_takes_the_model(fresh, open_page):
    page = open_page(base=fresh, text=TEXT)
    more_models(page)
    grid = page.get_by_role("dialog").get_by_test_id("stDataFrame")
    settled(page)
    # the grid draws itself on a canvas; what it has drawn stands in a table for those who cannot see it
    grid.locator("canvas td").first.wait_for(state="attached")
    box = grid.bounding_box()
    # the header, mini, mini-world, mini-untrained, gpt2-untrained
    page.mouse.click(box["x"] + 60, box["y"] + 35 * 4.5)
    model_line(page).get_by_text("gpt2-untrained").wait_for()
    settled(page)
    assert "12 blocks × 12 heads, 768 dimensions" in facts(page)
    assert page.get_by_role("dialog").count() == 0
    assert "mini split this text into" in page.get_by_text("What changed").inner_text()
