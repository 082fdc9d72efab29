"""What strangers bring is read apart: within limits, in turn, and nothing that comes of it is believed."""

import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import gptviz
from gptviz.jobs import Task
from gptviz.jobs.worker import Worker
from gptviz.models.checkpoints import CheckpointError, HeadsMissing, TokenizerMissing
from gptviz.models.convert import convert
from gptviz.ui.models import apart
from gptviz.ui.models.apart import MOST_OF_ONE, MOST_WAITING, NotRead, converted
from gptviz.ui.models.budget import budget
from tests.models.checkpoints import makers
from tests.models.checkpoints.hostile import HOSTILE
from tests.ui.models import forked
from tests.waiting import until


@pytest.fixture
def book(tmp_path):
    truth = makers.hf_model(vocab_size=50257, n_embd=12, n_head=3, n_layer=1)
    torch.save(makers.book_state(truth), tmp_path / "model.pth")
    return tmp_path / "model.pth"


def read(path, **given):
    with converted(path, lambda: None, "float32", **given) as folder:
        return gptviz.load(folder)


def left():
    """What lies where files are read."""
    return list(budget().root.path.glob("read-*"))


@pytest.fixture
def readers_begin_at_once(monkeypatch):
    """What is said of the process itself, its start and its leash, is tried with one that is started."""
    if forked.FORKS:
        monkeypatch.setattr(apart, "start", forked.start)


@pytest.fixture
def workers(monkeypatch):
    """The processes that were started."""
    started = []
    start = apart.start
    monkeypatch.setattr(apart, "start", lambda *given: started.append(start(*given)) or started[-1])
    return started


def test_the_same_model_and_nothing_left(book, workers):
    lm = read(book, n_heads=3)
    own = gptviz.load(book, n_heads=3)
    assert lm.tokenizer is own.tokenizer and torch.equal(
        lm.trace("a b").logits(-1), own.trace("a b").logits(-1)
    )
    assert not left() and not any(worker.running for worker in workers)


def test_what_a_file_does_not_say_is_told_by_name(book, readers_begin_at_once, workers):
    with pytest.raises(HeadsMissing) as missing:
        read(book)
    assert missing.value.choices == (1, 2, 3, 4, 6, 12) and missing.value.emb_dim == 12
    torch.save(makers.book_state(makers.hf_model()), book)
    with pytest.raises(TokenizerMissing):
        read(book, n_heads=4)
    assert not left() and not any(worker.running for worker in workers)


