"""How many bytes of visitors' files this server holds, all of them together: on its disk and in its memory.

A file that is sent waits in Streamlit's memory until somebody presses "Load these files"; then it lies on
the disk. What a session left in memory is freed soon after the session.
"""

import functools
import gc
import threading
from collections.abc import Callable, Hashable, Mapping

import streamlit as st
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import DeletedFile, UploadedFile

from gptviz.digits import gigabytes
from gptviz.files.owned_folder import UPLOADS, OwnedFolder
from gptviz.models.checkpoints import CheckpointError
from gptviz.ui.settings import cache_bytes

SETTING = "GPTVIZ_UPLOADS_MB"
DEFAULT_MEGABYTES = 4096


class Budget:
    """At most `max_bytes` of all visitors together, `of_one` of one session in memory.

    `sent()` says how many bytes of each session wait in memory. `root` is where files lie.
    """

    def __init__(self, max_bytes: int, of_one: int, sent: Callable[[], Mapping[str, int]] = dict):
        self.max_bytes = max_bytes
        self.of_one = of_one
        self.root = OwnedFolder(UPLOADS)
        self._sent = sent
        self._taken: dict[Hashable, int] = {}
        # session -> the sentence why its last file was not taken
        self._refused: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """The bytes that are held at present."""
        with self._lock:
            return sum(self._taken.values()) + sum(self._sent().values())

    def take(self, what: Hashable, size: int) -> None:
        """Reserve `size` bytes, until `give(what)`. Raises CheckpointError if they are too many."""
        with self._lock:
            if sum(self._taken.values()) + sum(self._sent().values()) + size > self.max_bytes:
                raise CheckpointError(
                    f"this server takes at most {gigabytes(self.max_bytes)} from all visitors together, and "
                    f"now it has no room for another {gigabytes(size)}: try again when others have left. "
                    f"Whoever runs the server can raise {SETTING}"
                )
            self._taken[what] = size

    def give(self, what: Hashable) -> None:
        """Free the bytes that `take(what)` reserved, if there are any."""
        with self._lock:
            self._taken.pop(what, None)

    def receive(self, session: str, what: Hashable, size: int) -> str | None:
        """`take` for a file that a session sends: None, or the refusal, which `refused` tells later."""
        try:
            if self._sent().get(session, 0) + size > self.of_one:
                raise CheckpointError(
                    f"this server takes at most {gigabytes(self.of_one)} from one visitor: load the files that "
                    "you have sent, or remove some. Whoever runs the server can raise server.maxUploadSize"
                )
            self.take(what, size)
        except CheckpointError as error:
            self._refused[session] = str(error)
            return str(error)
        self._refused.pop(session, None)
        return None

    def refused(self, session: str) -> str | None:
        """Why the last file of this session was not taken."""
        return self._refused.get(session)

    def forget(self, session: str) -> None:
        """Drop the refusal that this session was told."""
        self._refused.pop(session, None)


def sent() -> dict[str, int]:
    """Bytes of files that wait in Streamlit's memory, by session."""
    manager = None
    if runtime.exists():
        manager = runtime.get_instance().uploaded_file_mgr
    if not isinstance(manager, MemoryUploadedFileManager):
        return {}
    files = {
        session: list(uploaded.values()) for session, uploaded in list(manager.file_storage.items())
    }
    return {
        session: sum(len(file.data) for file in uploaded) for session, uploaded in files.items()
    }


@functools.cache
def budget() -> Budget:
    """The process's room: MB in the environment variable GPTVIZ_UPLOADS_MB."""
    of_one = int(st.get_option("server.maxUploadSize")) * 2**20
    return Budget(cache_bytes(SETTING, DEFAULT_MEGABYTES), of_one, sent)


def session() -> str | None:
    """The session whose script runs here; None outside of a server."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return None
    return context.session_id


def let_go(endings: tuple[str, ...]) -> None:
    """Drop this session's files with these endings from Streamlit's memory: they were loaded, or are no
    longer wanted.
    """
    context = get_script_run_ctx()
    if context is None or not isinstance(
        manager := context.uploaded_file_mgr, MemoryUploadedFileManager
    ):
        return
    for number, file in list(manager.file_storage.get(context.session_id, {}).items()):
        if file.name.lower().endswith(endings):
            manager.remove_file(context.session_id, number)
    budget().forget(context.session_id)


def still_here(key: str) -> list[UploadedFile]:
    """The files of the uploader with this key. Those that were let go, or sent to an earlier server, are left
    out.
    """
    value = st.session_state.get(key) or []
    return [
        file
        for file in (value if isinstance(value, list) else [value])
        if not isinstance(file, DeletedFile)
    ]


def refused() -> str | None:
    """Why the last file that this session sent was not taken."""
    return budget().refused(session() or "")


def absent() -> list[str]:
    """The sessions that are not connected, and have sent files."""
    return [session for session in sent() if not runtime.get_instance().is_active_session(session)]


def end(sessions: list[str]) -> None:
    """End those of the sessions that have not come back, with all they sent. In the server's event loop."""
    gone = set(sessions) & set(absent())
    server = runtime.get_instance()
    for session in gone:
        budget().forget(session)
        info = server._session_mgr.get_session_info(session)
        server.close_session(session)
        # it has the files as values of widgets, and an idle server keeps its last one
        if info is not None:
            info.session.session_state.clear()
        server.uploaded_file_mgr.remove_session_files(session)
    if gone:
        gc.collect()  # sessions are full of reference cycles
