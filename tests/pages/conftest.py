"""Pages through Streamlit's AppTest: no browser, no server, the page file alone."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest, app_test

from gptviz.analysis.head_general import general
from gptviz.analysis.head_trial import trial
from gptviz.jobs import Job, Queue
from gptviz.models import convert
from gptviz.models.loading import DEFAULT_MODEL, UNSAID_MODEL
from gptviz.teach.claims import DEFAULT_TEXT
from gptviz.training.live.side_by_side import learn_aside
from gptviz.ui import heads, jobs
from gptviz.ui.models import apart, in_use as models
from gptviz.ui.models.choice import Choice
from gptviz.ui.sheet import SEEN
from gptviz.ui.shell.details import DRAWN
from gptviz.ui.shell.navigation import SCRIPTS, page_file
from tests.specs import given, opened

RunPage = Callable[..., AppTest]

MINUTES = (general, trial, learn_aside)  # works that take minutes

# what an empty address opens with, as an address of its own
FIRST = MappingProxyType({"model": DEFAULT_MODEL, "text": DEFAULT_TEXT})

# An AppTest looks for components in all installed packages, which takes four times as long as a page;
# once is enough.
vars(manifest_scanner)["scan_component_manifests"] = cache(
    manifest_scanner.scan_component_manifests
)


class PagesManagerOfAppTest(PagesManager):
    """What AppTest resets before each run, in place of what app.py has set: that the navigation is ours."""


vars(app_test)["PagesManager"] = PagesManagerOfAppTest
PagesManager.uses_pages_directory = False


class Everywhere(set[str]):
    """Where somebody has been who need not scroll, and what is drawn without a click: all comes at once."""

    def __contains__(self, place: object) -> bool:
        return True


class Visit(AppTest):
    """A visit whose test fails at the run in which a script raises."""

    def _run(self, *args: Any, **options: Any) -> "Visit":
        super()._run(*args, **options)
        assert not self.exception, [error.message for error in self.exception]
        return self


def visit(
    script: Path, session: Mapping[str, object] = MappingProxyType({}), **query: object
) -> Visit:
    """The script as this address opens it, in a session that holds this already.

    Without an address it is that of mini: an empty one opens with another model, see `first_look`.
    """
    return _opened(script, session, query or {"model": UNSAID_MODEL})


def _opened(script: Path, session: Mapping[str, object], query: Mapping[str, object]) -> Visit:
    at = Visit(script, default_timeout=240)
    for key, value in session.items():
        at.session_state[key] = value
    for key, value in query.items():
        at.query_params[key] = str(value)
    return at.run()


def whole_app(**query: object) -> Visit:
    """The app at its first page."""
    return visit(SCRIPTS.parent / "app.py", **query)


def turn(at: AppTest, name: str) -> AppTest:
    """The app at this page."""
    return at.switch_page(str(page_file(name))).run()


def run_page(
    name: str, session: Mapping[str, object] = MappingProxyType({}), **query: object
) -> Visit:
    """The page's script alone, as the address `/<name>?<query>` opens it."""
    at = visit(page_file(name), {SEEN: Everywhere(), **session}, **query)
    names = [param.name for param in at.session_state["gptviz_params"]]
    assert len(names) == len({*names}), "two choices have one name in the address"
    return at


def first_look(name: str) -> Visit:
    """The page as it opens for somebody whose address says nothing."""
    return _opened(page_file(name), {SEEN: Everywhere()}, {})


def open_all(at: AppTest) -> AppTest:
    """Open everything that opens, and what opens inside."""
    at.session_state[DRAWN] = Everywhere()
    seen: set[str] = set()
    while (
        closed := {box.key for box in at.expander if box.key} - seen
    ):  # one without a key runs its body anyway
        opened(at, *closed)
        seen |= closed
    return at


def prompt_of(at: AppTest) -> str:
    """What stands in the prompt's box."""
    return str(given(at, "prompt")["text"])


def not_started(
    monkeypatch: pytest.MonkeyPatch, told: Callable[[Job], object] = lambda job: None
) -> None:
    """From now on what is measured of heads, and a training of the five switches, is not worked on: `told`
    hears of it. All else is."""
    start = Queue.start

    def perhaps(self: Queue, job: Job, who: str) -> None:
        told(job) if job.task.function in MINUTES else start(self, job, who)

    monkeypatch.setattr(Queue, "start", perhaps)


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
    monkeypatch.setattr(heads, "_at_once", lambda run: (None, {}))
    not_started(monkeypatch)
    monkeypatch.setenv("GPTVIZ_CACHE_DIR", str(tmp_path / "cache"))
    jobs.queue.clear()  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def files_are_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by a process of their own, which takes seconds to begin: see tests/ui/models/test_apart.py."""

    def start(command: list[str], log: Path, threads: int) -> SimpleNamespace:
        convert.answer(convert.parser().parse_args(command[1:]))
        return SimpleNamespace(wait=lambda seconds=None: True, kill=lambda: None, ended_by=None)

    monkeypatch.setattr(apart, "start", start)
