"""Pages through Streamlit's AppTest: no browser, no server, the page file alone."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.ui.measuring.jobs import Jobs

ROOT = Path(__file__).resolve().parents[2]

RunPage = Callable[..., AppTest]


def run_page(name: str, **query: object) -> AppTest:
    """Run `pages/<name>.py` as the address `/<name>?<query>` would; fails if the page raised."""
    at = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=240)
    for key, value in query.items():
        at.query_params[key] = str(value)
    at.run()
    assert not at.exception, [error.message for error in at.exception]
    return at


@pytest.fixture(name="run_page")
def run_page_fixture() -> RunPage:
    return run_page


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages start work in the background; here it stays as if somebody had stopped it."""
    monkeypatch.setattr(Jobs, "start", lambda self, job: None)
