"""What is kept on disk: whole or not at all, bounded, and never in the way."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from gptviz.files import disk_cache
from tests.conftest import random_lm


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv(disk_cache.SETTING, str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_a_folder_at_home_is_at_home_where_no_shell_was_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(disk_cache.SETTING, "~/kept")
    assert disk_cache.folder() == tmp_path / "kept"


def test_numbers_come_back_to_the_bit():
    value = {"a": [0.1, 1 / 3, float("inf")], "·": "ü"}
    assert disk_cache.read("x") is None
    assert disk_cache.write("x", value) and disk_cache.read("x") == value


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff\xfe", None])
def test_a_broken_file_counts_as_none_and_is_replaced(place, damage):
    disk_cache.write("x", list(range(50)))
    file = place / "x.json"
    content = file.read_bytes()
    file.write_bytes(content[:-9] if damage is None else damage)
    assert disk_cache.read("x") is None
    file.write_bytes(content.replace(b"49]", b"48]"))
    assert disk_cache.read("x") is None
    disk_cache.write("x", 1)
    assert disk_cache.read("x") == 1


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(disk_cache.SETTING, str(tmp_path / "file"))
    assert disk_cache.write("x", 1) is False and disk_cache.read("x") is None


def test_what_was_not_asked_for_the_longest_goes_first(place, monkeypatch):
    for age, name in enumerate(("new", "older", "oldest")):
        disk_cache.write(name, "x" * 1000)
        os.utime(place / f"{name}.json", (10**9 - age * 100,) * 2)
    monkeypatch.setattr(disk_cache, "MOST_BYTES", 3500)
    assert disk_cache.read("oldest") is not None  # asked for just now: not the oldest any more
    disk_cache.write("last", "x" * 1000)
    assert {path.stem for path in place.iterdir()} == {"new", "oldest", "last"}


def test_many_writers_leave_one_whole_file(place):
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda i: disk_cache.write("x", [i] * 5000), range(40)))
    found = disk_cache.read("x")
    assert found is not None and len(set(found)) == 1
    assert [path.name for path in place.iterdir()] == ["x.json"]


def test_the_hash_is_of_every_weight_and_of_nothing_else():
    one = random_lm(1).model
    same = random_lm(1).model
    other = random_lm(2).model
    assert (
        disk_cache.weights_hash(one)
        == disk_cache.weights_hash(same)
        != disk_cache.weights_hash(other)
    )
    with torch.no_grad():
        same.final_norm.shift[3] += 1e-6
    assert disk_cache.weights_hash(one) != disk_cache.weights_hash(same)
    assert disk_cache.weights_hash(one.bfloat16()) != disk_cache.weights_hash(random_lm(1).model)


@pytest.mark.parametrize(
    ("platform", "variable"), [("linux", "XDG_CACHE_HOME"), ("win32", "LOCALAPPDATA")]
)
def test_the_folder_is_the_systems(platform, variable, tmp_path, monkeypatch):
    monkeypatch.delenv(disk_cache.SETTING)
    monkeypatch.setattr(disk_cache.sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert disk_cache.folder() == tmp_path / "gptviz"
    monkeypatch.delenv(variable)
    assert disk_cache.folder().is_relative_to(Path.home())
