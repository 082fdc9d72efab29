"""Replicas behind the router of deploy/: what two give on two cores, a soak, and what survives which death.

    python benchmarks/replicas.py [--rounds 3] [--pages attention overview]  # thirty press Run: one, then two
    python benchmarks/replicas.py --soak 30    # minutes of 20 visitors: all pages, edits, uploads, trainings
    python benchmarks/replicas.py --chaos      # a training, a replica, the router and the database killed

The first starts one replica and two of them, and lets all visitors press at the same instant at the one and
at the other in turn; the table has the seconds until half and until all have their page, what two take of
what one takes, and how many cores were at work (with the router): on a machine that others use, see these.

The soak prints a line a minute, and then how much the replicas' memory grew after the first ten minutes.

In the chaos visitors read, edit and turn pages without a pause while one thing after the other is killed with
`kill -9`. Who loses the connection comes back as a browser does, with the address and nothing else. Printed
are how often somebody tried, the longest time until an answer, and how many had another text then. At
last thirty pupils of a class vote while PostgreSQL is killed: what was sent, acknowledged and kept is told.
"""

import argparse
import asyncio
import importlib
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlencode

sys.path.insert(0, str(Path(__file__).parent.parent))

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage

from benchmarks.sessions import Server, arrive, faults_of, some_text
from benchmarks.visitor import Visitor
from gptviz.teach.classroom.classes import Classes
from gptviz.teach.classroom.tables import open_database
from gptviz.teach.guides import FOLDER
from gptviz.ui.shell.navigation import PAGES
from tests.browser.conftest import ROOT, free_port, stop_server
from tests.models.checkpoints import makers

BROKEN = (ConnectionClosed, InvalidHandshake, InvalidMessage, OSError, EOFError, TimeoutError)
VISITORS = 10  # in the chaos
STARTED = re.compile(r"event=start what=(\w+) pid=(\d+)")
EDITS = (
    "z.4.3=zero",
    "attn.2=uniform",
    "resid_post.3=x0.9",
    "mlp_out.1=mean",
    "z.0.1=zero,z.3.4=x0.5",
)


