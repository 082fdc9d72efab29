"""The line: one work for all who ask, whose turn it is, stopped and started again, bounded."""

from concurrent.futures import Future

import pytest
from hypothesis import given, strategies as st

from gptviz import Run
from gptviz.ui import heads, runs, works
from gptviz.work import Line, Task, line as lines
from tests.waiting import together


def some(_lm, *_, progress):
    """What tasks here are called; nobody runs it."""


class Died(Exception):
    pass


class ByHand:
    """Works when it is told to."""

    gone = (Died,)

    def __init__(self, slots=1):
        self.slots, self.begun, self.cancelled, self.alone = slots, [], [], []
        self.told, self.full = {}, False

    def ready(self, model, lm):
        return model

    def start(self, task, model, alone):
        if self.full:
            raise OSError("No space left on device")
        self.begun.append(next(iter(task.args), None))
        self.alone.append(alone)
        self.told[task] = _Running(self, task)
        return self.told[task]

    def end(self, work, value="result", problem=None):
        future = self.told[work.task].future
        future.set_exception(problem) if problem else future.set_result(value)

    def forget(self, model):
        pass

    def close(self):
        pass


class _Running:
    def __init__(self, backend, task):
        self.future = Future()
        self._backend, self._task, self.done = backend, task, (0, 1)

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
def line(hand, clock):
    return Line(hand, 10**6, now=clock)


def ask(line, name, who="ann", model="mini"):
    return line.get(Task(some, model, (name,)), None, who)  # these tasks need no model


def test_two_who_ask_at_once_get_one_work(line, hand):
    got = together(8, lambda _: ask(line, "a"))
    assert len({id(work) for work in got}) == 1 and hand.begun == ["a"]
    hand.end(got[0], 7)
    assert got[0].join(0) and (got[0].state, got[0].value) == ("done", 7)
    assert ask(line, "a", "bob") is got[0] and hand.begun == ["a"]
    assert line.find(Task(some, "mini", ("b",))) is None


def test_who_came_first_is_finished_first_and_nobody_is_forgotten(line, hand, clock):
    """Ann asks for three things, one after the other, and has them before Bob and Cy, who came later."""
    first, waiting = ask(line, "ann 1"), []
    for who, name in (("bob", "bob 1"), ("cy", "cy 1"), ("bob", "bob 2")):
        clock.at += 0.1
        waiting.append(ask(line, name, who))
    assert [work.place for work in waiting] == [1, 3, 2]
    hand.end(first)
    assert hand.begun == ["ann 1", "bob 1"]
    clock.at += 0.5  # her page goes on, and asks again: it is still her turn
    second = ask(line, "ann 2")
    assert second.place == 1
    hand.end(waiting[0])
    hand.end(second)
    clock.at += lines.PAUSE + 1  # now she comes anew
    assert ask(line, "ann 3").place == 2
    hand.end(waiting[2])
    hand.end(waiting[1])
    assert hand.begun == ["ann 1", "bob 1", "ann 2", "bob 2", "cy 1", "ann 3"]
    assert hand.alone == [True, *[False] * 4, True]


def test_who_has_worked_for_a_turn_goes_to_the_end(line, hand, clock):
    first = ask(line, "ann 1")
    clock.at += 1
    other, more = ask(line, "bob 1", "bob"), ask(line, "ann 2")
    assert (other.place, more.place) == (1, 2)  # she has one at work
    clock.at += lines.TURN
    line._fill()  # as its thread does twice a second: a long work gives its place, and goes on
    assert first.state == "working" and hand.begun == ["ann 1", "bob 1"]
    third = ask(line, "cy 1", "cy")
    clock.at += 1
    hand.end(first)
    clock.at += 1
    hand.end(other)
    assert hand.begun[2:] == ["cy 1"] and more.state == "waiting"
    hand.end(third)
    assert more.state == "working"


def test_one_visitor_has_all_workers_until_another_comes():
    hand = ByHand(2)
    line = Line(hand, 10**6)
    works = [ask(line, f"ann {i}") for i in range(4)]
    bob = ask(line, "bob", "bob")
    assert hand.begun == ["ann 0", "ann 1"]
    hand.end(works[0])
    assert bob.state == "working"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=20), st.integers(1, 3))
def test_every_work_is_done_once_whoever_asks_however_often(asked, slots):
    hand = ByHand(slots)
    line = Line(hand, 10**6)
    works = [ask(line, name, who) for who, name in asked]
    assert len(line._working) == min(slots, len({name for _, name in asked}))
    while running := [work for work in works if work.state == "working"]:
        hand.end(running[-1], running[-1].task.args[0])
    assert [work.value for work in works] == [name for _, name in asked]
    assert sorted(hand.begun) == sorted({name for _, name in asked})


def test_a_work_that_is_stopped_stays_so_and_begins_anew_when_started(line, hand):
    one, two = ask(line, "one"), ask(line, "two")
    two.stop()
    assert two.state == "stopped" and ask(line, "two") is two and two.state == "stopped"
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


