"""The uploads of one browser, kept while it is connected and a little longer, so that a reload keeps them.

A session of Streamlit ends with its connection, and a reload begins another. What stays is the random
cookie that Streamlit gives every browser: nobody else has it, and no link holds it.
"""

import hashlib
import threading
import uuid
from collections.abc import Callable, Sequence

import streamlit as st
from streamlit import runtime

from gptviz.ui.models.budget import budget, session
from gptviz.ui.models.cache import model_cache
from gptviz.ui.models.choice import UPLOAD
from gptviz.ui.models.uploads import Sent, Upload, Uploads

COOKIE = "_streamlit_xsrf"
TOKEN_BYTES = 16

LEFT_SECONDS = 150.0  # a little longer than Streamlit keeps a session whose connection broke

_BROWSER = "gptviz_browser"


class Browsers:
    """The uploads of every browser that brought some, and which of its sessions have seen them.

    `here(session)` says whether a session is connected.
    """

    def __init__(self, new: Callable[[], Uploads], here: Callable[[str], bool]):
        self._new = new
        self._here = here
        self._uploads: dict[str, Uploads] = {}
        self._sessions: dict[str, set[str]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._leaving: dict[str, threading.Timer] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._uploads)

    def when_gone(self, listener: Callable[[str], None]) -> None:
        """`listener(browser)` is called for every browser that has left for good."""
        self._listeners.append(listener)

    def find(self, browser: str) -> Uploads | None:
        return self._uploads.get(browser)

    def visit(self, browser: str, session: str | None) -> Uploads:
        """The browser's uploads, which stay while this session is connected."""
        with self._lock:
            if session is not None:
                self._sessions.setdefault(browser, set()).add(session)
            return self._uploads.setdefault(browser, self._new())

    def leave(self, browser: str) -> None:
        """Note that a session of this browser ended. Only the last end leads to `clear_if_gone`: an earlier
        one's would meet a page that is just being loaded again."""
        with self._lock:
            if browser in self._leaving:
                self._leaving[browser].cancel()
            timer = self._leaving[browser] = threading.Timer(
                LEFT_SECONDS, self.clear_if_gone, (browser,)
            )
        timer.daemon = True
        timer.start()

    def clear_if_gone(self, browser: str) -> None:
        """Remove what a browser brought, unless one of its sessions is connected."""
        with self._lock:
            if any(self._here(session) for session in self._sessions.get(browser, ())):
                return
            self._sessions.pop(browser, None)
            self._leaving.pop(browser, None)
            gone = self._uploads.pop(browser, None)
        if gone is not None:
            gone.clear()
        for listener in self._listeners:
            listener(browser)


def browser_of(cookie: str) -> str | None:
    """A name for the browser that sent Streamlit's cookie; None for any other text.

    It is "2|mask|masked token|time": the mask is another one in every answer, the token stays.
    """
    version, *parts = cookie.split("|")
    try:
        mask = bytes.fromhex(parts[0])
        masked = bytes.fromhex(parts[1])
    except (IndexError, ValueError):
        return None
    if version != "2" or len(mask) != 4 or len(masked) != TOKEN_BYTES:
        return None
    token = bytes(byte ^ mask[i % 4] for i, byte in enumerate(masked))
    return hashlib.sha256(token).hexdigest()


def uploads() -> tuple[Upload, ...]:
    """The uploads of this browser, in the order in which they came."""
    own_uploads = browsers().find(_this_browser())
    if own_uploads is None:
        return ()
    _stay()
    return tuple(own_uploads)


def find_upload(number: str) -> Upload | None:
    """An upload of this browser; None for everybody else's."""
    own_uploads = browsers().find(_this_browser())
    if own_uploads is None:
        return None
    return own_uploads.find(number)


def keep_upload(files: Sequence[Sent], label: str | None = None) -> Upload:
    """Take the files of one checkpoint from this browser. Raises CheckpointError."""
    return _stay().keep(files, label)


def browser() -> str:
    """This browser's name; what belongs to it stays while one of its sessions is connected."""
    _stay()
    return _this_browser()


def remove_upload(number: str) -> None:
    """Remove one of this browser's uploads, if it is there."""
    own_uploads = browsers().find(_this_browser())
    if own_uploads is not None:
        own_uploads.remove(number)


def _this_browser() -> str:
    if _BROWSER not in st.session_state:
        # without the cookie (the server's XSRF protection is off) an upload is the session's alone
        st.session_state[_BROWSER] = (
            browser_of(str(st.context.cookies.get(COOKIE, ""))) or uuid.uuid4().hex
        )
    name: str = st.session_state[_BROWSER]
    return name


def _stay() -> Uploads:
    session_id = session()
    browser = _this_browser()
    if session_id is not None:
        _visit(session_id, browser)
    return browsers().visit(browser, session_id)


def _left(browser: str) -> None:
    """Callback: the page was closed or loaded again, or the network broke."""
    browsers().leave(browser)


@st.cache_resource(scope="session", on_release=_left, show_spinner=False)
def _visit(session: str, browser: str) -> str:
    """Call `_left` when the session ends: Streamlit says so only by releasing a cache."""
    return browser


@st.cache_resource(max_entries=1, show_spinner=False)
def browsers() -> Browsers:
    """The process's browsers."""
    cache = model_cache()
    return Browsers(
        lambda: Uploads(
            budget().of_one, lambda number: cache.drop_all(f"{UPLOAD}{number}|"), budget()
        ),
        lambda session: runtime.exists() and runtime.get_instance().is_active_session(session),
    )
