"""Pages through Streamlit's AppTest: no browser, no server, the page file alone."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from gptviz import convert
from gptviz.ui.measuring import heads
from gptviz.ui.measuring.heads import jobs
from gptviz.ui.measuring.jobs import Jobs
from gptviz.ui.models import apart
from gptviz.ui.sheet import SEEN
from gptviz.ui.shell.navigation import page_file

RunPage = Callable[..., AppTest]


class Everywhere(set[str]):
    """Where somebody has been who need not scroll: what waits further down for its reader comes at once."""

    def __contains__(self, place: object) -> bool:
        return True


def run_page(name: str, **query: object) -> AppTest:
    """Run a page's script as the address `/<name>?<query>` would; fails if the page raised."""
    at = AppTest.from_file(str(page_file(name)), default_timeout=240)
    at.session_state[SEEN] = Everywhere()
    for key, value in query.items():
        at.query_params[key] = str(value)
    at.run()
    assert not at.exception, [error.message for error in at.exception]
    names = [param.name for param in at.session_state["gptviz_params"]]
    assert len(names) == len({*names}), "two choices have one name in the address"
    return at


def open_all(at: AppTest) -> AppTest:
    """Open everything that opens, and what opens inside; fails if the page raises."""
    seen: set[str] = set()
    while (
        closed := {box.key for box in at.expander if box.key} - seen
    ):  # one without a key runs its body anyway
        for key in closed:
            at.session_state[key] = True
        seen |= closed
        at.run()
        assert not at.exception, [error.message for error in at.exception]
    return at


def prompt_of(at: AppTest) -> str:
    """What stands in the prompt's box."""
    data = [json.loads(box.proto.json) for box in at.get("bidi_component") if box.key == "prompt"]
    return str(data[0]["text"])


@pytest.fixture(name="run_page")
def run_page_fixture() -> RunPage:
    return run_page


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pages start work in the background; here it stays as if somebody had stopped it, and what other tests
    have measured, in this process or on the disk, is not known, nor what ships with the bundled model."""
    monkeypatch.setattr(heads, "_at_once", lambda run: (None, {}))
    monkeypatch.setattr(Jobs, "start", lambda self, job: None)
    monkeypatch.setenv("GPTVIZ_CACHE_DIR", str(tmp_path / "cache"))
    jobs.clear()  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def files_are_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by a process of their own, which takes seconds to begin: see tests/ui/models/test_apart.py."""

    def start(command: list[str], log: Path, threads: int) -> SimpleNamespace:
        convert.answer(convert.parser().parse_args(command[1:]))
        return SimpleNamespace(wait=lambda seconds=None: True, kill=lambda: None, ended_by=None)

    monkeypatch.setattr(apart, "start", start)
