"""What `gptviz doctor` says of a machine, and of settings that are wrong."""

import os
import re
from pathlib import Path

import pytest

from gptviz import cli
from gptviz.server import doctor
from gptviz.ui import settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("GPTVIZ_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GPTVIZ_CACHE_DIR", str(tmp_path))


def test_a_sound_machine(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "cores", lambda: 4)
    monkeypatch.setattr(doctor, "memory", lambda: 64 * 10**9)
    monkeypatch.setattr(doctor, "measured", lambda: (0.02, 0.1))
    monkeypatch.setattr(doctor, "disk", lambda: 10**11)
    assert cli.main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "a click    250 ms of a core" in said
    assert "about 120 visitors who click every 15 s, with 4 replicas" in said  # 4 x 0.5 x 15 / 0.25
    monkeypatch.setattr(doctor, "memory", lambda: 10**8)
    assert cli.main(["doctor"]) == 1
    assert "WRONG      100 MB of memory are free" in capsys.readouterr().out


def test_what_is_measured():
    a_pass, a_run = doctor.measured()
    assert 0 < a_pass < 10 and 0 < a_run < 10
    assert 0 < doctor.cores() <= (os.cpu_count() or 1)


def test_wrong_settings_are_a_sentence_each(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").touch()
    given = {
        "TRACE_CACHE_MB": "lots",
        "READS_AT_ONCE": "0",
        # more than a process's alarm can be set to: each read would fail
        "READ_SECONDS": "99999999999",
        "LOG": "yes",
        "METRIX": "1",
        "DEVICE": "abacus",
        "KERNELS": "Off",
        "GUIDES": str(tmp_path / "file"),
        "RAY": "127.0.0.1:1",
        "CACHE_DIR": str(tmp_path / "file"),
        "DATABASE": "postgresql+psycopg://nobody@127.0.0.1:1/x",
    }
    for name, value in given.items():
        monkeypatch.setenv(f"GPTVIZ_{name}", value)
    assert cli.main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert said.count("WRONG") == len(given)
    for name in {*given} - {"CACHE_DIR"}:
        assert f"GPTVIZ_{name}" in said


def test_every_setting_is_known_and_told():
    sources = [*(ROOT / "gptviz").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    code = "".join(path.read_text("utf-8") for path in sources)
    named = {name for name in re.findall(r'"(GPTVIZ_[A-Z_]+)"', code)}
    told = set(
        re.findall(r"^\| `(GPTVIZ_[A-Z_]+)", (ROOT / "docs/models.md").read_text("utf-8"), re.M)
    )
    assert named == set(settings.SETTINGS) == told
