"""A work that fails says so, in a sentence where its picture would be, and can be tried again."""

import re
from pathlib import Path

import pytest

import gptviz
from gptviz.engine import sample_means
from gptviz.jobs import Queue, Task
from gptviz.jobs.local import Thread
from gptviz.ui import jobs
from gptviz.ui.parts.logit_lens import columns
from gptviz.ui.shell import slow
from gptviz.ui.shell.navigation import SCRIPTS
from tests.specs import keys

TEXT = "The cat sat on the mat"
UI = Path(gptviz.__file__).parent / "ui"
# page, its address, and buttons that ask for the work; by the module that asks
CALLERS = {
    "shell/muted.py": ("knock_out", {}, ()),
    "shell/page.py": ("next_token", {"edits": "z.4.3=sample"}, ()),
    "many/__init__.py": ("why", {"many": "names"}, ()),
    "pages/patching.py": (
        "patching",
        {"text": "The man took off", "other": "The girl took off"},
        (),
    ),
    "parts/patching/through.py": (
        "patching",
        {"text": "The man took off", "other": "The girl took off", "path_into": "v5.0"},
        (),
    ),
    "parts/patching/roles.py": (
        "patching",
        {
            "text": "When Tom and Mary went home, Tom gave it to",
            "many": "names",
            "patch_many": "roles",
        },
        (),
    ),
    "pages/circuit.py": ("circuit", {}, ()),
    "parts/circuit/story.py": ("circuit", {"story": "on"}, ()),
    "parts/logit_lens/trial.py": ("logit_lens", {"lens_on_trial": "on"}, ()),
    "parts/generate/surgery.py": ("generate", {"ask": "surgery", "written": 1}, ()),
    "parts/generate/beams.py": ("generate", {"ask": "beams", "written": 1}, ()),
    "pages/logit_lens.py": ("logit_lens", {"text": "The cat sat. " * 5}, ("lens_all",)),
    "pages/baselines.py": ("baselines", {"base_steps": 50, "base_step": 50}, ()),
    "parts/training/switches.py": ("training", {"switch_on": "chapter-1", "switch_seeds": 1}, ()),
    "parts/heads/waiting.py": ("heads", {}, ()),
    "parts/heads/written.py": ("heads", {"many": "names"}, ()),
    "pages/heads.py": ("heads", {}, ()),
}
# they wait beside the page, or have a bar without a button; most of them take minutes
WITHOUT_STOP = (
    "parts/circuit/story.py",
    "parts/patching/roles.py",
    "parts/heads/waiting.py",
    "parts/training/switches.py",
    "pages/heads.py",
)
# of a set of texts: many.py fails before it, and on its page what is measured of heads does, too
AFTER_OTHERS = ("parts/heads/written.py",)
START = Queue.start
BAR = slow._bar


class Killed(Exception):
    """What a backend raises whose worker was killed."""


def asks_for_a_work(module: Path) -> bool:
    source = module.read_text("utf-8")
    return (
        re.search(r"\b(worked|all_worked|several|read_sample|jobs\.ask|not_done)\(", source)
        is not None
    )


def test_every_module_that_asks_for_a_work_is_tried_here():
    asking = {path.relative_to(UI).as_posix() for path in UI.rglob("*.py") if asks_for_a_work(path)}
    asking |= {f"pages/{path.name}" for path in SCRIPTS.glob("*.py") if asks_for_a_work(path)}
    # of the general scores and trials `waiting.py` shows what becomes; slow.py is what all others call
    assert asking - {"shell/slow.py", "heads.py"} == {*CALLERS}


def failing_page(run_page, page, query, buttons):
    at = run_page(page, **({"text": TEXT} | query))
    for key in buttons:
        at.button(key=key).click().run()
    return at


def sentences(at):
    return [warning.value for warning in at.warning if "could not be computed" in warning.value]


