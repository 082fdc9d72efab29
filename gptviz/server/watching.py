"""How one sees from outside what a server does: `/healthz` and `/readyz`, and numbers for Prometheus.

`/healthz` says that the process answers: a router asks it. `/readyz` says whether all stands that visitors
may need: a router that asked it would turn everybody away while a database is down that only classes use.

The numbers stand in Streamlit's own list of them (`/_stcore/metrics`, beside its sessions and caches), so
they need no library. Of runs Streamlit (1.67) has no number. How long one takes is measured where it is asked
for and answered, at the websocket: with all that it waits for, be it a page or a fragment of one.
"""

import math
import os
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, count

from anyio import fail_after
from anyio.to_thread import run_sync
from google.protobuf.message import DecodeError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.stats import CounterStat, GaugeStat, HistogramStat, Stat
from streamlit.util import calc_hash

from gptviz.server import log
from gptviz.ui import jobs
from gptviz.ui.models.budget import budget
from gptviz.ui.models.cache import model_cache
from gptviz.ui.models.choice import Choice
from gptviz.ui.models.in_use import key_of, plan_of
from gptviz.ui.runs import runs
from gptviz.ui.shell.navigation import FIRST, PAGES
from gptviz.ui.teach.classroom import classes
from gptviz.ui.training.mine import trainings
from gptviz.ui.training.trainings import ACTIVE

SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, math.inf)
# `classroom.tables`, which needs SQLAlchemy, is imported only for a class
DATABASE = "GPTVIZ_DATABASE"
PATIENCE = 5.0  # seconds for all that /readyz asks
SMALL = 2000  # bytes; the message that a run is over has about fifty
UPLOAD = "_stcore/upload_file"
KINDS = (UPLOAD, "_stcore", "static", "component-code", "media", "healthz", "readyz")

_PAGE_OF = {calc_hash(name): name for name in PAGES} | {
    calc_hash(name): FIRST for name in ("", "start")
}
_number = count(1)


class Numbers:
    """What was counted since the process began; one of the providers of Streamlit's statistics."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # kind and status
        self._runs: dict[str, list[int]] = {}  # page: runs in each interval of SECONDS
        self._seconds: dict[str, float] = {}

    def ran(self, page: str, seconds: float) -> None:
        """Note how many seconds after its request a run was answered."""
        self._runs.setdefault(page, [0] * len(SECONDS))[bisect_left(SECONDS, seconds)] += 1
        self._seconds[page] = self._seconds.get(page, 0.0) + seconds

    @property
    def stats_families(self) -> Sequence[str]:
        return list(dict.fromkeys(stat.family_name for stat in self._stats()))

    def get_stats(self, family_names: Sequence[str] | None = None) -> Mapping[str, Sequence[Stat]]:
        families: dict[str, list[Stat]] = {}
        for stat in self._stats():
            families.setdefault(stat.family_name, []).append(stat)
        return families

    def _stats(self) -> Iterator[Stat]:
        for (kind, status), times in [*self.requests.items()] or [(("page", 200), 0)]:
            labels = {"of": kind, "status": str(status)}
            yield CounterStat(
                "gptviz_requests", times, labels, help="Requests, by what was asked for."
            )
        for page, counts in [*self._runs.items()] or [(FIRST, [0] * len(SECONDS))]:
            buckets = tuple(zip(SECONDS, accumulate(counts), strict=True))
            yield HistogramStat(
                "gptviz_run_seconds",
                buckets,
                self._seconds.get(page, 0.0),
                buckets[-1][1],
                {"page": page},
                "seconds",
                "From a click to the end of its run.",
            )
        yield CounterStat("gptviz_errors", log.errors, help="Lines of the log that were errors.")
        line = jobs.queue().snapshot()
        for state in ("waiting", "working"):
            yield GaugeStat(
                "gptviz_works", int(line[state]), {"state": state}, help="In the line, by state."
            )
        yield GaugeStat("gptviz_workers", line["slots"], help="Works that are done at a time.")
        waits = line["longest_wait_seconds"]
        yield GaugeStat(
            "gptviz_work_wait_seconds", waits, None, "seconds", "Of whoever waits the longest."
        )
        sizes = {
            "models": model_cache().nbytes,
            "runs": runs().nbytes,
            "works": line["result_bytes"],
        }
        for name, size in sizes.items():
            yield GaugeStat(
                "gptviz_cache_bytes", size, {"of": name}, "bytes", "Kept for all visitors."
            )
        yield GaugeStat(
            "gptviz_uploads_bytes", budget().nbytes, None, "bytes", "Visitors' own files."
        )
        states = trainings().states()
        for state in ACTIVE:
            yield GaugeStat("gptviz_trainings", states[state], {"state": state}, help="By state.")


NUMBERS = Numbers()


class Watched:
    """ASGI middleware: counts requests, and how long runs take from the click to their end."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._visit(scope, receive, send)
        elif scope["type"] == "http":
            await self._request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = next((kind for kind in KINDS if f"/{kind}" in scope["path"]), "page")

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                NUMBERS.requests[kind, message["status"]] += 1
                if kind == UPLOAD:
                    log.log("upload", status=message["status"])
            await send(message)

        await self._app(scope, receive, answer)

    async def _visit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One visitor's websocket, from the first to the last message."""
        visitor = next(_number)
        began = time.monotonic()
        page = FIRST
        asked = 0.0

        async def hear() -> Message:
            nonlocal page, asked
            message = await receive()
            run = _run_of(message)
            if run is not None:
                page = _PAGE_OF.get(run.page_script_hash or calc_hash(run.page_name), FIRST)
                asked = time.monotonic()
            return message

        async def say(message: Message) -> None:
            nonlocal asked
            await send(message)
            if asked and _ends_a_run(message):
                seconds = time.monotonic() - asked
                asked = 0.0
                NUMBERS.ran(page, seconds)
                log.log("run", visitor=visitor, page=page, seconds=seconds)

        log.log("come", visitor=visitor)
        try:
            await self._app(scope, hear, say)
        finally:
            log.log("gone", visitor=visitor, seconds=time.monotonic() - began)


def _run_of(message: Message) -> ClientState | None:
    """The run that a browser's message asks for."""
    try:
        request = BackMsg.FromString(message.get("bytes") or b"")
    except DecodeError:  # Streamlit reports it
        return None
    if request.WhichOneof("type") == "rerun_script":
        return request.rerun_script
    return None


def _ends_a_run(message: Message) -> bool:
    content = message.get("bytes") or b""
    if len(content) > SMALL:
        return False
    reply = ForwardMsg.FromString(content)
    over = reply.WhichOneof("type") == "script_finished"
    return over and reply.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN


def not_ready() -> str | None:
    """Why this server cannot serve everybody, in a sentence; None where all stands that visitors may need."""
    try:
        choice = Choice()
        model_cache().get(key_of(choice), partial(plan_of, choice))
        if os.environ.get(DATABASE):
            classes().answers()
        if not jobs.queue().backend.stands():
            return (
                "The workers are gone, and maps wait. Start the server, or its Ray cluster, again."
            )
    except (ValueError, OSError) as error:
        return f"{error}"
    return None


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("The server answers.")


async def _readyz(_: Request) -> Response:
    try:
        with fail_after(PATIENCE):
            why = await run_sync(not_ready, abandon_on_cancel=True)
    except TimeoutError:
        why = f"The model and the database of classes did not answer within {PATIENCE:.0f} s."
    return PlainTextResponse(why or "The server is ready.", 200 if why is None else 503)


ROUTES = [Route("/{base:path}healthz", _healthz), Route("/{base:path}readyz", _readyz)]
