"""The queue: one job for all who ask, whose turn it is, stopped and started again, bounded."""

from concurrent.futures import Future

import pytest
from hypothesis import given, strategies as st

from gptviz import Run
from gptviz.jobs import Queue, Task, queue as queues
from gptviz.ui import heads, jobs, runs
from tests.waiting import together


def some(_lm, *_, progress):
    """What tasks here are called; nobody runs it."""


class Died(Exception):
    pass


class ByHand:
    """Works when it is told to."""

    gone = (Died,)

    def __init__(self, slots=1):
        self.slots = slots
        self.begun = []
        self.cancelled = []
        self.alone = []
        self.told = {}
        self.full = False

    def ready(self, model, lm):
        return model

    def start(self, task, model, alone):
        if self.full:
            raise OSError("No space left on device")
        self.begun.append(next(iter(task.args), None))
        self.alone.append(alone)
        self.told[task] = _Execution(self, task)
        return self.told[task]

    def end(self, job, value="result", problem=None):
        future = self.told[job.task].future
        future.set_exception(problem) if problem else future.set_result(value)

    def forget(self, model):
        pass

    def close(self):
        pass


class _Execution:
    def __init__(self, backend, task):
        self.future = Future()
        self._backend = backend
        self._task = task
        self.done = (0, 1)

    def progress(self):
        return self.done

    def cancel(self):
        self._backend.cancelled.append(self._task.args[0])


class Clock:
    at = 1000.0

    def __call__(self):
        return self.at


@pytest.fixture
def hand():
    return ByHand()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(hand, clock):
    return Queue(hand, 10**6, now=clock)


def ask(queue, name, who="ann", model="mini"):
    return queue.get(Task(some, model, (name,)), None, who)  # these tasks need no model


def test_two_who_ask_at_once_get_one_work(queue, hand):
    got = together(8, lambda _: ask(queue, "a"))
    assert len({id(job) for job in got}) == 1 and hand.begun == ["a"]
    hand.end(got[0], 7)
    assert got[0].join(0) and (got[0].state, got[0].value) == ("done", 7)
    assert ask(queue, "a", "bob") is got[0] and hand.begun == ["a"]
    assert queue.find(Task(some, "mini", ("b",))) is None


def test_who_came_first_is_finished_first_and_nobody_is_forgotten(queue, hand, clock):
    """Ann asks for three things, one after the other, and has them before Bob and Cy, who came later."""
    first = ask(queue, "ann 1")
    waiting = []
    for who, name in (("bob", "bob 1"), ("cy", "cy 1"), ("bob", "bob 2")):
        clock.at += 0.1
        waiting.append(ask(queue, name, who))
    assert [job.place for job in waiting] == [1, 3, 2]
    hand.end(first)
    assert hand.begun == ["ann 1", "bob 1"]
    clock.at += 0.5  # her page goes on, and asks again: it is still her turn
    second = ask(queue, "ann 2")
    assert second.place == 1
    hand.end(waiting[0])
    hand.end(second)
    clock.at += queues.PAUSE + 1  # now she comes anew
    assert ask(queue, "ann 3").place == 2
    hand.end(waiting[2])
    hand.end(waiting[1])
    assert hand.begun == ["ann 1", "bob 1", "ann 2", "bob 2", "cy 1", "ann 3"]
    assert hand.alone == [True, *[False] * 4, True]


def test_who_has_worked_for_a_turn_goes_to_the_end(queue, hand, clock):
    first = ask(queue, "ann 1")
    clock.at += 1
    other = ask(queue, "bob 1", "bob")
    more = ask(queue, "ann 2")
    assert (other.place, more.place) == (1, 2)  # she has one at work
    clock.at += queues.TIME_SLICE
    queue._fill()  # as its thread does twice a second: a long work gives its place, and goes on
    assert first.state == "working" and hand.begun == ["ann 1", "bob 1"]
    third = ask(queue, "cy 1", "cy")
    clock.at += 1
    hand.end(first)
    clock.at += 1
    hand.end(other)
    assert hand.begun[2:] == ["cy 1"] and more.state == "waiting"
    hand.end(third)
    assert more.state == "working"


