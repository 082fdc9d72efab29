"""SwitchedModel: all 32 combinations against a pass written out here; GPTModel and LlamaModel at both ends."""

import cmath
import math
from dataclasses import asdict, replace
from itertools import product

import pytest
import torch

from gptviz.engine.config import GPTConfig
from gptviz.engine.llama_config import LlamaConfig
from gptviz.llama import LlamaModel
from gptviz.model import GPTModel
from gptviz.training.live.switched import (
    GPT2,
    LLAMA,
    NAMES,
    SwitchedModel,
    Switches,
    cache_bytes,
    hidden_dim,
    parameters,
)

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
CONFIG = GPTConfig(47, 16, 24, 4, 2)
WITH_BIASES = replace(CONFIG, qkv_bias=True)
IDS = [3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9]
ALL = [Switches(*on) for on in product((False, True), repeat=5)]


def named(switches):
    return "+".join(switches.on) or "none"


def made(config, switches, groups=None, seed=5):
    """A model whose every weight is drawn anew, norms and biases included, in float32."""
    torch.manual_seed(seed)
    model = SwitchedModel(config, switches, groups)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return model.eval()


def logits_of(model):
    with torch.no_grad():
        return model(torch.tensor([IDS]))[0]


# ---- all 32, by a pass that uses no module of the product ----


@pytest.mark.parametrize("switches", ALL, ids=named)
@pytest.mark.parametrize(("config", "groups"), [(CONFIG, None), (WITH_BIASES, 1)])
def test_every_combination_is_a_pass_written_out(config, groups, switches):
    model = made(config, switches, groups)
    weights = {name: tensor.double() for name, tensor in model.state_dict().items()}
    expected = written_out(weights, config, switches, groups or 2, IDS)
    found = logits_of(model).double()
    torch.testing.assert_close(found, expected, **CLOSE)
    assert expected.std() > 0.2  # what is compared are logits that choose


