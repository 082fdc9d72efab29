"""What the capture refuses: a model that does not do what the table of sites says."""

import pytest

from gptviz.engine import capture
from gptviz.engine.reduction import Reduction
from tests.conftest import random_lm
from tests.engine.test_trace import TEXT, hooks_left


def test_a_model_whose_dropout_never_sees_attention_is_refused():
    lm = random_lm()
    att = lm.model.trf_blocks[1].att
    att.forward = lambda x: att.out_proj(att.W_value(att.W_query(x) + att.W_key(x)))
    for more in ({}, {"keep": (), "reduce": [Reduction("x", "attn", len)]}):
        with pytest.raises(capture.CaptureError, match=r"never came by \('attn', 1\)"):
            lm.trace(TEXT, **more)
        assert hooks_left(lm.model) == 0


def test_attention_that_does_not_sum_to_1_is_refused():
    lm = random_lm()
    dropout = lm.model.trf_blocks[0].att.dropout
    dropout.register_forward_pre_hook(lambda _m, args: (args[0] * 1.5,))
    with pytest.raises(capture.CaptureError, match="do not sum to 1"):
        lm.trace(TEXT)