@pytest.mark.parametrize("module", [module for module in CALLERS if module not in AFTER_OTHERS])
def test_a_full_line_is_a_sentence_on_every_page_and_can_be_tried_again(
    run_page, module, mini, monkeypatch
):
    page, query, buttons = CALLERS[module]
    monkeypatch.setattr(slow, "UNASKED", 10**15)  # nothing waits for a click
    # but the lens's other columns
    monkeypatch.setattr(columns, "UNASKED", 4 * columns.work(mini.config))
    monkeypatch.setattr(Queue, "start", START)  # of what is measured of heads, too
    # nobody has read the sample yet
    monkeypatch.setattr(sample_means, "_known", type(sample_means._known)())
    queue = jobs.queue()
    queue.most_waiting = 0
    at = failing_page(run_page, page, query, buttons)
    (said,) = sentences(at)
    assert "0 works of this server's visitors wait already" in said and "Try again" in said
    (again,) = {"work_again", "heads_general_again"} & {*keys(at)}
    queue.most_waiting = 300
    if page in ("heads", "training"):
        monkeypatch.setattr(Queue, "start", lambda *_: None)  # what is asked for takes minutes
    at.button(key=again).click().run()
    assert not sentences(at)


@pytest.mark.parametrize("module", [module for module in CALLERS if module not in WITHOUT_STOP])
def test_the_bars_of_both_models_stand_on_one_page(run_page, module, mini, monkeypatch):
    """However slow the machine is: no two of them have a button of one key."""
    page, query, buttons = CALLERS[module]
    drawn = []

    def bar(place, key, stop):
        drawn.append(key)
        if key is not None:  # the page has a button there where the work is slow
            stop = stop or (lambda: None)
        return BAR(place, key, stop)

    monkeypatch.setattr(slow, "UNASKED", 10**15)
    monkeypatch.setattr(columns, "UNASKED", 4 * columns.work(mini.config))
    monkeypatch.setattr(slow, "TICK", 0.001)  # nothing is quick enough to have no bar
    monkeypatch.setattr(slow, "_bar", bar)
    monkeypatch.setattr(sample_means, "_known", type(sample_means._known)())
    query = {"edits": "mlp_out.1=zero", "text": f"{TEXT} and on the bed", **query}
    at = failing_page(run_page, page, query, buttons)
    assert not at.exception
    assert drawn


def killed(*_):
    raise Killed("signal 9")


def full_disk(*_):
    raise OSError(28, "No space left on device", "/tmp/gptviz-work-1/model.pt")


def no_memory(*_):
    raise MemoryError


def a_bug(*_):
    raise KeyError("block")


@pytest.mark.parametrize(
    ("place", "name", "fails", "said"),
    [
        (Task, "do", killed, "ended from outside, twice"),
        (Task, "do", no_memory, "more memory than this server has"),
        (Task, "do", a_bug, "an error in the program ended it (KeyError: 'block')"),
        (Thread, "ready", full_disk, "could not begin this work (No space left on device)"),
        (Thread, "start", full_disk, "could not begin this work (No space left on device)"),
    ],
)
def test_whatever_ends_a_work_is_said_and_passes(run_page, monkeypatch, place, name, fails, said):
    monkeypatch.setattr(Thread, "gone", (Killed,))
    with monkeypatch.context() as broken:
        broken.setattr(place, name, fails)
        at = run_page("knock_out", text=TEXT)
        (sentence,) = sentences(at)
        assert said in sentence and "/tmp" not in sentence
    at.button(key="work_again").click().run()
    assert not sentences(at) and len(at.get("plotly_chart")) == 2


def test_what_a_work_refuses_is_its_own_sentence(run_page, monkeypatch):
    def refuses(*_):
        raise ValueError("block 0 gives no numbers")

    monkeypatch.setattr(Task, "do", refuses)
    at = run_page("knock_out", text=TEXT)
    assert [warning.value for warning in at.warning] == [
        "This cannot be computed: block 0 gives no numbers."
    ]
    assert not keys(at, "work_again")