def test_it_goes_on_as_long_as_somebody_waits_for_it(line, hand, clock):
    ask(line, "first", "dan")
    work = ask(line, "a", "ann")
    work.look("bob")
    work.leave("ann")
    assert work.state == "waiting", "bob still waits for it"
    work.look("ann")
    clock.at += lines.GONE + 1  # bob closed his tab long ago
    work.look("ann")
    work.leave("ann")
    assert work.state == "stopped"
    work.start("ann")
    work.look("ann", 3.0)  # her script was interrupted, and does not come back
    clock.at += 4
    assert work.join(10) and work.state == "stopped"  # the line's own thread


def test_a_dead_worker_is_another_try_and_then_a_sentence(line, hand, clock):
    work = ask(line, "a")
    clock.at += 0.1
    other = ask(line, "b")
    hand.end(work, problem=Died("signal 9"))
    assert work.state == "working" and hand.begun == ["a", "a"]
    hand.end(work, problem=Died("signal 9"))
    assert work.state == "failed" and "twice (signal 9)" in str(work.error)
    hand.end(other, problem=ValueError("the text is empty"))
    assert (other.state, other.error) == ("failed", "the text is empty")
    with pytest.raises(ValueError, match="empty"):
        _ = other.value
    hand.full = True
    third = ask(line, "c")
    assert third.state == "failed" and "(No space left on device)" in third.error and not line._working


def test_so_many_wait_and_one_more_is_refused_until_there_is_room(hand):
    line = Line(hand, 10**6, most_waiting=2)
    ask(line, "works")
    waiting = [ask(line, name) for name in ("one", "two")]
    refused = ask(line, "three")
    assert refused.state == "failed"
    assert "2 works" in str(refused.error) and lines.WAITING in str(refused.error)
    assert line.find(refused.task) is None
    line.most_waiting, line.most_of_one = 3, 2
    assert ask(line, "three").state == "failed" and ask(line, "three", "bob").state == "waiting"
    line.forget("mini")
    line.most_waiting = 2
    ask(line, "works")
    waiting = [ask(line, name) for name in ("one", "two")]
    waiting[0].stop()
    assert ask(line, "three").state == "waiting"
    for number in range(2 * lines.MOST_IDLE):
        ask(line, number)  # refused, each of them, and none is kept
    assert len(line._works) == 4


def test_how_long_it_still_takes(clock):
    hand = ByHand(2)
    line = Line(hand, 10**6, now=clock)
    work, *others = (ask(line, name, who=name) for name in "abcde")
    assert work.seconds_left is None and others[-1].seconds_left is None
    hand.told[work.task].done = (1, 4)
    clock.at += 2
    assert work.seconds_left == 6.0  # two seconds a step, three more
    clock.at += 6
    hand.end(work)
    hand.told[others[0].task].done = (1, 2)
    # who waits has what is at work before it, and as long for each in line as the one before took, by two
    assert [other.seconds_left for other in others] == [8.0, None, (8 + 8) / 2, (8 + 16) / 2]
    assert line.snapshot() | {"result_bytes": 0} == {
        "waiting": 2, "working": 2, "slots": 2, "longest_wait_seconds": 8, "result_bytes": 0,
    }  # fmt: skip


def test_results_are_bounded_the_least_asked_for_first(hand):
    line = Line(hand, 2500)
    for name in ("a", "b"):
        hand.end(ask(line, name), bytes(1000))
    ask(line, "a")
    hand.end(ask(line, "c"), bytes(1000))
    assert [line.find(Task(some, "mini", (name,))) is not None for name in "abc"] == [True, False, True]


def test_a_result_is_weighed_once(line, hand, monkeypatch):
    """However many others there are: under the line's lock, for which everybody waits."""
    weighed = []
    monkeypatch.setattr(lines, "nbytes_of", lambda result: weighed.append(result) or len(result))
    for name in "abcd":
        hand.end(ask(line, name), name.encode())
    assert weighed == [b"a", b"b", b"c", b"d"] and line.snapshot()["result_bytes"] == 4


def test_what_is_of_a_model_that_is_gone_is_stopped_and_let_go(line, hand):
    mine, other = ask(line, "a", model="upload:1"), ask(line, "b")
    line.forget("upload:1")
    assert mine.state == "stopped" and line.find(mine.task) is None and other.state == "working"
    line.close()
    assert other.state == "stopped"


def test_a_models_heads_are_worked_out_once(mini, line, monkeypatch):
    monkeypatch.setattr(runs, "model", lambda _: mini)
    monkeypatch.setattr(heads, "_at_once", lambda _: (None, {}))  # of mini it ships
    monkeypatch.setattr(works, "line", lambda: line)
    work = heads.general_work(Run("mini", (1, 2)))
    assert heads.general_work(Run("mini", (3,))) is work
