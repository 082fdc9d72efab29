"""The cache of traces: bounded by bytes, shared by threads."""

import threading
from dataclasses import dataclass, field

import pytest

from gptviz.ui.runs import SETTING, TraceCache, cache_bytes


@dataclass
class FakeTrace:
    nbytes: int


@dataclass
class FakeModel:
    """Counts its passes; a trace is as large as its ids' sum."""

    name: str = "fake"
    passes: list = field(default_factory=list)

    def trace(self, ids, keep=None):
        self.passes.append((ids, keep))
        return FakeTrace(sum(ids))


def test_the_same_question_runs_the_model_once():
    model, cache = FakeModel(), TraceCache(100)
    assert cache.get(model.name, model, [1, 2], ("attn",)) is cache.get(model.name, model, (1, 2), ("attn",))
    assert len(model.passes) == 1


def test_other_ids_other_sites_and_other_models_are_other_traces():
    model, cache = FakeModel(), TraceCache(100)
    traces = [
        cache.get(model.name, model, [1, 2], ("attn",)),
        cache.get(model.name, model, [2, 1], ("attn",)),
        cache.get(model.name, model, [1, 2], ("q",)),
        cache.get(model.name, model, [1, 2], None),
        cache.get("other", FakeModel("other"), [1, 2], ("attn",)),
    ]
    assert len({id(trace) for trace in traces}) == 5


def test_the_order_of_the_sites_does_not_matter():
    model, cache = FakeModel(), TraceCache(100)
    assert cache.get(model.name, model, [1], ("q", "k")) is cache.get(model.name, model, [1], ("k", "q"))


def test_it_never_holds_more_than_its_bytes_and_forgets_the_least_recently_used():
    model, cache = FakeModel(), TraceCache(100)
    cache.get(model.name, model, [40], ())
    cache.get(model.name, model, [50], ())
    cache.get(model.name, model, [40], ())  # used again: 50 is the oldest now
    cache.get(model.name, model, [30], ())
    assert cache.nbytes == 70 and len(cache) == 2
    cache.get(model.name, model, [40], ())
    assert [ids for ids, _ in model.passes] == [(40,), (50,), (30,)]
    cache.get(model.name, model, [50], ())
    assert len(model.passes) == 4


def test_a_trace_larger_than_the_cache_is_given_and_not_kept():
    model, cache = FakeModel(), TraceCache(100)
    small = cache.get(model.name, model, [10], ())
    assert cache.get(model.name, model, [101], ()).nbytes == 101
    assert cache.nbytes == 10 and cache.get(model.name, model, [10], ()) is small


def test_threads_that_ask_for_the_same_compute_it_once(lm):
    cache, found = TraceCache(2**20), []
    start = threading.Barrier(8)

    def ask():
        start.wait()
        found.append(cache.get("random", lm, [5, 6, 7], ("attn",)))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(trace) for trace in found}) == 1
    assert cache.nbytes == found[0].nbytes


def test_an_error_leaves_nothing_behind(lm):
    cache = TraceCache(2**20)
    with pytest.raises(ValueError):
        cache.get("random", lm, [], ())
    assert len(cache) == 0 and len(cache.get("random", lm, [1], ()).tokens) == 1


def test_a_model_that_goes_takes_its_traces_along():
    model, cache = FakeModel(), TraceCache(100)
    cache.get("a", model, [10], ())
    kept = cache.get("b", model, [20], ())
    cache.get("a", model, [30], ())
    cache.forget("a")
    assert cache.nbytes == 20 and len(cache) == 1 and cache.get("b", model, [20], ()) is kept


def test_the_setting(monkeypatch):
    monkeypatch.delenv(SETTING, raising=False)
    assert cache_bytes(SETTING, 512) == 512 * 2**20
    monkeypatch.setenv(SETTING, "64")
    assert cache_bytes(SETTING, 512) == 64 * 2**20
    for nonsense in ("", "-1", "1.5", "many", "²"):
        monkeypatch.setenv(SETTING, nonsense)
        with pytest.raises(ValueError, match=SETTING):
            cache_bytes(SETTING, 512)
    with pytest.raises(ValueError, match="max_bytes"):
        TraceCache(-1)
