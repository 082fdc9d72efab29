"""The five switches on the training page: what is drawn and said is what the trainings gave."""

from dataclasses import replace

import numpy as np
import pytest

from gptviz.jobs import Queue
from gptviz.training.live import side_by_side
from gptviz.training.live.side_by_side import BASE, VARIANTS, compare, curves, ends
from gptviz.ui import jobs
from gptviz.ui.parts.training import switches
from tests.pages.conftest import run_page
from tests.pages.test_works_that_fail import START
from tests.specs import charts, in_numbers, keys, paragraph, table, words
from tests.training.live.conftest import one_thread  # noqa: F401
from tests.training.live.test_side_by_side import SMALL, learnt

ALL = switches.ALL
SHORT = replace(SMALL, steps=6)


@pytest.fixture
def short(monkeypatch):
    """Trainings of six steps, which are worked on as anything else."""
    monkeypatch.setattr(Queue, "start", START)
    usual = {"chapter": replace(SHORT, task="chapter"), "repeats": SHORT}
    monkeypatch.setattr(side_by_side, "USUAL", usual)
    side_by_side.sizes.cache_clear()
    yield usual
    side_by_side.sizes.cache_clear()


def over(at):
    """The page when nothing that it waits for is left to do."""
    for job in [*jobs.queue()._jobs.values()]:
        assert job.join(120)
    return at.run()


def curves_of(at):
    """The figure of the section, the last of the page."""
    return charts(at)[-1]


def test_it_trains_at_a_click_and_shows_what_came_of_it(short):
    at = run_page("training", switch_seeds=1, switch_task="repeats")
    assert "switch_curves" not in keys(at) and not jobs.queue()._jobs
    assert [row[0] for row in table(at, "switch_table")] == [*VARIANTS]
    at = at.button(key="switch_start").click().run()
    assert at.session_state["switch_on"] == "repeats-1" and len(jobs.queue()._jobs) == len(VARIANTS)
    at = over(at)
    expected = compare("repeats", (123,)).set_index("variant")
    rows = {row[0]: row[2:] for row in table(at, "switch_table")}
    for variant in VARIANTS:
        parameters, cache, loss, change = rows[variant]
        row = expected.loc[variant]
        assert parameters == f"{row['parameters']:,.0f}" and cache == f"{row['cache']:,.0f} bytes"
        assert loss == f"{row['loss']:.3f} ± 0.000"
        if variant != BASE:
            assert float(change.replace("−", "-")) == pytest.approx(row["change"], abs=6e-3)
    assert "One seed cannot tell" in words(at)
    points = curves("repeats", (123,))
    drawn = curves_of(at)["data"]
    means = [trace for trace in drawn if trace["line"]["width"] == 3]
    assert [trace["name"] for trace in means] == [*VARIANTS][1:]
    for trace in means:
        own = points[points["variant"] == trace["name"]]
        assert np.allclose(trace["y"], own["validation"]) and [*trace["x"]] == [*own["step"]]
    seen = in_numbers(at, "switch_curves")
    assert seen.equals(points)
    at = at.segmented_control(key="switch_shown").set_value("change").run()
    means = [trace for trace in curves_of(at)["data"] if trace["line"]["width"] == 3]
    base = points[points["variant"] == BASE]["validation"].to_numpy()
    own = points[points["variant"] == ALL]["validation"].to_numpy()
    assert np.allclose(means[-1]["y"], own - base)
    # another choice waits for a click; what somebody has trained is there without one
    at = at.segmented_control(key="switch_task").set_value("chapter").run()
    assert "switch_start" in keys(at) and len(jobs.queue()._jobs) == len(VARIANTS)
    other = run_page("training", switch_seeds=1, switch_task="repeats")
    assert table(other, "switch_table")[-1][4:] == [*rows[ALL]][2:]


def test_what_is_stopped_is_not_asked_for_again(short, monkeypatch):
    at = run_page("training", switch_seeds=3)
    monkeypatch.setattr(Queue, "_fill", lambda self: None)  # nothing begins
    at = at.button(key="switch_start").click().run()
    every = [*jobs.queue()._jobs.values()]
    assert len(every) == 3 * len(VARIANTS) and all(job.state == "waiting" for job in every)
    assert {job.task.args[1].seed for job in every} == {123, 124, 125}
    at = at.button(key="switch_stop").click().run()
    assert not at.session_state["switch_on"] and "switch_start" in keys(at)
    assert all(job.state == "stopped" for job in every)


def test_a_part_of_it_is_drawn_while_the_rest_is_trained(short, monkeypatch):
    done = 2
    fill = Queue._fill

    def two(self):
        if sum(job.state != "waiting" for job in self._jobs.values()) < done:
            fill(self)

    monkeypatch.setattr(Queue, "_fill", two)
    at = run_page("training", switch_on="chapter-1", switch_seeds=1)
    for job in [*jobs.queue()._jobs.values()][:done]:
        assert job.join(120)
    at = at.run()
    names = [trace.get("name") for trace in curves_of(at)["data"]]
    assert "RMSNorm" in names and "RoPE" not in names
    assert "Each switch alone" in words(at) and len(table(at, "switch_table")[0]) == 4
    for job in jobs.queue()._jobs.values():
        job.stop()


@pytest.mark.parametrize(
    ("changes", "said", "told"),
    [
        (
            (-0.2, -0.3),
            "end **0.25 nats** below GPT-2's loss.",
            "A lower loss with each of these 2 seeds",
        ),
        (
            (0.02, 0.04),
            "end **0.030 nats** above GPT-2's loss.",
            "A higher loss with each of these 2 seeds",
        ),
        (
            (-0.1, 0.3),
            "end now above, now below GPT-2.",
            "The seeds do not agree on RoPE. Of 2 switches",
        ),
    ],
)
def test_what_is_said_is_what_all_seeds_show(changes, said, told):
    runs = [learnt(BASE, seed, 9, 3.0) for seed in (1, 2)]
    for variant in ("RoPE", ALL):
        runs += [learnt(variant, seed, 9, 3.0 + x) for seed, x in enumerate(changes, start=1)]
    sentence = switches.sentence(runs, 2)
    assert sentence.startswith("With these seeds, all five together") and sentence.endswith(said)
    assert len(sentence.split()) <= 18
    assert told in switches.told(ends(runs), 2)
    assert "One seed cannot tell" in switches.told(ends(runs[::2]), 1)
    assert switches.sentence(runs[:3], 2).startswith("Each switch alone")  # one is not there yet


def test_nobody_is_told_that_a_model_is_better(short):
    at = over(run_page("training", switch_on="chapter-1", switch_seeds=1))
    section = words(at)[words(at).index("all five together") :]
    assert "better" not in section
    assert "With this one seed" in paragraph(at, "all five together")
