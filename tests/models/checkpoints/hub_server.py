"""A small hub on 127.0.0.1: metadata, redirects to another host, ranges, ETags; and what goes wrong."""

import hashlib
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from huggingface_hub import constants

COMMIT = "c" * 40
LARGE = (".safetensors", ".bin")


class Hub:
    """Serves a folder as the repository `owner/name`. Set the attributes to make it misbehave."""

    def __init__(self, folder, repository="someone/tiny"):
        self.repository = repository
        self.files = {file.name: file.read_bytes() for file in folder.iterdir()}
        self.requests: list[tuple[str, str, str | None]] = []  # method, path, range
        self.passwords: list[tuple[str, str]] = []  # path, Authorization
        self.cut_after: int | None = None  # each answer ends after so many bytes
        self.cuts = 0  # how many answers are still cut
        self.wrong_bytes = False
        self.status: int | None = None
        self.silent_seconds = 0.0
        self.ignores_ranges = False
        self.slow_seconds = 0.0  # before each piece of a large file
        self.size_of: dict[str, int] = {}  # sizes that it claims
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                hub.answer(self)

            do_HEAD = do_GET

            def log_message(self, *args):
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stands_for_hugging_face(self, monkeypatch, cache):
        monkeypatch.setattr(constants, "ENDPOINT", self.url)
        where = self.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", where)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def gets(self, part):
        return [request for request in self.requests if request[0] == "GET" and part in request[1]]

    def answer(self, handler):
        self.requests.append((handler.command, handler.path, handler.headers.get("Range")))
        if "Authorization" in handler.headers:
            self.passwords.append((handler.path, handler.headers["Authorization"]))
        time.sleep(self.silent_seconds)
        if handler.path.startswith("/cdn/"):
            return self.send(handler, handler.path.removeprefix("/cdn/"), {})
        found = re.fullmatch(rf"/{self.repository}/resolve/(main|{COMMIT})/(.+)", handler.path)
        if self.status or not found:
            error = {401: "RepoNotFound", 403: "GatedRepo", None: "RepoNotFound"}.get(
                self.status, ""
            )
            return self.refuse(handler, self.status or 404, error)
        name = found[2]
        if name not in self.files:
            return self.refuse(handler, 404, "EntryNotFound")
        data = self.files[name]
        headers = {"X-Repo-Commit": COMMIT}
        if name.endswith(LARGE):
            headers |= {
                "X-Linked-ETag": f'"{hashlib.sha256(data).hexdigest()}"',
                "X-Linked-Size": str(self.size_of.get(name, len(data))),
                "Location": f"http://localhost:{self.port}/cdn/{name}",
                "Content-Length": "0",
            }
            return self.head(handler, 302, headers)
        git = hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
        return self.send(handler, name, headers | {"ETag": f'"{git}"'})

    def refuse(self, handler, status, error):
        self.head(handler, status, {"X-Error-Code": error, "Content-Length": "0"})

    def head(self, handler, status, headers):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()

    def send(self, handler, name, headers):
        whole = self.files[name]
        start = 0
        status = 200
        asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        if asked and not self.ignores_ranges:
            start = int(asked[1])
            status = 206
            if start >= len(whole):
                return self.head(
                    handler, 416, {"Content-Range": f"bytes */{len(whole)}", "Content-Length": "0"}
                )
            headers = headers | {"Content-Range": f"bytes {start}-{len(whole) - 1}/{len(whole)}"}
        data = whole[start:]
        if self.wrong_bytes and name.endswith(LARGE):
            data = bytes(len(data))
        self.head(handler, status, headers | {"Content-Length": str(len(data))})
        if handler.command == "HEAD":
            return
        if self.cut_after is not None and self.cuts and name.endswith(LARGE):
            self.cuts -= 1
            handler.wfile.write(data[: self.cut_after])
            handler.wfile.flush()
            handler.close_connection = True
            handler.connection.close()
            return
        for piece in range(0, len(data), 8192):
            if self.slow_seconds and name.endswith(LARGE):
                time.sleep(self.slow_seconds)
            handler.wfile.write(data[piece : piece + 8192])
