"""The training page through AppTest: what it shows is what the run wrote. The runs train in this process."""

import html
import re
import threading
from dataclasses import replace

import numpy as np
import pytest

from gptviz.training.live import LiveConfig, task_for, train
from gptviz.training.live.config import PRESETS, V2, V3, named
from gptviz.training.live.snapshots import Snapshots
from gptviz.training.live.work import train_one
from gptviz.ui.parts.training import snapshot
from gptviz.ui.training import mine
from gptviz.ui.training.trainings import Trainings
from tests.pages.conftest import run_page
from tests.specs import charts, keys, opened, prose, put, words
from tests.training.live.conftest import one_thread  # noqa: F401

SIZES = {"n_layers": 2, "n_heads": 2, "emb_dim": 16, "context_length": 16}
SMALL = SIZES | {"batch_size": 8, "steps": 40, "seed": 5}
QUERY = {f"tr_{name}": value for name, value in SMALL.items()}
CONFIG = LiveConfig(**SMALL)


class Here:
    """A worker that has done its work before anybody can look."""

    running = False
    how_it_ended = "signal 9, SIGKILL"

    def __init__(self, folder, threads):
        train(folder)

    def wait(self):
        pass

    def kill(self):
        pass


class Killed(Here):
    """One that was killed before it wrote anything."""

    def __init__(self, folder, threads):
        pass


class Busy(Here):
    """One that never comes to its end: everybody else waits."""

    running = True

    def __init__(self, folder, threads):
        self._over = threading.Event()

    def wait(self):
        self._over.wait()

    def kill(self):
        self._over.set()


@pytest.fixture
def queued(monkeypatch):
    """queued(worker): the server's queue, one at a time, with workers of this kind."""
    made = []

    def make(worker=Here):
        made.append(Trainings(1, 2**30, launch=worker))
        monkeypatch.setattr(mine, "trainings", lambda: made[-1])
        return made[-1]

    yield make
    for queue in made:
        queue.close()


def started(**more):
    return run_page("training", **QUERY, **more).button(key="training_start").click().run()


def progress(at):
    """The line that says where the run stands."""
    return at.main.caption[1].value  # after the page's name


def shown(at):
    """What the model of the snapshot on the screen wrote."""
    (said,) = [
        e.proto.body for e in at.get("html") if 'data-testid="training-sample"' in e.proto.body
    ]
    return html.unescape(said.split("<b>")[1].split("</b>")[0])


def placed(widgets, name):
    """The widget of this name, wherever the program has put it."""
    return next(widget for widget in widgets if (widget.key or "").startswith(name))


def the_run(queue):
    (training,) = queue._all.values()
    return training.run


def test_what_it_draws_is_what_the_run_measured(queued):
    queue = queued()
    at = started()
    run = the_run(queue)
    assert run.config == CONFIG
    curves = charts(at)[0]
    lines = {
        trace["name"]: trace for trace in curves["data"] if trace.get("showlegend") is not False
    }
    assert list(lines["validation"]["x"]) == [0, 20, 40]
    assert lines["validation"]["y"] == pytest.approx([m.validation for m in run.measures])
    assert lines["training"]["y"][0] is None  # before the first step there is none
    assert lines["training"]["y"][1:] == pytest.approx(run.curve["train"].tolist())
    for name, best in (("induction", "best_induction"), ("previous-token", "best_previous")):
        expected = [getattr(m, best)[0] for m in run.measures]
        assert lines[f"best {name} head"]["y"] == pytest.approx(expected)
    levels = sorted(
        shape["y0"] for shape in curves["layout"]["shapes"] if shape["y0"] == shape["y1"]
    )
    assert levels == pytest.approx(sorted([run.task.ln_v, run.task.bigram, run.task.floor]))
    assert "step 40 of 40" in progress(at)
    opened(at, *(f"numbers_training_{name}" for name in ("curve", "heads", "levels")))
    table, heads, lines = (frame.value for frame in at.dataframe)
    assert table["validation"].tolist() == [m.validation for m in run.measures]
    assert heads["induction"].max() == max(m.best_induction[0] for m in run.measures)
    assert lines["nats per token"].tolist() == [run.task.ln_v, run.task.bigram, run.task.floor]
    assert f"{run.measures[-1].validation:.2f} nats" in prose(at)


def test_the_slider_goes_through_the_snapshots(queued):
    queue = queued()
    at = started()
    run = the_run(queue)
    assert (
        at.select_slider(key="training_slider").value == "newest"
        and shown(at) == run.measures[2].sample
    )
    at.button(key="training_start").click().run()  # the same choices are not trained twice
    at.select_slider(key="training_slider").set_value(20).run()
    assert at.session_state["training_step"] == 20 and len(queue._all) == 1
    assert shown(at) == run.measures[1].sample
    marks = {
        shape["x0"] for shape in charts(at)[0]["layout"]["shapes"] if shape["x0"] == shape["x1"]
    }
    assert marks == {20}
    _, block, head = run.measures[1].best_induction
    assert at.subheader[0].value == f"Block {block}, head {head}"


