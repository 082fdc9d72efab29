"""Notebooks as a reader has them: run, exported, opened in Chromium without a network; pictures in files."""

import base64
import re
from html import unescape

import bleach
import nbformat
import pytest
from bleach.sanitizer import ALLOWED_ATTRIBUTES, ALLOWED_PROTOCOLS, ALLOWED_TAGS
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat.v4 import new_code_cell, new_notebook

from gptviz.ui.notebook import PICTURES, Picture
from tests.browser.conftest import ROOT, by
from tests.conftest import random_lm

TEXT = "The cat sat on the mat, and the cat sat on the"
CELLS = (
    f"import gptviz\nlm = gptviz.load('mini')\nt = lm.trace({TEXT!r})\nlm",
    "t",
    "t.show('attn', 3, 1)",
    "lm.edited('z.4.3=zero').trace('The cat sat').show('why', mode='dark')",
    "gptviz.Edit('z', block=4, heads=[3])",
    "next(lm.generate('The cat sat on the', 1, temperature=0))",
    "import sys; [name for name in ('streamlit',) if name in sys.modules]",
)


@pytest.fixture
def offline(browser):
    """Opens a file without a network; at the end nothing may have failed in a page of it."""
    context = browser.new_context(viewport={"width": 1000, "height": 900}, offline=True)
    faults = []

    def open_(path):
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(path.as_uri())
        return page

    yield open_
    context.close()
    assert not faults


@pytest.fixture(scope="module")
def t(mini):
    return mini.trace(TEXT)


def drawn(frame):
    """A picture's parts, once all are drawn."""
    frame.locator("main[data-drawn]").wait_for()
    return frame.get_by_test_id("picture-part")


def hovered(frame, query, key, of):
    """What the matrix says of a cell that is pointed at."""
    cells = frame.get_by_test_id("cells-weights")
    box = cells.bounding_box()
    cells.hover(
        position={"x": (key + 0.5) * box["width"] / of, "y": (query + 0.5) * box["height"] / of}
    )
    return float(frame.get_by_test_id("says-head").get_attribute("data-value"))


def test_a_notebook_is_run_exported_and_opened_offline(offline, tmp_path, t):
    notebook = new_notebook(cells=[new_code_cell(source) for source in CELLS])
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    outputs = [cell.outputs[0].data for cell in notebook.cells]
    assert outputs[0]["text/plain"] == "LanguageModel('mini', 6 blocks x 8 heads, 256 wide)"
    assert outputs[-1]["text/plain"] == "[]"  # Streamlit is not needed
    assert "<th>edit</th><td>z.4.3=zero</td>" in outputs[4]["text/html"]
    assert len(nbformat.writes(notebook)) < 1_000_000  # no cell holds a library of charts
    assert all(base64.b64decode(outputs[i]["image/png"]).startswith(b"\x89PNG") for i in (1, 2, 3))
    (file := tmp_path / "notebook.html").write_text(HTMLExporter().from_notebook_node(notebook)[0])

    page = offline(file)
    frames = page.locator("iframe")
    assert frames.count() == 3
    everything, head, norms = (page.frame_locator("iframe").nth(i) for i in range(3))
    assert drawn(everything).count() == 3 and drawn(head).count() == 1 and drawn(norms).count() == 2
    assert everything.get_by_test_id("chip").count() == len(t)
    assert everything.get_by_test_id(re.compile(r"head-\d-\d")).count() == 48
    assert hovered(head, 5, 2, len(t)) == pytest.approx(t["attn", 3][1, 5, 2].item(), abs=1e-6)
    for i, frame in enumerate((everything, head, norms)):  # as high as what is in it
        inside = frame.locator("main").evaluate("main => main.offsetHeight")
        assert (
            frames.nth(i).bounding_box()["height"] == pytest.approx(inside + 2, abs=2)
            and inside > 250
        )
    # VS Code scrolls by the wheel's events of the document around the pictures
    page.evaluate(
        "window.wheel = 0; addEventListener('wheel', (event) => (window.wheel += event.deltaY))"
    )
    head.get_by_test_id("cells-weights").hover()
    page.mouse.wheel(0, 30)
    page.wait_for_function("wheel === 30")
    assert norms.get_by_test_id("chart").count() == 2
    assert "z.4.3=zero" in norms.locator("main").inner_text()
    assert [page.locator(".gptviz-still").nth(i).is_visible() for i in range(3)] == [False] * 3
    # the one that says no mode is as dark as what it stands on, at once and later
    papers = {"light": "rgb(251, 250, 247)", "dark": "rgb(22, 21, 27)"}
    root = "document.documentElement"
    assert everything.locator("html").get_attribute("data-mode") == "light"
    page.evaluate(f"{root}.style.background = '#101010'; document.body.className = 'vscode-dark'")
    page.add_style_tag(content="* { background-color: transparent !important }")
    page.add_style_tag(content="html { background: #101010 !important }")
    page.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    for frame in (everything, head, norms):
        frame.locator("html[data-mode=dark]").wait_for()
        paper = frame.locator("html").evaluate("html => getComputedStyle(html).backgroundColor")
        assert paper == papers["dark"]
    assert hovered(head, 5, 2, len(t)) == pytest.approx(t["attn", 3][1, 5, 2].item(), abs=1e-6)