def test_one_visitor_has_all_workers_until_another_comes():
    hand = ByHand(2)
    queue = Queue(hand, 10**6)
    jobs = [ask(queue, f"ann {i}") for i in range(4)]
    bob = ask(queue, "bob", "bob")
    assert hand.begun == ["ann 0", "ann 1"]
    hand.end(jobs[0])
    assert bob.state == "working"


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=20), st.integers(1, 3)
)
def test_every_work_is_done_once_whoever_asks_however_often(asked, slots):
    hand = ByHand(slots)
    queue = Queue(hand, 10**6)
    jobs = [ask(queue, name, who) for who, name in asked]
    assert len(queue._working) == min(slots, len({name for _, name in asked}))
    while running := [job for job in jobs if job.state == "working"]:
        hand.end(running[-1], running[-1].task.args[0])
    assert [job.value for job in jobs] == [name for _, name in asked]
    assert sorted(hand.begun) == sorted({name for _, name in asked})


def test_a_work_that_is_stopped_stays_so_and_begins_anew_when_started(queue, hand):
    one = ask(queue, "one")
    two = ask(queue, "two")
    two.stop()
    assert two.state == "stopped" and ask(queue, "two") is two and two.state == "stopped"
    with pytest.raises(ValueError, match="stopped"):
        _ = two.value
    one.stop()
    old = hand.told[one.task]
    assert one.state == "stopped" and hand.cancelled == ["one"]
    one.start("ann")
    old.future.set_result("late")  # of a worker that was told too late
    assert one.state == "working"
    hand.end(one, 2)
    assert one.value == 2 and hand.begun == ["one", "one"]


def test_it_goes_on_as_long_as_somebody_waits_for_it(queue, hand, clock):
    ask(queue, "first", "dan")
    job = ask(queue, "a", "ann")
    job.look("bob")
    job.leave("ann")
    assert job.state == "waiting", "bob still waits for it"
    job.look("ann")
    clock.at += queues.GONE + 1  # bob closed his tab long ago
    job.look("ann")
    job.leave("ann")
    assert job.state == "stopped"
    job.start("ann")
    job.look("ann", 3.0)  # her script was interrupted, and does not come back
    clock.at += 4
    assert job.join(10) and job.state == "stopped"  # the line's own thread


def test_a_dead_worker_is_another_try_and_then_a_sentence(queue, hand, clock):
    job = ask(queue, "a")
    clock.at += 0.1
    other = ask(queue, "b")
    hand.end(job, problem=Died("signal 9"))
    assert job.state == "working" and hand.begun == ["a", "a"]
    hand.end(job, problem=Died("signal 9"))
    assert job.state == "failed" and "twice (signal 9)" in str(job.error)
    hand.end(other, problem=ValueError("the text is empty"))
    assert (other.state, other.error) == ("failed", "the text is empty")
    with pytest.raises(ValueError, match="empty"):
        _ = other.value
    hand.full = True
    third = ask(queue, "c")
    assert (
        third.state == "failed"
        and "(No space left on device)" in third.error
        and not queue._working
    )


def test_so_many_wait_and_one_more_is_refused_until_there_is_room(hand):
    queue = Queue(hand, 10**6, most_waiting=2)
    ask(queue, "works")
    waiting = [ask(queue, name) for name in ("one", "two")]
    refused = ask(queue, "three")
    assert refused.state == "failed"
    assert "2 works" in str(refused.error) and queues.WAITING in str(refused.error)
    assert queue.find(refused.task) is None
    queue.most_waiting = 3
    queue.most_of_one = 2
    assert ask(queue, "three").state == "failed" and ask(queue, "three", "bob").state == "waiting"
    queue.forget("mini")
    queue.most_waiting = 2
    ask(queue, "works")
    waiting = [ask(queue, name) for name in ("one", "two")]
    waiting[0].stop()
    assert ask(queue, "three").state == "waiting"
    for number in range(2 * queues.MOST_IDLE):
        ask(queue, number)  # refused, each of them, and none is kept
    assert len(queue._jobs) == 4


