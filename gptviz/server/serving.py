"""What our server does beside Streamlit's: it compresses JavaScript and CSS, has the components' code, and
bounds what is sent to it.

A first visit takes 3 to 8 MB of them, a third of that as gzip. Streamlit leaves its `/static/` alone
because Starlette's middleware would compress every file anew for every visitor; here a file is
compressed once a process and kept, so that a class that opens the app at once costs no more than one.
`app.py` hands `MIDDLEWARE`, `ROUTES` and `lifespan` to `st.App`; what else is served Streamlit compresses
itself.
"""

import asyncio
import gzip
import os
from asyncio import Lock
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import sleep_forever
from anyio.to_thread import run_sync
from cachetools import LRUCache
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime

from gptviz.files.owned_folder import TRAININGS, UPLOADS, WORKS, sweep
from gptviz.server import early, log, sessions, watching
from gptviz.ui import jobs
from gptviz.ui.components.code import PATH, served
from gptviz.ui.components.theme_watch import code_ahead
from gptviz.ui.models.budget import absent, budget, end

KEPT_BYTES = 16 * 2**20  # Streamlit's own files are 7 MB when compressed
FOLDERS = ("/static/", f"/{PATH}/")  # below the server's own path, if it has one
SMALL = 1000  # bytes from which it pays
TYPES = (
    "text/javascript",
    "application/javascript",
    "text/css",
    "application/json",
    "image/svg+xml",
)

# A browser asks only this server for a picture, a film, a font or a page in a frame, whatever a text that is
# shown may say; saved pictures are `data:` and `blob:`.
POLICY = (
    "img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self' data:; "
    "frame-src 'self' data: blob:; object-src 'none'; form-action 'self'"
)

METRICS = "/_stcore/metrics"
METRICS_SETTING = "GPTVIZ_METRICS"
SENT_TO = "/_stcore/upload_file/"  # then the session, and the file's name for it
# Streamlit keeps a session that broke off for 120 s; after that nothing can end it, and what it sent stays
LEFT_SECONDS = 100.0

# The app below answers requests for a part of a file, or whether it has changed.
_NOT_PLAIN = ("range", "if-none-match", "if-modified-since")


class CompressedStatic:
    """ASGI middleware: plain GETs of such files are answered with gzip where the browser takes it."""

    def __init__(self, app: ASGIApp):
        self._app = app
        # path -> (headers, compressed body); () for what is better left as it is
        self._kept: LRUCache[str, tuple[Headers, bytes] | tuple[()]] = LRUCache(KEPT_BYTES, _size)
        self._compressing = Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _wants_gzip(scope):
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path not in self._kept:
            # thirty requests for one file at once wait for one compression
            async with self._compressing:
                if path not in self._kept:
                    self._kept[path] = await self._compressed(scope)
        compressed = self._kept.get(path, ())
        if not compressed:
            await self._app(scope, receive, send)
            return
        headers, body = compressed
        await send({"type": "http.response.start", "status": 200, "headers": headers.raw})
        await send({"type": "http.response.body", "body": body})

    async def _compressed(self, scope: Scope) -> tuple[Headers, bytes] | tuple[()]:
        """The answer of the app below, compressed; nothing where it is no text, not there, or personal."""
        asked: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]
        messages: list[Message] = []

        async def stay() -> Message:
            # it is kept for everybody: a file must not end where the first who asked for it has left
            if not asked:
                await sleep_forever()
            return asked.pop()

        async def keep(message: Message) -> None:
            messages.append(message)

        # its own scope: Starlette writes into it how much of the path is a folder's, and it is asked again
        await self._app(dict(scope), stay, keep)
        headers = MutableHeaders(raw=list(messages[0]["headers"]))
        body = b"".join(message.get("body", b"") for message in messages[1:])
        text = headers.get("content-type", "").startswith(TYPES)
        as_it_is = "set-cookie" in headers or "content-encoding" in headers
        if messages[0]["status"] != 200 or not text or len(body) < SMALL or as_it_is:
            return ()
        body = await run_sync(gzip.compress, body, 6)
        headers["content-encoding"] = "gzip"
        headers["content-length"] = str(len(body))
        headers.add_vary_header("Accept-Encoding")
        if "etag" in headers:  # these are other bytes than the file's
            headers["etag"] = f"W/{headers['etag'].removeprefix('W/')}"
        return Headers(raw=headers.raw), body


