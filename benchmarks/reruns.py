"""CPU time that the server spends on a rerun of each page, without a browser.

    python benchmarks/reruns.py [--rounds 15] [--tokens 20 200] [--model mini] [--pages attention ...]

Starts the app on a free port of 127.0.0.1, opens every page in a session of its own over Streamlit's
websocket, and then goes round: in each round every page is run with a text that nobody has read, with
another token selected (as the browser's Back would) and once more with nothing changed. Printed are the
medians over the rounds of the server process's CPU time (all its threads) and of its workers' (0 where a
page opens without a work), in milliseconds, and the bytes that a rerun sends.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parent.parent))

from streamlit.proto.BackMsg_pb2 import BackMsg

import gptviz
from benchmarks.visitor import Visitor
from gptviz.ui.shell.navigation import PAGES as PAGES_THERE_ARE
from tests.browser.conftest import start_server, stop_server

PAGES = tuple(PAGES_THERE_ARE)
STORY = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def cpu(pid: int) -> float:
    """Milliseconds of CPU time of another process; its POSIX clock has nanoseconds, /proc hundredths."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e6


def descendants(pid: int) -> list[int]:
    """Every process that it started, and those started."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [
        one
        for text in children
        for child in text.read_text().split()
        for one in (int(child), *descendants(int(child)))
    ]


class Session(Visitor):
    """A visitor who runs a page whole, with what its address says; any fault ends it."""

    prompted = False

    def __init__(self, url: str, page: str, query: dict[str, object]):
        super().__init__(url, page, query)
        self.page = page
        self.query = query

    async def run(self, **changes: str) -> int:
        """One run of the page; gives the bytes that came. RuntimeError if it ended in an exception."""
        before = self.bytes
        message = self._rerun()
        message.rerun_script.query_string = urlencode(self.query | changes)
        message.rerun_script.is_history_navigation = True
        await self._run(message)
        return self.bytes - before

    async def _run(self, message: BackMsg) -> float:
        message.rerun_script.context_info.timezone = "UTC"
        message.rerun_script.context_info.locale = "en"
        seconds = await super()._run(message)
        if self.faults:
            raise RuntimeError(f"/{self.page} failed: {self.faults[0]}")
        return seconds


async def measure(
    url: str, pid: int, text: str, tokens: int, args: argparse.Namespace
) -> dict[str, tuple]:
    sessions = []
    for page in args.pages:
        sessions.append(Session(url, page, {"text": text, "model": args.model}))
        await sessions[-1].open()
    found: dict[str, list[tuple[float, ...]]] = {page: [] for page in args.pages}
    for number in range(args.rounds):
        token = str((number * 7 + 3) % tokens)
        for session in sessions:
            times = []
            mixed = random.Random(f"{number} {session.page}").sample(
                text.split(), len(text.split())
            )
            for changes in ({"text": " ".join(mixed)}, {"token": token}, {}):
                session.query |= changes
                began = cpu(pid)
                workers = sum(map(cpu, descendants(pid)))
                size = await session.run(**changes)
                # what a run leaves to do after its last message belongs to it
                await asyncio.sleep(0.02)
                times += [cpu(pid) - began, sum(map(cpu, descendants(pid))) - workers]
                if "token" in changes:
                    sent = size
            found[session.page].append((*times, sent))
    for session in sessions:
        await session.leave()
    return {
        page: tuple(statistics.median(v) for v in zip(*runs, strict=True))
        for page, runs in found.items()
    }


def text_of(tokens: int) -> str:
    """The start of the README that the bundled model cuts into this many tokens."""
    lm = gptviz.load("mini")
    return lm.tokenizer.decode(lm.tokenizer.encode(STORY, disallowed_special=())[:tokens])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tokens", type=int, nargs="+", default=[20, 200])
    parser.add_argument("--model", default="mini")
    parser.add_argument("--pages", nargs="+", choices=PAGES, default=PAGES, metavar="PAGE")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        server, url = start_server(Path(home))
        try:
            found = {
                count: asyncio.run(measure(url, server.pid, text_of(count), count, args))
                for count in args.tokens
            }
        finally:
            stop_server(server)
    heads = [
        f"{count} tokens: another text | another token | the same again | sent"
        for count in args.tokens
    ]
    print("| page | " + " | ".join(heads) + " |\n|" + "---|" * (1 + 4 * len(heads)))
    for page in args.pages:
        cells = [
            f"{new:.0f} + {new_works:.0f} ms | {other:.0f} + {other_works:.0f} ms | {same:.0f} ms "
            f"| {size / 1000:.0f} kB"
            for new, new_works, other, other_works, same, _, size in (
                found[count][page] for count in args.tokens
            )
        ]
        print(f"| {page} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
