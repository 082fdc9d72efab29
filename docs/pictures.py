"""Take the pictures of the documentation anew: `python -m docs.pictures`, or some of them by name.

`docs/views.toml` says what is pictured. The app is started on this machine and opened in Chromium,
1280 px wide, light and dark; each picture becomes a small WebP in `docs/pictures`. To be run again when the
bundled model or a page changes. Needs what the browser tests need (requirements-dev.txt and a Chromium).
"""

import io
import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import nbformat
import numpy as np
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from PIL import Image
from playwright.sync_api import Error as PlaywrightError, sync_playwright

import gptviz
from gptviz.teach.claims import claim
from gptviz.teach.handout import handout
from tests.browser.conftest import (
    CHROMIUM_ARGS,
    ROOT,
    WATCH,
    chromium,
    press,
    settled,
    start_server,
    stop_server,
)

FOLDER = ROOT / "docs" / "pictures"
VIEWS = tomllib.loads((ROOT / "docs" / "views.toml").read_text("utf-8"))
MODES = ("light", "dark")

# addresses stand in some pictures: one that is nobody's, instead of this machine's
HOST = "gptviz.example"
SCREEN = {"width": 1280, "height": 1400}
WINDOW = {"width": 1280, "height": 860}
NOTEBOOK = {"width": 860, "height": 1200}
PHONE = {"width": 390, "height": 720}
LEFT = 256  # px: where the sidebar ends
MARGIN = 14  # px around what is pictured
FREQUENT = 24  # colours of a picture that stay as they are: paper, ink, boxes, full bars
RARE = 120  # that stand for all others, none far from it: a pale cell keeps its colour
PATIENCE = 480_000  # ms for a training, or a search, on a busy machine


class Studio:
    """A browser and the app's server, and what a picture is taken with."""

    def __init__(self, browser: Any, app: str, folder: Path) -> None:
        self.browser = browser
        self.app = app
        self.folder = folder
        self.visitor = self.person()  # whose browser has loaded the app's own JavaScript before

    def person(self) -> Any:
        """The browser of another person, as far as the server can tell."""
        context = self.browser.new_context()
        context.add_init_script(path=WATCH)
        context.set_default_timeout(PATIENCE)
        return context

    def opened(
        self,
        address: str,
        person: Any = None,
        screen: dict[str, int] = SCREEN,
        mode: str = "light",
    ) -> Any:
        """A page at rest, of the app or of a file."""
        page = (person or self.visitor).new_page()
        page.set_viewport_size(screen)
        page.emulate_media(color_scheme=mode, reduced_motion="reduce")
        page.goto(address)
        at_rest(page)
        return page

    def app_at(self, name: str, **choices: object) -> str:
        """The address of one of the app's pages."""
        return f"{self.app}/{name}?{urlencode(choices)}"

    def view(self, name: str) -> str:
        """The address of what a view shows."""
        view = VIEWS[name]
        return self.app_at(view["page"], **view.get("choices", {}))

    def take(
        self,
        name: str,
        page: Any,
        clip: Callable[[], dict[str, float]] | None = None,
        modes: tuple[str, ...] = MODES,
    ) -> None:
        """Save what stands in the page, light and dark. `clip` says which part of it."""
        for mode in modes:
            page.emulate_media(color_scheme=mode)
            at_rest(page)
            image = Image.open(io.BytesIO(still(page))).convert("RGB")
            if clip is not None:
                box = clip()
                right = box["x"] + box["width"]
                bottom = box["y"] + box["height"]
                image = image.crop((round(box["x"]), round(box["y"]), round(right), round(bottom)))
            small(image).save(FOLDER / file_of(name, mode), lossless=True, quality=100, method=4)
        page.close()


def small(image: Image.Image) -> Image.Image:
    """The picture in few colours, which is a third of its size as a file; its letters stay sharp."""
    counted = sorted(image.getcolors(image.width * image.height), reverse=True)
    pixels = np.asarray(image)
    few = np.array(
        image.quantize(RARE, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).convert("RGB")
    )
    for _, colour in counted[:FREQUENT]:
        few[(pixels == colour).all(axis=-1)] = colour
    return Image.fromarray(few)


def file_of(name: str, mode: str) -> str:
    """The file of a view's picture in one of `MODES`."""
    if mode == "light":
        return f"{name}.webp"
    return f"{name}-{mode}.webp"


def at_rest(page: Any) -> None:
    """Wait until the app has nothing left to do; a page that is not the app's has no such sign."""
    if page.evaluate("() => document.querySelector('[data-testid=stApp]') !== null"):
        settled(page)
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(
            state="attached"
        )
        page.wait_for_function("() => !document.querySelector('[data-stale=true]')")


