"""A class of thirty: do all votes count, once each, and how long does a pupil wait?

    python benchmarks/class.py [--pupils 30] [--rounds 3] [--beside 30]
    unshare -n sh -c 'ip link set lo up; python benchmarks/class.py'             # the network down
    python benchmarks/class.py --database postgresql+psycopg://... --servers 2   # two servers, one database

Starts the app on free ports of 127.0.0.1 and drives it over Streamlit's own websocket, as browsers would.
Pupils have the tour's first step open and vote within the same two seconds, and change their minds --rounds
times. Then the servers are killed (-9) in the middle of a vote and started again: everybody comes back with
its cookie, and votes again where nobody had said "You said". At last the votes are locked, and all try once
more. Printed are the times from a vote to its acknowledgement, and what was sent, on the wall and in the CSV:
fails where a vote was lost, counted twice or taken late.
"""

import argparse
import asyncio
import csv
import io
import os
import random
import re
import statistics
import sys
import tempfile
import urllib.request
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from benchmarks.visitor import Visitor
from gptviz.teach.classroom.classes import Classes
from gptviz.teach.classroom.tables import FILE, SETTING, open_database
from gptviz.teach.guides import FOLDER
from gptviz.ui.components.class_cookie import COOKIE
from tests.browser.conftest import start_server, stop_server

WITHIN = 2.0  # seconds in which everybody votes
WORDS = ("mill", "house", "umbrella", "tree", "bird")
BROKEN = (ConnectionClosed, InvalidHandshake, OSError)
CELL = re.compile(r'<th scope="row">([^<✓]*?)(?: ✓ right)?</th>.*?<td>(\d+)</td></tr>')


class Server:
    """One of the app's processes, which can be killed and started again; `url` is where it is now."""

    def __init__(self, home: Path, database: str):
        self._home = home
        self._database = database
        self.start()

    def start(self) -> None:
        self._process, self.url = start_server(self._home, **{SETTING: self._database})

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        stop_server(self._process)


class Browser(Visitor):
    """A member of the class; it holds the page's texts, a file, and the ids of the question's widgets."""

    prompted = False

    def __init__(self, server: Server, secret: str, page: str = "next_token"):
        super().__init__(server.url, page, {"guide": "class", "step": 1})
        self._server = server
        self.headers = {"Cookie": f"{COOKIE}={secret}"}
        self.box = self.button = self.fragment = self.file = ""
        self.watch = ("", 0.0)  # the fragment that looks for news, and how often
        self.texts: list[str] = []

    async def open(self) -> None:
        self.url = self._server.url  # which may have been started again
        await super().open()

    async def vote(self, word: str) -> float:
        """Seconds until the page has answered."""
        message = self._rerun(self.fragment)
        widgets = message.rerun_script.widget_states.widgets
        box = widgets.add()
        button = widgets.add()
        box.id = self.box
        box.string_value = word
        button.id = self.button
        button.trigger_value = True
        return await self._run(message)

    async def look_on(self) -> None:
        """An open page that nobody touches: it looks for news as long as it is left to."""
        while True:
            await asyncio.sleep(self.watch[1])
            await self._run(self._rerun(self.watch[0]))

    def acknowledged(self, word: str) -> bool:
        return any(f"You said {word}." in text for text in self.texts)

    def downloaded(self) -> str:
        return urllib.request.urlopen(self.url + self.file).read().decode()

    async def _run(self, message: BackMsg) -> float:
        self.texts = []
        seconds = await super()._run(message)
        if self.faults:
            raise RuntimeError(self.faults[0])
        return seconds

    def _heard(self, message: ForwardMsg) -> bool:
        if message.WhichOneof("type") == "auto_rerun":
            self.watch = message.auto_rerun.fragment_id, message.auto_rerun.interval
        return super()._heard(message)

    def _drawn(self, element: Element, fragment: str) -> None:
        super()._drawn(element, fragment)
        shown = element.WhichOneof("type")
        held = getattr(element, shown)
        if shown == "text_input" and "guide_given" in held.id:
            self.box = held.id
        elif shown == "button" and held.is_form_submitter:
            self.button = held.id
            self.fragment = fragment
        elif shown == "download_button":
            self.file = held.url
        elif shown in ("markdown", "html", "alert"):
            self.texts.append(held.body)


async def together(pupils: list[Browser], words: list[str], rng: random.Random) -> list[float]:
    """Everybody votes within two seconds; how long each waited for "You said"."""

    async def one(pupil: Browser, word: str) -> float:
        await asyncio.sleep(rng.random() * WITHIN)
        waited = await pupil.vote(word)
        assert pupil.acknowledged(word), pupil.texts
        return waited

    return await asyncio.gather(*map(one, pupils, words))


