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

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Delta_pb2 import Delta

import gptviz
from benchmarks.reruns import Session, connected, cpu, text_of
from tests.browser.conftest import start_server, stop_server


class Stepper(Session):
    """A session on the Generate page that presses "One step"."""

    button, fragment, wrote = "", "", False

    def drawn(self, delta: Delta) -> None:
        button = delta.new_element.button
        if button.label == "One step":
            self.button, self.fragment = button.id, delta.fragment_id
        if button.label == "Begin again":
            self.wrote = not button.disabled

    async def step(self) -> None:
        message = BackMsg()
        state = message.rerun_script
        state.page_script_hash, state.fragment_id = self.script, self.fragment
        pressed = state.widget_states.widgets.add()
        pressed.id, pressed.trigger_value = self.button, True
        await self.answered(message)


async def stepped(port: int, pid: int, text: str, steps: int) -> tuple[list[float], list[float]]:
    """Milliseconds that each of the steps after a text takes: the server's CPU time, and the clock's."""
    session, of_server = Stepper(await connected(port), "generate", {"text": text, "model": "mini"}), []
    by_clock = []
    await session.run()
    for _ in range(steps):
        before, began = cpu(pid), time.perf_counter()
        await session.step()
        by_clock.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.02)  # what a run leaves to do after its last message belongs to it
        of_server.append(cpu(pid) - before)
        assert session.wrote
    await session.socket.close()
    return of_server, by_clock


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    context = gptviz.load("mini").config.context_length
    print("| steps on the page | CPU time: median | slowest | by the clock: median | slowest |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as home:
        server, url = start_server(Path(home), "--server.headless", "true")
        try:
            port = int(url.rsplit(":", 1)[1].strip("/"))
            for what, n, steps in (("20 tokens", 20, 100), ("a full context", context, 20)):
                found = asyncio.run(stepped(port, server.pid, text_of(n), steps))
                cells = (f"{x:.0f} ms" for times in found for x in (statistics.median(times), max(times)))
                print(f"| {steps} after {what} | " + " | ".join(cells) + " |", flush=True)
        finally:
            stop_server(server)


if __name__ == "__main__":
    main()
