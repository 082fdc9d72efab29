"""Many visitors at once: how long each waits, and what the server keeps when they have gone.

    python benchmarks/sessions.py [--sessions 30 100] [--rounds 3] [--pages attention overview]
    python benchmarks/sessions.py --long 8 --model gpt2-untrained     # 8 visitors with 1,000 tokens each
    python benchmarks/sessions.py --soak 10                           # ten minutes of 20 visitors
    python benchmarks/sessions.py --beside patching                   # a light page beside thirty maps

Starts the app on a free port of 127.0.0.1 and drives it over Streamlit's own websocket, as a browser
would: a visitor opens a page, and then all press Run at the same instant, once with the same new text
and once each with a text of its own. Printed are, in milliseconds, the times from the press to the first
picture and to the end of the run (half of the visitors had it sooner, 95 of 100, all), and the server's CPU
time for one run.
This program shares the machine with the server: its own CPU time stands beside it.

Then all leave. Streamlit keeps a session for two minutes after that; what the server holds 150 s later is
compared with the start (one visit, models loaded) and what the caches may hold by their settings.
"""

import argparse
import asyncio
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.visitor import Visitor
from gptviz.ui import runs as cached_runs
from gptviz.ui.jobs import WORKERS
from tests.browser.conftest import start_server, stop_server

PAGES = ["attention", "overview"]
MOST = 100  # sessions at once
GONE = 150  # seconds after the last visitor: Streamlit forgets a session after 120
HEAD = (
    "| page | visitors | text | tokens | first picture, 95 % | half within, ms | 95 % | all "
    "| CPU of a run, ms: server + this | server, MB | errors |"
)
WORDS = "the cat sat on a mat and saw one green bird that sang to me of old days in my house"


def some_text(rng: random.Random, tokens: int = 20) -> str:
    """About so many tokens, that nobody has asked for before."""
    return " ".join(rng.choice(WORDS.split()) for _ in range(tokens))


