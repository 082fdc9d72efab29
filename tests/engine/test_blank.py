"""A model before training: all shapes and no numbers; or GPT-2's spread, also into the residual stream."""

import subprocess
import sys

import pytest
import torch

from gptviz.engine.blank import blank_model, init_weights
from gptviz.engine.config import GPTConfig
from gptviz.model import GPTModel
from tests.conftest import random_lm

SMALL = GPTConfig(vocab_size=50, context_length=9, emb_dim=8, n_heads=2, n_layers=2, drop_rate=0.1)


@pytest.mark.parametrize("tied", [False, True])
def test_it_has_every_shape_of_the_real_one_and_no_memory(tied):
    config = GPTConfig.from_dict(SMALL.to_dict() | {"tie_embeddings": tied})
    blank, real = blank_model(config), GPTModel(config)
    for kind in ("named_parameters", "named_buffers"):
        one, other = ([(n, x.shape, x.dtype) for n, x in getattr(m, kind)()] for m in (blank, real))
        assert one == other and one
    assert {x.device.type for x in (*blank.parameters(), *blank.buffers())} == {"meta"}
    assert (blank.out_head.weight is blank.tok_emb.weight) == tied


def test_a_model_made_afterwards_has_its_numbers():
    blank_model(SMALL)
    torch.manual_seed(1)
    model = GPTModel(SMALL)
    assert model.tok_emb.weight.std() > 0
    assert torch.equal(model.trf_blocks[0].att.mask, torch.ones(9, 9, dtype=torch.bool).triu(1))


def test_loading_does_not_wait_for_torchs_compiler():
    program = "import sys, gptviz; gptviz.load('mini'); sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0


def test_matrices_have_gpt2s_spread_and_the_rest_changes_nothing():
    model = random_lm(n_layers=8, emb_dim=128, qkv_bias=True).model
    init_weights(model, 8, seed=1)
    block = model.trf_blocks[7]
    for into_stream in (block.att.out_proj, block.ff.layers[2]):
        assert float(into_stream.weight.std()) == pytest.approx(0.02 / 4, rel=0.05)
    for other in (model.tok_emb, model.out_head, block.att.W_query, block.ff.layers[0]):
        assert float(other.weight.std()) == pytest.approx(0.02, rel=0.05)
    assert not block.ff.layers[0].bias.any() and not block.att.W_query.bias.any()
