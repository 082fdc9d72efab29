"""What our server does beside Streamlit's: it compresses JavaScript and CSS, and has the components' code.

A first visit takes 3 to 8 MB of them, a third of that as gzip. Streamlit leaves its `/static/` alone
because Starlette's middleware would compress every file anew for every visitor; here a file is
compressed once a process and kept, so that a class that opens the app at once costs no more than one.
`app.py` hands `MIDDLEWARE` and `ROUTES` to `st.App`; what else is served Streamlit compresses itself.
"""

import gzip
from asyncio import Lock

from anyio.to_thread import run_sync
from cachetools import LRUCache
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gptviz.ui.components.code import PATH, served

KEPT_BYTES = 16 * 2**20  # Streamlit's own files are 7 MB when compressed
FOLDERS = ("/static/", f"/{PATH}/")  # below the server's own path, if it has one
SMALL = 1000  # bytes from which it pays
TYPES = ("text/javascript", "application/javascript", "text/css", "application/json", "image/svg+xml")

# A part of a file, or the question whether it has changed, is answered by who has the file.
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
            async with self._compressing:  # thirty who ask for the same file at once wait for one
                if path not in self._kept:
                    self._kept[path] = await self._compressed(scope, receive)
        found = self._kept.get(path, ())
        if not found:
            await self._app(scope, receive, send)
            return
        headers, body = found
        await send({"type": "http.response.start", "status": 200, "headers": headers.raw})
        await send({"type": "http.response.body", "body": body})

    async def _compressed(self, scope: Scope, receive: Receive) -> tuple[Headers, bytes] | tuple[()]:
        """The answer of the app below, compressed; nothing where it is no text, not there, or personal."""
        said: list[Message] = []

        async def keep(message: Message) -> None:
            said.append(message)

        await self._app(scope, receive, keep)
        headers = MutableHeaders(raw=list(said[0]["headers"]))
        body = b"".join(message.get("body", b"") for message in said[1:])
        text = headers.get("content-type", "").startswith(TYPES)
        as_it_is = "set-cookie" in headers or "content-encoding" in headers
        if said[0]["status"] != 200 or not text or len(body) < SMALL or as_it_is:
            return ()
        body = await run_sync(gzip.compress, body, 6)
        headers["content-encoding"] = "gzip"
        headers["content-length"] = str(len(body))
        headers.add_vary_header("Accept-Encoding")
        if "etag" in headers:  # these are other bytes than the file's
            headers["etag"] = f"W/{headers['etag'].removeprefix('W/')}"
        return Headers(raw=headers.raw), body


def _wants_gzip(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET" or not any(f in scope["path"] for f in FOLDERS):
        return False
    headers = Headers(scope=scope)
    plain = not any(name in headers for name in _NOT_PLAIN)
    return plain and "gzip" in headers.get("accept-encoding", "")


def _size(kept: tuple[Headers, bytes] | tuple[()]) -> int:
    return 1000 + (len(kept[1]) if kept else 0)


async def _component_code(request: Request) -> Response:
    text = served(request.path_params["file"])
    if text is None:
        return PlainTextResponse("There is no such file.", 404)
    for_ever = {"Cache-Control": "public, max-age=31536000, immutable"}  # another text has another name
    return Response(text, media_type="text/javascript", headers=for_ever)


MIDDLEWARE = [Middleware(CompressedStatic)]
ROUTES = [Route(f"/{{base:path}}{PATH}/{{file}}", _component_code)]
