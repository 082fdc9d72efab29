"""The queue: so many at a time, in order; what is said of a worker that was killed; nothing stays behind."""

import os
import signal
import threading
from dataclasses import replace

import pytest

from gptviz.files.owned_folder import TRAININGS, UPLOADS, OwnedFolder, sweep
from gptviz.training.live import begin, train
from gptviz.ui.training.trainings import MOST_OF_ONE, Trainings
from tests.training.live.conftest import tiny
from tests.waiting import until


class Played:
    """A worker without a process: it ends when the test says so."""

    def __init__(self, folder, threads):
        self.threads = threads
        self.folder = folder
        self.running = True
        self.how_it_ended = "signal 9, SIGKILL"
        self._over = threading.Event()

    def wait(self):
        self._over.wait()
        self.running = False

    def train(self):
        """Do all that there is to do, and end."""
        train(self.folder)
        self.end()

    def end(self):
        self._over.set()

    kill = end


@pytest.fixture
def played():
    """played(at_once, ...) -> a queue, and the workers that it started, in order."""
    queues = []

    def made(at_once=1, **options):
        workers = []
        launch = lambda *given: workers.append(Played(*given)) or workers[-1]  # noqa: E731
        queues.append(Trainings(at_once, 10**9, launch, **options))
        return queues[-1], workers

    yield made
    for queue in queues:
        queue.close()


@pytest.mark.parametrize("at_once", [1, 3])
def test_ten_visitors_train_in_the_order_in_which_they_came(played, at_once):
    queue, workers = played(at_once)
    runs = [queue.start(f"visitor {i}", tiny(seed=i)) for i in range(10)]
    assert [run.state for run in runs] == ["starting"] * at_once + ["waiting"] * (10 - at_once)
    for done, run in enumerate(runs):
        until(lambda done=done: len(workers) == min(10, done + at_once))
        assert workers[done].folder == run.run.folder
        turns = [None] * at_once + [*range(1, 10)]
        assert [other.place for other in runs[done:]] == turns[: 10 - done]
        workers[done].end() if done else workers[done].train()
        until(lambda run=run: not run.shared_run.worker.running)
    assert runs[0].state == "done" and runs[0].said is None


def test_who_trains_alone_has_more_threads_and_keeps_them(played):
    queue, workers = played(alone=2)
    first, second, third = (queue.start("one", tiny(seed=i)) for i in range(3))
    for done in range(3):
        until(lambda done=done: len(workers) == done + 1)
        workers[done].end()
    until(lambda: not third.shared_run.worker.running)
    # the second began while the third waited
    assert [worker.threads for worker in workers] == [2, 1, 2]
    assert (first.config.threads, second.config.threads, third.config.threads) == (2, 1, 2)

    train(third.run.folder)
    forked = queue.fork(third, 2)
    queue.start("two", tiny(seed=3))
    until(lambda: len(workers) == 4)
    assert forked.config.threads == workers[3].threads == 2


def test_who_waits_can_pause_stop_and_leave(played):
    queue, workers = played()
    first, second, third, fourth = (queue.start("one", tiny(seed=i)) for i in range(4))
    second.pause()
    third.stop()
    queue.remove(fourth)
    assert (second.state, third.state, second.place, third.place) == (
        "paused",
        "stopped",
        None,
        None,
    )
    assert not fourth.run.folder.exists() and len(queue.of("one")) == 3
    second.resume()
    assert second.place == 1
    first.stop()
    assert first.run.wish == "stop"  # the worker hears it after its step
    workers[0].end()
    until(lambda: second.state == "starting")


def test_who_goes_on_before_the_worker_has_left_waits_for_it(played):
    queue, workers = played()
    run = queue.start("one", tiny())
    train(run.run.folder, stop_at=1)  # the worker has said that it paused, and is about to end
    assert run.state == "paused"
    run.resume()
    assert run.state == "waiting" and len(workers) == 1  # never two on one folder
    workers[0].end()
    until(lambda: len(workers) == 2 and run.state == "starting")


