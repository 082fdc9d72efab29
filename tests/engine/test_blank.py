"""A model of shapes: all of them, and no numbers."""

import subprocess
import sys

import pytest
import torch

from gptviz.engine.blank import blank_model
from gptviz.engine.config import GPTConfig
from gptviz.model import GPTModel

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
