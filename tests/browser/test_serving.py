"""What a first visit costs on the wire, counted in a real browser with an empty cache."""

import gzip
import os
import re
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import streamlit

from gptviz.ui.components.code import PATH, served
from gptviz.ui.components.theme_watch import code_ahead
from tests.browser.conftest import (
    ROOT,
    imported_ahead,
    more_models,
    new_page,
    start_server,
    stop_server,
)
from tests.waiting import until

COUNT = """() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
  .map(entry => [new URL(entry.name).pathname, entry.encodedBodySize, entry.decodedBodySize])"""


def test_the_first_visit_is_compressed_and_a_components_code_kept_for_ever(server, open_page):
    page = open_page(text="one two three", cold=True)
    loaded = page.evaluate(COUNT)
    scripts = [
        entry for entry in loaded if entry[0].startswith("/static/") and entry[0].endswith(".js")
    ]
    assert scripts
    parts = [entry for entry in loaded if "/component-code/" in entry[0]]
    assert len(parts) == len({path for path, _, _ in parts})
    for path, sent, whole in scripts + parts:
        assert sent < whole or whole < 1000, path
    assert sum(sent for _, sent, _ in loaded) < 1_500_000
    assert not any("plotly" in path for path, _, _ in loaded)  # Overview has no chart that needs it
    (kernel,) = {path for path, _, _ in loaded if "/kernel." in path}
    answer = urllib.request.urlopen(server + kernel)
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["Content-Type"].startswith("text/javascript")
    with pytest.raises(urllib.error.HTTPError, match="404"):  # another name has none
        urllib.request.urlopen(f"{server}/component-code/kernel.js")


