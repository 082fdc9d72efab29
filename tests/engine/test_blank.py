"""A model before training: all shapes and no numbers; or GPT-2's spread, also into the residual stream."""

import math
import subprocess
import sys

import pytest
import torch

from gptviz.engine.blank import blank_model, init_weights
from gptviz.engine.config import GPTConfig
from gptviz.model import GPTModel

SMALL = GPTConfig(vocab_size=50, context_length=9, emb_dim=8, n_heads=2, n_layers=2, drop_rate=0.1)


@pytest.mark.parametrize("tied", [False, True])
def test_it_has_every_shape_of_the_real_one_and_no_memory(tied):
    config = GPTConfig.from_dict(SMALL.to_dict() | {"tie_embeddings": tied})
    blank = blank_model(config)
    real = GPTModel(config)
    one, other = ([(n, x.shape, x.dtype) for n, x in m.named_parameters()] for m in (blank, real))
    assert one == other and one
    assert {x.device.type for x in blank.parameters()} == {"meta"}
    assert not [*blank.buffers(), *real.buffers()]  # all that it keeps are its parameters
    assert (blank.out_head.weight is blank.tok_emb.weight) == tied


def test_a_model_made_afterwards_has_its_numbers():
    blank_model(SMALL)
    torch.manual_seed(1)
    model = GPTModel(SMALL)
    assert model.tok_emb.weight.std() > 0
    assert torch.equal(model.trf_blocks[0].att.mask(9), torch.ones(9, 9, dtype=torch.bool).triu(1))


def test_loading_does_not_wait_for_torchs_compiler():
    program = "import sys, gptviz; gptviz.load('mini'); sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0


def test_matrices_have_gpt2s_spread_and_the_rest_changes_nothing():
    config = GPTConfig(2000, 128, 128, 4, 8, qkv_bias=True)
    model = GPTModel(config)  # LayerNorms are left as it makes them
    init_weights(model, seed=1)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            into_residual = "att.out_proj" in name or "ff.layers.2" in name
            expected = 0.02 / math.sqrt(16) if into_residual else 0.02
            # of a standard deviation that is estimated
            error = expected / math.sqrt(2 * parameter.numel())
            assert abs(parameter.std().item() - expected) < 5 * error, name
            assert abs(parameter.mean().item()) < 5 * expected / math.sqrt(parameter.numel()), name
        else:
            assert torch.equal(
                parameter, torch.full_like(parameter, float(name.endswith("scale")))
            ), name
