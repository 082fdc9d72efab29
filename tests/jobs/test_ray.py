"""A Ray cluster of two nodes: the same numbers, a node that dies, one that is gone, a training on it."""

import os
import pickle
import signal
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
import torch

from gptviz.engine import forward
from gptviz.engine.reader import Reader
from gptviz.jobs import Queue, Task
from gptviz.jobs.ray.cluster import EACH, Cluster, reach
from gptviz.jobs.task import RAY
from gptviz.training.live import begin, train
from gptviz.ui.training.trainings import Trainings
from tests.conftest import random_lm
from tests.engine.test_trace import assert_same
from tests.jobs.tasks import TEXT, WAIT, knocked_out, wrong
from tests.training.live.conftest import tiny
from tests.waiting import until

ray_cluster = pytest.importorskip("ray.cluster_utils")


def slow(lm, folder, number, progress):
    """A second of steps; says who does it."""
    Path(folder, f"{os.getpid()}-{number}-{time.monotonic()}").touch()
    for step in range(20):
        time.sleep(0.05)
        progress(step, 20)
    return number


@pytest.fixture(scope="module")
def nodes():
    made = ray_cluster.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    made.add_node(num_cpus=1)
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def queue(nodes, tmp_path_factory):
    made = Queue(Cluster(nodes.address, tmp_path_factory.getbasetemp), 10**7)
    yield made
    made.close()


def test_a_cluster_gives_the_same_numbers_with_and_without_edits(queue, mini):
    assert knocked_out(queue, mini).state == "done"
    assert queue.backend.slots == 2 * EACH and queue.backend.stands()


def test_what_a_task_raises_is_said_as_it_is(queue, mini):
    job = queue.get(Task(wrong, "mini"), mini, "ann")
    assert job.join(WAIT) and job.error == "no such token"


def test_progress_is_told_and_a_stop_ends_it(queue, mini, tmp_path):
    job = queue.get(Task(slow, "mini", (str(tmp_path), 0)), mini, "ann")
    while job.progress == (0, 1):
        assert not job.join(0.05) or job.state == "done"
    assert job.progress[1] == 20
    job.stop()
    other = queue.get(Task(slow, "mini", (str(tmp_path), 1)), mini, "ann")
    assert other.join(WAIT) and other.value == 1


def test_a_large_models_texts_are_read_by_the_cluster(queue, mini, monkeypatch):
    pytest.importorskip("ray.serve.batching")
    backend = queue.backend
    assert backend.reader("mini", mini, wait) is mini  # which is a small one
    monkeypatch.setattr(backend, "large", mini.config.parameters)
    ids = mini.encode(TEXT)
    places = []
    far = backend.reader(
        "mini", mini, lambda found, place: places.append(place()) or wait([found], WAIT)
    )
    # its weights stay there
    assert f"{backend.ready('mini', mini)}" in Path("/proc/self/maps").read_text()
    edited = far.edited("z.4.3=zero")
    texts = [(reader, ids[:n]) for n in range(1, len(ids) + 1) for reader in (far, edited)]
    expected = [mini.edited(*reader.edits).trace(text) for reader, text in texts]
    monkeypatch.setattr(Reader, "trace", None)  # nothing is read here
    with ThreadPoolExecutor(len(texts)) as pool:
        found = list(pool.map(lambda asked: asked[0].trace(asked[1]), texts))
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)
        assert one.lm.model is far.model
    assert places[0] == 1 and max(places) > 1


def test_texts_that_came_together_are_read_in_one_pass(monkeypatch):
    passes = pytest.importorskip("gptviz.jobs.ray.passes")
    lm = random_lm()
    calls = []
    hidden = forward.hidden

    def counted(model, ids, *more, **named):
        calls.append(len(ids))
        return hidden(model, ids, *more, **named)

    monkeypatch.setattr(forward, "hidden", counted)
    zero = lm.edited("z.0.1=zero").edits
    good = ((1, 2, 3), (), (), ())
    long = ((1,) * 65, (), (), ())
    texts = [good, ((4, 5), (), (), ()), ((1, 2, 3), zero, (), ())]
    found = [pickle.loads(letter).received(lm) for letter in passes.read(lm, texts)]
    assert calls == [2, 1] and [len(one) for one in found] == [3, 2, 3] and found[2].edits == zero
    first, wrong, last = passes.read(lm, [good, long, good])
    assert (
        "65 tokens" in f"{wrong}"
        and (found[0].logits() - lm.trace(good[0]).logits()).abs().max() < 1e-4
    )
    assert all(torch.equal(pickle.loads(one)["z"], lm.trace(good[0])["z"]) for one in (first, last))


def test_a_text_is_read_here_where_the_cluster_is_gone(mini, tmp_path, monkeypatch):
    backend = Cluster("127.0.0.1:1", lambda: tmp_path)
    monkeypatch.setattr(backend, "large", 1)
    far = backend.reader("mini", mini, wait)
    assert far is not mini and (far.trace(TEXT).logits() == mini.trace(TEXT).logits()).all()
    backend.close()


def test_a_training_on_a_cluster_is_the_one_here(nodes, tmp_path, monkeypatch):
    monkeypatch.setenv(RAY, nodes.address)
    queue = Trainings(1, 10**9)
    config = tiny(steps=5000, every=100)
    far = queue.start("ann", config)
    until(lambda: far.state == "training" and far.run.status.step)
    far.pause()
    until(lambda: far.state == "paused" and not far.shared_run.worker.running)
    assert 0 < far.run.status.step < 5000
    near = train(begin(tmp_path / "near", config).folder, stop_at=far.run.status.step)
    assert far.run.measures == near.measures and far.run.kept.steps() == near.kept.steps()
    assert (far.run.attention(0) == near.attention(0)).all()
    queue.close()


def drivers():
    """The processes of ours that speak to Ray."""
    children = Path("/proc/self/task").glob("*/children")
    pids = [int(pid) for file in children for pid in file.read_text().split()]
    return [
        pid
        for pid in pids
        if b"gptviz.jobs.ray.driver" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def test_a_node_and_a_driver_that_die_lose_nobody_his_result(queue, nodes, mini, tmp_path):
    jobs = [
        queue.get(Task(slow, "mini", (str(tmp_path), number)), mini, f"visitor {number}")
        for number in range(10)
    ]
    assert jobs[2].join(WAIT)
    nodes.remove_node(nodes.list_all_nodes()[1], allow_graceful=False)
    # what lost its node: who is lost twice has failed
    assert all(job.join(WAIT) for job in jobs[:6])
    (driver,) = drivers()
    os.kill(driver, signal.SIGKILL)
    assert all(job.join(WAIT) for job in jobs)
    assert [job.value for job in jobs] == list(range(10))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "here", "127.0.0.1:99999"])
def test_an_address_where_nobody_answers_is_a_sentence(address, mini, tmp_path):
    with pytest.raises(ValueError, match=address):
        reach(address)
    alone = Queue(Cluster(address, lambda: tmp_path), 10**7)
    job = alone.get(Task(wrong, "mini"), mini, "ann")
    assert job.join(WAIT) and job.state == "failed" and address in str(job.error)
    assert not alone.backend.stands()
    alone.close()
