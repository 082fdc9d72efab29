"""A real server and a real Chromium for tests/browser, one of each for every worker.

`open_page("attention", text="Hi", token=0)` gives a Playwright page that is loaded and at rest. When
the test ends it fails if the page logged an error, threw, or asked anybody but our server for anything.
Without Chromium or Playwright the tests are skipped, with the reason; with GPTVIZ_REQUIRE_BROWSER=1
in the environment that is a failure.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from gptviz.ui.components.code import served
from gptviz.ui.components.theme_watch import code_ahead

ROOT = Path(__file__).resolve().parents[2]
WATCH = Path(__file__).with_name("watch.js")
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

# On a deep link Streamlit's own client looks for its server below the page's path first.
PROBES = ("/_stcore/health", "/_stcore/host-config")
# what Streamlit says of a page whose server has just died; it runs anew when there is one again
UNSENT = "Cannot send rerun backMessage when disconnected"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What stood on the pages of a test that failed is printed when they are closed: nobody saw them."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


def missing(reason: str) -> None:
    if os.environ.get("GPTVIZ_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{reason}, and GPTVIZ_REQUIRE_BROWSER=1", pytrace=False)
    pytest.skip(reason)


def chromium() -> str | None:
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("Playwright is not installed")
    if chromium() is None:
        missing("there is no Chromium on the PATH")
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGS)
        yield instance
        instance.close()


def free_port(number: int = 1) -> int:
    """The first of so many ports of 127.0.0.1 that nobody has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    for other in range(port + 1, port + number):
        with socket.socket() as free:
            if free.connect_ex(("127.0.0.1", other)) == 0:
                return free_port(number)
    return port


def start_server(
    home: Path,
    *options: str,
    app: str = "app.py",
    gptviz: Sequence[str] = (),
    folder: str = "",
    **environment: str,
) -> tuple[subprocess.Popen[bytes], str]:
    """`streamlit run` the app in a home where nobody has ever run Streamlit; waits until it answers.

    `gptviz`, the command of an installed package, runs its own app, away from this checkout.
    `folder` is that of the app's address.
    """
    streamlit = (sys.executable, "-m", "streamlit", "run", app)
    port = free_port()
    log = (home / "server.log").open("wb")
    process = subprocess.Popen(
        [
            *((*gptviz, "app") if gptviz else streamlit),
            *(
                "--server.port",
                str(port),
                "--server.address",
                "127.0.0.1",
                "--server.headless",
                "true",
            ),
            *(("--server.baseUrlPath", folder) if folder else ()),
            *options,
        ],
        cwd=home if gptviz else ROOT,
        env=os.environ
        | {"HOME": str(home), "BROWSER": "true", "GPTVIZ_WORKERS": "1"}
        | environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    url = "/".join([f"http://127.0.0.1:{port}", *filter(None, [folder])])
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=2)
            return process, url
        except OSError:  # not yet, or it broke off
            time.sleep(0.1)
    stop_server(process)
    pytest.fail(f"the server did not start:\n{(home / 'server.log').read_text()}", pytrace=False)


