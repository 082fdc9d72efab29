"""Time and bytes from a click to a repainted page, in a real browser, for every page.

    python benchmarks/pages.py [--rounds 5] [--text "..."]

Starts the app on a free port of 127.0.0.1, opens each page in Chromium, and measures three things:
the first load (HTML, JavaScript, data), a click on a token's chip, and a change of the prompt. Times
are medians in milliseconds from the event to the moment when Streamlit has finished the run and the
browser has painted; `x` is the ratio to the same event on the lightest page of the same run. Bytes
are what came over the wire for it: responses and WebSocket frames.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parent.parent))

from playwright.sync_api import Page, sync_playwright

from gptviz.ui.shell.navigation import PAGES as PAGES_THERE_ARE
from tests.browser.conftest import CHROMIUM_ARGS, WATCH, chromium, start_server, stop_server

PAGES = ["", *list(PAGES_THERE_ARE)[1:]]
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


def measure(
    page: Page, wire: Wire, event: Callable[[], None], happened: Callable[[], None]
) -> tuple[float, int]:
    """(milliseconds, bytes) from an event, through the first sign of it, to rest."""
    before, began = wire.bytes, time.perf_counter()
    event()
    happened()
    at_rest(page)
    return (time.perf_counter() - began) * 1000, wire.bytes - before


def click_chip(page: Page, wire: Wire, position: int) -> tuple[float, int]:
    chip = page.locator(f'[data-testid="chip"][data-position="{position}"]').first
    return measure(
        page,
        wire,
        chip.click,
        lambda: page.wait_for_function(f"location.search.includes('token={position}')"),
    )


def change_prompt(page: Page, wire: Wire, text: str) -> tuple[float, int]:
    box = page.get_by_label("Prompt").first
    box.fill(text)
    return measure(
        page,
        wire,
        lambda: box.press("Enter"),
        lambda: page.wait_for_function(f"decodeURIComponent(location.search).includes({text.split()[-1]!r})"),
    )


def first_load(page: Page, wire: Wire, address: str) -> tuple[float, int]:
    return measure(
        page,
        wire,
        lambda: page.goto(address) and None,
        lambda: page.get_by_role("heading", level=1).wait_for(timeout=60_000) and None,
    )


def median(samples: list[tuple[float, int]]) -> tuple[float, float]:
    times, sizes = zip(*samples, strict=True)
    return statistics.median(times), statistics.median(sizes)


def run(url: str, text: str, rounds: int) -> dict[tuple[str, str], tuple[float, float]]:
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGS)
        for name in PAGES:
            samples: dict[str, list[tuple[float, int]]] = {"load": [], "chip": [], "prompt": []}
            for _ in range(rounds):
                context = browser.new_context(viewport={"width": 1280, "height": 800})
                context.add_init_script(path=WATCH)
                page = context.new_page()
                wire = Wire(page)
                samples["load"].append(first_load(page, wire, f"{url}/{name}?{urlencode({'text': text})}"))
                if not page.locator(".st-key-prompt").count():
                    context.close()
                    continue
                samples["chip"].append(click_chip(page, wire, 2))
                samples["prompt"].append(change_prompt(page, wire, f"{text} The{rounds}"))
                context.close()
            found |= {(name, event): median(values) for event, values in samples.items() if values}
        browser.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--text", default=TEXT)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        server, url = start_server(Path(home), "--server.headless", "true")
        try:
            found = run(url, args.text, args.rounds)
        finally:
            stop_server(server)
    print("| page | first load | a chip is clicked | the prompt is changed |\n|---|---|---|---|")
    best = {
        event: min(found[name, event][0] for name in PAGES if (name, event) in found)
        for event in ("load", "chip", "prompt")
    }
    for name in PAGES:
        cells = []
        for event in ("load", "chip", "prompt"):
            if (name, event) not in found:
                cells.append("no prompt")
                continue
            milliseconds, size = found[name, event]
            cells.append(f"{milliseconds:.0f} ms (x {milliseconds / best[event]:.1f}), {size / 1000:.0f} kB")
        print(f"| {name or 'overview'} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
