"""What all tests share: a small random model, and the bundled one. Nothing here needs a network.

`pytest` runs as many workers as there are cores (`-n auto` in pyproject.toml; `-n 0` for one test or a
debugger). Each has its share of the cores for torch, and so have the servers and programs that it starts:
two workers with two threads each wait for one another most of the time.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings, strategies as st

import gptviz
from gptviz.engine import forward
from gptviz.engine.config import GPTConfig
from gptviz.engine.language_model import LanguageModel
from gptviz.jobs import local
from gptviz.model import GPTModel
from gptviz.tokenizer import get_encoding

THREADS = max(1, (os.cpu_count() or 1) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
torch.set_num_threads(THREADS)
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))  # for the programs that a test starts

# Works are done by a thread of the test, which need not wait for visitors; servers have their processes.
os.environ["GPTVIZ_WORKERS"] = "0"
local.LONGEST_REST = 0.0

# What a test keeps on disk is kept for this run of the tests, by all workers together, and for no other.
OWN_CACHE = None if "GPTVIZ_CACHE_DIR" in os.environ else tempfile.mkdtemp(prefix="gptviz-tests-")
if OWN_CACHE is not None:
    os.environ["GPTVIZ_CACHE_DIR"] = OWN_CACHE


def pytest_unconfigure() -> None:
    if OWN_CACHE is not None:
        shutil.rmtree(OWN_CACHE, ignore_errors=True)


# Nothing timed is a test: on a loaded machine every deadline is missed some day.
settings.register_profile("gptviz", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gptviz")

# pages that are about no text, or about their own until somebody asks for the prompt
WITHOUT_TEXT = {"anatomy", "attention_by_hand", "baselines", "class", "training"}

# what `random_lm` takes for a model of each kind that there is
KINDS_OF_MODELS: dict[str, dict[str, object]] = {
    "book": {},
    "tied": {"tie_embeddings": True, "n_layers": 3},
    "nanoGPT": {"qkv_bias": False, "linear_bias": False, "norm_bias": False, "activation": "gelu"},
    "one head": {"n_heads": 1, "n_layers": 1},
}


def above(logits: torch.Tensor, token: int, against: int | None = None) -> torch.Tensor:
    """By how much a log-probability is above the mean of all, or above another's: (..., V) -> (...)."""
    found = logits.double().log_softmax(dim=-1)
    return found[..., token] - (found.mean(dim=-1) if against is None else found[..., against])


def random_lm(seed: int = 0, **changes: object) -> LanguageModel:
    """A LanguageModel of random weights, large enough that attention is far from uniform."""
    tokenizer = get_encoding("mini")
    sizes = {
        "vocab_size": tokenizer.n_vocab,
        "context_length": 64,
        "emb_dim": 32,
        "n_heads": 4,
        "n_layers": 2,
    }
    config = GPTConfig.from_dict(sizes | {"qkv_bias": True} | changes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPTModel(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    return LanguageModel(model.eval(), tokenizer, config, "random")


@st.composite
def models(draw, **sizes: object) -> LanguageModel:
    """Random models of every kind: tied or not, with and without each bias, few blocks, any width."""
    heads = draw(st.sampled_from([1, 2, 4]))
    shape = {"vocab_size": 200, "n_heads": heads, "n_layers": draw(st.integers(1, 3))}
    shape["emb_dim"] = heads * draw(st.integers(4, 9))
    flags = {
        name: draw(st.booleans())
        for name in ("qkv_bias", "tie_embeddings", "norm_bias", "linear_bias")
    }
    activation = draw(st.sampled_from(["gelu_tanh", "gelu"]))
    return random_lm(draw(st.integers(0, 10**6)), activation=activation, **shape | flags | sizes)


TEXTS = st.lists(st.integers(0, 199), min_size=1, max_size=9)  # ids for them


@pytest.fixture(autouse=True)
def threads_are_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The first page that runs leaves torch one thread: other tests' last bits would be others after it."""
    monkeypatch.setattr(forward, "_pass_threads", forward._pass_threads)
    number = torch.get_num_threads()
    interval = sys.getswitchinterval()
    yield
    torch.set_num_threads(number)
    sys.setswitchinterval(interval)


@pytest.fixture(scope="session")
def lm() -> LanguageModel:
    return random_lm()


@pytest.fixture(scope="session")
def mini() -> LanguageModel:
    return gptviz.load("mini")
