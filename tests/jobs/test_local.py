"""Processes that work: the same numbers, killed and replaced, one model for all; and a thread instead."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from gptviz.analysis.ablation import knock_out
from gptviz.files.owned_folder import WORKS
from gptviz.jobs import Queue, Task
from gptviz.jobs.local import FORKS, Processes, Thread
from tests.jobs.tasks import TEXT, WAIT, knocked_out, wrong
from tests.waiting import until


def long(lm, folder, progress):
    """Say where it runs, once it may how far it is, and go on for ever."""
    Path(folder, str(os.getpid())).touch()
    while True:
        time.sleep(0.01)
        if Path(folder, "told").exists():
            progress(2, 3)


def where(lm, progress):
    return os.getpid(), lm.model.tok_emb.weight.is_shared(), str(lm.edits)


def family(lm, turn, progress):
    """The process that works and its siblings, which rest."""
    parent = os.getppid()
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    if not FORKS:
        pytest.skip("this system cannot fork")
    made = Queue(Processes(1, lambda: tmp_path_factory.getbasetemp()), 10**7)
    yield made
    made.close()


PROGRAM = """
import sys, tempfile
from pathlib import Path
from gptviz.files.owned_folder import WORKS, OwnedFolder
from gptviz.jobs.local import Processes
from gptviz.jobs.local import Processes
root = OwnedFolder(WORKS)
processes = Processes(1, lambda: root.path)
if sys.argv[1:]:
    from multiprocessing.util import get_temp_dir
    get_temp_dir()
    print("ready", flush=True)
    sys.stdin.read()
processes.close()
root.clear()
"""


@pytest.mark.skipif(
    not FORKS or sys.platform != "linux", reason="forkserver's socket, and flock, are meant"
)
def test_a_killed_server_leaves_nothing_that_the_next_does_not_remove():
    command = [sys.executable, "-c", PROGRAM]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    # whose path is short, as a socket's must be
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        environment = os.environ | {"TMPDIR": folder}
        with subprocess.Popen([*command, "waits"], env=environment, **pipes) as killed:
            assert killed.stdout.readline() == b"ready\n"
            killed.kill()
        assert [path.name.startswith(WORKS) for path in Path(folder).iterdir()] == [True]
        subprocess.run(command, env=environment, check=True, timeout=120)
        assert not [*Path(folder).iterdir()]


ENDS = """
import time
from gptviz.jobs import Queue, Task
from gptviz.jobs.local import DaemonThreads

def endless(progress):
    while True:
        time.sleep(0.1)
        progress(0, 1)

job = Queue(DaemonThreads(1), 0).get(Task(endless, "key"), None, "ann")
assert job.state == "working"
"""


def test_a_server_that_ends_waits_for_no_job_that_waits_for_a_process():
    subprocess.run([sys.executable, "-c", ENDS], check=True, timeout=120)


def pids(folder):
    return {int(file.name) for file in folder.iterdir()}


def test_a_process_gives_the_same_numbers_with_and_without_edits(processes, mini):
    assert knocked_out(processes, mini).progress == (60, 60)


def test_a_stopped_work_is_killed_and_the_next_one_done(processes, mini, tmp_path):
    job = processes.get(Task(long, "mini", (str(tmp_path),)), mini, "ann")
    until(lambda: pids(tmp_path))
    (pid,) = pids(tmp_path)
    assert job.progress == (0, 1) and job.state == "working"
    (tmp_path / "told").touch()
    until(lambda: job.progress == (2, 3))
    job.stop()
    failed = processes.get(Task(wrong, "mini"), mini, "ann")
    assert failed.join(WAIT) and failed.error == "no such token"
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_killed_process_is_tried_once_more_and_harms_nobody(processes, mini, tmp_path):
    job = processes.get(Task(long, "mini", (str(tmp_path),)), mini, "bob")
    for dead in range(2):
        until(lambda dead=dead: len(pids(tmp_path)) == dead + 1)
        for pid in pids(tmp_path):
            if Path(f"/proc/{pid}").exists():
                os.kill(pid, signal.SIGKILL)
    assert job.join(WAIT) and job.state == "failed" and "twice" in str(job.error)
    other = processes.get(Task(where, "mini"), mini, "bob")
    assert other.join(WAIT) and other.value[0] not in {os.getpid(), *pids(tmp_path)}


def test_idle_processes_that_are_killed_are_replaced(processes, mini):
    killed = set()
    for turn in range(3):
        job = processes.get(Task(family, "mini", (turn,)), mini, "ann")
        # looked at, as a page does that waits: a pool forgets what it is given while it ends
        until(lambda job=job: job.progress and not job.active)
        assert not killed & set(job.value)
        for pid in job.value:
            os.kill(pid, signal.SIGKILL)
        killed.update(job.value)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in killed))
        assert processes.backend.stands()


def test_a_models_file_goes_with_it(processes, mini, tmp_path):
    backend = processes.backend
    file = backend.ready("other", mini)
    assert file.is_file() and backend.ready("other", mini) == file != backend.ready("mini", mini)
    processes.forget("other")
    assert not file.exists() and backend.ready("mini", mini).is_file()


def test_a_thread_lets_visitors_have_their_turn_and_can_be_stopped(mini, tmp_path):
    rests = []
    queue = Queue(Thread(rests.append), 10**7)
    ids = tuple(mini.encode(TEXT))
    job = queue.get(Task(knock_out, "mini", (ids, None)), mini, "ann")
    assert job.join(WAIT) and len(job.value) == 60 and len(rests) > 1
    endless = queue.get(Task(long, "mini", (str(tmp_path),)), mini, "ann")
    until(lambda: pids(tmp_path))
    (tmp_path / "told").touch()  # a thread is stopped where it says how far it is
    endless.stop()
    after = queue.get(Task(where, "mini"), mini, "ann")
    assert after.join(WAIT) and after.value[0] == os.getpid()
    queue.close()
