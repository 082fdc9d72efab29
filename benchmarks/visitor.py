"""A visitor of the app without a browser: its side of Streamlit's own websocket."""

import asyncio
import json
import time
from collections.abc import Callable
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

NO_PICTURE = {
    "prompt",
    "chips",
    "changes",
    "theme_watch",
    "class_cookie",
    "guide_look",
    "lazy_section",
    "cell_clicks",
}
PATIENCE = 600  # seconds that one run may take


class Visitor:
    """One browser: a websocket, and the ids of the widgets that it was sent."""

    prompted = True  # its page has a box for a text

    def __init__(self, url: str, page: str, query: dict[str, object]):
        self.url = url
        self._page = page
        self._query = urlencode(query)
        self._socket: ClientConnection | None = None
        self._hash = self._box = ""
        self.headers: dict[str, str] = {}
        self.faults: list[str] = []
        self.bytes = 0
        self._began = 0.0  # seconds until the last run's first picture, 0 without one
        self.pictured = 0.0

    async def open(self) -> None:
        self._socket = await connect(
            self.url.replace("http://", "ws://") + "/_stcore/stream",
            subprotocols=["streamlit"],  # type: ignore[list-item]
            max_size=None,
            compression=None,
            open_timeout=PATIENCE,
            additional_headers=self.headers,
        )
        await self.turn_to(self._page)
        if self.prompted and not self._box:
            raise RuntimeError(f"the page {self._page!r} shows no prompt: {self.faults}")

    async def press_run(self, text: str) -> float:
        """Seconds from the press until the last piece of the page has come."""
        message = self._rerun()
        state = message.rerun_script.widget_states.widgets.add()
        # as a component sends what it does
        state.id = f"$$STREAMLIT_INTERNAL_KEY_{self._box}__events"
        state.json_trigger_value = json.dumps([{"event": "run", "value": text}])
        return await self._run(message)

    async def turn_to(self, page: str) -> float:
        """Another page, by its link: the prompt comes along in the address."""
        message = BackMsg()
        message.rerun_script.query_string = self._query
        if page == "overview":
            message.rerun_script.page_name = ""
        else:
            message.rerun_script.page_name = page
        return await self._run(message)

    async def leave(self) -> None:
        if self._socket is not None:
            await self._socket.close()

    async def press_button(self, button: str, fragment: str = "") -> float:
        """The same for a button, by its id."""
        message = self._rerun(fragment)
        state = message.rerun_script.widget_states.widgets.add()
        state.id = button
        state.trigger_value = True
        return await self._run(message)

    def _rerun(self, fragment: str = "") -> BackMsg:
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.page_script_hash = self._hash
        message.rerun_script.fragment_id = fragment
        return message

    async def _run(self, message: BackMsg) -> float:
        began = self._began = time.perf_counter()
        self.pictured = 0.0
        await self._send(message)
        return time.perf_counter() - began

    async def _send(self, message: BackMsg, until: Callable[[], bool] = lambda: False) -> None:
        """Send, and listen until a run is over, or until this is so."""
        assert self._socket is not None
        await self._socket.send(message.SerializeToString())
        async with asyncio.timeout(PATIENCE):
            while not until():
                data = await self._socket.recv()
                self.bytes += len(data)
                if self._heard(ForwardMsg.FromString(data)):  # type: ignore[arg-type]
                    return

    def _heard(self, message: ForwardMsg) -> bool:
        """Take note of a message; whether it ends the run."""
        kind = message.WhichOneof("type")
        if kind == "navigation":  # new_session names app.py, whose default page is the Overview
            self._hash = message.navigation.page_script_hash
        elif kind == "page_not_found":
            self.faults.append(f"there is no page {message.page_not_found.page_name!r}")
        elif kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._drawn(message.delta.new_element, message.delta.fragment_id)
        if kind != "script_finished":
            return False
        return message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN

    def _drawn(self, element: Element, fragment: str) -> None:
        """Take note of an element, which a fragment drew, if one is named."""
        shown = element.WhichOneof("type")
        drawn = element.bidi_component.component_name.removeprefix("gptviz.") or shown
        if (
            shown in ("plotly_chart", "bidi_component")
            and drawn not in NO_PICTURE
            and not self.pictured
        ):
            self.pictured = time.perf_counter() - self._began
        if shown == "bidi_component" and element.bidi_component.component_name == "gptviz.prompt":
            self._box = element.bidi_component.id
        elif shown == "exception":
            self.faults.append(f"{element.exception.type}: {element.exception.message}")
