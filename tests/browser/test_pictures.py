"""Every picture's buttons in Chromium: the SVG and the PNG that they save are what is on the screen.

The texts of the picture are text in the SVG, its size and paper are the screen's, what scrolls is whole.
"""

import xml.etree.ElementTree as ET
from io import BytesIO

import pytest
from PIL import Image, ImageChops, ImageColor, ImageStat

from gptviz.figures.theme import PALETTES
from gptviz.tokenizer import encode, get_encoding, show_token, token_bytes
from gptviz.tokenizer.characters import character_groups
from tests.browser.conftest import settled

SVG = "{http://www.w3.org/2000/svg}"
MARGIN = 12  # pixels of paper on every side

# What could be taken for markup, characters of one to four bytes, and tokens enough to scroll.
TEXT = 'if a<b & "c": 東京 🙂 café &amp; ' + "one two three " * 6

SHOWN = """(root) => {   // what a person can read, without the buttons and hints that no picture has
  const texts = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return texts.push(node.data);
    const { display, opacity } = getComputedStyle(node);
    if (node.matches('.save, [data-unsaved]') || display === 'none' || opacity === '0') return;
    node.childNodes.forEach(walk);
  };
  walk(root);
  return texts;
}"""


def save(buttons, name, folder, mode="light", kinds=("svg", "png")):
    """Click the buttons of a row; gives the SVG's root. The PNG is checked here."""
    files = {}
    for kind in kinds:
        with buttons.page.expect_download() as download:
            buttons.get_by_test_id(f"save-{kind}").click()
        files[kind] = folder / download.value.suggested_filename
        download.value.save_as(files[kind])
        assert files[kind].name.startswith(f"gptviz-{name or ''}")
    assert "http" not in files["svg"].read_text("utf-8").replace("http://www.w3.org/", "")
    svg = ET.parse(files["svg"]).getroot()
    assert svg.find(f"{SVG}rect").get("fill") == PALETTES[mode].paper
    if "png" in files:
        png = Image.open(files["png"]).convert("RGB")
        assert png.size == tuple(3 * length for length in size(svg))
        assert png.getpixel((0, 0)) == ImageColor.getrgb(PALETTES[mode].paper)
        assert len(set(png.resize((300, 200)).get_flattened_data())) > 20
    # what it says about itself stands above it, the picture inside
    words = svg.findall(f"{SVG}text")
    inside = svg.find(f"{SVG}svg")
    if inside is None:
        return svg
    return inside if any("Model: mini" in "".join(word.itertext()) for word in words) else svg


def rows_of_buttons(page):
    return page.locator(".save")


def size(svg):
    return int(svg.get("width")), int(svg.get("height"))


def on_screen(element):
    box = element.bounding_box()
    return box["width"] + 2 * MARGIN, box["height"] + 2 * MARGIN


def texts_of(svg):
    return ["".join(node.itertext()) for node in svg.iter(f"{SVG}text")]


def squeezed(texts):
    return "".join("".join(texts).split())


def assert_same_texts(svg, element):
    shown = squeezed(element.evaluate(SHOWN))
    assert shown and squeezed(texts_of(svg)) == shown


def assert_all_inside(svg):
    """No box reaches over the paper's edge."""
    width, height = size(svg)
    boxes = [rect for rect in svg.iter(f"{SVG}rect") if rect.get("rx") is not None]
    assert boxes
    for box in boxes:
        x, y, wide, high = (float(box.get(name)) for name in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + wide <= width and y + high <= height


def test_cards_that_scroll_merges_and_tokenizers_are_saved(open_page, tmp_path):
    page = open_page("tokens", text=TEXT, token=1)
    cards = page.get_by_test_id("token-cards")
    svg = save(rows_of_buttons(page).nth(0), "tokens", tmp_path)
    assert_all_inside(svg)
    assert size(svg)[0] == pytest.approx(on_screen(cards)[0], abs=1)
    assert size(svg)[1] > on_screen(cards)[1] + 50

    mini = get_encoding("mini")
    whole = []
    raws = [token_bytes(mini, id) for id in encode(mini, TEXT)]
    shared = {
        group.start: group.text for group in character_groups(raws) if len(group.positions) > 1
    }
    for position, (id, raw) in enumerate(zip(encode(mini, TEXT), raws, strict=True)):
        # a character that this token and the next hold together stands above them
        whole += [show_token(shared[position].encode())] if position in shared else []
        whole += [str(position), show_token(raw), str(id), raw.hex(" ")]
    # bytes of a long token end as on its card
    for text, of in zip(texts_of(svg), whole, strict=True):
        assert text == of or (text.endswith("…") and of.startswith(text[:-1]))
    assert cards.evaluate("(n) => [n.className, n.getAttribute('style') || '']") == ["cards", ""]

    page.set_viewport_size({"width": 390, "height": 844})
    settled(page)
    tokenizers = page.get_by_test_id("tokenizers")
    svg = save(rows_of_buttons(page).nth(2), "tokenizers", tmp_path)
    assert_same_texts(svg, tokenizers)
    assert_all_inside(svg)
    assert {"東", "京", "🙂", "&", "<", "é"} <= set(texts_of(svg))
    assert size(svg)[0] == pytest.approx(on_screen(tokenizers)[0], abs=1)
    svg = save(rows_of_buttons(page).nth(1), "merges", tmp_path)
    assert_same_texts(svg, page.get_by_test_id("merges"))
    assert_all_inside(svg)


def test_a_place_of_the_machine_is_saved_as_it_stands(open_page, tmp_path):
    page = open_page(text=TEXT, at="block.4", color_scheme="dark")
    drawn = page.locator("[data-testid=machine] .layer.now svg")
    svg = save(rows_of_buttons(page), "overview", tmp_path, "dark")
    assert svg.get("y")  # below its title
    shown = drawn.evaluate(
        "(svg) => [...svg.querySelectorAll('text')].map((text) => text.textContent)"
    )
    assert texts_of(svg) == shown and len(shown) > 15
    assert len([*svg.iter(f"{SVG}image")]) == 7  # a row at each wire
    assert_all_inside(svg)

    seen = Image.open(BytesIO(page.locator("[data-testid=machine] .stage").screenshot())).convert(
        "RGB"
    )
    saved = Image.open(next(tmp_path.glob("gptviz-overview*.png"))).convert("RGB")
    saved = saved.resize([length // 3 for length in saved.size], Image.Resampling.BOX)
    saved = saved.crop((0, saved.height - seen.height, seen.width, saved.height))
    blurred = [
        image.resize((seen.width // 12, seen.height // 12), Image.Resampling.BOX)
        for image in (seen, saved)
    ]
    difference = ImageStat.Stat(ImageChops.difference(*blurred))
    assert max(difference.mean) < 3

    alone = page.context.new_page()
    alone.goto(next(tmp_path.glob("gptviz-overview*.svg")).as_uri())
    font = alone.locator("text").first.evaluate("(text) => getComputedStyle(text).fontFamily")
    assert font.startswith('"Source Sans"')
