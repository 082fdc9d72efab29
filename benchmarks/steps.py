"""What a step on the Generate page costs the server, drawing included, without a browser.

    python benchmarks/steps.py

Starts the app on a free port of 127.0.0.1, opens the page with the bundled model in a session over
Streamlit's websocket, and presses "One step", again and again. Printed are milliseconds a step, median and
slowest: the server process's CPU time (all its threads), and by the clock from the click's message to the
last of what is drawn for it. Once with a text of 20 tokens, once where the context is full: there all that
was kept of the earlier tokens is void with each step, and the model reads all of them anew.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from streamlit.proto.Element_pb2 import Element

import gptviz
from benchmarks.reruns import Session, cpu, text_of
from tests.browser.conftest import start_server, stop_server


class Stepper(Session):
    """A session on the Generate page that presses "One step"."""

    button = ""
    fragment = ""
    wrote = False

    def _drawn(self, element: Element, fragment: str) -> None:
        super()._drawn(element, fragment)
        if element.button.label == "One step":
            self.button = element.button.id
            self.fragment = fragment
        if element.button.label == "Begin again":
            self.wrote = not element.button.disabled


async def stepped(url: str, pid: int, text: str, steps: int) -> tuple[list[float], list[float]]:
    """Milliseconds that each of the steps after a text takes: the server's CPU time, and the clock's."""
    session = Stepper(url, "generate", {"text": text, "model": "mini"})
    of_server = []
    by_clock = []
    await session.open()
    for _ in range(steps):
        before = cpu(pid)
        began = time.perf_counter()
        await session.press_button(session.button, session.fragment)
        by_clock.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.02)  # what a run leaves to do after its last message belongs to it
        of_server.append(cpu(pid) - before)
        assert session.wrote
    await session.leave()
    return of_server, by_clock


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    context = gptviz.load("mini").config.context_length
    print("| steps on the page | CPU time: median | slowest | by the clock: median | slowest |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as home:
        server, url = start_server(Path(home))
        try:
            for what, n, steps in (("20 tokens", 20, 100), ("a full context", context, 20)):
                found = asyncio.run(stepped(url, server.pid, text_of(n), steps))
                cells = (
                    f"{x:.0f} ms" for times in found for x in (statistics.median(times), max(times))
                )
                print(f"| {steps} after {what} | " + " | ".join(cells) + " |", flush=True)
        finally:
            stop_server(server)


if __name__ == "__main__":
    main()