def written_out(w, config, on, groups, ids):
    """The logits of a text in float64, (T, V): a head at a time, complex numbers for what rotates."""
    n = len(ids)
    D = config.emb_dim
    heads = config.n_heads
    d = D // heads
    if not on.grouped:
        groups = heads
    used = set()

    def weight(name):
        used.add(name)
        return w[name]

    def norm(x, path):
        if on.rms_norm:
            return x / ((x * x).sum(-1, keepdim=True) / D + 1e-5).sqrt() * weight(f"{path}.scale")
        centred = x - x.sum(-1, keepdim=True) / D
        deviation = ((centred * centred).sum(-1, keepdim=True) / D + 1e-5).sqrt()
        scaled = centred / deviation * weight(f"{path}.scale")
        return scaled if on.no_biases else scaled + weight(f"{path}.shift")

    def linear(x, path, has_bias):
        y = x @ weight(f"{path}.weight").T
        return y + weight(f"{path}.bias") if has_bias and not on.no_biases else y

    def rotated(rows):
        if not on.rope:
            return rows
        angles = [[p * 10_000 ** (-2 * i / d) for i in range(d // 2)] for p in range(n)]
        turns = torch.tensor(
            [[cmath.exp(1j * a) for a in row] for row in angles], dtype=torch.complex128
        )
        points = torch.complex(rows[:, : d // 2], rows[:, d // 2 :]) * turns
        return torch.cat([points.real, points.imag], dim=1)

    x = weight("tok_emb.weight")[ids]
    if not on.rope:
        x = x + weight("pos_emb.weight")[:n]
    for b in range(config.n_layers):
        path = f"trf_blocks.{b}"
        y = norm(x, f"{path}.norm1")
        q, k, v = (
            linear(y, f"{path}.att.W_{part}", config.qkv_bias) for part in ("query", "key", "value")
        )
        z = []
        for head in range(heads):
            group = head // (heads // groups)
            query = rotated(q[:, head * d : (head + 1) * d])
            key = rotated(k[:, group * d : (group + 1) * d])
            rows = []
            for i in range(n):
                scores = torch.exp(key[: i + 1] @ query[i] / math.sqrt(d))
                rows.append((scores / scores.sum()) @ v[: i + 1, group * d : (group + 1) * d])
            z.append(torch.stack(rows))
        x = x + linear(torch.cat(z, dim=1), f"{path}.att.out_proj", True)
        y = norm(x, f"{path}.norm2")
        if on.swiglu:
            gate = linear(y, f"{path}.ff.fc1", True)
            up = linear(y, f"{path}.ff.fc2", True)
            x = x + linear(gate / (1 + torch.exp(-gate)) * up, f"{path}.ff.fc3", True)
        else:
            u = linear(y, f"{path}.ff.layers.0", True)
            bent = 0.5 * u * (1 + torch.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3)))
            x = x + linear(bent, f"{path}.ff.layers.2", True)
    logits = norm(x, "final_norm") @ weight("out_head.weight").T
    assert used == set(w)  # every weight of the model has a part in it
    return logits


def test_each_switch_alone_changes_the_logits():
    plain = made(CONFIG, GPT2)
    for name in NAMES:
        one = SwitchedModel(CONFIG, Switches(**{name: True})).eval()
        own = one.state_dict()
        same = {n: w for n, w in plain.state_dict().items() if n in own and own[n].shape == w.shape}
        one.load_state_dict(own | same)
        assert (logits_of(one) - logits_of(plain)).abs().max() > 1e-2, name


# ---- both ends ----


def test_none_is_a_gpt_model():
    model = made(WITH_BIASES, GPT2)
    plain = GPTModel(WITH_BIASES).eval()
    plain.load_state_dict(model.state_dict())
    assert torch.equal(logits_of(model), logits_of(plain))
    torch.manual_seed(9)
    first = GPTModel(WITH_BIASES).state_dict()
    torch.manual_seed(9)
    again = SwitchedModel(WITH_BIASES).state_dict()
    assert first.keys() == again.keys()
    assert all(torch.equal(first[name], again[name]) for name in first)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_all_is_a_llama_model(groups):
    model = made(WITH_BIASES, LLAMA, groups)
    llama = LlamaModel(llama_config(groups)).eval()
    llama.load_state_dict(model.state_dict())
    assert torch.equal(logits_of(model), logits_of(llama))


def llama_config(groups):
    sizes = {
        n: CONFIG[n] for n in ("vocab_size", "context_length", "emb_dim", "n_heads", "n_layers")
    }
    return LlamaConfig(**sizes, hidden_dim=64, n_kv_groups=groups)


# ---- what they weigh ----


@pytest.mark.parametrize("switches", ALL, ids=named)
def test_parameters_and_cache_are_those_that_are_there(switches):
    for config, groups in (
        (CONFIG, None),
        (WITH_BIASES, 1),
        (replace(CONFIG, tie_embeddings=True), 4),
    ):
        model = SwitchedModel(config, switches, groups).eval()
        counted = sum(weight.numel() for weight in model.parameters())
        assert parameters(config, switches, groups) == counted
        assert cache_bytes(config, switches, len(IDS), groups) == sum(kept_by(model))


def kept_by(model):
    """The bytes of the keys and of the values that each block makes of the text."""
    kept = []
    for block in model.trf_blocks:
        for matrix in (block.att.W_key, block.att.W_value):
            matrix.register_forward_hook(lambda _module, _x, y: kept.append(y.nbytes))
    logits_of(model)
    return kept


def test_parameters_are_those_of_both_configs():
    assert parameters(WITH_BIASES, GPT2) == WITH_BIASES.parameters
    assert parameters(WITH_BIASES, LLAMA) == llama_config(2).parameters
    assert hidden_dim(24) == 64
    for D in (8, 64, 768, 4096):  # two matrices of 4D against three of F
        assert abs(3 * hidden_dim(D) - 8 * D) <= 1


def test_what_is_shared_begins_the_same():
    torch.manual_seed(3)
    first = GPTModel(CONFIG).state_dict()
    for switches in ALL:
        torch.manual_seed(3)
        own = SwitchedModel(CONFIG, switches).state_dict()
        shared = [name for name in own if name in first and own[name].shape == first[name].shape]
        assert all(torch.equal(own[name], first[name]) for name in shared)
        assert "trf_blocks.1.att.W_query.weight" in shared and "tok_emb.weight" in shared
        brought = set(own) - set(shared)
        assert bool(brought) == (switches.swiglu or switches.grouped)


# ---- what cannot be ----


def test_what_no_such_model_can_have_is_a_sentence():
    with pytest.raises(
        ValueError, match=r"4 heads cannot be divided among 3 groups; .* \[1, 2, 4\]"
    ):
        SwitchedModel(CONFIG, LLAMA, 3)
    with pytest.raises(ValueError, match=r"drop_rate is 0.1; it must be 0"):
        SwitchedModel(replace(CONFIG, drop_rate=0.1))
    with pytest.raises(ValueError, match="rope is 1; it must be True or False"):
        Switches(rope=1)
    with pytest.raises(ValueError, match="must be even"):
        SwitchedModel(replace(CONFIG, emb_dim=12), Switches(rope=True)).eval()(torch.tensor([IDS]))
    with pytest.raises(ValueError, match="17 tokens do not fit the context length of 16"):
        SwitchedModel(CONFIG, LLAMA)(torch.zeros(1, 17, dtype=torch.long))
    assert asdict(LLAMA) == dict.fromkeys(NAMES, True) and GPT2.on == () and LLAMA.on == NAMES
