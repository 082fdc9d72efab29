"""Work in the background: one job for all who ask, behind the visitors, stopped and started again."""

import threading
import weakref

import pytest

from gptviz import Run
from gptviz.ui import runs
from gptviz.ui.measuring import heads, jobs
from gptviz.ui.measuring.jobs import Job, Jobs, Progress

WAIT = 30.0


class Steps:
    """Work that goes on when it is told to."""

    def __init__(self, steps: int = 3, result: object = "result"):
        self.steps, self.result, self.begun = steps, result, 0
        self.may, self.at = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, progress: Progress) -> object:
        self.begun += 1
        for step in range(self.steps):
            self.at.release()
            assert self.may.acquire(timeout=WAIT)
            progress(step + 1, self.steps)
        return self.result

    def go(self, steps: int = 99) -> None:
        self.may.release(steps)


@pytest.fixture
def queue() -> Jobs:
    return Jobs(10**6, rest=lambda _: None)


def test_so_many_wait_and_one_more_is_refused_until_there_is_room() -> None:
    queue, work = Jobs(10**6, rest=lambda _: None, most_waiting=2), Steps()
    queue.get("works", work)
    assert work.at.acquire(timeout=WAIT)
    waiting = [queue.get(name, work) for name in ("one", "two")]
    refused = queue.get("three", work)
    assert refused.state == "failed" and "2 measurements" in str(refused.error)
    assert "GPTVIZ_MEASUREMENTS_WAITING" in str(refused.error) and queue.find("three") is None
    waiting[0].stop()
    assert queue.get("three", work).state == "waiting"
    for number in range(2 * jobs.MOST_IDLE):
        queue.get(number, work)  # refused, each of them, and none is kept
    assert len(queue._jobs) == 4
    work.go()


def test_two_who_ask_at_once_get_one_job(queue: Jobs) -> None:
    work, got = Steps(), []
    threads = [threading.Thread(target=lambda: got.append(queue.get("a", work))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(job) for job in got}) == 1
    work.go()
    job = got[0]
    assert job.join(WAIT) and (job.state, job.result, job.done, job.of) == ("done", "result", 3, 3)
    assert work.begun == 1 and queue.get("a", work) is job and queue.find("b") is None


def test_one_works_the_others_wait_and_any_can_be_stopped_and_started_again(queue: Jobs) -> None:
    first, second = Steps(), Steps(result=2)
    one, two = queue.get("one", first), queue.get("two", second)
    assert first.at.acquire(timeout=WAIT)
    assert (one.state, two.state, second.begun) == ("working", "waiting", 0)
    two.stop()
    assert two.state == "stopped" and queue.get("two", second).state == "stopped"  # asking does not start it
    one.stop()
    first.go(1)
    assert one.join(WAIT) and one.state == "stopped" and one.result is None
    one.start()
    two.start()
    first.go()
    second.go()
    assert one.join(WAIT) and two.join(WAIT)
    assert (one.result, two.result, first.begun) == ("result", 2, 2)


def test_who_starts_it_before_it_has_stopped_gets_it(queue: Jobs) -> None:
    work = Steps()
    job = queue.get("a", work)
    assert work.at.acquire(timeout=WAIT)
    job.stop()
    job.start()
    work.go()
    assert job.join(WAIT) and job.state == "done"


def test_it_goes_on_as_long_as_somebody_waits_for_it() -> None:
    clock = [0.0]
    queue, busy, work = Jobs(10**6, rest=lambda _: None, now=lambda: clock[0]), Steps(), Steps()
    first, job = queue.get("first", busy), queue.get("a", work)
    job.look("ann")
    job.look("bob")
    job.leave("ann")
    assert job.state == "waiting", "bob still waits for it"
    job.look("ann")
    clock[0] += jobs.GONE + 1  # bob closed his tab long ago
    job.look("ann")
    job.leave("ann")
    assert job.state == "stopped"
    job.start()
    job.look("bob")
    job.leave("ann")  # who does not wait for it
    busy.go()
    work.go()
    assert first.join(WAIT) and job.join(WAIT) and job.state == "done"


def test_how_long_it_still_takes_is_told_by_its_pace() -> None:
    clock = [100.0]
    queue, work = Jobs(10**6, rest=lambda _: None, now=lambda: clock[0]), Steps(4)
    job = queue.get("a", work)
    assert work.at.acquire(timeout=WAIT) and job.seconds_left is None
    clock[0] = 130.0
    work.go(1)
    assert work.at.acquire(timeout=WAIT) and (job.done, job.of) == (1, 4)
    assert job.seconds_left == 90.0  # thirty seconds a step, three more
    work.go()
    assert job.join(WAIT) and job.seconds_left is None


def test_a_failure_is_a_sentence_and_the_next_one_works(queue: Jobs) -> None:
    def wrong(_progress: Progress) -> None:
        raise ValueError("the text is empty")

    job = queue.get("a", wrong)
    assert job.join(WAIT) and (job.state, job.error) == ("failed", "the text is empty")
    next_one = queue.get("b", lambda _: 7)
    assert next_one.join(WAIT) and next_one.result == 7


def test_visitors_have_their_turn_after_every_pass() -> None:
    rests: list[float] = []
    job = Jobs(10**6, rests.append).get("a", lambda progress: [progress(i, 4) for i in range(4)])
    assert job.join(WAIT) and len(rests) == 4 and all(0 <= rest <= jobs.LONGEST_REST for rest in rests)


def test_results_are_bounded_the_least_asked_for_first() -> None:
    queue = Jobs(2500, rest=lambda _: None)
    for name in ("a", "b"):
        assert queue.get(name, lambda _: bytes(1000)).join(WAIT)
    queue.get("a", lambda _: None)
    assert queue.get("c", lambda _: bytes(1000)).join(WAIT)
    assert queue.find("b") is None and queue.find("a") and queue.find("c")


def test_what_is_of_a_model_that_is_gone_is_stopped_and_let_go(queue: Jobs) -> None:
    class Model:
        pass

    model, work = Model(), Steps()
    gone = weakref.ref(model)

    def of_model(progress: Progress, model: Model = model) -> object:
        return work(progress) and model

    job: Job[object] | None = queue.get(("general", "a"), of_model)
    assert work.at.acquire(timeout=WAIT)
    queue.forget(lambda key: key == ("general", "a"))
    work.go()
    assert job is not None and job.join(WAIT) and job.state == "stopped"
    queue.close()
    del model, of_model, job
    assert queue.find(("general", "a")) is None and gone() is None


def test_a_models_heads_are_worked_out_once(mini: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "model", lambda _: mini)
    monkeypatch.setattr(heads, "_at_once", lambda _: (None, {}))  # of mini it ships
    monkeypatch.setattr(heads, "general", lambda lm, progress: (progress(1, 1), lm)[1])
    queue = Jobs(10**9, rest=lambda _: None)
    monkeypatch.setattr(heads, "jobs", lambda: queue)
    job = heads.general_job(Run("mini", (1, 2)))
    assert job.join(WAIT) and job.result is mini
    assert heads.general_job(Run("mini", (3,))) is job
