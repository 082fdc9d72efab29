"""The one picture: how soon the next place stands, the bytes that come for it, and frames while it moves.

    python benchmarks/machine.py [--rounds 3]

Falls in Chromium, by clicks, from the machine to a cell and back: the bundled model (6 blocks, 8 heads) on
22 tokens, and an untrained GPT-2 (12 of 12) on 66. In the app: the time from the click until the new place
stands (median), and all bytes that came for it. Then the component alone, in a page without a server that
answers after 30 ms: the bytes of its own data, and, of the round in the middle, frames per second while it
moves, and the processor's time in the page's longest task of the move, by Chromium's tracing: a frame has
16.7 ms. The compositor, another thread, does the movement: a long task would stop clicks, and not that.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parent.parent))

from playwright.sync_api import Locator, Page, sync_playwright

import gptviz
from gptviz.analysis import machine
from gptviz.analysis.places import resolve
from gptviz.both import Both
from gptviz.tokenizer import show_token
from gptviz.ui.components.code import bundle
from gptviz.ui.components.machine import sent, spoken
from pages import Wire, at_rest
from tests.browser.conftest import CHROMIUM_ARGS, WATCH, chromium, start_server, stop_server

TEXT = (
    "Once upon a time there was a little girl who lived in a small house in the wood, and one day"
)
STEPS = (
    "block.4",
    "block.4.attention",
    "block.4.head.3",
    "block.4.head.3.cell.{last}.{near}",
    "block.4.head.3",
    "block.4",
    "",
)
FRAMES = """() => {
  const frames = [];
  const seen = (now) => { frames.push(now); if (!window.frames_end) requestAnimationFrame(seen); };
  Object.assign(window, { frames, frames_end: false });
  requestAnimationFrame(seen);
}"""
# the component without a server: what is asked for is drawn from what was prepared
ALONE = """<body style="margin: 0; width: 1000px"><div id="place"></div><script>{bundle}
const places = {places};
const element = document.getElementById('place');
const draw = (at) => gvDraw(element, 'machine', places[at], (event, at) => setTimeout(draw, 30, at));
draw('');
</script>"""


# by the page's own clock: Playwright's way to a click takes longer than the server's answer
STANDS = """(door, at) => new Promise((done) => {
  const root = door.getRootNode(), since = performance.now();
  const see = () => {
    const layer = root.querySelector(`[data-testid=machine][data-at='${at}'] .layer.now`);
    if (layer && !layer.getAnimations().length) done(performance.now() - since);
    else requestAnimationFrame(see);
  };
  door.click();
  see();
})"""


def door(page: Page, at: str) -> Locator:
    return page.locator(
        f"[data-testid=place-door][data-at='{at}'], [data-testid=place-crumb][data-at='{at}']"
    ).last


def in_the_app(page: Page, wire: Wire, at: str) -> tuple[float, int]:
    """(milliseconds from the click until it stands, bytes) of one step."""
    before = wire.bytes
    took = float(door(page, at).evaluate(STANDS, at))
    at_rest(page)
    return took, wire.bytes - before


def alone(page: Page, at: str) -> tuple[float, float]:
    """(frames per second, milliseconds of the longest task) of one step."""
    cdp = page.context.new_cdp_session(page)
    events = []
    ended = []
    cdp.on("Tracing.dataCollected", lambda part: events.extend(part["value"]))
    cdp.on("Tracing.tracingComplete", lambda _: ended.append(True))
    wanted = {"includedCategories": ["disabled-by-default-devtools.timeline"]}
    cdp.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": wanted})
    page.evaluate(FRAMES)
    door(page, at).evaluate("door => door.click()")
    page.wait_for_timeout(450)
    times = page.evaluate("() => { window.frames_end = true; return window.frames; }")
    cdp.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(10)
    cdp.detach()
    main = {
        (e["pid"], e["tid"])
        for e in events
        if e["name"] == "thread_name" and e["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        e.get("tdur", 0) for e in events if e["name"] == "RunTask" and (e["pid"], e["tid"]) in main
    ]
    return 1000 * (len(times) - 1) / (times[-1] - times[0]), max(tasks) / 1000


def prepared(model: str, text: str, steps: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What the component is given at each place."""
    lm = gptviz.load(model)
    t = lm.trace(text)
    tokens = [show_token(token.raw) for token in t.tokens]
    places = {}
    for at in steps:
        place = resolve(lm, t, at, len(t) - 1)
        level = sent(Both(machine.level(lm, t, place.at, len(t) - 1)))
        said = {
            "says": spoken(level.pop("says")),
            "path": [(one.at, one.name) for one in place.path],
        }
        where = {
            "mode": "light",
            "kind": place.kind,
            "at": at,
            "position": len(t) - 1,
            "tokens": tokens,
        }
        places[at] = (
            where | said | {"level": level, "table": [], "sides": [], "more": None, "way": []}
        )
    return places


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    heads = f"{'ms':>6} {'all bytes':>10} {'its own':>8} {'frames/s':>8} {'task, ms':>8}"
    print(f"{'model':15} {'tokens':>6} {'place':28} {heads}")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        process, url = start_server(Path(home))
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGS)
        try:
            for model, text in (("mini", TEXT), ("gpt2-untrained", TEXT * 3)):
                last = len(gptviz.load(model).encode(text)) - 1
                steps = [step.format(last=last, near=last - 3) for step in STEPS]
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.add_init_script(WATCH.read_text("utf-8"))
                wire = Wire(page)
                page.goto(f"{url}/?{urlencode({'text': text, 'model': model})}")
                page.get_by_test_id("machine").wait_for(timeout=120_000)
                at_rest(page)
                app = [[in_the_app(page, wire, step) for step in steps] for _ in range(rounds)]
                page.goto("about:blank")
                places = prepared(model, text, steps)
                page.set_content(
                    ALONE.replace("{bundle}", bundle("machine")).replace(
                        "{places}", json.dumps(places)
                    )
                )
                page.get_by_test_id("machine").wait_for()
                moved = [[alone(page, step) for step in steps] for _ in range(rounds)]
                for number, step in enumerate(steps):
                    ms, sizes = zip(*(run[number] for run in app), strict=True)
                    own = len(json.dumps(places[step]))
                    frames, task = (
                        statistics.median(one)
                        for one in zip(*(run[number] for run in moved), strict=True)
                    )
                    named = f"{model:15} {last + 1:6} {step or 'the machine':28}"
                    came = f"{statistics.median(ms):6.0f} {max(sizes):10,} {own:8,}"
                    print(f"{named} {came} {frames:8.0f} {task:8.0f}")
                page.close()
        finally:
            browser.close()
            stop_server(process)


if __name__ == "__main__":
    main()