class Deployment:
    """deploy/replicas.py on free ports."""

    def __init__(self, home: Path, replicas: int, **environment: str):
        home.mkdir()
        port = free_port()
        first = free_port(replicas)
        self.url = f"http://127.0.0.1:{port}"
        self.ports = range(first, first + replicas)
        self.log = home / "log"
        command = [
            sys.executable,
            str(ROOT / "deploy" / "replicas.py"),
            "--replicas",
            str(replicas),
        ]
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(
                [*command, "--port", str(port), "--first", str(first)],
                env=os.environ | {"HOME": str(home)} | environment,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        for one in (*self.ports, port):
            wait_for(f"http://127.0.0.1:{one}/readyz")

    def pids(self) -> dict[str, int]:
        """Who runs now, by name: replica1, ..., router."""
        return {name: int(pid) for name, pid in STARTED.findall(self.log.read_text())}

    def replicas(self) -> list[int]:
        return [pid for name, pid in self.pids().items() if name != "router"]

    def megabytes(self) -> float:
        return sum(Server(pid).megabytes() for pid in self.replicas())

    def cpu(self) -> float:
        """Seconds of a processor that all of them have had."""
        return sum(Server(pid).cpu() for pid in self.pids().values())

    def stop(self) -> None:
        stop_server(self._process)

    def tracebacks(self) -> list[str]:
        """Lines of the log that tell of an error."""
        return [
            line
            for line in self.log.read_text().splitlines()
            if re.search(r"Traceback|\.py:\d+ ", line)
        ]


def line(cells: list[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def wait_for(url: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=5)
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"{url} does not answer")


class Learner(Visitor):
    """A visitor with cookies, who also presses buttons and sends files."""

    def __init__(self, url: str, page: str, query: dict[str, object]):
        super().__init__(url, page, query)
        self.buttons: dict[str, tuple[str, str]] = {}  # label -> id, fragment
        self.uploader = self.session = ""
        self.said: list[str] = []  # errors and warnings, in sentences
        self.urls: list[tuple[str, str]] = []

    async def open(self) -> None:
        if not self.headers:
            await asyncio.to_thread(self._arrive)
        self.buttons = {}
        await super().open()

    def _arrive(self) -> None:
        answer = urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=60)
        cookies = [cookie.split(";")[0] for cookie in answer.headers.get_all("Set-Cookie")]
        self.headers = {"Cookie": "; ".join(cookies)}

    @property
    def text(self) -> str:
        return parse_qs(self._query).get("text", [""])[0]

    async def edit(self, edits: str, page: str) -> None:
        """Another page of the model with these edits, by a link."""
        kept = {
            name: values[0] for name, values in parse_qs(self._query).items() if name != "edits"
        }
        self._query = urlencode(kept | ({"edits": edits} if edits else {}))
        await self.turn_to(page)

    async def turn_to(self, page: str) -> float:
        self._box = ""
        self.buttons = {}
        return await super().turn_to(page)

    async def read(self, text: str) -> None:
        """Press Run with another text, here or where there is a prompt."""
        if not self._box:
            await self.turn_to("attention")
        await self.press_run(text)

    async def press(self, label: str) -> bool:
        """Press a button, if there is one with this label."""
        if label not in self.buttons:
            return False
        await self.press_button(*self.buttons[label])
        return True

    async def train(self) -> bool:
        """A short training, seen to its end."""
        kept = {name: values[0] for name, values in parse_qs(self._query).items()}
        self._query = urlencode(kept | {"tr_steps": 100, "tr_n_layers": 1, "tr_emb_dim": 16})
        await self.turn_to("training")
        started = await self.press("Train it")
        for _ in range(60):
            await asyncio.sleep(2)
            self.buttons = {}
            await self._run(self._rerun())
            if "Stop" not in self.buttons:
                break
        return started and await self.press("Remove")

    async def bring(self, files: dict[str, bytes]) -> bool:
        """Upload a model, look at it, and take it away again."""
        await self.turn_to("attention")
        self.said = []
        await self.press("More models …")
        asked = BackMsg()
        infos = []
        asked.file_urls_request.request_id = asked.file_urls_request.session_id = self.session
        asked.file_urls_request.file_names.extend(files)
        self.urls = []
        await self._send(asked, lambda: len(self.urls) == len(files))
        for (number, path), (name, content) in zip(self.urls, files.items(), strict=True):
            await asyncio.to_thread(self._put, path, name, content)
            infos.append((number, path, name, len(content)))
        message = self._rerun()
        state = message.rerun_script.widget_states.widgets.add()
        state.id = self.uploader
        message.rerun_script.fragment_id = self.buttons["Load these files"][1]
        for number, path, name, size in infos:
            info = state.file_uploader_state_value.uploaded_file_info.add(
                name=name, size=size, file_id=number
            )
            info.file_urls.file_id = number
            info.file_urls.upload_url = path
            info.file_urls.delete_url = path
        await self._run(message)
        await self.press("Load these files")
        await self._run(self._rerun())
        mine = "model=upload" in self._query and not self.said
        kept = {
            name: values[0] for name, values in parse_qs(self._query).items() if name != "model"
        }
        self._query = urlencode(kept)
        await self.turn_to("attention")
        return mine

    def _put(self, path: str, name: str, content: bytes) -> None:
        edge = uuid.uuid4().hex
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        token = re.search(r"_streamlit_xsrf=([^;]+)", self.headers["Cookie"])
        assert token is not None
        headers = self.headers | {
            "Content-Type": f"multipart/form-data; boundary={edge}",
            "X-Xsrftoken": token[1].strip('"'),
        }
        body = head.encode() + content + f"\r\n--{edge}--\r\n".encode()
        request = urllib.request.Request(self.url + path, body, headers, method="PUT")
        urllib.request.urlopen(request, timeout=60).read()

    def _heard(self, message: ForwardMsg) -> bool:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.session = message.new_session.initialize.session_id
        elif kind == "file_urls_response":
            self.urls = [
                (one.file_id, one.upload_url) for one in message.file_urls_response.file_urls
            ]
        return super()._heard(message)

    def _drawn(self, element: Element, fragment: str) -> None:
        super()._drawn(element, fragment)
        shown = element.WhichOneof("type")
        if shown == "button":
            self.buttons[element.button.label] = element.button.id, fragment
        elif shown == "file_uploader":
            self.uploader = element.file_uploader.id
        elif shown == "alert":
            self.said.append(element.alert.body)


# ---- one and two ----


async def compare(args: argparse.Namespace, home: Path) -> None:
    both = {number: Deployment(home / f"{number}", number) for number in (1, 2)}
    print(
        "| page | visitors | replicas | half within, s | all, s | of one's | CPU of a run, ms | cores |"
    )
    print("|---" * 8 + "|")
    rng = random.Random(1)
    try:
        for page in args.pages:
            waited: dict[int, list[float]] = {1: [], 2: []}
            lasted: dict[int, list[float]] = {1: [], 2: []}
            cpu = {1: 0.0, 2: 0.0}
            for number in [number for _ in range(args.rounds) for number in both]:
                query: dict[str, object] = {"text": some_text(rng)}
                visitors = await arrive(both[number].url, page, args.visitors, query)
                texts = [some_text(rng) for _ in visitors]
                pressed = [
                    visitor.press_run(text) for visitor, text in zip(visitors, texts, strict=True)
                ]
                cpu[number] -= both[number].cpu()
                seconds = await asyncio.gather(*pressed)
                cpu[number] += both[number].cpu()
                waited[number] += seconds
                lasted[number].append(max(seconds))
                for fault in faults_of(visitors):
                    print("error:", fault)
                await asyncio.gather(*(visitor.leave() for visitor in visitors))
            for number in both:
                half = statistics.median(waited[number])
                last = statistics.median(lasted[number])
                share = last / statistics.median(lasted[1])
                run = cpu[number] / len(waited[number])
                busy = cpu[number] / sum(lasted[number])
                row = [page, args.visitors, number, f"{half:.2f}", f"{last:.2f}", f"{share:.2f}"]
                print(line([*row, f"{1000 * run:.0f}", f"{busy:.2f}"]), flush=True)
    finally:
        for one in both.values():
            one.stop()


# ---- the soak ----


# of a queue (`gptviz.jobs.local`): those that work, and the one that they are forked from
WORKERS = "its workers"
FORKS = "their forks' origin"


async def acts(
    learner: Learner, rng: random.Random, files: dict[str, bytes], done: Counter[str]
) -> None:
    """One thing that a visitor may do."""
    chance = rng.random()
    if chance < 0.02:
        done["trainings"] += await learner.train()
        await learner.turn_to(rng.choice([*PAGES]))
    elif chance < 0.05:
        done["uploads"] += await learner.bring(files)
    elif chance < 0.35:
        await learner.turn_to(rng.choice([*PAGES]))
    elif chance < 0.5:
        await learner.edit(rng.choice(["", *EDITS]), rng.choice([*PAGES]))
        done["edits"] += 1
    else:
        await learner.read(some_text(rng, rng.choice([5, 20, 60, 200])))
    done["acts"] += 1


def small_model(folder: Path) -> dict[str, bytes]:
    """A GPT-2 with little in it, as Hugging Face saves it."""
    # then it reads with GPT-2's tokenizer
    makers.save_hf(makers.hf_model(vocab_size=50257), folder)
    kept = ("config.json", "model.safetensors")
    return {name: (folder / name).read_bytes() for name in kept}


async def soak(args: argparse.Namespace, home: Path) -> None:
    # a small cache is full within the first ten minutes: what grows after that is a leak
    deployment = Deployment(home / "soak", 2, GPTVIZ_TRACE_CACHE_MB="64")
    done = Counter[str]()
    files = small_model(home / "model")
    faults = Counter[str]()
    end = time.monotonic() + 60 * args.soak
    megabytes = []

    async def visit(seed: int) -> None:
        rng = random.Random(seed)
        while time.monotonic() < end:
            learner = Learner(deployment.url, "attention", {"text": some_text(rng)})
            try:
                await learner.open()
                done["visits"] += 1
                for _ in range(rng.randrange(3, 12)):
                    await acts(learner, rng, files, done)
                    if time.monotonic() > end:
                        break
                    await asyncio.sleep(rng.random())
            except (*BROKEN, RuntimeError, KeyError) as error:
                faults[f"{type(error).__name__}: {error}"[:200]] += 1
            finally:
                faults.update(learner.faults)
                await learner.leave()

    async def report() -> None:
        names = ("acts", "visits", "edits", "uploads", "trainings")
        print(
            f"| minute | {' | '.join(names)} | two replicas, MB | errors |\n|{'---|' * (len(names) + 3)}"
        )
        while time.monotonic() < end:
            await asyncio.sleep(min(60, max(1, end - time.monotonic())))
            megabytes.append(deployment.megabytes())
            row = [
                len(megabytes),
                *(done[name] for name in names),
                round(megabytes[-1]),
                faults.total(),
            ]
            print(line(row), flush=True)

    try:
        await asyncio.gather(report(), *(visit(seed) for seed in range(args.visitors)))
    finally:
        deployment.stop()
    for fault, times in [*faults.items(), *Counter(deployment.tracebacks()).items()]:
        print(f"error ({times} times): {fault}")
    settled = megabytes[min(9, len(megabytes) - 1)]
    most = max(megabytes[9:] or megabytes) / settled
    print(f"memory after ten minutes: {settled:.0f} MB, then at most {most:.3f} times that")


# ---- chaos ----


def children(pids: list[int], module: str = "") -> list[int]:
    """The processes that these have started, those that run this module of Python."""
    found = [
        int(one)
        for pid in pids
        for task in Path(f"/proc/{pid}/task").iterdir()
        for one in (task / "children").read_text().split()
    ]
    return [pid for pid in found if module in Path(f"/proc/{pid}/cmdline").read_text()]


async def chaos(args: argparse.Namespace, home: Path) -> None:
    deployment = Deployment(home / "chaos", 2)
    over = asyncio.Event()
    back = Counter[str]()
    longest = dict[str, float]()
    phase = ""
    faults = Counter[str]()
    lost = Counter[str]()
    answered: set[int] = set()  # who has had an answer to what he asked in this phase

    async def visit(seed: int) -> None:
        rng = random.Random(seed)
        learner = Learner(deployment.url, "attention", {"text": some_text(rng)})
        await learner.open()
        while not over.is_set():
            wanted = some_text(rng)
            act = rng.random()
            page = rng.choice([*PAGES])
            began = time.monotonic()
            came_back = False
            asked = phase
            while True:
                try:
                    if came_back:
                        await learner.open()
                    if act < 0.5:
                        await learner.read(wanted)
                    else:
                        wanted = learner.text
                        await learner.turn_to(page)
                    break
                except BROKEN:
                    came_back = True
                    back[asked] += 1
                    await asyncio.sleep(0.5)
            longest[asked] = max(longest.get(asked, 0.0), time.monotonic() - began)
            lost[asked] += learner.text != wanted
            if asked == phase:
                answered.add(seed)
            faults.update(learner.faults)
            learner.faults = []
            await asyncio.sleep(rng.random())
        await learner.leave()

    async def train() -> str:
        """What a training's page says when its worker is killed."""
        learner = Learner(deployment.url, "attention", {"text": "Once"})
        await learner.open()
        learner._query = urlencode({"tr_steps": 5000})
        await learner.turn_to("training")
        await learner.press("Train it")
        await asyncio.sleep(8)
        for worker in children(deployment.replicas(), "gptviz.training"):
            os.kill(worker, signal.SIGKILL)
        await asyncio.sleep(2)
        learner.said = []
        await learner._run(learner._rerun())
        await learner.leave()
        return " ".join(learner.said)

    async def kill() -> None:
        nonlocal phase
        print(line(["killed", "tries to come back", "longest wait, s", "texts lost", "exceptions"]))
        print("|---" * 5 + "|", flush=True)
        for what in ("nothing", WORKERS, FORKS, "a training", "replica1", "replica2", "router"):
            phase = what
            said = ""
            answered.clear()
            if what == "a training":
                said = await train()
            elif what in (WORKERS, FORKS):
                forks = children(deployment.replicas(), "forkserver")
                for pid in forks if what == FORKS else children(forks):
                    os.kill(pid, signal.SIGKILL)
            elif what != "nothing":
                os.kill(deployment.pids()[what], signal.SIGKILL)
            await asyncio.sleep(args.seconds)
            for port in deployment.ports:  # whoever was killed is back before the next
                await asyncio.to_thread(wait_for, f"http://127.0.0.1:{port}/readyz")
            while len(answered) < VISITORS:
                await asyncio.sleep(1)
            row = [what, back[what], f"{longest[what]:.1f}", lost[what], faults.total()]
            print(line(row), flush=True)
            await asyncio.sleep(5)  # until the router knows that all are there
            if said:
                print(f"(its page says: {said})")
        over.set()

    try:
        await asyncio.gather(kill(), *(visit(seed) for seed in range(VISITORS)))
    finally:
        deployment.stop()
    for fault, times in [*faults.items(), *Counter(deployment.tracebacks()).items()]:
        print(f"error ({times} times): {fault}")


class Database:
    """A PostgreSQL of its own, which can be killed and started again."""

    def __init__(self, home: Path):
        home.mkdir()
        port = free_port()
        self._data = home / "data"
        self._as = list[str]()
        if os.geteuid() == 0:  # it refuses to be root's
            home.parent.chmod(0o755)
            shutil.chown(home, "postgres")
            self._as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        self._bin = max(Path("/usr/lib/postgresql").glob("*/bin"))
        self._home = home
        self.url = f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
        self._run("initdb", "-A", "trust", "-U", "postgres")
        self._options = f"-k {home} -h 127.0.0.1 -p {port}"
        self.start()

    def start(self) -> None:
        self._run("pg_ctl", "-w", "-l", str(self._home / "log"), "-o", self._options, "start")

    def kill(self) -> None:
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        killed = [first, *children([first])]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        # it does not start beside its own rest
        while any(Path(f"/proc/{pid}").exists() for pid in killed):
            time.sleep(0.1)
        (self._data / "postmaster.pid").unlink()

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "immediate", "stop")

    def _run(self, program: str, *options: str) -> None:
        command = [*self._as, str(self._bin / program), "-D", str(self._data), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self._home)