def test_a_servers_numbers_are_its_own(server):
    for path in ("/_stcore/metrics", "/_stcore/metrics/", "/_stcore/%6detrics"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(server + path)


SIZE = 60_000_000


def resident(pid):
    """Bytes of memory that a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


APP = """
import streamlit as st

from gptviz.server import serving

serving.LEFT_SECONDS = 0.1
app = st.App({script!r}, middleware=serving.MIDDLEWARE, routes=serving.ROUTES, lifespan=serving.lifespan)
"""


def test_what_is_sent_is_bounded_for_all_together_and_goes_with_its_sender(
    browser, tmp_path_factory
):
    """In memory, before anybody presses Load. The server's numbers, which this one shows, say how much."""
    # a short name: a socket's, below TMPDIR, has 107 bytes at most
    tmp_path = tmp_path_factory.mktemp("t")
    (tmp_path / "app.py").write_text(APP.format(script=str(ROOT / "app.py")))
    killed = tmp_path / "gptviz-upload-killed"
    killed.mkdir()
    (killed / "server.lock").touch()  # which nobody holds
    settings = {
        "GPTVIZ_METRICS": "1",
        "GPTVIZ_LOG": "1",
        "GPTVIZ_UPLOADS_MB": "90",
        "TMPDIR": str(tmp_path),
    }
    process, url = start_server(tmp_path, app=str(tmp_path / "app.py"), **settings)
    try:
        assert not killed.exists()
        page = browser.new_page()  # a refused file is an error in the browser's own log
        page.goto(f"{url}/tokens?text=grandmother")
        held = re.compile(r'cache_memory_bytes{[^}]*"UploadedFileManager"[^}]*} (\d+)')

        def in_memory():
            found = held.search(urllib.request.urlopen(f"{url}/_stcore/metrics").read().decode())
            return int(found[1]) if found else 0

        more_models(page)
        files = page.get_by_role("dialog").locator("input[type=file]")
        for name in ("first.pth", "second.pth"):
            (tmp_path / name).write_bytes(bytes(SIZE))
        files.set_input_files(tmp_path / "first.pth")
        until(lambda: in_memory() == SIZE)
        full = resident(process.pid)
        files.set_input_files(tmp_path / "second.pth")
        page.get_by_text("The last file was not accepted: this server takes at most").wait_for()
        assert in_memory() == SIZE
        page.close()
        said = urllib.request.urlopen(f"{url}/_stcore/metrics").read().decode()
        for number in (
            'gptviz_requests_total{of="_stcore/upload_file",status="413"} 1',
            f"gptviz_uploads_bytes {SIZE}",
            'gptviz_cache_bytes{of="models"} 27588608',
            "gptviz_workers 1",
        ):
            assert number in said
        runs = re.search(r'gptviz_run_seconds_count{page="tokens"} (\d+)', said)
        assert int(runs[1]) >= 3  # the page, the dialog, the file
        until(lambda: in_memory() == 0)
        until(lambda: resident(process.pid) <= full - 0.9 * SIZE)  # nothing is kept
        session = "00000000-0000-4000-8000-000000000000"
        request = urllib.request.Request(
            f"{url}/_stcore/upload_file/{session}/1", b"1", method="PUT"
        )
        # Streamlit's: who is no session
        with pytest.raises(urllib.error.HTTPError, match=r"40[03]"):
            urllib.request.urlopen(request)
    finally:
        stop_server(process)
    lines = (tmp_path / "server.log").read_text().splitlines()
    events = [line.partition("event=")[2].partition(" ")[0] for line in lines if "event=" in line]
    assert [events[0], events[-1]] == ["start", "stop"]
    assert {"come", "run", "upload", "gone"} < set(events)
    assert not any("grandmother" in line for line in lines)


def test_health_is_answered_below_any_folder(server):
    for path in ("/healthz", "/folder/healthz", "/readyz"):
        assert urllib.request.urlopen(server + path).status == 200


@pytest.mark.parametrize("way", ["gzip", "whole", "part"])
def test_the_same_file_comes_out_however_it_is_asked_for(server, way):
    page = urllib.request.urlopen(server).read().decode()
    script = re.search(r'static/js/[^"]+[.]js', page)[0]
    address = f"{server}/{script}"
    headers = {"gzip": {"Accept-Encoding": "gzip"}, "whole": {}, "part": {"Range": "bytes=10-29"}}[
        way
    ]
    truth = urllib.request.urlopen(address).read()
    for _ in range(2):  # the second time it is kept
        answer = urllib.request.urlopen(urllib.request.Request(address, headers=headers))
        body = answer.read()
        assert int(answer.headers["Content-Length"]) == len(body)
        assert (answer.headers["Content-Encoding"] == "gzip") == (way == "gzip")
        if way == "gzip":
            assert "Accept-Encoding" in answer.headers["Vary"]
            body = gzip.decompress(body)
        assert body == (truth[10:30] if way == "part" else truth)


def test_a_script_that_is_not_there_is_streamlits_answer(server):
    """Which is its page: whoever invents addresses leaves nothing behind."""
    truth = urllib.request.urlopen(server).read()
    request = urllib.request.Request(
        f"{server}/static/js/none.js", headers={"Accept-Encoding": "gzip"}
    )
    answer = urllib.request.urlopen(request)
    assert answer.headers["Content-Encoding"] is None and answer.read() == truth


@pytest.fixture
def below_a_folder(browser, tmp_path):
    """The address of a server that lies in a folder."""
    process, url = start_server(tmp_path, folder="course/gpt")
    yield url
    stop_server(process)


def test_a_server_that_nobody_has_visited_has_what_another_one_named(below_a_folder):
    """A visitor whose replica dies asks the next one for the code that the dead one named."""
    own = [file.removeprefix("./") for file in imported_ahead() if file.startswith("./")]
    assert len(own) > 20
    for file in (code_ahead(), *own):
        with urllib.request.urlopen(f"{below_a_folder}/{PATH}/{file}") as answer:
            assert answer.read().decode() == served(file)


def test_below_a_folder_each_file_comes_at_the_first_request_and_a_class_is_joined(
    browser, below_a_folder
):
    static = Path(streamlit.__file__).parent / "static"
    files = [file for file in static.rglob("*") if file.is_file() and file.name != "index.html"]
    assert len(files) > 300
    for file in files:
        address = f"{below_a_folder}/{file.relative_to(static)}"
        asked = urllib.request.Request(address, headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(asked) as answer:
            body = answer.read()
        if answer.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        assert body == file.read_bytes(), address

    # the very first visitor of this server opens a link: Streamlit knows the folder pages/, too, and would
    # run the page's script by itself, without what app.py draws around it
    teacher, watch = new_page(browser)
    teacher.goto(f"{below_a_folder}/class")
    teacher.get_by_role("link", name="Next: Guess").wait_for()
    teacher.get_by_role("button", name="Begin a class").click()
    link = teacher.get_by_role("link", name=re.compile("class.code=")).inner_text()
    teacher.get_by_alt_text(f"QR code of {link}").wait_for()
    teacher.get_by_text("Your secret link").click()
    own = teacher.locator("code", has_text="#teach=").inner_text()
    pupil, other = new_page(browser)
    here = urlsplit(below_a_folder)
    # it names the machine for others
    pupil.goto(urlsplit(link)._replace(netloc=here.netloc).geturl())
    pupil.get_by_role("button", name="Join").click()
    pupil.get_by_text("When your teacher starts").wait_for()
    assert urlsplit(own).path == urlsplit(link).path == f"{here.path}/class"
    assert not watch.faults and not other.faults
    for page in (teacher, pupil):
        page.context.close()


def test_a_page_asks_no_other_machine_for_a_picture_or_a_frame(browser, server):
    """Even if a text of a stranger's were not shown as text some day."""
    asked = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_):
            """Say nothing."""

    other = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    page, _ = new_page(browser)
    page.goto(f"{server}/tokens")
    page.get_by_test_id("stMarkdown").first.wait_for()
    refused = page.evaluate(
        """async (other) => {
          const refused = [];
          const note = (event) => refused.push(event.effectiveDirective);
          document.addEventListener('securitypolicyviolation', note);
          for (const tag of ['img', 'video', 'iframe', 'embed']) {
            const node = document.createElement(tag);
            node.src = other + tag;
            document.body.append(node);
          }
          while (refused.length < 4) await new Promise((done) => setTimeout(done, 20));
          return refused.sort();
        }""",
        f"http://127.0.0.1:{other.server_port}/",
    )
    page.context.close()
    other.shutdown()
    other.server_close()
    assert refused == ["frame-src", "img-src", "media-src", "object-src"] and not asked