def still(page: Any) -> bytes:
    """A picture of the window, once two in succession are the same: what moves has arrived."""
    before = b""
    for _ in range(60):
        page.wait_for_timeout(250)
        now: bytes = page.screenshot()
        if now == before:
            return now
        before = now
    raise RuntimeError(f"{page.url} does not stand still")


def between(page: Any, begins: str, ends: list[str]) -> dict[str, float]:
    """The page's main column from the upper edge of one element to the lowest edge of others."""
    top = max(box_of(page, begins)["y"] - MARGIN, 0)
    lowest = max(box["y"] + box["height"] for box in (box_of(page, key) for key in ends))
    bottom = min(lowest + MARGIN, SCREEN["height"])
    return {"x": LEFT, "y": top, "width": SCREEN["width"] - LEFT, "height": bottom - top}


def box_of(page: Any, key: str) -> dict[str, float]:
    """Where the app's element with this key is; it is awaited."""
    element = page.locator(f".st-key-{key}").first
    element.wait_for()
    box: dict[str, float] = element.bounding_box()
    return box


# ---- what more is done than to open a page; each function has the name of its view ----


def plain(studio: Studio, name: str) -> None:
    """A page of the app, down to what `ends` names."""
    view = VIEWS[name]
    page = studio.opened(studio.view(name))
    studio.take(name, page, lambda: between(page, view.get("begins", "gv_title"), view["ends"]))


def training(studio: Studio, name: str) -> None:
    """The first of the page's offers, trained to its end."""
    page = studio.opened(studio.view(name))
    page.get_by_role("button", name="Train it yourself").click()
    page.get_by_text(re.compile(r"Done: step")).wait_for()
    settled(page)
    studio.take(name, page, lambda: between(page, "gv_title", VIEWS[name]["ends"]))


def in_numbers(studio: Studio, name: str) -> None:
    """The box with the table, open. A table stays light where a browser turns dark: it is drawn in each."""
    for mode in MODES:
        page = studio.opened(studio.view(name), mode=mode)
        box = page.locator(".st-key-details")
        press(box.locator("summary"))
        box.get_by_test_id("stDataFrame").wait_for()
        box.scroll_into_view_if_needed()
        studio.take(name, page, box.bounding_box, modes=(mode,))


def claimed(studio: Studio, name: str) -> None:
    """A link with numbers, opened."""
    lm = gptviz.load("mini").edited("z.4.3=zero")
    text = "The king loved his daughter, but she did not love"
    link = claim(lm, text, "next_word", "mean_loss", ("looked_at", {"block": 5, "head": 0}))
    page = studio.opened(f"{studio.app}/next_token?{link.partition('?')[2]}")
    studio.take(name, page, lambda: between(page, "gv_title", ["claims"]))


def more_models(studio: Studio, name: str) -> None:
    """The window of all models. It shuts where a browser turns dark, and is opened in each."""
    for mode in MODES:
        page = studio.opened(studio.view(name), mode=mode)
        press(page.locator(".st-key-model_line button"))
        press(page.get_by_role("button", name="More models"))
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("Your model's files").wait_for()
        studio.take(name, page, dialog.bounding_box, modes=(mode,))


def whole_window(studio: Studio, name: str) -> None:
    """All that is in a browser's window."""
    studio.take(name, studio.opened(studio.view(name), screen=WINDOW))


def with_pupils(studio: Studio, number: int) -> tuple[Any, list[Any]]:
    """A class that has begun, and its pupils' pages."""
    teacher = studio.opened(studio.view("class"), studio.person())
    press(teacher.get_by_role("button", name="Begin a class"))
    code = teacher.get_by_test_id("code").inner_text()
    pupils = []
    for _ in range(number):
        joining = studio.app_at("class", code=code.replace("-", ""))
        pupil = studio.opened(joining, studio.person())
        pupil.get_by_role("button", name="Join").click()
        pupil.get_by_text("When your teacher starts").wait_for()
        pupils.append(pupil)
    teacher.get_by_text(f"{number} students have joined").wait_for()
    return teacher, pupils


def code_and_link(studio: Studio, name: str) -> None:
    """What a projector shows while pupils join."""
    teacher, pupils = with_pupils(studio, 3)
    link = teacher.get_by_role("link", name=re.compile("class.code="))
    code = teacher.get_by_test_id("code")
    studio.take(name, teacher, lambda: down_to(link, code))
    for pupil in pupils:
        pupil.context.close()


