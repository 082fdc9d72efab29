"""Time and bytes from a click to a repainted page, in a real browser, for every page.

    python benchmarks/pages.py [--rounds 5] [--text "..."]

Starts the app on a free port of 127.0.0.1, opens each page in Chromium, and measures four things:
the first load (HTML, JavaScript, data), a click on a token's chip, a change of the prompt, and the turn to
the page by the sidebar, from the first page after twelve seconds there. Times
are medians in milliseconds from the event to the moment when Streamlit has finished the run and the
browser has painted; `x` is the ratio to the same event on the lightest page of the same run. Bytes
are what came over the wire for it: responses and WebSocket frames. Behind them stands the CPU time of the
server and of the browser, all of its processes, which another program's work hardly changes.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parent.parent))

from playwright.sync_api import Browser, Page, sync_playwright

from gptviz.ui.shell.navigation import PAGES as PAGES_THERE_ARE, SECTIONS
from tests.browser.conftest import CHROMIUM_ARGS, WATCH, chromium, start_server, stop_server

PAGES = ["", *list(PAGES_THERE_ARE)[1:]]
# milliseconds, bytes, CPU milliseconds of server and browser
Sample = tuple[float, int, float, float]
EVENTS = {
    "load": "first load",
    "turn": "turned to by the sidebar",
    "chip": "a chip is clicked",
    "prompt": "the prompt is changed",
}
RESTED = 12_000  # milliseconds on the first page: its guess, its rest, and the charts made ready
TEXT = "Once upon a time there was a little girl who lived in a small house in the wood."


class Wire:
    """Counts the bytes that reach one page."""

    def __init__(self, page: Page):
        self.bytes = 0
        page.on("response", self._response)
        page.on("websocket", lambda socket: socket.on("framereceived", self._frame))

    def _response(self, response: object) -> None:
        self.bytes += int(response.headers.get("content-length", 0))  # type: ignore[attr-defined]

    def _frame(self, payload: bytes | str) -> None:
        self.bytes += len(payload)


def at_rest(page: Page) -> None:
    """Wait until the run is over, all is drawn and three frames have been painted since."""
    page.wait_for_function("() => window.gptvizRest?.()", timeout=60_000)


def cpu() -> tuple[float, float]:
    """Milliseconds of CPU time so far: of the server's processes, and of the browser's."""
    used = {}
    parent = {}
    name = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = stat.read_text().rpartition(")")
        except OSError:  # it has ended
            continue
        pid = int(stat.parent.name)
        fields = rest.split()
        name[pid] = head.partition("(")[2]
        parent[pid] = int(fields[1])
        used[pid] = 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    mine = {os.getpid()}
    while more := {pid for pid, above in parent.items() if above in mine} - mine:
        mine |= more
    browser = {pid for pid in mine if "chrom" in name[pid]}
    server = {pid for pid in mine - browser if "node" not in name[pid]} - {os.getpid()}
    return sum(map(used.__getitem__, server)), sum(map(used.__getitem__, browser))


def measure(
    page: Page, wire: Wire, event: Callable[[], None], happened: Callable[[], None]
) -> Sample:
    """From an event, through the first sign of it, to rest."""
    before = wire.bytes
    began = time.perf_counter()
    (server, browser) = cpu()
    event()
    happened()
    at_rest(page)
    now = (time.perf_counter() - began) * 1000, wire.bytes - before
    return *now, cpu()[0] - server, cpu()[1] - browser


def click_chip(page: Page, wire: Wire, position: int) -> Sample:
    chip = page.locator(f'[data-testid="chip"][data-position="{position}"]').first
    return measure(
        page,
        wire,
        chip.click,
        lambda: page.wait_for_function(f"location.search.includes('token={position}')"),
    )


def change_prompt(page: Page, wire: Wire, text: str) -> Sample:
    box = page.get_by_label("Prompt").first
    box.fill(text)
    return measure(
        page,
        wire,
        lambda: box.press("Enter"),
        lambda: page.wait_for_function(
            f"decodeURIComponent(location.search).includes({text.split()[-1]!r})"
        ),
    )


def first_load(page: Page, wire: Wire, address: str) -> Sample:
    return measure(
        page,
        wire,
        lambda: page.goto(address) and None,
        lambda: page.get_by_role("heading", level=1).wait_for(timeout=60_000) and None,
    )


def turn(page: Page, wire: Wire, first: str, name: str) -> Sample:
    """Turn to a page by the sidebar, from the first page at rest."""
    first_load(page, wire, first)
    page.wait_for_timeout(RESTED)
    sidebar = page.get_by_test_id("stSidebar")
    heading = next(heading for heading, doors in SECTIONS.items() if name in doors)
    door = PAGES_THERE_ARE[name]
    link = sidebar.get_by_role("link", name=door.name, exact=True)
    if not link.count():
        sidebar.get_by_text(heading, exact=True).click()
        at_rest(page)
    return measure(
        page,
        wire,
        link.first.click,
        lambda: page.get_by_role("heading", level=1, name=door.question).wait_for() and None,
    )


def new_page(browser: Browser) -> tuple[Page, Wire]:
    """Open an empty page that has kept nothing of the one before."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_init_script(path=WATCH)
    page = context.new_page()
    return page, Wire(page)


def run(url: str, text: str, rounds: int, pages: list[str]) -> dict[tuple[str, str], list[float]]:
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGS)
        for name in pages:
            samples: dict[str, list[Sample]] = {event: [] for event in EVENTS}
            query = urlencode({"text": text})
            for _ in range(rounds):
                page, wire = new_page(browser)
                samples["load"].append(first_load(page, wire, f"{url}/{name}?{query}"))
                if page.locator(".st-key-prompt").count():
                    samples["chip"].append(click_chip(page, wire, 2))
                    samples["prompt"].append(change_prompt(page, wire, f"{text} The{rounds}"))
                page.context.close()
                if any(name in doors for doors in SECTIONS.values()):
                    page, wire = new_page(browser)
                    samples["turn"].append(turn(page, wire, f"{url}/?{query}", name))
                    page.context.close()
            for event, values in samples.items():
                if values:
                    found[name, event] = [
                        statistics.median(one) for one in zip(*values, strict=True)
                    ]
                    # a run over all pages takes half an hour, and may be ended before
                    milliseconds = found[name, event][0]
                    print(
                        f"{name or 'overview'}, {EVENTS[event]}: {milliseconds:.0f} ms",
                        file=sys.stderr,
                    )
        browser.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--text", default=TEXT)
    parser.add_argument("--pages", nargs="+", default=PAGES)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        server, url = start_server(Path(home))
        try:
            found = run(url, args.text, args.rounds, args.pages)
        finally:
            stop_server(server)
    print("| page | " + " | ".join(EVENTS.values()) + " |")
    print("|---" * (len(EVENTS) + 1) + "|")
    best = {
        event: min(
            (found[name, event][0] for name in args.pages if (name, event) in found), default=1
        )
        for event in EVENTS
    }
    for name in args.pages:
        cells = []
        for event in EVENTS:
            if (name, event) not in found:
                cells.append("–")
                continue
            milliseconds, size, of_server, of_browser = found[name, event]
            cpu_of = f"CPU {of_server:.0f} + {of_browser:.0f}"
            ratio = f"x {milliseconds / best[event]:.1f}"
            cells.append(f"{milliseconds:.0f} ms ({ratio}), {size / 1000:.0f} kB, {cpu_of}")
        print(f"| {name or 'overview'} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