def test_which_gelu_it_has_is_told_on(tmp_path, readers_begin_at_once):
    """What is written says which, and beside it stands whether that is only assumed."""
    torch.save(
        makers.nanogpt_checkpoint(makers.hf_model(vocab_size=50257, n_layer=1)),
        tmp_path / "ckpt.pt",
    )
    seen = {}
    for said in (None, "gelu", "gelu_tanh"):
        with converted(tmp_path / "ckpt.pt", lambda: None, "float32", activation=said) as folder:
            seen[said] = gptviz.load(folder).config.activation, apart.activation_is_assumed(folder)
    assert seen == {
        None: ("gelu", True),
        "gelu": ("gelu", False),
        "gelu_tanh": ("gelu_tanh", False),
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_made_to_stop_a_server_is_a_sentence(
    name, tmp_path, monkeypatch, readers_begin_at_once, workers
):
    monkeypatch.setenv(apart.CPU, "1")
    folder = tmp_path / "sent"
    folder.mkdir()
    HOSTILE[name](folder)
    files = list(folder.iterdir())
    with pytest.raises(CheckpointError) as refused:
        read(files[0] if len(files) == 1 else folder, n_heads=4)
    assert 20 < len(str(refused.value)) <= 1100
    assert not left() and not workers[0].running


@pytest.mark.parametrize("limit", [apart.SECONDS, "by the server"])
def test_time_by_the_clock(limit, tmp_path, monkeypatch, workers):
    monkeypatch.setenv(apart.CPU, "600")
    monkeypatch.setenv(apart.SECONDS, "1")
    if limit != apart.SECONDS:  # a process that does not keep to its own
        monkeypatch.setattr(
            apart, "start", lambda command, *rest: workers.append(sleeping()) or workers[-1]
        )
    HOSTILE["a dict's key"](tmp_path)
    with pytest.raises(CheckpointError, match=rf"more than 1 seconds.*{apart.SECONDS}"):
        read(tmp_path / "model.pth")
    assert not workers[-1].running


def sleeping():
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    return Worker(process, Path(os.devnull))


def test_memory(book, monkeypatch):
    monkeypatch.setenv(apart.MEMORY, "0")
    with pytest.raises(CheckpointError, match=r"memory|allocate"):
        read(book, n_heads=3)


def test_a_process_whose_visitor_has_left_is_ended(tmp_path, monkeypatch, workers):
    monkeypatch.setenv(apart.CPU, "600")
    HOSTILE["a dict's key"](tmp_path)
    sessions = {"me"}
    here = SimpleNamespace(is_active_session=sessions.__contains__)
    monkeypatch.setattr(apart, "session", lambda: "me")
    monkeypatch.setattr(apart.runtime, "exists", lambda: True)
    monkeypatch.setattr(apart.runtime, "get_instance", lambda: here)

    def leave_when_it_runs():
        apart.check_here()
        assert workers[0].running
        sessions.clear()

    with pytest.raises(NotRead), converted(tmp_path / "model.pth", leave_when_it_runs, "float32"):
        pytest.fail("it cannot be read")
    assert not workers[0].running and not left()


def test_a_server_that_ends_takes_its_readers_along(book, monkeypatch, workers):
    start = apart.start

    def start_and_let_go(*given):  # as the system does for a server that was killed
        worker = start(*given)
        worker._process.stdin.close()
        return worker

    monkeypatch.setattr(apart, "start", start_and_let_go)
    with pytest.raises(CheckpointError):
        read(book, n_heads=3)
    assert workers[0].how_it_ended.startswith("exit status 1") and not left()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What a process writes."""
    folder = tmp_path_factory.mktemp("written")
    truth = makers.hf_model(vocab_size=50257, n_embd=12, n_head=3, n_layer=1)
    convert(makers.save_hf(truth, folder / "hf"), folder)
    (folder / apart.SAID).write_text('{"message": "", "activation_is_assumed": false}')
    return folder


@pytest.mark.parametrize(
    "name, cheat",
    [
        (apart.SAID, lambda path: path.write_text("[" * 60_000)),
        (apart.SAID, lambda path: path.write_text("1")),
        (apart.SAID, lambda path: path.write_text("{}")),
        (
            apart.SAID,
            lambda path: path.write_text('{"message": "", "activation_is_assumed": "gelu"}'),
        ),
        (
            apart.SAID,
            lambda path: path.write_text('{"message": "x", "emb_dim": 1e999, "error": []}'),
        ),
        (apart.SAID, lambda path: path.write_text('{"message": ["long"], "emb_dim": "wide"}')),
        (
            apart.SAID,
            lambda path: path.write_text('{"message": "", "error": "HeadsMissing", "emb_dim": -1}'),
        ),
        (apart.SAID, lambda path: path.write_bytes(bytes(10**5))),
        (apart.SAID, lambda path: path.unlink()),
        (apart.CONFIG, lambda path: path.write_bytes(b" " * 10**5)),
        (apart.CONFIG, lambda path: (path.unlink(), path.symlink_to("/dev/zero"))),
        (apart.CONFIG, lambda path: (path.unlink(), os.mkfifo(path))),
        (apart.VOCABULARY, lambda path: os.truncate(path, 2**26)),
        (apart.WEIGHTS, lambda path: os.truncate(path, 2**33)),
        (apart.WEIGHTS, lambda path: path.write_bytes((2**24).to_bytes(8, "little") + bytes(100))),
    ],
)
def test_nothing_that_the_process_writes_is_believed_unseen(written, tmp_path, name, cheat):
    folder = shutil.copytree(written, tmp_path / "copy")
    apart._check(folder, apart.limits_for(10**6))
    cheat(folder / name)
    with pytest.raises(CheckpointError):
        apart._check(folder, apart.limits_for(10**6))


def test_larger_files_may_take_more():
    xl = apart.limits_for(6_230_000_000)
    assert xl.cpu_seconds > 25 * apart.limits_for(1000).cpu_seconds and xl.seconds > 25 * 60
    assert xl.memory_bytes > 3 * 6_230_000_000 and xl.file_bytes > 6_230_000_000


def waits(name, began, go, progress):
    """A job that says when it begins, and ends when it may."""
    began.append(name)
    while not go[name].wait(0.01):
        progress(0, 1)
    return name


@pytest.fixture
def asked(monkeypatch):
    """(queue, ask, began, go): `ask(name)` reads a file of the visitor with its first letter, in a thread."""
    began = []
    go = {}

    def made(at_once):
        queue = apart.reading_queue(at_once)
        monkeypatch.setattr(apart, "queue", lambda: queue)
        return queue

    def ask(name, check=lambda: None):
        go[name] = threading.Event()
        task = Task(partial(waits, name, began, go), name)
        thread = ThreadPoolExecutor(1).submit(apart.read_in_turn, task, name[0], check)
        return thread

    yield made, ask, began, go
    for event in go.values():
        event.set()


def test_one_of_each_visitor_and_so_many_in_all_in_the_order_in_which_they_came(asked):
    made, ask, began, go = asked
    queue = made(2)
    readings = []
    for name in ("a1", "a2", "b1", "c1"):
        readings.append(ask(name))
        until(lambda: len(queue._waiting) + len(queue._working) == len(readings))
    until(lambda: set(began) == {"a1", "b1"})  # not a's second one
    go["b1"].set()
    until(lambda: began[-1] == "c1")
    go["a1"].set()
    until(lambda: began[-1] == "a2")
    for event in go.values():
        event.set()
    assert [reading.result(60) for reading in readings] == ["a1", "a2", "b1", "c1"]
    until(lambda: not queue._waiting and not queue._working and not queue._jobs)


def test_a_queue_that_is_too_long_is_refused_and_left_by_who_goes(asked):
    made, ask, began, _ = asked
    queue = made(1)

    def gone():
        raise NotRead("left")

    ask("a1")
    until(lambda: began == ["a1"])
    ask("a2")
    ask("a3")
    until(lambda: len(queue._waiting) == MOST_OF_ONE)
    with pytest.raises(NotRead, match=f"{MOST_OF_ONE} of them yours"):
        ask("a4").result(60)
    with pytest.raises(NotRead, match="left"):
        ask("b1", gone).result(60)
    assert len(queue._waiting) == MOST_OF_ONE  # b1 waits no more
    for letter in "cdefghijklmnopqrstuvwxyz"[: MOST_WAITING - MOST_OF_ONE]:
        ask(f"{letter}1")
    until(lambda: len(queue._waiting) == MOST_WAITING)
    with pytest.raises(NotRead, match="no more can wait"):
        ask("b2").result(60)
    assert began == ["a1"]


def test_two_who_ask_for_one_file_have_it_read_once(asked):
    made, ask, began, go = asked
    queue = made(2)
    first = ask("a1")
    until(lambda: began == ["a1"])
    (job,) = queue._jobs.values()
    second = ThreadPoolExecutor(1).submit(apart.read_in_turn, job.task, "b", lambda: None)
    until(lambda: "b" in job.looked)
    go["a1"].set()
    assert first.result(60) == second.result(60) == "a1" and began == ["a1"]


def test_who_waits_reads_the_place_and_a_stopped_reading_begins_again(asked, monkeypatch):
    made, ask, began, go = asked
    queue = made(1)
    said = []
    place = SimpleNamespace(caption=said.append, empty=lambda: None)
    monkeypatch.setattr(apart.st, "empty", lambda: place)
    first = ask("a1")
    until(lambda: began == ["a1"])
    second = ask("b1")
    until(lambda: queue._waiting)
    third = ask("c1")
    until(lambda: {"Next in line", "Number 2 in line"} <= set(said))
    # as another tab may
    queue._jobs[next(task for task in queue._jobs if task.model == "a1")].stop()
    until(lambda: began.count("a1") == 2 or began[-1] == "b1")
    for event in go.values():
        event.set()
    assert [reading.result(60) for reading in (first, second, third)] == ["a1", "b1", "c1"]


def test_what_ends_a_reading_is_a_sentence(monkeypatch):
    queue = apart.reading_queue(1)
    monkeypatch.setattr(apart, "queue", lambda: queue)

    def fails(problem, progress):
        raise problem

    def read(problem):
        return apart.read_in_turn(Task(partial(fails, problem), "key"), "a", lambda: None)

    with pytest.raises(HeadsMissing):
        read(HeadsMissing("it does not say its heads", (1, 2), 4))
    with pytest.raises(OSError, match="No space left"):
        read(OSError(28, "No space left on device"))
    with pytest.raises(NotRead, match="more memory than this server has"):
        read(MemoryError())
    until(lambda: not queue._jobs)  # whoever asks again has it read again