# What JupyterLab leaves of an output that is not trusted (its packages/apputils/src/sanitizer.ts).
JUPYTERLAB = {
    "tags": {*ALLOWED_TAGS, "div", "p", "img", "figure", "span", "table"},
    "attributes": {
        **ALLOWED_ATTRIBUTES,
        "img": ["alt", "src", "width", "height"],
        "*": ["class", "title"],
    },
    "protocols": {*ALLOWED_PROTOCOLS, "data"},
}


@pytest.mark.parametrize("name", ["attn", "why"])
def test_where_a_notebook_is_not_trusted_a_still_picture_is_left(offline, tmp_path, t, name):
    kept = t.show(name)._repr_mimebundle_()
    left = bleach.clean(kept["text/html"], **JUPYTERLAB, strip=True)
    assert "<iframe" not in left and "<script" not in left and "srcdoc" not in left
    (file := tmp_path / "untrusted.html").write_text(f"<meta charset=utf-8>{left}")
    page = offline(file)
    image = page.locator("img")
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300
    assert "The cat sat on the mat" in unescape(image.get_attribute("alt"))
    assert "File → Trust Notebook" in page.locator("p").inner_text()
    cell = new_code_cell("t", outputs=[nbformat.v4.new_output("execute_result", kept)])
    cleaned, _ = SanitizeHTML().preprocess_cell(cell, {}, 0)
    # what VS Code shows, and GitHub may
    assert cleaned.outputs[0].data["image/png"] == kept["image/png"]


def test_a_picture_is_as_dark_as_its_reader_has_it(browser, tmp_path, t):
    file = t.show("why").to_html(tmp_path / "why.html")
    fixed = t.show("why", mode="light").to_html(tmp_path / "light.html")
    for scheme, papers in (("light", ["#fbfaf7", "#fbfaf7"]), ("dark", ["#16151b", "#fbfaf7"])):
        context = browser.new_context(color_scheme=scheme, offline=True)
        for path, paper in zip((file, fixed), papers, strict=True):
            page = context.new_page()
            page.goto(path.as_uri())
            drawn(page)
            sheet = page.get_by_test_id("chart").first.locator("svg > rect").first
            assert sheet.get_attribute("fill") == paper
        context.close()


def test_a_file_answers_clicks_and_saves_its_pictures(offline, tmp_path, t):
    page = offline(t.to_html(tmp_path / "heads.html"))
    drawn(page)
    page.get_by_test_id("head-5-2").click()
    assert (
        page.get_by_test_id("picture-part").nth(2).locator("h2").inner_text() == "Block 5, head 2"
    )
    assert hovered(page, 6, 4, len(t)) == pytest.approx(t["attn", 5][2, 6, 4].item(), abs=1e-6)
    page.get_by_test_id("chip").nth(6).click()
    assert page.get_by_test_id("chip").nth(6).get_attribute("aria-pressed") == "true"
    page.mouse.move(0, 0)
    assert page.get_by_test_id("matrix-head").get_attribute("data-query") == "6"
    for part, title in ((1, "Where every head looks"), (2, "Block 5, head 2")):
        with page.expect_download() as download:
            page.get_by_test_id("picture-part").nth(part).get_by_test_id("save-svg").click()
        assert f">{title}<" in download.value.path().read_text("utf-8")