def test_what_nobody_touched_follows_the_last_snapshot_and_what_was_touched_stays(
    queued, monkeypatch
):
    """A browser that has not yet drawn the newest says what it drew before, with each of its looks."""
    queue = queued()
    with monkeypatch.context() as until_step_20:
        until_step_20.setattr(Snapshots, "steps", lambda self: [0, 20])
        at = started()
        early = at._tree.get_widget_states()
    run = the_run(queue)
    for _ in range(2):
        at._run(early)
        assert "training_step" not in at.query_params and shown(at) == run.measures[2].sample
        at.run()
    assert placed(at.number_input, "training_fork_steps").value == 240
    put(at, training_step=0)  # as a click on the curve does
    at._run(early)
    assert at.query_params["training_step"] == "0" and shown(at) == run.measures[0].sample
    # how far a fork goes, and which head it has off, follow as well until they are touched
    assert placed(at.number_input, "training_fork_steps").value == 200
    placed(at.number_input, "training_fork_steps").set_value(150).run()
    placed(at.selectbox, "training_fork_head").set_value((0, 1)).run()
    at.select_slider[0].set_value("newest").run()
    assert placed(at.number_input, "training_fork_steps").value == 150
    assert placed(at.selectbox, "training_fork_head").value == (0, 1)
    assert shown(at) == run.measures[2].sample


def test_a_fork_goes_on_with_a_head_off_beside_its_origin(queued):
    queue = queued()
    at = started()
    first = the_run(queue)
    at.select_slider(key="training_slider").set_value(20).run()
    placed(at.selectbox, "training_fork_head").set_value((0, 0)).run()
    placed(at.number_input, "training_fork_steps").set_value(40).run()
    at.button(key="training_fork_go").click().run()
    assert len(queue._all) == 2
    fork = list(queue._all.values())[1]
    assert fork.run.config.muted == ((0, 0),) and fork.run.origin.step == 20
    shows = [at.session_state[name] for name in ("training_run", "training_beside")]
    assert shows == [fork.number, next(iter(queue._all))]
    names = [
        trace["name"] for trace in charts(at)[0]["data"] if trace.get("showlegend") is not False
    ]
    assert len(names) == 5 and sum(name.startswith("dashed: run 1") for name in names) == 1
    assert [m.step for m in fork.run.measures] == [0, 20, 40]
    assert fork.run.measures[0] == first.measures[0]
    assert fork.run.measures[2].validation != first.measures[2].validation


def test_after_as_many_steps_as_there_may_be_nothing_is_left_to_fork(queued, monkeypatch):
    monkeypatch.setattr(snapshot, "MOST_STEPS", 40)
    queued()
    at = started()
    assert not at.exception and not keys(at, "training_fork_go") and keys(at, "training_open")
    at.select_slider(key="training_slider").set_value(20).run()
    assert placed(at.number_input, "training_fork_steps").value == 40


def test_what_is_started_beside_a_run_is_in_sight(queued):
    queued()
    at = started()
    at.session_state["training_new"] = True
    at.number_input(key="tr_seed").set_value(6).run()
    assert at.session_state["training_new"]
    at.button(key="training_start").click().run()
    assert not at.session_state["training_new"]


def test_better_than_a_bigram_is_said_only_of_a_run_that_is(queued):
    """Since the last step at which it was not: an overtrained model is worse again."""
    queue = queued()
    at = started(tr_task="chapter")
    run = the_run(queue)

    def since(*losses):
        pairs = zip(run.measures, losses, strict=True)
        run.write_measures([replace(m, validation=run.task.bigram + loss) for m, loss in pairs])
        at.run()
        return [int(step) for step in re.findall(r"Since step (\d+)", prose(at))]

    assert (since(1, -1, 1), since(1, -1, -1), since(-1, 1, -1)) == ([], [20], [40])


def test_the_head_that_the_story_names_can_be_tested_and_the_test_is_told(queued):
    queue = queued()
    at = started()
    run = the_run(queue)
    born = ((0.05, 0.05), (0.61, 0.04))
    low = ((0.05, 0.05), (0.05, 0.04))

    def with_scores(run, *scores):
        previous = ((0.1, 0.37), (0.9, 0.0))
        pairs = zip(run.measures, scores, strict=True)
        run.write_measures([replace(m, induction=one, previous_token=previous) for m, one in pairs])

    def tests():
        return [part.value for part in at.markdown if part.value.startswith("**Tested")]

    with_scores(run, low, low, born)
    at.run()
    assert (": its score is 0.37" in prose(at)) and not tests()
    at.button(key="training_test").click().run()
    assert len(queue._all) == 2
    origin, fork = queue._all.values()
    assert fork.run.config.muted == ((0, 1),) and fork.run.origin.step == 20
    assert (
        fork.run.config.steps == run.config.steps
        and at.session_state["training_run"] == fork.number
    )
    assert [m.off for m in fork.run.measures] == [(), ((0, 1),), ((0, 1),)]
    # on the fork's page, and on that of the run it came from
    for number in (fork.number, origin.number):
        with_scores(fork.run, low, low, low)
        put(at, training_run=number)
        (said,) = tests()
        assert "0.1 off from step 20" in said and "no induction head by step 40" in said
        assert "between step 20 and step 40" in said and "needs the head" in said
        with_scores(fork.run, low, low, born)
        at.run()
        (said,) = tests()
        assert (
            "block 1, head 0, 0.61 at step 40" in said
            and "same step" in said
            and "nothing shows that the head is needed" in said
        )
    assert not keys(at, "training_test")
    # a head that is off is no induction head, however it looks
    with_scores(fork.run, low, ((0.05, 0.99), (0.05, 0.04)), ((0.05, 0.99), (0.05, 0.04)))
    at.run()
    assert (
        fork.run.measures[2].best_induction == (0.05, 1, 0) and "no induction head by" in tests()[0]
    )


