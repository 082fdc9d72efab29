"""Two replicas behind the router of deploy/: a visitor stays at one, and comes to the other when it dies."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.browser.conftest import ROOT, free_port, settled, stop_server, type_prompt

ACTIVE = re.compile(r"^active_sessions (\d+)", re.M)
PID = re.compile(r"what=replica(\d) pid=(\d+)")


@pytest.fixture
def replicas(browser, tmp_path):
    """The router's address, those of two replicas, and a function that kills one of these."""
    if shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("there is no haproxy on this machine")
    port, first = free_port(), free_port(2)
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


def until(wanted):
    for _ in range(600):
        if wanted():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come about within a minute")


def answers(url):
    try:
        return urllib.request.urlopen(url, timeout=5).read().decode()
    except OSError:
        return ""


def visitors(replica):
    found = ACTIVE.search(answers(f"{replica}/_stcore/metrics?families=active_sessions"))
    return int(found[1]) if found else 0


def test_a_visitor_whose_replica_dies_comes_up_at_the_other_as_it_was(replicas, open_page, tmp_path):
    router, servers, kill = replicas
    page = open_page("attention", base=router, text="The old house", token=2)
    (home,) = (number for number, server in enumerate(servers) if visitors(server))
    page.get_by_role("button", name="More models").click()
    (tmp_path / "mine.pth").write_bytes(bytes(1000))
    page.get_by_role("dialog").locator("input[type=file]").set_input_files(tmp_path / "mine.pth")
    page.get_by_text("mine.pth").first.wait_for()  # it came to the replica that has the session
    page.keyboard.press("Escape")
    settled(page)
    cookie, other = page.context.cookies(), servers[1 - home]
    kill(home)
    until(lambda: visitors(other) == 1)
    settled(page)
    assert page.get_by_role("textbox", name="Prompt").input_value() == "The old house"
    assert "token=2" in page.url
    type_prompt(page, "And then the rain")  # nothing is lost of what is done next
    page.wait_for_url("**text=And+then+the+rain*")
    assert "token=2" in page.url and page.context.cookies() != cookie
    until(lambda: answers(f"{servers[home]}/healthz"))  # it was started again
