"""Two replicas behind the router of deploy/: a visitor stays at one, and comes to the other when it dies."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gptviz.ui.components.theme_watch import charts_file
from tests.browser.conftest import (
    ROOT,
    free_port,
    imported_ahead,
    more_models,
    settled,
    stop_server,
    type_prompt,
)
from tests.waiting import until

ACTIVE = re.compile(r"^active_sessions (\d+)", re.M)
PID = re.compile(r"what=replica(\d) pid=(\d+)")
# whether all is there that a page fetches ahead while it rests
FETCHED = """names => {
  const fetched = new Set(performance.getEntriesByType('resource').map(({ name }) => name.split('/').pop()));
  const fonts = ["italic 1em 'Source Sans'", "1em 'Source Code Pro'"];
  return names.every((name) => fetched.has(name)) && fonts.every((font) => document.fonts.check(font));
}"""


@pytest.fixture
def haproxy():
    """Where it is."""
    found = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    return found or pytest.skip("there is no haproxy on this machine")


@pytest.fixture
def replicas(browser, haproxy, tmp_path):
    """The router's address, those of two replicas, and a function that kills one of these."""
    port = free_port()
    first = free_port(2)
    log = tmp_path / "log"
    environment = {"HOME": str(tmp_path), "GPTVIZ_METRICS": "1"}
    command = [sys.executable, ROOT / "deploy" / "replicas.py", "--replicas", "2"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--first", str(first)],
            env=os.environ | environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )

    def kill(number):
        pids = dict(PID.findall(log.read_text()))  # of each the last
        os.kill(int(pids[str(number + 1)]), signal.SIGKILL)

    urls = [f"http://127.0.0.1:{one}" for one in (port, first, first + 1)]
    try:
        for url in urls:
            until(lambda url=url: answers(f"{url}/healthz"))
        yield urls[0], urls[1:], kill
    except AssertionError:
        print(log.read_text())
        raise
    finally:
        stop_server(process)


def answers(url):
    try:
        return urllib.request.urlopen(url, timeout=5).read().decode()
    except OSError:
        return ""


def visitors(replica):
    found = ACTIVE.search(answers(f"{replica}/_stcore/metrics?families=active_sessions"))
    return int(found[1]) if found else 0


def test_a_visitor_whose_replica_dies_comes_up_at_the_other_as_it_was(
    replicas, open_page, tmp_path
):
    router, servers, kill = replicas
    page = open_page("attention", base=router, text="The old house", token=2)
    (home,) = (number for number, server in enumerate(servers) if visitors(server))
    more_models(page)
    (tmp_path / "mine.pth").write_bytes(bytes(1000))
    page.get_by_role("dialog").locator("input[type=file]").set_input_files(tmp_path / "mine.pth")
    page.get_by_text("mine.pth").first.wait_for()  # it came to the replica that has the session
    page.keyboard.press("Escape")
    settled(page)
    # a file that a killed server has begun is broken, and the browser's log says so
    imported = [file.rpartition("/")[2] for file in imported_ahead()]
    page.wait_for_function(FETCHED, arg=[*imported, charts_file()])
    settled(page)
    cookie = page.context.cookies()
    other = servers[1 - home]
    kill(home)
    until(lambda: visitors(other) == 1)
    settled(page)
    assert page.get_by_role("textbox", name="Prompt").input_value() == "The old house"
    assert "token=2" in page.url
    type_prompt(page, "And then the rain")  # nothing is lost of what is done next
    page.wait_for_url("**text=And+then+the+rain*")
    assert "token=2" in page.url and page.context.cookies() != cookie
    until(lambda: answers(f"{servers[home]}/healthz"))  # it was started again


class EndsWhatRests(BaseHTTPRequestHandler):
    """A replica that closes a connection in the moment in which it is used once more."""

    protocol_version = "HTTP/1.1"
    used = False

    def do_GET(self):
        self.close_connection = self.used
        if not self.used:
            body = str(self.server.server_port).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        self.used = True

    def log_message(self, *_):
        """Say nothing."""


def test_who_comes_once_more_comes_to_the_same_replica(haproxy, tmp_path):
    """A connection that a replica ends takes nobody elsewhere: their session would not be there."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), EndsWhatRests) for _ in range(2)]
    for one in servers:
        threading.Thread(target=one.serve_forever, daemon=True).start()
    lines = [
        f"    server r{one.server_port} 127.0.0.1:{one.server_port} check\n" for one in servers
    ]
    (tmp_path / "backend.cfg").write_text("".join(["backend replicas\n", *lines]))
    port = free_port()
    command = [
        haproxy,
        "-db",
        "-f",
        ROOT / "deploy" / "haproxy.cfg",
        "-f",
        tmp_path / "backend.cfg",
    ]
    router = subprocess.Popen(command, env=os.environ | {"GPTVIZ_PORT": str(port)})
    try:
        until(lambda: answers(f"http://127.0.0.1:{port}/healthz"))
        visitor = HTTPConnection("127.0.0.1", port)
        cookie = {}
        seen = []
        for _ in range(6):
            visitor.request("GET", "/", headers=cookie)
            answer = visitor.getresponse()
            cookie |= (
                {"Cookie": said.split(";")[0]} if (said := answer.getheader("Set-Cookie")) else {}
            )
            seen.append(answer.read())
        assert len(set(seen)) == 1 and cookie
    finally:
        stop_server(router)
        for one in servers:
            one.shutdown()
            one.server_close()


class SaysWhoComes(BaseHTTPRequestHandler):
    def do_GET(self):
        said = [
            f"{name}: {value}"
            for name, value in self.headers.items()
            if "forwarded" in name.lower()
        ]
        body = "\n".join(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


def test_what_a_visitor_says_of_its_own_address_is_not_believed(haproxy, tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), SaysWhoComes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "backend.cfg").write_text(
        f"backend replicas\n    server r 127.0.0.1:{server.server_port} check\n"
    )
    port = free_port()
    command = [
        haproxy,
        "-db",
        "-f",
        ROOT / "deploy" / "haproxy.cfg",
        "-f",
        tmp_path / "backend.cfg",
    ]
    router = subprocess.Popen(command, env=os.environ | {"GPTVIZ_PORT": str(port)})
    try:
        until(lambda: answers(f"http://127.0.0.1:{port}/healthz"))
        visitor = HTTPConnection("127.0.0.1", port)
        visitor.putrequest("GET", "/")
        for value in ("203.0.113.9", "203.0.113.8, 203.0.113.7"):
            visitor.putheader("X-Forwarded-For", value)
        visitor.putheader("x-forwarded-proto", "https")
        visitor.endheaders()
        assert visitor.getresponse().read().decode().lower() == "x-forwarded-for: 127.0.0.1"
    finally:
        stop_server(router)
        server.shutdown()
        server.server_close()
