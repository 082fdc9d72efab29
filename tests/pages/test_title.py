"""How a page begins: the title that it gives, on its way to the screen."""

import threading
from pathlib import Path
from types import FrameType

import gptviz
from tests.pages.conftest import run_page

PACKAGE = Path(gptviz.__file__).parent
MOST = 10  # modules of ours that a reader has to open to follow the title


def modules_before_the_title(name: str) -> list[str]:
    """Our modules in which a function runs from `start_page` until Streamlit is given the title, in order."""
    modules: dict[str, None] = {}
    begun = False
    ended = False

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal begun, ended
        if event != "call" or ended:
            return
        path = Path(frame.f_code.co_filename)
        begun = begun or frame.f_code.co_name == "start_page"
        ended = begun and path.name == "heading.py" and frame.f_code.co_name == "title"
        if begun and path.is_relative_to(PACKAGE):
            modules[str(path.relative_to(PACKAGE))] = None

    threading.setprofile(seen)  # of the thread in which AppTest runs the script
    try:
        run_page(name)
    finally:
        threading.setprofile(None)
    assert ended
    return [*modules]


def test_the_title_is_on_the_screen_after_at_most_ten_modules():
    modules = modules_before_the_title("layernorm")
    assert modules[0] == "ui/shell/page.py"
    assert len(modules) <= MOST, modules
