"""The work of a pass against torch's own counter, and what the cache saves against sums by hand.

Both ways of writing again give the logits of a whole pass, for every step; what they take is no test.
"""

import time

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch.utils.flop_counter import FlopCounterMode

from gptviz.analysis.decoding_cost import steps, work, written_again
from gptviz.engine import forward
from gptviz.engine.config import GPTConfig
from gptviz.engine.llama_config import LlamaConfig
from gptviz.engine.past import Past
from gptviz.fast import kernels
from gptviz.model import GPT_CONFIG_124M, GPTModel
from tests import llamas
from tests.conftest import random_lm

GPT2 = GPTConfig.from_dict(GPT_CONFIG_124M)


def counted(run):
    """Multiply-adds as torch counts them: a floating-point operation is half of one."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        run()
    flops = counter.get_total_flops()
    assert flops % 2 == 0
    return flops // 2


@settings(max_examples=25)
@given(
    heads=st.sampled_from([1, 2, 4]),
    layers=st.integers(1, 3),
    vocabulary=st.integers(2, 50),
    tokens=st.integers(1, 12),
    bias=st.booleans(),
)
def test_a_pass_is_what_torch_counts(heads, layers, vocabulary, tokens, bias):
    config = GPTConfig(vocabulary, 12, 8, heads, layers, qkv_bias=bias)
    model = GPTModel(config).eval()
    ids = torch.zeros(1, tokens, dtype=torch.long)
    assert counted(lambda: model(ids)) == work(config, tokens, logits=tokens)
    last = counted(lambda: model.out_head(model.final_hidden(ids)[:, -1]))
    assert last == work(config, tokens)


@pytest.mark.parametrize("family", llamas.CLASSES)
def test_a_pass_of_a_llama_too(family):
    model = llamas.ours_of(llamas.random_model(family))
    config = LlamaConfig.from_dict(llamas.book_config(llamas.random_model(family)))
    ids = torch.tensor([llamas.IDS])
    assert counted(lambda: model(ids)) == work(config, ids.numel(), logits=ids.numel())
    memory = Past(model)
    forward.hidden(model, ids[:, :9], past=memory)
    found = counted(lambda: forward.last_logits(model, ids[:, 9:], memory))
    assert found == work(config, ids.numel() - 9, 9)
    assert config.n_kv_groups < config.n_heads
    kept = sum(memory.keys(b).nbytes + memory.values(b).nbytes for b in range(config.n_layers))
    assert kept == steps(config, len(memory), 1)["cache_bytes"].item()


@pytest.mark.parametrize(("past", "new"), [(0, 5), (1, 1), (9, 1), (6, 3)])
def test_after_a_past_as_well(lm, past, new):
    memory = Past(lm.model)
    if past:
        forward.hidden(lm.model, torch.zeros(1, past, dtype=torch.long), past=memory)
    ids = torch.zeros(1, new, dtype=torch.long)
    with kernels.by_the_book():
        found = counted(lambda: forward.last_logits(lm.model, ids, memory))
    assert found == work(lm.config, new, past)


@given(new=st.integers(1, 40), past=st.integers(0, 40))
def test_cached_only_the_attention_knows_of_the_past(new, past):
    assert work(GPT2, new, past) - work(GPT2, new) == 12 * 2 * new * past * 768


@given(prompt=st.integers(1, 30), written=st.integers(0, 40), context=st.integers(2, 40))
def test_every_step_without_is_a_pass_over_all_and_with_over_one(prompt, written, context):
    config = GPTConfig(50, context, 8, 2, 3)
    table = steps(config, prompt, written)
    assert len(table) == written
    for row in table.itertuples():
        known = prompt + row.step - 1
        assert row.tokens == min(known, context)
        assert row.without_cache == work(config, row.tokens) <= row.all_logits
        if row.step == 1 or known > context:
            assert row.cached == 0 and row.with_cache == row.without_cache
        else:
            assert row.cached == known - 1 and row.with_cache == work(config, 1, known - 1)
    passed = (table["tokens"] - table["cached"]).sum()
    if written and prompt + written - 1 <= context:
        assert passed == prompt + written - 1  # each token goes through the blocks once
        assert table["tokens"].sum() == written * prompt + written * (written - 1) // 2


def test_the_cache_in_bytes_grows_by_a_key_and_a_value_a_block():
    table = steps(GPT2, 1000, 30, number_bytes=2)
    assert table["cache_bytes"].iloc[0] == 2 * 12 * 1000 * 768 * 2
    assert table["cache_bytes"].iloc[-1] == 2 * 12 * 1024 * 768 * 2  # the context is full


PROMPT = [5, 70, 300]
NEW = [12, 12, 4000, 9, 811, 7, 8]


@pytest.mark.parametrize("context", [5, 64])
@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("cached", [True, False])
def test_the_logits_are_those_of_a_whole_pass(context, first, cached):
    lm = random_lm(context_length=context)
    began = time.perf_counter()
    found = list(written_again(lm, PROMPT, NEW, cached, first))
    assert sum(took for took, _ in found) <= 1000 * (time.perf_counter() - began)
    assert len(found) == len(NEW) - first
    for step, (took, logits) in enumerate(found, start=first):
        known = [*PROMPT, *NEW][: len(PROMPT) + step][-context:]
        torch.testing.assert_close(logits, lm.trace(known).logits(-1), rtol=1e-3, atol=1e-3)
        assert took > 0


def test_nothing_is_written_again(lm):
    assert list(written_again(lm, PROMPT, [], cached=True)) == []