def test_a_killed_worker_is_said_and_cleaned_up_and_can_go_on(played):
    queue, workers = played()
    run = queue.start("one", tiny())
    next_one = queue.start("two", tiny(seed=1))
    train(run.run.folder, stop_at=3)
    run.run.write_status(type(run.run.status)("training", 3, 6, 1.0, 1.0))
    leftover = run.run.folder / "snapshots" / "000004.pt.partial"
    leftover.write_bytes(b"half of it")
    workers[0].end()
    until(lambda: next_one.state == "starting" and not leftover.exists())
    assert run.state == "killed" and not run.active
    assert "from outside (signal 9, SIGKILL) after step 3 of 6" in run.said
    assert [s.step for s in run.run.snapshots] == [0, 2]
    run.resume()
    assert run.place == 1
    workers[1].end()
    until(lambda: run.state == "starting")
    workers[2].train()
    until(lambda: run.state == "done")
    straight = train(begin(queue._root.path / "straight", tiny()).folder)
    assert run.run.measures == straight.measures


def test_what_several_ask_for_is_trained_once_and_who_pauses_has_a_copy(played):
    queue, workers = played()
    ann, bob, cat = (queue.start(name, tiny()) for name in ("ann", "bob", "cat"))
    other = queue.start("dan", tiny(steps=7))
    assert ann.run is bob.run is cat.run and [run.shared for run in (ann, other)] == [2, 0]
    train(ann.run.folder, stop_at=3)
    ann.run.write_status(replace(ann.run.status, state="training"))  # as if it went on
    bob.pause()
    assert (bob.state, bob.shared, ann.state, ann.run.wish) == ("paused", 0, "training", None)
    assert bob.run.folder != ann.run.folder and bob.run.measures == ann.run.measures
    queue.remove(ann)
    assert cat.state == "training" and cat.run.folder.exists()
    workers[0].train()
    until(lambda: cat.state == "done" and len(workers) == 2)  # the other one's is the second
    late = queue.start("eve", tiny())
    assert late.state == "done" and late.run is cat.run and len(workers) == 2
    bob.resume()
    workers[1].end()
    until(lambda: bob.state == "starting")
    workers[2].train()
    assert bob.run.measures == cat.run.measures


def test_a_visitor_who_leaves_takes_everything_along(played):
    queue, workers = played()
    mine = queue.start("me", tiny())
    theirs = queue.start("them", tiny(seed=1))
    queue.start("me", tiny(seed=2))
    queue.clear("me")
    until(lambda: theirs.state == "starting" and not mine.run.folder.exists())
    assert queue.of("me") == () and queue.of("them") == (theirs,)
    assert queue.find("me", theirs.number) is None and queue.find("them", theirs.number) is theirs
    assert len(workers) == 2


def test_who_queues_several_does_not_hold_up_who_queues_one(played):
    queue, workers = played()
    mine = [queue.start("me", tiny(seed=seed)) for seed in range(3)]
    theirs = queue.start("them", tiny(seed=3))
    assert [run.place for run in (*mine, theirs)] == [None, 2, 3, 1]
    for done, run in enumerate((mine[0], theirs, mine[1], mine[2])):
        until(lambda done=done: len(workers) == done + 1)
        assert workers[done].folder == run.run.folder
        workers[done].end()


def test_there_is_only_so_much_room(played):
    queue, _ = played()
    for seed in range(MOST_OF_ONE):
        last = queue.start("me", tiny(seed=seed))
    with pytest.raises(ValueError, match="you have 8 runs"):
        queue.start("me", tiny())
    queue.remove(last)
    assert queue.start("me", tiny()).label == "run 8"
    queue.max_bytes = 10
    with pytest.raises(ValueError, match="has no room for another"):
        queue.start("you", tiny())
    queue.max_bytes = 10**9
    with pytest.raises(ValueError, match="the text has 0 characters"):
        queue.start("you", tiny(task="own"))
    assert queue.of("you") == ()


