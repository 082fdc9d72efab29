"""What takes long waits for a click, is worked out once, and stands in the address once it is asked for."""

import pytest

from gptviz.jobs import Job, Queue
from gptviz.ui.shell import slow
from tests.specs import charts, keys

TEXT = "The cat sat on the mat. The dog sat on the one"
PAIR = {"text": "The man took off", "other": "The girl took off"}
EDITED = {"text": TEXT, "edits": "z.4.3=zero"}


@pytest.fixture(autouse=True)
def everything_takes_long(monkeypatch):
    monkeypatch.setattr(slow, "UNASKED", 0)


@pytest.mark.parametrize(
    ("page", "query", "button", "asked", "count"),
    [
        ("knock_out", {"text": TEXT}, "knock_out_start", {"map": "on"}, 2),
        ("patching", PAIR, "patching_resid_pre_go", {"patch_go": "on"}, 3),
    ],
)
def test_it_waits_for_a_click_and_comes_from_memory_then(
    run_page, monkeypatch, page, query, button, asked, count
):
    at = run_page(page, **query)
    assert not charts(at)
    at.button(key=button).click().run()
    assert len(charts(at)) == count and asked.items() <= at.query_params.items()
    monkeypatch.setattr(Queue, "start", lambda *_: pytest.fail("it is worked out again"))
    assert len(charts(run_page(page, **query, **asked, block=1))) == count
    stopped = run_page(page, **query, **dict.fromkeys(asked, "off"))
    assert not charts(stopped) and keys(stopped, button)
    # where a map with gaps would mislead, that is said
    assert bool(stopped.info) == (page == "knock_out")


def test_the_unchanged_map_waits_for_a_click_of_its_own(run_page):
    at = run_page("knock_out", **EDITED, map="on")
    assert len(charts(at)[1]["data"]) == 1
    at.button(key="knock_out_beside").click().run()
    assert len(charts(at)[1]["data"]) == 2 and at.query_params["map_unchanged"] == "on"


def test_heads_of_a_long_text_are_compared_when_somebody_asks(run_page):
    at = run_page("compare", vs="edits", edits="z.2.0=zero", text="Another text, not asked for")
    assert len(charts(at)) == 2 and at.button(key="compare_all").label == "Compare all heads"


def test_a_work_that_a_busy_server_gave_up_is_begun_again(run_page, monkeypatch):
    monkeypatch.undo()  # it is done unasked
    given_up = []
    look = Job.look

    def too_late(job, who, seconds):
        look(job, who, seconds)
        if not given_up:
            job.stop()
        given_up.append(job)

    monkeypatch.setattr(Job, "look", too_late)
    at = run_page("knock_out", text=TEXT + " three")
    assert given_up[0].state == "done" and len(charts(at)) == 2
