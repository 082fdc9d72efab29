"""Memory that nobody uses goes back to the system, also from between what stays."""

import sys

import pytest

from gptviz.ui import memory, runs
from gptviz.ui.models import cache

PIECE = 16 * 2**10  # bytes: the allocator keeps such pieces in its arenas


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator is meant")
def test_what_lies_between_what_stays_is_given_back():
    memory.give_back()
    pieces = [bytearray(PIECE) for _ in range(4 * memory.GROWN // PIECE)]
    full = memory.resident()
    stays = pieces[::256]  # so that no arena's end is free
    del pieces
    memory.give_back()
    assert memory.resident() < full - 2 * memory.GROWN
    assert len(stays) == 4 * memory.GROWN // PIECE // 256


def test_a_process_that_has_not_grown_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    calls: list[int] = []
    monkeypatch.setattr(memory, "_trim", calls.append)
    monkeypatch.setattr(memory, "_left", memory.resident())
    memory.give_back()
    assert calls == []
    monkeypatch.setattr(memory, "_left", memory.resident() - memory.GROWN - 2**20)
    memory.give_back()
    assert calls == [0]


def test_elsewhere_nothing_is_done(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "_trim", None)
    monkeypatch.setattr(memory, "_left", 0)
    memory.give_back()
    assert memory._left == 0


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("2147483648", (1024, 256)),
        ("max", (8192, 1024)),
        ("nonsense", (8192, 1024)),
        (None, (8192, 1024)),
    ],
)
def test_what_the_caches_take_unasked_is_a_part_of_the_memory(tmp_path, monkeypatch, said, wanted):
    limit = tmp_path / "memory.max"
    if said is not None:
        limit.write_text(f"{said}\n")
    monkeypatch.setattr(memory, "LIMITS", (str(limit),))
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**23}  # 32 GiB
    monkeypatch.setattr(memory.os, "sysconf", pages.__getitem__)
    for setting in (cache.SETTING, runs.SETTING):
        monkeypatch.delenv(setting, raising=False)
    cache.model_cache.clear()
    try:
        assert (
            cache.model_cache().max_bytes == wanted[0] * 2**20
            and runs.trace_bytes() == wanted[1] * 2**20
        )
    finally:
        cache.model_cache.clear()
