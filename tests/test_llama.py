"""LlamaModel, module by module and as a whole: against transformers' Llama, Qwen2 and Qwen3, and formulas."""

import cmath

import pytest
import torch
from torch import nn
from transformers.models.llama import modeling_llama

from gptviz.engine.llama_config import LlamaConfig
from gptviz.llama import (
    LLAMA32_CONFIG,
    QWEN3_CONFIG,
    FeedForward,
    GroupedQueryAttention,
    LlamaModel,
    RMSNorm,
    apply_rope,
    compute_rope_params,
)
from tests import llamas
from tests.llamas import IDS, LLAMA3

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SMALL = {"vocab_size": 97, "context_length": 24, "emb_dim": 32, "n_heads": 4, "n_layers": 2}
SMALL |= {"hidden_dim": 48, "n_kv_groups": 2, "rope_base": 10_000.0}
SHAPES = [
    ("llama", {}),
    ("llama", llamas.SMOLLM2),
    ("llama", {"rope_parameters": LLAMA3}),
    ("llama", {"num_key_value_heads": 9, "head_dim": 10}),
    ("llama", {"num_key_value_heads": 1, "rms_norm_eps": 1e-2, "tie_word_embeddings": True}),
    ("qwen2", {}),
    ("qwen2", {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}),
    ("qwen3", {}),
    ("qwen3", {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 54}),
]


# ---- the whole model ----


@pytest.mark.parametrize(("family", "shape"), SHAPES, ids=str)
def test_it_is_the_model_of_transformers(family, shape):
    theirs = llamas.random_model(family, 1, **shape)
    found = llamas.sites_of(llamas.ours_of(theirs), IDS)
    with torch.no_grad():
        expected = theirs(torch.tensor([IDS]), output_attentions=True, output_hidden_states=True)
    torch.testing.assert_close(found["logits"], expected.logits[0], **CLOSE)
    for b, weights in enumerate(expected.attentions):
        torch.testing.assert_close(found["attn", b], weights[0], **CLOSE)
        torch.testing.assert_close(found["resid_pre", b], expected.hidden_states[b][0], **CLOSE)
    torch.testing.assert_close(found["final", None], expected.hidden_states[-1][0], **CLOSE)
    # what is compared is attention that chooses, not a mean
    assert found["attn", 1][:, -1].amax() > 3 / len(IDS)


@pytest.mark.parametrize(("family", "shape"), SHAPES, ids=str)
def test_every_site_is_that_of_a_pass_written_out(family, shape):
    """In float64, a head at a time, with complex numbers for the pairs that turn."""
    theirs = llamas.random_model(family, 2, **shape)
    ours = llamas.ours_of(theirs)
    found = llamas.sites_of(ours, IDS)
    expected = written_out(ours.double().state_dict(), llamas.book_config(theirs), IDS)
    assert found.keys() == expected.keys()
    for site, value in expected.items():
        assert found[site].shape == value.shape, site
        torch.testing.assert_close(found[site].double(), value, **CLOSE)