class Doors:
    """ASGI middleware: an upload must fit in the server's room, and is removed soon after its visitor left.

    The server's numbers (`/_stcore/metrics`) are open where GPTVIZ_METRICS=1. A page tells its browser whom
    it may ask (POLICY), and what it will need (`early`).
    """

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        app = self._app

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                if headers.get("content-type", "").startswith("text/html"):
                    headers["content-security-policy"] = POLICY
                    headers["link"] = early.links(path)
                    message = {**message, "headers": headers.raw}
            await send(message)

        if scope["type"] == "websocket":
            try:
                await app(scope, receive, send)
            finally:
                _look_again(absent())
        elif path.rstrip("/").endswith(METRICS) and os.environ.get(METRICS_SETTING) != "1":
            sentence = (
                f"The numbers of this server are not public; {METRICS_SETTING}=1 makes them so."
            )
            await PlainTextResponse(sentence, 404)(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "PUT" and SENT_TO in path:
            await self._receive(path.partition(SENT_TO)[2].partition("/")[0], scope, receive, send)
        elif scope["type"] == "http":
            await app(scope, receive, answer)
        else:
            await app(scope, receive, send)

    async def _receive(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a file, if there is room for it. Streamlit itself refuses an unknown session."""
        length = Headers(scope=scope).get("content-length", "")
        ticket = object()
        if not (length.isascii() and length.isdigit() and len(length) < 16):
            await PlainTextResponse("Say how many bytes come: Content-Length.", 411)(
                scope, receive, send
            )
            return
        if runtime.get_instance().is_active_session(session):
            why = budget().receive(session, ticket, int(length))
            if why is not None:
                await PlainTextResponse(f"The file was not taken: {why}.", 413)(
                    scope, receive, send
                )
                return
        try:
            await self._app(scope, receive, send)
        finally:
            budget().give(ticket)  # now Streamlit has it, and it is counted there
            _look_again(absent())  # its visitor may have left meanwhile


def _look_again(sessions: list[str]) -> None:
    if sessions:
        asyncio.get_running_loop().call_later(LEFT_SECONDS, end, sessions)


@asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[dict[str, object]]:
    """Start the server: remove what killed servers have left, and start the workers."""
    log.watch()
    sessions.keep_what_was_drawn()
    runtime.get_instance().stats_mgr.register_provider(watching.NUMBERS)
    for prefix in (TRAININGS, UPLOADS, WORKS):
        await run_sync(sweep, prefix)
    await run_sync(jobs.queue)
    # a browser may ask this server, before anybody's page is drawn here, for what another one named to it
    await run_sync(code_ahead)
    log.log("start")
    yield {}
    log.log("stop")


def _wants_gzip(scope: Scope) -> bool:
    if (
        scope["type"] != "http"
        or scope["method"] != "GET"
        or not any(f in scope["path"] for f in FOLDERS)
    ):
        return False
    headers = Headers(scope=scope)
    plain = not any(name in headers for name in _NOT_PLAIN)
    return plain and "gzip" in headers.get("accept-encoding", "")


def _size(entry: tuple[Headers, bytes] | tuple[()]) -> int:
    return 1000 + (len(entry[1]) if entry else 0)


async def _component_code(request: Request) -> Response:
    text = served(request.path_params["file"])
    if text is None:
        return PlainTextResponse("There is no such file.", 404)
    # another text has another name
    for_ever = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(text, media_type="text/javascript", headers=for_ever)


MIDDLEWARE = [Middleware(one) for one in (watching.Watched, Doors, CompressedStatic)]
ROUTES = [Route(f"/{{base:path}}{PATH}/{{file}}", _component_code), *watching.ROUTES]