def wall(studio: Studio, name: str) -> None:
    """A question that a class has answered, with the truth."""
    teacher, pupils = with_pupils(studio, 5)
    teacher.get_by_role("button", name="Begin with step 1").click()
    for pupil, word in zip(pupils, ("hot", "warm", "hot", "hot", "cold"), strict=True):
        pupil.wait_for_url("**/next_token?**")
        settled(pupil)
        pupil.get_by_role("textbox", name="Which word").fill(word)
        pupil.get_by_role("button", name="That is my guess").click()
        pupil.get_by_text(f"Sent: {word}").wait_for()
    teacher.get_by_text("Answered: 5 of 5 students").wait_for()
    for switch in ("Show votes", "Reveal the answer"):
        settled(teacher)
        teacher.get_by_role("button", name=switch).click()
    teacher.get_by_test_id("candidate").first.wait_for()
    studio.take(name, teacher, lambda: between(teacher, "gv_guide", ["gv_guide"]))
    for pupil in pupils:
        pupil.context.close()


def down_to(*elements: Any) -> dict[str, float]:
    """The main column from its top to the lowest edge of some elements."""
    boxes = [element.bounding_box() for element in elements]
    lowest = max(box["y"] + box["height"] for box in boxes)
    return {"x": LEFT, "y": 0, "width": SCREEN["width"] - LEFT, "height": lowest + MARGIN}


def notebook(studio: Studio, name: str) -> None:
    """A notebook that was run, and exported by nbconvert; a dark one asks for a dark picture."""
    for mode in MODES:
        asked = {"light": "", "dark": ", mode='dark'"}[mode]
        cells = (
            "import gptviz\n\nlm = gptviz.load('mini')\n"
            "t = lm.trace('The king loved his daughter, but she did not love')\n"
            "t['attn', 4].shape  # block 4: a square of weights for each head",
            f"t.show('attention', 4, 3{asked})  # block 4, head 3",
        )
        made = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in cells]
        )
        NotebookClient(made, timeout=240, resources={"metadata": {"path": str(ROOT)}}).execute()
        file = studio.folder / f"notebook-{mode}.html"
        file.write_text(HTMLExporter(theme=mode).from_notebook_node(made)[0], "utf-8")
        page = studio.opened(file.as_uri(), screen=NOTEBOOK, mode=mode)
        page.frame_locator("iframe").locator("main[data-drawn]").wait_for()
        studio.take(name, page, partial(to_the_end_of, page.locator("iframe")), modes=(mode,))


def to_the_end_of(element: Any) -> dict[str, float]:
    """All of a notebook down to the lower edge of an element."""
    box = element.bounding_box()
    return {"x": 0, "y": 0, "width": NOTEBOOK["width"], "height": box["y"] + box["height"] + MARGIN}


def phone(studio: Studio, name: str) -> None:
    """The hand-out, from a file, on a small screen."""
    file = studio.folder / "handout.html"
    file.write_text(handout(gptviz.load("mini"), ""), "utf-8")
    choices = {"page": VIEWS[name]["demo"]} | VIEWS[name]["choices"]
    page = studio.opened(f"{file.as_uri()}#{urlencode(choices)}", screen=PHONE)
    page.wait_for_function(
        "() => document.querySelector('footer') && !('busy' in document.body.dataset)"
    )
    studio.take(name, page)


OWN: dict[str, Callable[[Studio, str], None]] = {
    "training": training,
    "class": code_and_link,
    "presented": whole_window,
    "in_numbers": in_numbers,
    "claim": claimed,
    "more_models": more_models,
    "window": whole_window,
    "wall": wall,
    "notebook": notebook,
    "phone": phone,
}


def main(names: list[str]) -> None:
    """Take the pictures of these views, or of all."""
    unknown = sorted(set(names) - set(VIEWS))
    if unknown:
        raise SystemExit(
            f"docs/views.toml has no view {', '.join(unknown)}; it has {', '.join(VIEWS)}"
        )
    FOLDER.mkdir(exist_ok=True)
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        process, url = start_server(Path(home), "--browser.serverAddress", HOST)
        port = url.rpartition(":")[2]
        there = f"--host-resolver-rules=MAP {HOST}:80 127.0.0.1:{port}"
        try:
            browser = playwright.chromium.launch(
                executable_path=chromium(), args=[*CHROMIUM_ARGS, there]
            )
            studio = Studio(browser, f"http://{HOST}", Path(home))
            for name in names or VIEWS:
                began = time.monotonic()
                try:
                    OWN.get(name, plain)(studio, name)
                except (PlaywrightError, RuntimeError, AssertionError) as error:
                    failed.append(name)  # the others are taken all the same
                    print(f"{name}: {error}", flush=True)
                    continue
                sizes = [(FOLDER / file_of(name, mode)).stat().st_size for mode in MODES]
                print(
                    f"{name}: {sum(sizes) / 1000:.0f} kB, {time.monotonic() - began:.0f} s",
                    flush=True,
                )
        finally:
            stop_server(process)
    print(f"all pictures: {sum(file.stat().st_size for file in FOLDER.iterdir()) / 1000:.0f} kB")
    if failed:
        raise SystemExit(f"not taken: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