def written_out(w, cfg, ids, change=lambda key, value: value):
    """Every site of a pass, by site and block; each is what `change` makes of it."""
    n = len(ids)
    heads = cfg["n_heads"]
    groups = cfg["n_kv_groups"]
    d = cfg["head_dim"] or cfg["emb_dim"] // heads
    frequencies = [frequency(pair, d, cfg) for pair in range(d // 2)]
    turns = torch.tensor([[cmath.exp(1j * p * f) for f in frequencies] for p in range(n)])

    def normed(x, scale):
        return x / (x.pow(2).mean(-1, keepdim=True) + cfg["norm_eps"]).sqrt() * w[scale]

    def linear(x, path):
        return x @ w[f"{path}.weight"].T + w.get(f"{path}.bias", 0)

    def turned(rows):  # (T, d)
        points = torch.complex(rows[:, : d // 2], rows[:, d // 2 :]) * turns
        return torch.cat([points.real, points.imag], dim=1)

    sites = {}

    def at(site, b, value):
        sites[site, b] = change((site, b), value)
        return sites[site, b]

    x = change(("tok_emb", None), w["tok_emb.weight"][ids])
    for b in range(cfg["n_layers"]):
        path = f"trf_blocks.{b}"
        x = at("resid_pre", b, x)
        y = normed(x, f"{path}.norm1.scale")
        q, k, v = (linear(y, f"{path}.att.W_{part}") for part in ("query", "key", "value"))
        q, k, v = (at(site, b, value) for site, value in (("q", q), ("k", k), ("v", v)))
        queries = q.split(d, dim=1)
        keys = k.split(d, dim=1)
        values = v.split(d, dim=1)
        if cfg["qk_norm"]:
            queries = [normed(rows, f"{path}.att.q_norm.scale") for rows in queries]
            keys = [normed(rows, f"{path}.att.k_norm.scale") for rows in keys]
        queries = at("q_rot", b, torch.stack([turned(rows) for rows in queries]))
        keys = at("k_rot", b, torch.stack([turned(rows) for rows in keys]))
        weights = []
        for head, rows in enumerate(queries):
            group = head * groups // heads  # 0 0 0 1 1 1 2 2 2
            scores = rows @ keys[group].T / d**0.5
            hidden = torch.ones(n, n).triu(1).bool()
            weights.append(scores.masked_fill(hidden, float("-inf")).softmax(-1))
        weights = at("attn", b, torch.stack(weights))
        z = [row @ values[head * groups // heads] for head, row in enumerate(weights)]
        z = at("z", b, torch.cat(z, dim=1))
        x = x + at("attn_out", b, linear(z, f"{path}.att.out_proj"))
        x = at("resid_mid", b, x)
        y = normed(x, f"{path}.norm2.scale")
        gate = at("mlp_gate", b, linear(y, f"{path}.ff.fc1"))
        up = at("mlp_up", b, linear(y, f"{path}.ff.fc2"))
        act = at("mlp_act", b, gate / (1 + (-gate).exp()) * up)
        x = x + at("mlp_out", b, linear(act, f"{path}.ff.fc3"))
        x = at("resid_post", b, x)
    at("final", None, normed(x, "final_norm.scale"))
    return sites | {"logits": sites["final", None] @ w["out_head.weight"].T}


def frequency(pair, d, cfg):
    """The radians a token of a pair, in float64, by the cases of Llama 3.1's own code."""
    plain = cfg["rope_base"] ** (-2 * pair / d)
    scaling = cfg.get("rope_freq")
    if scaling is None:
        return plain
    length = scaling["original_context_length"]
    wavelength = 2 * cmath.pi / plain
    if wavelength < length / scaling["high_freq_factor"]:
        return plain
    if wavelength > length / scaling["low_freq_factor"]:
        return plain / scaling["factor"]
    low = scaling["low_freq_factor"]
    smooth = (length / wavelength - low) / (scaling["high_freq_factor"] - low)
    return (1 - smooth) * plain / scaling["factor"] + smooth * plain


def test_the_scaling_that_is_compared_has_all_its_cases():
    cfg = llamas.book_config(llamas.random_model(rope_parameters=LLAMA3))
    plain = cfg | {"rope_freq": None}
    ratios = [frequency(pair, 8, plain) / frequency(pair, 8, cfg) for pair in range(4)]
    assert ratios[0] == 1 and 1 < ratios[1] < 8 and ratios[2] == ratios[3] == 8


@pytest.mark.parametrize(
    ("cfg", "total", "unique"),
    [
        (LLAMA32_CONFIG, 1_498_482_688, 1_235_814_400),
        (QWEN3_CONFIG, 751_632_384, 596_049_920),
    ],
)
def test_parameters_are_those_that_the_book_prints(cfg, total, unique):
    for tied, expected in ((False, total), (True, unique)):
        with torch.device("meta"):
            model = LlamaModel(cfg | {"tie_embeddings": tied})
        assert sum(p.numel() for p in model.parameters()) == expected
        assert LlamaConfig.from_dict(cfg | {"tie_embeddings": tied}).parameters == expected
        assert not [*model.buffers()]


@pytest.mark.parametrize(("family", "shape"), SHAPES, ids=str)
def test_a_config_counts_its_parameters(family, shape):
    theirs = llamas.random_model(family, **shape)
    config = LlamaConfig.from_dict(llamas.book_config(theirs))
    assert config.parameters == sum(p.numel() for p in theirs.parameters())


# ---- its modules ----


def test_rms_norm_is_its_formula():
    torch.manual_seed(0)
    x = torch.randn(3, 5, 48) * 3 + 1
    norm = RMSNorm(48, eps=1e-3)
    nn.init.normal_(norm.scale)
    exact = x.double()
    root = ((exact**2).sum(-1, keepdim=True) / 48 + 1e-3) ** 0.5
    torch.testing.assert_close(norm(x).double(), exact / root * norm.scale.double(), **CLOSE)
    # a factor is lost, a shift is not: the other way round than in a LayerNorm
    plain = RMSNorm(48, eps=1e-12)
    torch.testing.assert_close(plain(7 * x), plain(x), **CLOSE)
    assert (plain(x + 1) - plain(x)).abs().max() > 0.1
    assert plain(torch.zeros(1, 48)).abs().max() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rms_norm_is_transformers_also_in_16_bits(dtype):
    torch.manual_seed(0)
    theirs = modeling_llama.LlamaRMSNorm(48, eps=1e-5)
    ours = RMSNorm(48, eps=1e-5)
    nn.init.normal_(theirs.weight)
    ours.scale.data.copy_(theirs.weight)
    x = (torch.randn(3, 5, 48) * 3 + 1).to(dtype)
    torch.testing.assert_close(ours.to(dtype)(x), theirs.to(dtype)(x), atol=1e-6, rtol=0)


def test_the_feed_forward_is_transformers():
    theirs = llamas.random_model().model.layers[1].mlp
    ours = FeedForward({"emb_dim": 72, "hidden_dim": 192})
    for mine, linear in (("fc1", "gate_proj"), ("fc2", "up_proj"), ("fc3", "down_proj")):
        getattr(ours, mine).weight.data.copy_(getattr(theirs, linear).weight)
    x = torch.randn(2, 7, 72, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(ours(x), theirs(x), **CLOSE)
    assert not [name for name, _ in ours.named_parameters() if "bias" in name]


@pytest.mark.parametrize("rope", [{"rope_type": "default", "rope_theta": 500.0}, LLAMA3], ids=str)
def test_rope_is_transformers(rope):
    theirs = llamas.random_model(rope_parameters=rope)
    attention = LlamaModel(llamas.book_config(theirs)).trf_blocks[0].att
    rotary = theirs.model.rotary_emb
    q, k = torch.randn(2, 1, 9, 40, 8, generator=torch.Generator().manual_seed(0))
    cos, sin = rotary(q, torch.arange(40)[None])
    torch.testing.assert_close(torch.stack(attention.rope(40)), torch.cat([cos, sin]), **CLOSE)
    turned = modeling_llama.apply_rotary_pos_emb(q, k, cos, sin)
    for mine, expected in zip((q, k), turned, strict=True):
        torch.testing.assert_close(apply_rope(mine, *attention.rope(40)), expected, **CLOSE)
    # later tokens alone, as after a cache
    for part, whole in zip(attention.rope(5, before=35), attention.rope(40), strict=True):
        assert torch.equal(part, whole[35:])


def test_a_rotation_keeps_norms_and_scores_depend_on_distances_only():
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 1, 1, 64, generator=generator)
    cos, sin = compute_rope_params(64, 10_000.0, 50)
    queries, keys = (
        apply_rope(x.expand(1, 1, 50, 64), cos, sin)[0, 0] for x in (q, k)
    )  # the same one everywhere
    torch.testing.assert_close(queries.norm(dim=-1), q.norm().expand(50), **CLOSE)
    scores = queries @ keys.T  # (50, 50)
    for distance in range(-49, 50):
        along = scores.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand(len(along)), atol=1e-4, rtol=0)
    assert scores[0].std() > 1  # and on them they depend
    torch.testing.assert_close(queries[0], q[0, 0, 0])  # position 0 is where nothing is turned
    angle = torch.atan2(queries[1, 32], queries[1, 0]) - torch.atan2(q[0, 0, 0, 32], q[0, 0, 0, 0])
    torch.testing.assert_close(torch.remainder(angle, 2 * torch.pi), torch.tensor(1.0), **CLOSE)


@pytest.mark.parametrize("family", llamas.CLASSES)
def test_attention_is_transformers(family):
    theirs = llamas.random_model(family, 3, rope_parameters=LLAMA3)
    ours = llamas.ours_of(theirs).trf_blocks[2].att
    x = torch.randn(2, 20, 72, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        turns = theirs.model.rotary_emb(x, torch.arange(20)[None])
        hidden = torch.full((20, 20), float("-inf")).triu(1)[None, None]
        expected, weights = theirs.model.layers[2].self_attn(x, turns, hidden)
        seen = []
        ours.attn_weights.register_forward_hook(lambda m, i, out: seen.append(out))
        torch.testing.assert_close(ours(x), expected, **CLOSE)
    torch.testing.assert_close(seen[0], weights, **CLOSE)


def test_a_group_is_heads_side_by_side():
    """What the key and the value of group 1 of 3 change is what its heads give out, 3 to 5 of 9."""
    model = llamas.ours_of(llamas.random_model(seed=4))
    att = model.trf_blocks[0].att
    before = llamas.sites_of(model, IDS)
    with torch.no_grad():
        att.W_key.weight[8:16] *= -1
    turned = llamas.sites_of(model, IDS)
    moved = (turned["attn", 0] - before["attn", 0]).abs().amax(dim=(1, 2)) > 1e-3
    assert moved.nonzero().flatten().tolist() == [3, 4, 5]
    with torch.no_grad():
        att.W_value.weight[16:] *= -1
    again = llamas.sites_of(model, IDS)
    z = (again["z", 0] - turned["z", 0]).unflatten(1, (9, 8))
    assert (z.abs().amax(dim=(0, 2)) > 1e-3).nonzero().flatten().tolist() == [6, 7, 8]


def test_a_hook_at_an_identity_changes_what_follows():
    """Nothing passes by the named places: with them set to zero, attention knows neither q nor positions."""
    model = llamas.ours_of(llamas.random_model("qwen3", 5))
    att = model.trf_blocks[0].att
    for place in (att.rotated_queries, att.rotated_keys):
        handle = place.register_forward_hook(lambda m, i, out: torch.zeros_like(out))
        weights = llamas.sites_of(model, IDS)["attn", 0]
        handle.remove()
        for row in range(len(IDS)):
            torch.testing.assert_close(
                weights[:, row, : row + 1], torch.full((9, row + 1), 1 / (row + 1)), **CLOSE
            )
    handle = att.attn_weights.register_forward_hook(lambda m, i, out: torch.zeros_like(out))
    assert llamas.sites_of(model, IDS)["attn_out", 0].abs().max() == 0
    handle.remove()


def test_the_mask_hides_later_tokens_only():
    attention = GroupedQueryAttention(8, 2, 1, context_length=9)
    book = torch.triu(torch.ones(9, 9), diagonal=1).bool()
    for before in range(9):
        for count in range(1, 10 - before):
            wanted = book[before : before + count, : before + count]
            assert torch.equal(attention.mask(count, before), wanted)
    for made in (attention.mask, attention.rope):
        with pytest.raises(ValueError, match="10 tokens do not fit the context length of 9"):
            made(4, before=6)


# ---- what is refused ----


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        (torch.zeros(1, 25, dtype=torch.long), "25 tokens do not fit the context length of 24"),
        (torch.tensor([[0, 97]]), "ids 0 to 96"),
        (torch.tensor([[-1, 3]]), "from -1 to 3"),
        (torch.zeros(4, dtype=torch.long), r"\(batch, tokens\), got torch.int64 of shape \(4,\)"),
        (torch.zeros(1, 4), "torch.float32"),
        ([[1, 2]], "list"),
    ],
)
def test_wrong_input_is_a_sentence(ids, sentence):
    with pytest.raises(ValueError, match=sentence):
        LlamaModel(SMALL)(ids)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_heads": 5}, "5 heads cannot be divided among 2 groups: n_heads must be divisible"),
        ({"n_kv_groups": 0}, "4 heads cannot be divided among 0 groups"),
        ({"emb_dim": 33}, "33 dimensions cannot be divided among 4 heads: .* or head_dim be given"),
    ],
)
def test_sizes_that_do_not_fit_are_a_sentence(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        LlamaModel(SMALL | changes)


def test_pairs_need_an_even_head():
    with pytest.raises(ValueError, match="head_dim is 7; RoPE turns pairs"):
        LlamaModel(SMALL | {"head_dim": 7})(torch.tensor([[1]]))


def test_a_step_of_training_reaches_every_weight():
    model = LlamaModel(SMALL | {"qk_norm": True, "qkv_bias": True})
    model(torch.tensor([IDS])).square().sum().backward()
    for name, parameter in model.named_parameters():
        # the same bias in all keys changes no softmax, without RoPE; with it, it does
        assert parameter.grad.abs().max() > 0, name