class Server:
    """What the operating system says of the server's process."""

    def __init__(self, pid: int):
        self._proc = Path(f"/proc/{pid}")

    def megabytes(self, field: str = "VmRSS") -> float:
        status = (self._proc / "status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(field + ":"))
        return int(line.split()[1]) / 1024

    def cpu(self) -> float:
        fields = (self._proc / "stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def faults_of(visitors: list[Visitor]) -> list[str]:
    return [fault for visitor in visitors for fault in visitor.faults]


async def arrive(url: str, page: str, number: int, query: dict[str, object]) -> list[Visitor]:
    visitors = [Visitor(url, page, query) for _ in range(number)]
    for first in range(0, number, 5):
        await asyncio.gather(*(visitor.open() for visitor in visitors[first : first + 5]))
    return visitors


async def press_together(
    url: str,
    server: Server,
    page: str,
    number: int,
    own: bool,
    rounds: int,
    tokens: int,
    model: str,
) -> str:
    """One line of the table; everybody has left when it is there."""
    rng = random.Random(f"{page} {number} {own}")
    visitors = await arrive(url, page, number, {"text": some_text(rng), "model": model})
    waited: list[float] = []
    pictured: list[float] = []
    cpu = server.cpu()
    mine = own_cpu()
    for _ in range(rounds):
        same = some_text(rng, tokens)
        texts = [some_text(rng, tokens) if own else same for _ in visitors]
        waited += await asyncio.gather(
            *(visitor.press_run(text) for visitor, text in zip(visitors, texts, strict=True))
        )
        pictured += [visitor.pictured for visitor in visitors]
    cpu = server.cpu() - cpu
    mine = own_cpu() - mine
    faults = faults_of(visitors)
    held = server.megabytes()
    await asyncio.gather(*(visitor.leave() for visitor in visitors))
    milliseconds = sorted(1000 * seconds for seconds in waited)
    nearly_all = max(0, -(-95 * len(milliseconds) // 100) - 1)
    cells = [
        page,
        f"{number}",
        "each its own" if own else "the same",
        f"{tokens}",
        f"{1000 * sorted(pictured)[nearly_all]:.0f}",
        f"{statistics.median(milliseconds):.0f}",
        f"{milliseconds[nearly_all]:.0f}",
        f"{milliseconds[-1]:.0f}",
        f"{1000 * cpu / len(waited):.0f} + {1000 * mine / len(waited):.0f}",
        f"{held:.0f}",
        f"{len(faults)}" + (f": {faults[0]}" if faults else ""),
    ]
    return "| " + " | ".join(cells) + " |"


async def soak(url: str, server: Server, minutes: float, pages: list[str], model: str) -> None:
    """20 visitors who type, turn pages, leave and come back, with nothing between two runs but a breath."""
    end = time.monotonic() + 60 * minutes
    counts = {"runs": 0, "visits": 0}
    faults: list[str] = []

    async def visit(seed: int) -> None:
        rng = random.Random(seed)
        while time.monotonic() < end:
            visitor = Visitor(url, rng.choice(pages), {"text": some_text(rng), "model": model})
            try:
                await visitor.open()
                counts["visits"] += 1
                for _ in range(rng.randrange(3, 12)):
                    if rng.random() < 0.3:
                        await visitor.turn_to(rng.choice(pages))
                    else:
                        await visitor.press_run(some_text(rng, rng.choice([5, 20, 60, 200])))
                    counts["runs"] += 1
                    if time.monotonic() > end:
                        break
                    await asyncio.sleep(rng.random())
            finally:
                faults.extend(visitor.faults)
                await visitor.leave()

    async def report() -> None:
        print("| minute | runs | visits | server MB | errors |\n|---|---|---|---|---|")
        minute = 0
        while time.monotonic() < end:
            await asyncio.sleep(min(60, max(1, end - time.monotonic())))
            minute += 1
            row = [minute, counts["runs"], counts["visits"], round(server.megabytes()), len(faults)]
            print("| " + " | ".join(map(str, row)) + " |", flush=True)

    await asyncio.gather(report(), *(visit(seed) for seed in range(20)))
    for fault in sorted(set(faults)):
        print("error:", fault)


async def beside(url: str, page: str, number: int, rounds: int) -> None:
    """Attention alone, and while the maps of `number` visitors are in line: milliseconds of its runs."""
    rng = random.Random(page)
    light, *_ = await arrive(url, "attention", 1, {"text": some_text(rng)})
    crowd = await arrive(url, page, number, {"text": some_text(rng)})
    await asyncio.sleep(30)  # the maps with which they came are done
    for _ in range(rounds):
        alone = [await light.press_run(some_text(rng)) for _ in range(10)]
        await asyncio.gather(*(visitor.press_run(some_text(rng)) for visitor in crowd))
        busy = [await light.press_run(some_text(rng)) for _ in range(10)]
        half = [1000 * statistics.median(times) for times in (alone, busy)]
        print(
            f"attention: {half[0]:.0f} ms alone, {half[1]:.0f} ms beside {number} maps ({page})",
            flush=True,
        )
        await asyncio.sleep(30)


async def measure(url: str, server: Server, args: argparse.Namespace) -> None:
    (first,) = await arrive(url, "overview", 1, {"text": "Once", "model": args.model})
    await first.leave()
    start = server.megabytes()
    if args.soak:
        await soak(url, server, args.soak, args.pages, args.model)
    elif args.beside:
        return await beside(url, args.beside, args.sessions[0], args.rounds)
    else:
        print(HEAD + "\n" + "|---" * HEAD.count(" |") + "|")
        if args.long:
            crowds = [(args.long, 1000)]
        else:
            crowds = [(number, 20) for number in args.sessions]
        for number, tokens in crowds:
            for page in args.pages:
                for own in (False, True):
                    line = await press_together(
                        url, server, page, number, own, args.rounds, tokens, args.model
                    )
                    print(line, flush=True)
    busy = server.megabytes()
    peak = server.megabytes("VmHWM")
    if not args.stay:
        await asyncio.sleep(GONE)
    print(
        f"\nserver, MB: {start:.0f} after one visit, {peak:.0f} at most, {busy:.0f} when the last one left, "
        f"{server.megabytes():.0f} now; 1.3 x (one visit + {args.cache_mb} that the cache may hold) is "
        f"{1.3 * (start + args.cache_mb):.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", nargs="+", default=PAGES)
    parser.add_argument("--model", default="mini")
    parser.add_argument(
        "--long", type=int, default=0, metavar="N", help="N visitors with 1,000 tokens each"
    )
    parser.add_argument("--soak", type=float, default=0, metavar="MINUTES")
    parser.add_argument("--beside", metavar="PAGE", help="the page of the maps")
    parser.add_argument("--cache-mb", type=int, default=cached_runs.DEFAULT_MEGABYTES)
    parser.add_argument(
        "--stay", action="store_true", help="do not wait until the sessions are forgotten"
    )
    args = parser.parse_args()
    if max(*args.sessions, args.long) > MOST:
        parser.error(f"at most {MOST} visitors at once")
    with tempfile.TemporaryDirectory() as home:
        process, url = start_server(
            Path(home),
            **{
                cached_runs.SETTING: str(args.cache_mb),
                WORKERS: os.environ.get(WORKERS, f"{os.cpu_count()}"),
            },
        )
        try:
            asyncio.run(measure(url, Server(process.pid), args))
        finally:
            stop_server(process)
            log = (Path(home) / "server.log").read_text()
            if "Traceback" in log:
                print("the server's log has a traceback:\n" + log[log.index("Traceback") :][:3000])


if __name__ == "__main__":
    main()
