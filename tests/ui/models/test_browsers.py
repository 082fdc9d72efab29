"""Whose uploads: Streamlit's own cookie names the browser, and its uploads go when it has left for good."""

import threading

import pytest
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from gptviz.ui.models import browsers as module
from gptviz.ui.models.browsers import Browsers, browser_of
from gptviz.ui.models.uploads import Uploads
from tests.ui.models.test_uploads import sent


@pytest.fixture
def connected():
    return set()


@pytest.fixture
def browsers(connected):
    return Browsers(lambda: Uploads(1000, lambda number: None), connected.__contains__)


def test_streamlits_cookie_names_the_browser_whatever_its_mask():
    first = bytes(range(16))
    second = bytes(range(1, 17))
    names = {browser_of(generate_xsrf_token_string(first, 1763700000 + turn)) for turn in range(5)}
    assert len(names) == 1 and None not in names
    assert browser_of(generate_xsrf_token_string(second)) not in {None, *names}
    assert first.hex() not in names  # the name is no secret, the token is


@pytest.mark.parametrize(
    "cookie",
    [
        *("", "2", "2|", "2||||", "2|00|00|1", "2|00000000|00|1"),
        *("2|zz000000|" + "00" * 16 + "|1", "1|" + "0" * 32),
    ],
)
def test_what_is_no_such_cookie_names_nobody(cookie):
    assert browser_of(cookie) is None


def test_a_reload_finds_the_uploads_and_another_browser_does_not(browsers, connected):
    connected.add("before")
    upload = browsers.visit("mine", "before").keep([sent("model.pth")])
    connected.remove("before")  # F5
    connected.add("after")
    assert browsers.find("mine").find(upload.number) is upload
    assert browsers.find("theirs") is None
    browsers.visit("mine", "after")
    browsers.clear_if_gone("mine")
    assert upload.folder.exists()


def test_when_the_last_session_has_gone_for_good_the_files_go(browsers, connected):
    connected.update({"one", "two"})
    upload = browsers.visit("mine", "one").keep([sent("model.pth")])
    browsers.visit("mine", "two")
    connected.remove("one")
    browsers.clear_if_gone("mine")
    assert upload.folder.exists() and len(browsers) == 1
    connected.remove("two")
    browsers.clear_if_gone("mine")
    browsers.clear_if_gone("mine")
    assert not upload.folder.exists() and len(browsers) == 0


def test_it_is_looked_at_a_while_after_a_session_ended(browsers, monkeypatch):
    cleared = threading.Event()
    monkeypatch.setattr(module, "LEFT_SECONDS", 0.01)
    monkeypatch.setattr(module, "browsers", lambda: browsers)
    monkeypatch.setattr(
        browsers, "clear_if_gone", lambda browser: browser == "mine" and cleared.set()
    )
    module._left("mine")
    assert cleared.wait(10)


def test_what_looks_for_an_earlier_session_does_not_meet_a_reload(browsers, connected, monkeypatch):
    """The first session ended long ago, the second just now, and the third is not connected yet."""
    looks = []

    class Look:
        def __init__(self, seconds, function, args):
            looks.append(self)
            self.fire = lambda: function(*args)
            self.cancel = lambda: setattr(self, "fire", lambda: None)

        def start(self):
            pass

    monkeypatch.setattr(module.threading, "Timer", Look)
    upload = browsers.visit("mine", "first").keep([sent("model.pth")])
    browsers.leave("mine")
    browsers.visit("mine", "second")
    browsers.leave("mine")
    first, second = looks
    first.fire()
    assert upload.folder.exists()
    second.fire()
    assert not upload.folder.exists() and len(browsers) == 0
