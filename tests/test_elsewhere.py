"""gptviz on a machine that is no Unix: what Windows' Python lacks is hidden from every module of ours."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gptviz.files import owned_folder as root
from gptviz.ui import memory

ROOT = Path(__file__).parents[1]

# run by Python itself when it begins, in the test's process and in all that gptviz starts
HIDES = '''
import builtins
import importlib
import sys
import types

MODULES = "resource fcntl grp pwd termios tty pty posix syslog crypt readline".split()
NAMES = {
    "os": """sysconf nice getuid geteuid getgid getegid getpgid killpg setsid fork forkpty wait wait3 wait4
        waitid pread pwrite statvfs fstatvfs getloadavg sched_getaffinity sched_setaffinity O_NOFOLLOW
        O_DIRECTORY O_NONBLOCK O_CLOEXEC mkfifo mknod chown fchown lchown uname getpriority setpriority
        posix_spawn sendfile readv writev register_at_fork memfd_create openpty posix_fadvise sync
        fdatasync WNOHANG WIFEXITED WIFSIGNALED""",
    "signal": """SIGKILL SIGALRM SIGHUP SIGXCPU SIGXFSZ SIGQUIT SIGCHLD SIGUSR1 SIGUSR2 SIGPIPE SIGSTOP
        SIGCONT SIGTSTP SIGWINCH alarm setitimer getitimer pause pthread_kill pthread_sigmask
        sigwait siginterrupt""",
    "mmap": "MADV_HUGEPAGE MAP_PRIVATE MAP_SHARED PROT_READ PROT_WRITE",
    "socket": "AF_UNIX SO_REUSEPORT socketpair_unix",
    "time": "tzset clock_gettime pthread_getcpuclockid",
}


class Without(types.ModuleType):
    def __init__(self, real, hidden, **other):
        super().__init__(real.__name__)
        self.__dict__.update(real=real, hidden=set(hidden), other=other)

    def __getattr__(self, name):
        if name in self.hidden:
            raise AttributeError(f"module {self.real.__name__!r} has no attribute {name!r} on Windows")
        return self.other[name] if name in self.other else getattr(self.real, name)

    def __setattr__(self, name, value):
        setattr(self.real, name, value)


def ours(scope):
    place = str((scope or {}).get("__file__") or "")
    return "/site-packages/" not in place and place.startswith(OURS)


def importing(name, globals=None, locals=None, fromlist=(), level=0):
    if level == 0 and ours(globals):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name == "sys":
            return Without(sys, (), platform="win32")
        if name in NAMES:
            return Without(importlib.import_module(name), NAMES[name].split())
    return imported(name, globals, locals, fromlist, level)


imported, builtins.__import__ = builtins.__import__, importing
'''

PROGRAM = """
import importlib, pkgutil, sys, types
from pathlib import Path

import gptviz, gptviz.files.owned_folder, gptviz.ui.memory, gptviz.models.convert
assert gptviz.files.owned_folder.fcntl is None and gptviz.models.convert.resource is None, "they are hidden"
assert not hasattr(gptviz.files.owned_folder.os, "geteuid") and gptviz.ui.memory.sys.platform == "win32"

found = [m.name for m in pkgutil.walk_packages(gptviz.__path__, "gptviz.")]
walked = [name for name in found if "__main__" not in name]
for name in walked:
    importlib.import_module(name)
print("imported", len(walked))

from gptviz.ui.models import apart
from gptviz.ui.models.budget import budget
with apart.converted(Path(sys.argv[1]), lambda: None, "float32") as folder:
    lm = gptviz.load(folder)
    print("read", lm.trace([1, 2, 3]).logits(-1).argmax().item())
budget().root.clear()

from streamlit.testing.v1 import AppTest
at = AppTest.from_file(sys.argv[2], default_timeout=280).run()
assert not at.exception, at.exception
print("shown", len(at.main))
"""


@pytest.fixture
def not_a_unix(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "sitecustomize.py").write_text(f"OURS = {str(ROOT)!r}\n{HIDES}", encoding="utf-8")
    where = os.pathsep.join([str(tmp_path), str(ROOT)])
    return os.environ | {"PYTHONPATH": where, "GPTVIZ_WORKERS": "0", "TMPDIR": str(tmp_path)}


def test_every_module_is_imported_a_file_is_read_and_the_app_begins(not_a_unix, mini):
    program = [
        sys.executable,
        "-c",
        PROGRAM,
        str(ROOT / "gptviz" / "assets" / "mini"),
        str(ROOT / "app.py"),
    ]
    done = subprocess.run(program, env=not_a_unix, capture_output=True, text=True, timeout=290)
    assert done.returncode == 0, done.stderr[-3000:]
    said = dict(
        line.split()
        for line in done.stdout.splitlines()
        if line.split()[0] in {"imported", "read", "shown"}
    )
    assert int(said["imported"]) > 200
    assert int(said["read"]) == mini.trace([1, 2, 3]).logits(-1).argmax().item()
    assert int(said["shown"]) > 3


def test_windows_says_its_memory_in_its_own_way(monkeypatch):
    class Kernel:
        def GlobalMemoryStatusEx(self, place):
            found = place._obj
            assert found.length == ctypes.sizeof(found) == 64, "as Windows' own structure"
            found.physical = 5 * 2**30
            return 1

    class Windows:
        kernel32 = Kernel()

    monkeypatch.delattr(memory.os, "sysconf")
    monkeypatch.setattr(memory, "LIMITS", ())
    monkeypatch.setattr(memory.ctypes, "windll", Windows(), raising=False)
    assert memory.of_the_machine() == 5 * 2**30
    monkeypatch.delattr(memory.ctypes, "windll")
    assert memory.of_the_machine() == memory.ASSUMED


def test_a_folder_without_locks_is_made_without_renaming_an_open_file(monkeypatch, tmp_path):
    """Windows renames and removes no file that is open."""
    monkeypatch.setattr(root, "fcntl", None)
    monkeypatch.setattr(root.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(root.os, "replace", lambda *_: pytest.fail("an open file is renamed"))
    one = root.OwnedFolder("gptviz-test-")
    folder = one.path
    held = one._made[1]
    monkeypatch.setattr(
        root.shutil, "rmtree", lambda *_, **__: held.closed or pytest.fail("it is open")
    )
    assert (folder / root.LOCK).is_file()
    one.clear()
