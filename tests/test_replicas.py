"""What deploy/replicas.py refuses before it starts anything; tests/browser/test_replicas.py starts it."""

import subprocess
import sys

import pytest

from tests.test_package import ROOT


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--replicas 0", "--replicas is 0; it must be 1 or more"),
        ("--port 70000", "--port 70000 and the replicas'"),
        ("--port 8602 --replicas 2", "--port 8602 and the replicas' 8601 to 8602 must be of their own"),
        ("--first 65535 --replicas 2", "65535 to 65536 must be of their own, from 1 to 65535"),
    ],
)
def test_ports_that_cannot_be_served_are_a_sentence(options, said):
    command = [sys.executable, ROOT / "deploy" / "replicas.py", *options.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2 and said in done.stderr
