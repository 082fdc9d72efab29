"""What the tests of passes share: what goes through the model while they look."""

import pytest


@pytest.fixture
def passes(lm):
    """(texts, tokens) of every pass of the model of `lm` from here on."""
    seen = []
    handle = lm.model.tok_emb.register_forward_hook(
        lambda _m, _i, out: seen.append(tuple(out.shape[:2]))
    )
    yield seen
    handle.remove()