async def chaos_of_a_class(home: Path) -> None:
    """Thirty pupils vote through the router, while the database is killed and comes back."""
    lesson = importlib.import_module("class")
    database = Database(home / "postgres")
    deployment = Deployment(home / "school", 2, GPTVIZ_DATABASE=database.url)
    try:
        classes = Classes(open_database(database.url))
        secret = classes.begin((FOLDER / "tour.md").read_text("utf-8"), {}, [])
        room = classes.member(secret).room  # type: ignore[union-attr]
        classes.steer(secret, step=0)
        pupils = [lesson.Browser(deployment, classes.join(room.code, "here")) for _ in range(30)]
        for first in range(0, len(pupils), 5):
            await asyncio.gather(*(pupil.open() for pupil in pupils[first : first + 5]))
        rng = random.Random(1)
        told = 0
        words = [rng.choice(lesson.WORDS) for _ in pupils]
        await lesson.together(pupils, words, rng)
        database.kill()
        words = [rng.choice(lesson.WORDS) for _ in pupils]
        for pupil, word in zip(pupils, words, strict=True):
            await pupil.vote(word)
            told += any(
                "did not answer" in text for text in pupil.texts
            ) and not pupil.acknowledged(word)
        database.start()
        for pupil, word in zip(pupils, words, strict=True):
            await pupil.vote(word)
            assert pupil.acknowledged(word), pupil.texts
        classes.steer(secret, marks=(0, ["shown"]))
        # a file lies at its replica
        first = SimpleNamespace(url=f"http://127.0.0.1:{deployment.ports[0]}")
        seen, in_file = await lesson.wall_and_file(first, secret)
        print(
            f"the database killed: {told} of {len(pupils)} were told in a sentence, and voted again; "
            f"sent {dict(Counter(words))}, on the wall {dict(seen)}, in the CSV {dict(in_file)}"
        )
        if not Counter(words) == seen == in_file:
            print("error: sent, wall and CSV are not the same")
    finally:
        deployment.stop()
        database.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", nargs="+", default=["attention", "overview"])
    parser.add_argument("--visitors", type=int, help="30, and 20 in the soak")
    parser.add_argument("--soak", type=float, default=0, metavar="MINUTES")
    parser.add_argument("--chaos", action="store_true")
    parser.add_argument("--seconds", type=float, default=30, help="after each death (%(default)s)")
    args = parser.parse_args()
    args.visitors = args.visitors or (20 if args.soak else 30)
    what = compare
    if args.chaos:
        what = chaos
    if args.soak:
        what = soak
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(what(args, Path(folder)))
        if args.chaos:
            asyncio.run(chaos_of_a_class(Path(folder)))


if __name__ == "__main__":
    main()