def test_how_long_it_still_takes(clock):
    hand = ByHand(2)
    queue = Queue(hand, 10**6, now=clock)
    job, *others = (ask(queue, name, who=name) for name in "abcde")
    assert job.seconds_left is None and others[-1].seconds_left is None
    hand.told[job.task].done = (1, 4)
    clock.at += 2
    assert job.seconds_left == 6.0  # two seconds a step, three more
    clock.at += 6
    hand.end(job)
    hand.told[others[0].task].done = (1, 2)
    # who waits has what is at work before it, and as long for each in line as the one before took, by two
    assert [other.seconds_left for other in others] == [8.0, None, (8 + 8) / 2, (8 + 16) / 2]
    assert queue.snapshot() | {"result_bytes": 0} == {
        "waiting": 2, "working": 2, "slots": 2, "longest_wait_seconds": 8, "result_bytes": 0,
    }  # fmt: skip


def test_results_are_bounded_the_least_asked_for_first(hand):
    queue = Queue(hand, 2500)
    for name in ("a", "b"):
        hand.end(ask(queue, name), bytes(1000))
    ask(queue, "a")
    hand.end(ask(queue, "c"), bytes(1000))
    assert [queue.find(Task(some, "mini", (name,))) is not None for name in "abc"] == [
        True,
        False,
        True,
    ]


def test_a_result_is_weighed_once(queue, hand, monkeypatch):
    """However many others there are: under the queue's lock, for which everybody waits."""
    weighed = []
    monkeypatch.setattr(queues, "nbytes_of", lambda result: weighed.append(result) or len(result))
    for name in "abcd":
        hand.end(ask(queue, name), name.encode())
    assert weighed == [b"a", b"b", b"c", b"d"] and queue.snapshot()["result_bytes"] == 4


def test_what_is_of_a_model_that_is_gone_is_stopped_and_let_go(queue, hand):
    mine = ask(queue, "a", model="upload:1")
    other = ask(queue, "b")
    queue.forget("upload:1")
    assert mine.state == "stopped" and queue.find(mine.task) is None and other.state == "working"
    queue.close()
    assert other.state == "stopped"


def test_jobs_that_exclude_each_other_are_done_one_after_the_other():
    hand = ByHand(3)
    queue = Queue(hand, 10**6, excludes=lambda job: job.who)
    first = ask(queue, "ann 1")
    ask(queue, "ann 2")
    ask(queue, "bob 1", "bob")
    assert hand.begun == ["ann 1", "bob 1"]
    hand.end(first)
    assert hand.begun == ["ann 1", "bob 1", "ann 2"]


def test_a_queue_whose_jobs_give_no_way_never_has_more_than_its_slots(hand, clock):
    queue = Queue(hand, 10**6, now=clock, gives_way=False)
    ask(queue, "ann 1")
    ask(queue, "bob 1", "bob")
    clock.at += 2 * queues.TIME_SLICE
    queue._fill()
    assert hand.begun == ["ann 1"]


def test_without_a_time_slice_a_visitor_goes_to_the_end_after_every_job(hand, clock):
    # jobs that gave way would let the queue's own thread begin a second one whenever it looks
    queue = Queue(hand, 10**6, now=clock, time_slice=0.0, gives_way=False)
    jobs = [ask(queue, f"ann {n}") for n in range(3)]
    clock.at += 1
    jobs.insert(1, ask(queue, "bob", "bob"))
    for job in jobs:
        clock.at += 1
        hand.end(job)
    assert hand.begun == ["ann 0", "bob", "ann 1", "ann 2"]


def test_a_queue_that_remembers_nothing_does_a_task_again(hand):
    queue = Queue(hand, 0, remembers=False)
    done = ask(queue, "a")
    assert ask(queue, "a", "bob") is done  # as long as it is worked on it is one
    hand.end(done, 7)
    assert done.value == 7 and queue.find(done.task) is None
    stopped = ask(queue, "a")
    stopped.stop()
    failed = ask(queue, "a")
    hand.end(failed, problem=ValueError("no such token"))
    assert failed.refused and queue.find(failed.task) is None and hand.begun == ["a"] * 3


def test_a_models_heads_are_worked_out_once(mini, queue, monkeypatch):
    monkeypatch.setattr(runs, "model", lambda _: mini)
    monkeypatch.setattr(heads, "_at_once", lambda _: (None, {}))  # of mini it ships
    monkeypatch.setattr(jobs, "queue", lambda: queue)
    job = heads.general_job(Run("mini", (1, 2)))
    assert heads.general_job(Run("mini", (3,))) is job