async def survive(
    pupils: list[Browser], words: list[str], rng: random.Random, servers: list[Server]
) -> int:
    """The same, and the servers are killed meanwhile; how many had to come back."""
    back = 0

    async def one(pupil: Browser, word: str) -> None:
        nonlocal back
        await asyncio.sleep(rng.random() * WITHIN)
        broken = False
        while broken or not pupil.acknowledged(word):
            try:
                if broken:
                    await pupil.open()
                    back = back + 1
                    broken = False
                if not pupil.acknowledged(word):
                    await pupil.vote(word)
            except BROKEN:
                broken = True
                await asyncio.sleep(0.5)

    async def kill() -> None:
        await asyncio.sleep(WITHIN / 2)
        for server in servers:
            server.kill()
        for server in servers:
            await asyncio.to_thread(server.start)

    await asyncio.gather(kill(), *map(one, pupils, words))
    return back


async def late(pupils: list[Browser]) -> int:
    """Everybody votes once more, from the page as it was before the lock; how many are refused."""
    await asyncio.gather(*(pupil.vote("late") for pupil in pupils))
    return sum(
        any("too late" in text or "locked" in text for text in pupil.texts) for pupil in pupils
    )


async def wall_and_file(server: Server, secret: str) -> tuple[Counter[str], Counter[str]]:
    """The votes as the teacher sees them, and as the CSV holds them."""
    wall = Browser(server, secret)
    desk = Browser(server, secret, "class")
    for browser in (wall, desk):
        await browser.open()
    table = next(text for text in wall.texts if "gv-wall" in text and "<table" in text)
    seen = Counter({word: int(count) for word, count in CELL.findall(table)})
    rows = csv.DictReader(io.StringIO(desk.downloaded()))
    in_file = Counter(row["answer"].strip('"') for row in rows if row["step"] == "1")
    for browser in (wall, desk):
        await browser.leave()
    return seen, in_file


async def measure(servers: list[Server], classes: Classes, args: argparse.Namespace) -> list[str]:
    """Prints the table; gives what was wrong."""
    rng = random.Random(1)
    wrong = []
    secret = classes.begin((FOLDER / "tour.md").read_text("utf-8"), {}, [])
    teacher = classes.member(secret)
    assert teacher is not None
    room = teacher.room
    classes.steer(secret, step=0)
    pupils = [
        Browser(servers[number % len(servers)], classes.join(room.code, "here"))
        for number in range(args.pupils)
    ]
    for first in range(0, len(pupils), 5):
        await asyncio.gather(*(pupil.open() for pupil in pupils[first : first + 5]))
    others = [
        Browser(servers[number % len(servers)], classes.join(room.code, "here"))
        for number in range(args.beside)
    ]
    for other in others:
        await other.open()
    looking = [asyncio.create_task(other.look_on()) for other in others]
    print("| what | pupils | half within, ms | 95 of 100 | all |\n|---|---|---|---|---|")
    words: list[str] = []
    for number in range(args.rounds):
        words = [rng.choice(WORDS) for _ in pupils]
        waited = sorted(1000 * seconds for seconds in await together(pupils, words, rng))
        at_95 = waited[max(0, -(-95 * len(waited) // 100) - 1)]
        half = statistics.median(waited)
        print(
            f"| vote {number + 1} | {len(pupils)} | {half:.0f} | {at_95:.0f} | {waited[-1]:.0f} |",
            flush=True,
        )
    for task in looking:
        task.cancel()
    words = [rng.choice(WORDS) for _ in pupils]
    back = await survive(pupils, words, rng, servers)
    print(
        f"servers killed in the middle of a vote: {back} came back, all {len(pupils)} acknowledged"
    )
    for pupil in pupils:  # who had voted before has lost its server too
        await pupil.leave()
        await pupil.open()
    classes.steer(secret, marks=(0, ["locked", "shown"]))
    refused = await late(pupils)
    sent = Counter(words)
    seen, in_file = await wall_and_file(servers[0], secret)
    print(
        f"sent {dict(sent)}, on the wall {dict(seen)}, in the CSV {dict(in_file)}, {refused} refused as late"
    )
    if not sent == seen == in_file:
        wrong.append("sent, wall and CSV are not the same")
    if refused != len(pupils):
        wrong.append(f"{len(pupils) - refused} late votes were not refused")
    for pupil in pupils:
        await pupil.leave()
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pupils", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--beside", type=int, default=30, help="open pages of others, which look for news"
    )
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--database", help="a URL; without it a file of SQLite")
    args = parser.parse_args()
    if args.pupils > 100 or args.servers > 4:
        parser.error("at most 100 pupils and 4 servers")
    with tempfile.TemporaryDirectory() as folder:
        database = args.database or f"sqlite:///{folder}/{FILE}"
        os.environ["OMP_NUM_THREADS"] = "1"
        servers = []
        for number in range(args.servers):
            home = Path(folder, str(number))
            home.mkdir()
            servers.append(Server(home, database))
        try:
            wrong = asyncio.run(measure(servers, Classes(open_database(database)), args))
        finally:
            for server in servers:
                server.stop()
        for number in range(args.servers):
            log = Path(folder, str(number), "server.log").read_text()
            wrong += [f"server {number} has a traceback:\n{log[-2000:]}"] * ("Traceback" in log)
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