def stop_server(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def server(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one server for all tests, "http://127.0.0.1:…"."""
    process, url = start_server(tmp_path_factory.mktemp("home"))
    yield url
    stop_server(process)


def imported_ahead() -> list[str]:
    """What a page that rests fetches, as its module names it: our components' files, and Streamlit's."""
    return re.findall(r'import\("([^"]+)"\)', served(code_ahead()) or "")


class Watch:
    """What went wrong in a page, as sentences."""

    def __init__(self, page: Any):
        self.faults: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        page.on("request", self._request)

    def _console(self, message: Any) -> None:
        unsent = message.text.startswith(UNSENT)
        if (
            message.type == "error"
            and not unsent
            and not message.location.get("url", "").endswith(PROBES)
        ):
            self.faults.append(f"console: {message.text} ({message.location.get('url')})")

    def _request(self, request: Any) -> None:
        address = urlsplit(request.url)
        if address.scheme in ("http", "https", "ws", "wss") and address.hostname != "127.0.0.1":
            self.faults.append(f"a request left the machine: {request.url}")


# Pages leave what is further down for its reader (components/lazy_section): here it is as if somebody had been there.
ALL_IN_SIGHT = """(() => {
  const Own = IntersectionObserver;
  window.IntersectionObserver = class extends Own {
    constructor(call, options) {
      super(call, options);
      this.near = options?.scrollMargin && call;
    }
    observe(node) {
      if (this.near) this.near([{ isIntersecting: true }]);
      else super.observe(node);
    }
  };
})()"""


def new_page(browser: Any, **options: Any) -> tuple[Any, Watch]:
    """A page of another person, as far as the server can tell, and what goes wrong in it."""
    context = browser.new_context(**options)
    context.add_init_script(path=WATCH)
    context.add_init_script(ALL_IN_SIGHT)
    page = context.new_page()
    page.set_default_timeout(90_000)
    return page, Watch(page)


@pytest.fixture(scope="session")
def kept() -> list[tuple[Any, Watch]]:
    """The page that the tests of a worker have one after the other."""
    return []


@pytest.fixture
def warm(
    browser: Any, kept: list[tuple[Any, Watch]], request: pytest.FixtureRequest
) -> Iterator[Any]:
    """A page and its Watch. It has loaded and compiled Streamlit and Plotly before, which is two thirds of a
    visit; nothing else is left of the tests that had it: no session, cookie, storage or history."""
    if not kept:
        kept.append(new_page(browser))
    page, watch = kept[0]
    yield page, watch
    if page.is_closed() or request.node.stash.get(FAILED, False):
        kept.clear()
        page.context.close()
        return
    for other in page.context.pages:
        if other != page:
            other.close()
    if page.url.startswith("http"):
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        page.goto("about:blank")
    page.context.clear_cookies()
    page.mouse.move(0, 0)
    page.context.new_cdp_session(page).send("Page.resetNavigationHistory")
    watch.faults.clear()


OpenPage = Callable[..., Any]


@pytest.fixture
def open_page(
    browser: Any, server: str, warm: Any, request: pytest.FixtureRequest
) -> Iterator[OpenPage]:
    """open_page(path="", *, base=None, viewport=(1280, 800), color_scheme="light", touch=False, cold=False,
    **query) -> Page.

    The first call has the `warm` page, unless it asks for touch or for one that is cold; every other has a
    browser context of its own: another person, as far as the server can tell.
    """
    opened = []

    def open_(
        path: str = "",
        *,
        base: str | None = None,
        viewport: tuple[int, int] = (1280, 800),
        color_scheme: str = "light",
        touch: bool = False,
        cold: bool = False,
        **query: object,
    ) -> Any:
        own = touch or cold or any(one is warm for one in opened)
        opened.append(new_page(browser, has_touch=touch) if own else warm)
        page, _ = opened[-1]
        page.set_viewport_size({"width": viewport[0], "height": viewport[1]})
        page.emulate_media(
            color_scheme=color_scheme, reduced_motion="reduce"
        )  # nothing moves, nothing is waited for
        page.goto(f"{base or server}/{path}" + (f"?{urlencode(query)}" if query else ""))
        settled(page)
        if page.locator(".st-key-prompt").count():  # not every page reads one
            # A component's JavaScript may come after the first run is over.
            page.get_by_role("textbox", name="Prompt").wait_for()
            ready = page.get_by_test_id("chips").or_(page.get_by_test_id("stAlert"))
            ready.or_(page.locator(".st-key-gv_guide")).first.wait_for()
        return settled(page)

    yield open_
    if request.node.stash.get(FAILED, False):
        for seen in (one for page, _ in opened for one in page.context.pages):
            print(f"{seen.url}\nbusy: {seen.evaluate('window.gptvizBusy?.()')}")
            lines = seen.locator("body").inner_text().splitlines()
            # without ticks
            print("\n".join(line for line in lines if len(line) > 4)[:6000], end="\n\n")
    faults = [fault for _, watch in opened for fault in watch.faults]
    for page, _ in opened:
        if page is not warm[0]:
            page.context.close()
    assert not faults, "\n".join(faults)


def settled(page: Any) -> Any:
    """Wait until nothing is left of what the last action caused; gives the page back.

    The page itself knows (`watch.js`): a rerun is asked for before Playwright's click returns, or a short
    timer is pending that will ask for it. An action that causes no run costs three frames.
    """
    from playwright.sync_api import Error

    try:
        page.wait_for_function("() => window.gptvizRest?.()")
    except Error as error:
        busy = page.evaluate("() => window.gptvizBusy?.() ?? ['the page has no watch.js']")
        raise AssertionError(f"the page does not come to rest: {busy}") from error
    return page


def by(test_id: str, **data: object) -> str:
    """The selector of what has this data-testid, and of its other data-… these."""
    return f"[data-testid={test_id}]" + "".join(
        f"[data-{name}='{value}']" for name, value in data.items()
    )


def went(page: Any, way: str) -> Any:
    """Go "back", "forward" or to the same place "again", and wait for what that causes; gives the page."""
    {"back": page.go_back, "forward": page.go_forward, "again": page.reload}[way]()
    return settled(page)


# what "back" and "forward" do, towards an address where nobody has been
TURN = """(there) => {
  history.pushState(null, '', there);
  dispatchEvent(new PopStateEvent('popstate'));
}"""


def turned_to(page: Any, there: str) -> Any:
    """Go on with the visit at another address, "/loss?token=2"; gives the page, at rest.

    Streamlit and Plotly are not compiled anew, which is most of what a visit costs.
    """
    page.evaluate(TURN, there)
    return settled(page)


def press(place: Any) -> Any:
    """Click, and wait for what that causes; gives the page."""
    place.click()
    return settled(place.page)


def details(page: Any, label: str) -> Any:
    """The page's box of details, opened at the tab with this label."""
    box = page.locator(".st-key-details")
    if box.locator("details").get_attribute("open") is None:
        press(box.locator("summary"))
    press(box.get_by_role("tab", name=label, exact=True))
    return box


def model_line(page: Any) -> Any:
    """The sidebar's one line on the model."""
    return page.locator(".st-key-model_line").get_by_test_id("stPopoverButton")


def behind_the_line(page: Any) -> Any:
    """What opens behind the line on the model, which is shut so far."""
    model_line(page).click()
    return page.get_by_test_id("stPopoverBody")


def more_models(page: Any) -> Any:
    """The window of models, opened."""
    behind_the_line(page).get_by_role("button", name="More models").click()
    return page.get_by_role("dialog")


def typed(field: Any, text: str) -> Any:
    """Type over what stands in a field, and Enter; gives the page, at rest."""
    field.fill(text)
    field.press("Enter")
    return settled(field.page)


def address(page: Any) -> dict[str, str]:
    """What the page's address says, name by name."""
    return said_by(page.url)


def said_by(url: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}


def type_prompt(page: Any, text: str) -> Any:
    """Replace the prompt and run it."""
    return typed(page.get_by_role("textbox", name="Prompt"), text)