def test_what_stands_below_a_token_is_of_the_one_that_is_chosen(offline, tmp_path, t, mini):
    page = offline(t.show("tokens").to_html(tmp_path / "tokens.html"))
    built = drawn(page).nth(1).locator("h2")
    assert built.inner_text() == "How ·the was built"
    page.get_by_test_id("token-card").nth(1).click()
    assert built.inner_text() == "How ·cat was built"
    page = offline(t.show("overview").to_html(tmp_path / "machine.html"))
    for at in ("block.3", "block.3.attention", "block.3.head.1"):
        page.locator(by("place-door", at=at)).last.click(position={"x": 3, "y": 3})
        page.locator(by("machine", at=at)).wait_for()
        page.locator(".layer.before").wait_for(state="detached")
    weight = page.locator(by("place-door", kind="cell")).nth(2)
    assert float(weight.get_attribute("data-value")) == pytest.approx(
        t["attn", 3][1, -1, 2].item(), abs=1e-6
    )
    weight.click()  # of cells a file has only Play's
    said = page.get_by_test_id("place-tells").inner_text()
    assert (
        said
        == f'Not in this file: t.show("overview", at="block.3.head.1.cell.{len(t) - 1}.2") draws it.'
    )
    page = offline(t.show("generate", 3, temperature=0).to_html(tmp_path / "generate.html"))
    steps = [drawn(page).nth(1).get_by_test_id("candidate").first.get_attribute("data-id")]
    for step in (1, 2):
        page.get_by_test_id("written-token").nth(step).click()
        steps.append(page.get_by_test_id("candidate").first.get_attribute("data-id"))
    assert steps == [str(one.id) for one in mini.generate(TEXT, 3, temperature=0)]


def test_in_a_file_a_heads_click_lights_its_paths_and_says_which_are_not_there(
    offline, mini, tmp_path
):
    t = mini.trace("The man took off")
    pair = {"whole": True, "other": "The woman took off"}
    page = offline(t.show("patching", **pair).to_html(tmp_path / "paths.html"))
    drawn(page)
    threads = page.locator("svg [data-path]")
    every = [node.get_attribute("data-path") for node in threads.all()]
    block, head, _ = every[0].split(".")
    door = page.locator(by("place-door", kind="head", block=block, head=head))

    def bright():
        clear = (
            "nodes => nodes.filter(n => getComputedStyle(n).opacity > 0.5).map(n => n.dataset.path)"
        )
        return threads.evaluate_all(clear)

    assert bright() == every
    door.click()
    assert bright() == [path for path in every if path.startswith(f"{block}.{head}.")] != every
    says = page.get_by_test_id("place-tells").inner_text()
    assert says.startswith(door.get_attribute("title"))
    door.click()
    assert bright() == every
    reader = page.locator(by("place-door", kind="head", block=1, head=0))
    reader.click()
    says = page.get_by_test_id("place-tells").inner_text()
    assert 'is not in this file: path_into="q1.0" draws it.' in says
    again = t.show("patching", **pair, path_into="q1.0")
    (drawing,) = [part for part in again.parts if "paths" in part.get("data", {})]
    assert drawing["data"]["paths"]["readers"] == [["q", 1, 0]]


def test_every_picture_is_drawn_without_a_network(offline, tmp_path):
    lm = random_lm().edited("z.1.2=zero")
    t = lm.trace(TEXT)
    other = [*lm.encode(TEXT)[:-1], 9]
    given = {
        "patching": {"other": other, "target": (4, 5)},
        "compare": {"other": lm.plain.trace(TEXT)},
    }
    given |= {"generate": {"n": 4}, "attention": {"arcs": True}}
    made = [t.show(name, **given.get(name, {})) for name in PICTURES]
    parts = tuple(part for one in made for part in one.parts)
    page = offline(Picture("All of them", (), parts).to_html(tmp_path / "all.html"))
    found = drawn(page)
    assert (
        found.count()
        == len(parts)
        == page.locator("[data-testid=picture-part][data-drawn]").count()
    )
    heights = [found.nth(i).bounding_box()["height"] for i in range(len(parts))]
    assert all(
        high > (10 if "text" in part else 40) for high, part in zip(heights, parts, strict=True)
    )
    figures = page.get_by_test_id("chart")
    assert figures.count() == sum("figure" in part for part in parts)
    muted = page.locator("[data-testid=picture-part]").filter(
        has=page.locator("[role=img][aria-label^='What switching off each part']")
    )
    grid = muted.get_by_test_id("chart")
    box = grid.locator("svg").bounding_box()
    grid.hover(position={"x": box["width"] / 2, "y": box["height"] / 2})
    tip = muted.get_by_test_id("chart-tip")
    tip.wait_for()
    said = tip.inner_text()
    # what is clicked stays below it
    grid.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    assert muted.get_by_test_id("pinned").inner_text() == said
    assert re.search(r"block \d · .*switching it off takes away −?[\d.]+", said)
    muted.get_by_test_id("chart-keys").focus()  # and by keyboard
    first = None
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
        heard = muted.get_by_test_id("chart-aloud").inner_text()
        assert heard != first and re.search(r"switching it off takes away", heard)
        first = heard
