"""The weights before training: GPT-2's spread of each matrix, by itself and into the residual stream."""

import pytest

from gptviz.engine.initial import init_weights
from tests.conftest import random_lm


def test_matrices_have_gpt2s_spread_and_the_rest_changes_nothing():
    model = random_lm(n_layers=8, emb_dim=128, qkv_bias=True).model
    init_weights(model, 8, seed=1)
    block = model.trf_blocks[7]
    for into_stream in (block.att.out_proj, block.ff.layers[2]):
        assert float(into_stream.weight.std()) == pytest.approx(0.02 / 4, rel=0.05)
    for other in (model.tok_emb, model.out_head, block.att.W_query, block.ff.layers[0]):
        assert float(other.weight.std()) == pytest.approx(0.02, rel=0.05)
    assert not block.ff.layers[0].bias.any() and not block.att.W_query.bias.any()
