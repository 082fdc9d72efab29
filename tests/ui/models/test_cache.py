"""The cache of models: bounded by bytes, one load at a time, nothing left of what went."""

import gc
import weakref

import pytest
import torch

from gptviz.models.loading import KNOWN_MODELS, Plan, plan
from gptviz.ui.models.cache import SETTING, ModelCache
from tests.conftest import random_lm
from tests.waiting import together

SIZE = random_lm().nbytes


@pytest.fixture
def loads():
    """The names of the models that were loaded."""
    return []


@pytest.fixture
def planned(loads):
    """planned(name, make) -> what gives the plan of a model, which `make` then loads."""

    def plan(name="random", make=random_lm):
        def load(dtype):
            loads.append(name)
            return make().model

        lm = random_lm()
        return lambda: Plan(name, lm.config, lm.tokenizer, load, torch.float32, "cpu")

    return plan


def test_a_model_knows_its_size():
    lm = random_lm()
    weights = sum(p.numel() * 4 for p in lm.model.parameters())
    assert lm.nbytes == weights
    tied = random_lm(tie_embeddings=True)
    assert tied.nbytes == lm.nbytes - 4 * lm.config.vocab_size * lm.config.emb_dim


def test_the_least_recently_used_goes_first_and_its_memory_with_it(planned, loads):
    dropped = []
    cache = ModelCache(int(2.5 * SIZE))
    cache.when_dropped(dropped.append)
    gone = weakref.ref(cache.get("a", planned("a")).model)
    cache.get("b", planned("b"))
    cache.get("a", lambda: pytest.fail("it is here"))
    cache.get("c", planned("c"))
    assert dropped == ["b"] and "a" in cache and len(cache) == 2 and cache.nbytes <= 2.5 * SIZE
    cache.get("d", planned("d"))
    gc.collect()
    assert (
        dropped == ["b", "a"] and gone() is None and cache.find("a") is None and loads == [*"abcd"]
    )


def test_room_is_made_before_the_weights_are_read(planned):
    cache = ModelCache(int(1.5 * SIZE))
    cache.get("a", planned())
    there = []

    def look_then_make():
        there.append("a" in cache)
        return random_lm()

    cache.get("b", planned(make=look_then_make))
    assert there == [False]


def test_a_model_larger_than_all_of_it_is_refused_before_it_is_read(planned, loads):
    cache = ModelCache(SIZE // 2)
    with pytest.raises(ValueError, match=f"random needs .* {SETTING}.*bfloat16"):
        cache.get("a", planned())
    assert not loads and len(cache) == 0


def test_a_load_that_fails_leaves_nothing(planned):
    cache = ModelCache(10 * SIZE)

    def broken():
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        cache.get("a", planned(make=broken))
    assert "a" not in cache
    assert cache.get("a", planned()).name == "random"


def test_sessions_that_ask_at_once_load_once(planned, loads):
    cache = ModelCache(10 * SIZE)
    found = together(8, lambda _: cache.get("a", planned()))
    assert len(loads) == 1 and len({id(lm) for lm in found}) == 1


def test_an_upload_goes_in_every_form_it_was_loaded_in(planned):
    dropped = []
    cache = ModelCache(10 * SIZE)
    cache.when_dropped(dropped.append)
    for key in ("upload:1|None|float32", "upload:1|4|bfloat16", "upload:10|None|float32", "mini"):
        cache.get(key, planned())
    cache.drop_all("upload:1|")
    assert sorted(dropped) == ["upload:1|4|bfloat16", "upload:1|None|float32"] and len(cache) == 2


def test_a_model_that_went_is_found_as_long_as_somebody_works_with_it(planned):
    cache = ModelCache(int(1.5 * SIZE))
    worked_with = cache.get("a", planned("a"))
    cache.get("b", planned("b"))
    assert "a" not in cache and cache.find("a") is worked_with and cache.find("c") is None
    assert cache.get("a", lambda: pytest.fail("it is still in memory")) is worked_with
    assert "a" in cache and "b" not in cache and cache.nbytes == SIZE
    cache.drop_all("a")  # for good: its upload was removed
    assert cache.find("a") is None and cache.nbytes == 0


@pytest.mark.parametrize("name", KNOWN_MODELS)
def test_room_is_made_for_what_the_model_really_takes(name):
    planned = plan(name)
    assert planned.nbytes == planned.load().nbytes
