"""The record of an architecture: found by class, and true of the model that it is about."""

import pytest
import torch

from gptviz.engine import forward
from gptviz.engine.architecture import ARCHITECTURES, GPT2, LLAMA, architecture_of
from gptviz.engine.config import GPTConfig
from gptviz.engine.llama_config import LlamaConfig
from gptviz.engine.sites import ALL_SITES
from gptviz.llama import LLAMA32_CONFIG
from gptviz.model import GPTModel, LayerNorm

IDS = [5, 6, 7, 5, 1]


def test_a_record_is_found_by_the_class_of_a_model_or_a_config(lm):
    class OfAReader(GPTModel):
        pass

    assert architecture_of(lm.model) is architecture_of(lm.config) is GPT2
    assert architecture_of(OfAReader(lm.config)) is GPT2
    assert architecture_of(LlamaConfig.from_dict(LLAMA32_CONFIG)) is LLAMA
    with pytest.raises(ValueError, match="a Linear cannot be shown; known are GPTModel"):
        architecture_of(torch.nn.Linear(2, 2))


def test_what_is_said_of_a_site_before_there_is_a_model_holds_for_every_model():
    """An edit in text form knows the name of a site, and no model."""
    for kind in ARCHITECTURES:
        places = [list(ALL_SITES).index(name) for name in kind.sites]
        assert places == sorted(places)
        for name, site in kind.sites.items():
            known = ALL_SITES[name]
            assert known.per_block == site.per_block and known.in_attention == site.in_attention
            assert (known.form == "rows") == (site.form == "rows")
            assert (known.form == "weights") == (site.form == "weights")
            assert (known.shape == "(T, D)") == (site.shape == "(T, D)")


@pytest.mark.parametrize("kind", ARCHITECTURES, ids=lambda kind: kind.model.__name__)
def test_its_names_are_those_of_the_classes_that_it_is_made_of(kind):
    config = GPTConfig(9, 8, 4, 2, 1) if kind is GPT2 else LlamaConfig(9, 8, 4, 2, 1, 12, 1)
    model = kind.model(config)
    names = kind.named
    block = model.trf_blocks[0]
    assert type(block) is names.block_class and type(block.att) is names.attention_class
    assert type(block.ff) is names.feed_forward_class and type(block.norm1) is names.norm_class
    assert names.norm == names.norm_class.__name__
    assert kind.context_length(model) == 8
    assert ("position" in kind.embedded) == ("added" in names.positions)


def test_its_norms_are_all_that_the_model_has_and_read_what_it_says(lm):
    """What a hook sees going into each norm is the site that the record names."""
    trace = lm.trace(IDS)
    last = lm.config.n_layers - 1
    sources = {GPT2.final_norm.module: (GPT2.final_norm.source, last)}
    for place in GPT2.norms:
        for block in range(lm.config.n_layers):
            sources[f"trf_blocks.{block}.{place.module}"] = (place.source, block)
    norms = [name for name, module in lm.model.named_modules() if isinstance(module, LayerNorm)]
    assert set(sources) == set(norms) and len(norms) == 2 * lm.config.n_layers + 1
    seen = {}
    hooks = [
        forward.Hook(name, "input", lambda x, n=name: seen.update({n: x[0]})) for name in norms
    ]
    lm.hidden(torch.tensor([IDS]), hooks)
    for name, key in sources.items():
        torch.testing.assert_close(seen[name], trace[key], atol=1e-5, rtol=0)


def test_its_scores_give_the_attention_weights(lm):
    trace = lm.trace(IDS)
    query, key = GPT2.scores
    hidden = torch.ones(len(IDS), len(IDS)).triu(1).bool()
    for block in range(lm.config.n_layers):
        scores = trace[query, block] @ trace[key, block].transpose(1, 2)  # (H, T, T)
        weights = (scores / lm.config.head_dim**0.5).masked_fill(hidden, -torch.inf).softmax(-1)
        torch.testing.assert_close(weights, trace["attn", block], atol=1e-5, rtol=0)