def test_a_killed_worker_and_a_queue_are_sentences(queued):
    queued(Killed)
    at = started()
    assert len(at.error) == 1 and "SIGKILL" in at.error[0].value
    queue = queued(Busy)
    at = started()
    at.number_input(key="tr_seed").set_value(6).run()
    at.button(key="training_start").click().run()
    assert len(queue.queue._waiting) == 1 and "next in line" in progress(at)
    at.button(key="training_stop").click().run()
    assert not queue.queue._waiting and "Stopped" in progress(at)
    at.button(key="training_remove").click().run()
    assert len(queue._all) == 1
    # it was heard
    assert at.button(key="training_stop").click().run().button(key="training_stop").disabled


def test_a_text_that_will_not_do_and_a_run_that_is_gone_are_sentences(queued):
    queue = queued()
    at = run_page("training", tr_task="own", text="too short", training_run="gone", **QUERY)
    assert "gone with its visitor or its server" in at.info[0].value
    at.button(key="training_start").click().run()
    assert "9 characters" in at.warning[0].value and not queue._all


def test_the_presets_can_be_trained_and_are_told_apart():
    for preset in PRESETS.values():
        assert len({named(config) for config in preset.runs}) == len(preset.runs)
        for config in preset.runs:
            assert config.parameters(64) > 0
    assert named(LiveConfig()) == f"{LiveConfig().n_layers} blocks, {LiveConfig().n_heads} heads"
    other = LiveConfig(n_layers=1, n_heads=1, context_length=32, positions=False)
    assert named(other) == "1 block, 1 head, context 32, no positions"
    muted = replace(other, n_layers=3, muted=((2, 0),))
    assert named(muted) == "3 blocks, 1 head, context 32, no positions, off: 2.0"


def test_every_choice_of_the_form_is_trained(queued):
    """What somebody chooses, in the form or by an address, is what the run is given."""
    queue = queued()
    chosen = {
        "activation": "relu",
        "dropout": 0.2,
        "weight_decay": 0.1,
        "attention": "off",
        "positions": "off",
    }
    at = started(**{f"tr_{name}": value for name, value in chosen.items()})
    expected = replace(
        CONFIG, activation="relu", dropout=0.2, weight_decay=0.1, attention=False, positions=False
    )
    assert the_run(queue).config == expected
    said = words(at)
    assert "Without attention there is no induction head." in said
    assert "This model has ReLU where a GPTModel has GELU." in said
    at.segmented_control(key="tr_activation").set_value("gelu").run()
    at.toggle(key="tr_attention").set_value(True).run()
    at.selectbox(key="tr_dropout").set_value(0.5).run()
    at.button(key="training_start").click().run()
    runs = [training.run.config for training in queue._all.values()]
    assert runs[-1] == replace(expected, activation="gelu", attention=True, dropout=0.5)


def test_the_notebooks_second_and_third_model_train_beside_each_other(queued):
    queue = queued()
    at = run_page("training").button(key="training_preset_v3").click().run()
    configs = [training.run.config for training in queue._all.values()]
    assert configs == [V3, V2] == [*PRESETS["v3"].runs] and PRESETS["v2"].runs == (V2,)
    said = prose(at)
    assert "A single head between the tables and the linear layer" in said
    assert "Dashed, for comparison: **" in said and "its best induction score" not in said
    first, second = (training.run.measures[-1].validation for training in queue._all.values())
    assert first < second  # a head knows more than the last character


def test_in_code_is_the_same_picture(capsys):
    picture = train_one(SMALL | {"steps": 20})
    task = task_for(CONFIG)
    assert picture.shape == (len(task.probes), 2, 2, 16, 16)
    assert np.allclose(picture.sum(axis=-1), 1, atol=1e-5)
    assert np.array_equal(picture, train_one(SMALL | {"steps": 20}))  # seeded: the same again
    printed = capsys.readouterr().out
    assert f"{task.floor}" in printed and "step    20" in printed
