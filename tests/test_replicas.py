"""What deploy/replicas.py refuses before it starts anything; tests/browser/test_replicas.py starts it."""

import os
import subprocess
import sys

import pytest

from tests.browser.conftest import free_port
from tests.test_package import ROOT


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--replicas 0", "--replicas is 0; it must be 1 or more"),
        ("--port 70000", "--port 70000 and the replicas'"),
        (
            "--port 8602 --replicas 2",
            "--port 8602 and the replicas' 8601 to 8602 must be of their own",
        ),
        ("--first 65535 --replicas 2", "65535 to 65536 must be of their own, from 1 to 65535"),
    ],
)
def test_ports_that_cannot_be_served_are_a_sentence(options, said):
    command = [sys.executable, ROOT / "deploy" / "replicas.py", *options.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2 and said in done.stderr


def test_all_end_with_it_also_where_nobody_reads_its_lines(tmp_path):
    router = tmp_path / "haproxy"
    # it ends at once, so that its start is told again and again
    router.write_text("#!/bin/sh\nexit 1\n")
    router.chmod(0o755)
    ports = ["--port", str(free_port()), "--first", str(free_port())]
    command = [sys.executable, ROOT / "deploy" / "replicas.py", "--replicas", "1", *ports]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as it:
        assert it.stdout is not None
        pid = int(it.stdout.readline().rsplit(b"=", 1)[1])
        it.stdout.close()
        assert it.wait(30)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
