"""Pages through Streamlit's AppTest: no browser, no server, the page file alone."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from gptviz import convert
from gptviz.analysis.head_general import general
from gptviz.analysis.head_trial import trial
from gptviz.ui import measured, works
from gptviz.ui.models import apart
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice
from gptviz.ui.sheet import SEEN
from gptviz.ui.shell.navigation import page_file
from gptviz.work import Line, Work

RunPage = Callable[..., AppTest]

# An AppTest looks for components in all installed packages, which takes four times as long as a page;
# once is enough.
vars(manifest_scanner)["scan_component_manifests"] = cache(manifest_scanner.scan_component_manifests)


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


def not_started(monkeypatch: pytest.MonkeyPatch, told: Callable[[Work], object] = lambda work: None) -> None:
    """From now on what is measured of heads is not worked on: `told` hears of it. All else is."""
    start = Line.start

    def perhaps(self: Line, work: Work, who: str) -> None:
        told(work) if work.task.function in (general, trial) else start(self, work, who)

    monkeypatch.setattr(Line, "start", perhaps)


@pytest.fixture
def passes() -> Iterator[list[int]]:
    """Grows by one at each pass of the bundled model that a page has run."""
    found: list[int] = []
    model = models.in_use(Choice()).lm.model
    handle = model.final_norm.register_forward_hook(lambda *_: found.append(1))
    yield found
    handle.remove()


@pytest.fixture(name="run_page")
def run_page_fixture() -> RunPage:
    return run_page


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pages start work in the background; here it stays as if somebody had stopped it, and what other tests
    have measured, in this process or on the disk, is not known, nor what ships with the bundled model."""
    monkeypatch.setattr(measured, "_at_once", lambda run: (None, {}))
    not_started(monkeypatch)
    monkeypatch.setenv("GPTVIZ_CACHE_DIR", str(tmp_path / "cache"))
    works.line.clear()  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def files_are_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by a process of their own, which takes seconds to begin: see tests/ui/models/test_apart.py."""

    def start(command: list[str], log: Path, threads: int) -> SimpleNamespace:
        convert.answer(convert.parser().parse_args(command[1:]))
        return SimpleNamespace(wait=lambda seconds=None: True, kill=lambda: None, ended_by=None)

    monkeypatch.setattr(apart, "start", start)
