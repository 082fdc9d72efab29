"""What a run has drawn is sent, whenever the next one is asked for."""

import asyncio
from unittest.mock import MagicMock

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.script_data import ScriptData
from streamlit.runtime.scriptrunner.script_cache import ScriptCache

from gptviz.server import sessions

SCRIPT = """
import streamlit as st

@st.fragment
def answer():
    st.session_state.answers = st.session_state.get("answers", 0) + 1
    st.text(f"answer {st.session_state.answers}")

@st.fragment
def news():
    st.session_state.looks = st.session_state.get("looks", 0) + 1
    st.text(f"news {st.session_state.looks}")

answer()
news()
"""


def drawn(session):
    """The texts that were sent to the browser since this was last asked."""
    return [message.delta.new_element.text.body for message in session.flush_browser_queue()]


async def until(session, text):
    seen = []
    for _ in range(2000):
        seen += drawn(session)
        if text in seen and session._scriptrunner is None:
            return seen
        await asyncio.sleep(0.005)
    raise AssertionError(f"{text!r} was not drawn in ten seconds: {seen}")


def test_the_answer_to_a_click_is_drawn_though_another_part_asks_as_it_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(AppSession, "_create_scriptrunner", AppSession._create_scriptrunner)
    monkeypatch.setattr(Runtime, "_instance", MagicMock())
    sessions.keep_what_was_drawn()
    script = tmp_path / "page.py"
    script.write_text(SCRIPT)

    async def visit():
        session = AppSession(
            ScriptData(str(script), is_hello=False),
            MemoryUploadedFileManager("/upload"),
            ScriptCache(),
            lambda: None,
            {},
        )
        session.request_rerun(None)
        await until(session, "news 1")
        answer, news = session._fragment_storage._fragments
        session.request_rerun(ClientState(fragment_id=answer))
        thread = session._scriptrunner._script_thread
        # the loop is busy with somebody else until the run has ended
        thread.join()
        session.request_rerun(ClientState(fragment_id=news))
        seen = await until(session, "news 2")
        assert "answer 2" in seen

    asyncio.run(visit())
