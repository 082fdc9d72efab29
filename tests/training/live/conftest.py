"""Runs that are done in a second: one block or two of eight numbers, windows of sixteen tokens."""

import pytest
import torch

from gptviz.training.live import LiveConfig, begin, train

TINY = {"n_layers": 2, "n_heads": 2, "emb_dim": 8, "context_length": 16}
TINY |= {"steps": 6, "batch_size": 4, "warmup": 2, "every": 2}


def tiny(**changes):
    return LiveConfig(**(TINY | changes))


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """As the worker has it: two would wait for one another in models as small as these."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished run; nobody changes it."""
    run = begin(tmp_path_factory.mktemp("live") / "done", tiny())
    return train(run.folder)