def test_real_processes_train_pause_go_on_and_can_be_killed():
    queue = Trainings(1, 10**9)
    run = queue.start("me", tiny(steps=5000, every=500))
    until(lambda: run.state == "training")
    run.pause()
    until(lambda: run.state == "paused" and not run.shared_run.worker.running)
    assert 0 < run.run.status.step < 5000
    here = train(begin(queue._root.path / "here", tiny(steps=5000, every=500)).folder, stop_at=1)
    assert run.run.measures[0] == here.measures[0]  # what the page runs is what the library runs
    run.resume()
    until(lambda: run.state == "training")
    os.kill(run.shared_run.worker.pid, signal.SIGKILL)
    until(lambda: run.state == "killed")
    assert "SIGKILL" in run.said
    root = queue._root.path
    queue.close()
    assert not root.exists()


def full(*_):
    raise OSError(28, "No space left on device")


def test_a_server_takes_no_more_than_so_many_that_wait(played):
    queue, _ = played(most_waiting=2)
    # each new: one without a cookie
    runs = [queue.start(f"visitor {i}", tiny(seed=i)) for i in range(3)]
    with pytest.raises(ValueError, match=r"2 trainings .* wait already.* GPTVIZ_TRAININGS_WAITING"):
        queue.start("visitor 3", tiny(seed=3))
    # and the lock
    assert queue.of("visitor 3") == () and len(list(queue._root.path.iterdir())) == 3 + 1
    runs[1].pause()
    queue.start("visitor 3", tiny(seed=3))
    with pytest.raises(ValueError, match="wait already"):
        runs[1].resume()
    assert runs[1].state == "paused"


@pytest.mark.parametrize("at", ["path", "begin", "launch"])
def test_a_full_disk_is_a_sentence_and_leaves_nothing(monkeypatch, at):
    queue = Trainings(1, 10**9, full if at == "launch" else Played)
    (queue._root.path / "before").mkdir()
    if at == "path":
        monkeypatch.setattr(OwnedFolder, "path", property(full))
    if at == "begin":
        monkeypatch.setattr("gptviz.training.live.run.write_text", full)
    with pytest.raises(
        ValueError, match=r"disk did not take it: No space left on device\. Remove a run"
    ):
        queue.start("visitor", tiny())
    monkeypatch.undo()
    assert queue.of("visitor") == ()
    assert sorted(path.name for path in queue._root.path.iterdir()) == ["before", "server.lock"]
    queue.close()


def test_a_full_disk_is_said_of_a_run_that_waits_and_of_one_that_trains(monkeypatch, played):
    queue, workers = played()
    trains = queue.start("one", tiny())
    waits = queue.start("two", tiny(seed=1))
    monkeypatch.setattr("gptviz.training.live.run.write_text", full)
    with pytest.raises(ValueError, match="No space left on device"):
        trains.pause()
    workers[0].end()
    until(lambda: waits.state == "failed")
    assert "No space left on device" in waits.said and not waits.active


def test_what_a_killed_server_left_is_removed_by_the_next_and_by_nobody_else(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "gptviz-training-not-ours").mkdir()
    killed = OwnedFolder(TRAININGS)
    lives = OwnedFolder(TRAININGS)
    other = OwnedFolder(UPLOADS)
    # a disk may be full
    assert [root.name for root in tmp_path.iterdir()] == ["gptviz-training-not-ours"]
    for root in (killed, lives, other):
        (root.path / "something").mkdir()
    killed._made[1].close()  # as the system does for a process that ends
    third = OwnedFolder(TRAININGS)
    assert third.path.exists() and not killed._made[0].exists() and lives.path.exists()
    assert (tmp_path / "gptviz-training-not-ours").exists()
    other._made[1].close()
    sweep(UPLOADS)
    assert not other._made[0].exists() and lives.path.exists()
    lives.clear()
    third.clear()
    assert [root.name for root in tmp_path.iterdir()] == ["gptviz-training-not-ours"]
