"""Models of the reader's own code, wrapped: the same numbers, or a sentence.

The first half is the book's chapters 3 and 4 as a reader has them in a file; nothing of it is gptviz'.
"""

import copy
from types import SimpleNamespace

import pytest
import tiktoken
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import (
    GPT2Config,
    GPT2ForSequenceClassification,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

import gptviz
from gptviz import CheckpointError
from gptviz.tokenizer import GPT2_PATTERN
from tests.conftest import random_lm
from tests.models.checkpoints import makers

CONFIG = {
    "vocab_size": 300, "context_length": 32, "emb_dim": 24, "n_heads": 3, "n_layers": 2,
    "drop_rate": 0.1, "qkv_bias": False,
}  # fmt: skip
BYTES = tiktoken.Encoding(
    "bytes",
    pat_str=GPT2_PATTERN,
    mergeable_ranks={bytes([i]): i for i in range(256)},
    special_tokens={},
)
IDS = [7, 299, 0, 150, 7]


class LayerNorm(nn.Module):
    def __init__(self, emb_dim):
        super().__init__()
        self.eps = 1e-5
        self.scale = nn.Parameter(torch.ones(emb_dim))
        self.shift = nn.Parameter(torch.zeros(emb_dim))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.scale * (x - mean) / torch.sqrt(var + self.eps) + self.shift


class GELU(nn.Module):
    def forward(self, x):
        inner = torch.sqrt(torch.tensor(2.0 / torch.pi)) * (x + 0.044715 * torch.pow(x, 3))
        return 0.5 * x * (1 + torch.tanh(inner))


class FeedForward(nn.Module):
    def __init__(self, cfg, gelu=GELU):
        super().__init__()
        wide = 4 * cfg["emb_dim"]
        self.layers = nn.Sequential(
            nn.Linear(cfg["emb_dim"], wide), gelu(), nn.Linear(wide, cfg["emb_dim"])
        )

    def forward(self, x):
        return self.layers(x)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, _ = x.shape
        split = (b, num_tokens, self.num_heads, self.head_dim)
        keys = self.W_key(x).view(split).transpose(1, 2)
        queries = self.W_query(x).view(split).transpose(1, 2)
        values = self.W_value(x).view(split).transpose(1, 2)
        scores = queries @ keys.transpose(2, 3)
        scores.masked_fill_(self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        weights = self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))
        return self.out_proj(
            (weights @ values).transpose(1, 2).contiguous().view(b, num_tokens, self.d_out)
        )


class TransformerBlock(nn.Module):
    def __init__(self, cfg, gelu=GELU):
        super().__init__()
        sizes = (
            cfg["emb_dim"],
            cfg["emb_dim"],
            cfg["context_length"],
            cfg["drop_rate"],
            cfg["n_heads"],
        )
        self.att = MultiHeadAttention(*sizes, cfg["qkv_bias"])
        self.ff = FeedForward(cfg, gelu)
        self.norm1 = LayerNorm(cfg["emb_dim"])
        self.norm2 = LayerNorm(cfg["emb_dim"])
        self.drop_shortcut = nn.Dropout(cfg["drop_rate"])

    def forward(self, x):
        x = x + self.drop_shortcut(self.att(self.norm1(x)))
        return x + self.drop_shortcut(self.ff(self.norm2(x)))


class GPTModel(nn.Module):
    def __init__(self, cfg, gelu=GELU):
        super().__init__()
        self.tok_emb = nn.Embedding(cfg["vocab_size"], cfg["emb_dim"])
        self.pos_emb = nn.Embedding(cfg["context_length"], cfg["emb_dim"])
        self.drop_emb = nn.Dropout(cfg["drop_rate"])
        self.trf_blocks = nn.Sequential(
            *[TransformerBlock(cfg, gelu) for _ in range(cfg["n_layers"])]
        )
        self.final_norm = LayerNorm(cfg["emb_dim"])
        self.out_head = nn.Linear(cfg["emb_dim"], cfg["vocab_size"], bias=False)

    def forward(self, in_idx):
        x = self.tok_emb(in_idx) + self.pos_emb(torch.arange(in_idx.shape[1], device=in_idx.device))
        return self.out_head(self.final_norm(self.trf_blocks(self.drop_emb(x))))


# ---- wrapped ----


def is_the_same(lm, model):
    """Its logits are those of the model's own forward, which stands as it stood."""
    training = [module.training for module in model.modules()]
    with torch.no_grad():
        out = model.eval()(torch.tensor([IDS]))
    for module, before in zip(model.modules(), training, strict=True):
        module.training = before
    assert torch.allclose(lm.trace(IDS).logits(), getattr(out, "logits", out)[0], atol=1e-5)


@pytest.mark.parametrize("change", [{}, {"qkv_bias": True, "drop_rate": 0.0, "n_heads": 6}])
def test_the_books_own_model_from_the_readers_file(change):
    model = GPTModel(CONFIG | change).train()
    lm = gptviz.wrap(model, BYTES)
    assert {**lm.config.to_dict(), **CONFIG, **change} == lm.config.to_dict()
    assert all(module.training for module in model.modules()) and lm.name == "GPTModel"
    is_the_same(lm, model)
    with torch.no_grad():
        model.out_head.weight.mul_(2)  # trained on: what was wrapped is what it was
    assert not torch.allclose(lm.model.out_head.weight, model.out_head.weight)
    is_the_same(gptviz.wrap(model, BYTES, name="mine"), model)


def test_what_stands_in_no_shape_is_read_from_the_modules():
    model = GPTModel(CONFIG, nn.GELU)
    for module in model.modules():
        if isinstance(module, LayerNorm):
            module.eps = 1e-3
    lm = gptviz.wrap(model, BYTES)
    assert (lm.config.activation, lm.config.norm_eps, lm.config.n_heads) == ("gelu", 1e-3, 3)
    is_the_same(lm, model)


@pytest.mark.parametrize("make", [makers.hf_model, makers.neo_model])
def test_of_transformers(make):
    model = make(vocab_size=300)
    byte_level = Tokenizer(
        models.BPE({c: i for i, c in enumerate(pre_tokenizers.ByteLevel.alphabet())}, [])
    )
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for tokenizer in (byte_level, PreTrainedTokenizerFast(tokenizer_object=byte_level)):
        lm = gptviz.wrap(model, tokenizer)
        assert lm.encode("Aé") == byte_level.encode("Aé").ids
        is_the_same(lm, model)


def test_ours_is_taken_as_it_is():
    lm = random_lm(n_heads=2, tie_embeddings=True, norm_eps=1e-4)
    again = gptviz.wrap(lm.model, lm.tokenizer)
    assert again.model is lm.model and again.config == lm.config


# ---- nanoGPT's, as it is in memory ----


class NanoAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.c_attn = nn.Linear(cfg.n_embd, 3 * cfg.n_embd, bias=cfg.bias)
        self.c_proj = nn.Linear(cfg.n_embd, cfg.n_embd, bias=cfg.bias)
        self.register_buffer("bias", torch.ones(1, 1, cfg.block_size, cfg.block_size).tril())

    def forward(self, x):
        b, t, width = x.shape
        heads = (
            self.c_attn(x).view(b, t, 3, self.n_head, width // self.n_head).permute(2, 0, 3, 1, 4)
        )
        made = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.c_proj(made.transpose(1, 2).reshape(b, t, width))


class NanoMLP(nn.Module):
    def __init__(self, cfg, gelu):
        super().__init__()
        self.c_fc = nn.Linear(cfg.n_embd, 4 * cfg.n_embd, bias=cfg.bias)
        self.c_proj = nn.Linear(4 * cfg.n_embd, cfg.n_embd, bias=cfg.bias)
        self.dropout = nn.Dropout(0.2)
        self.gelu = gelu  # a module, or a function as in January 2023

    def forward(self, x):
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class NanoBlock(nn.Module):
    def __init__(self, cfg, gelu):
        super().__init__()
        self.ln_1 = nn.LayerNorm(cfg.n_embd, bias=cfg.bias)
        self.attn = NanoAttention(cfg)
        self.ln_2 = nn.LayerNorm(cfg.n_embd, bias=cfg.bias)
        self.mlp = NanoMLP(cfg, gelu)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """The names of nanoGPT; without targets it gives the last token's logits only, and no loss."""

    def __init__(self, gelu, tied=True, **changes):
        super().__init__()
        sizes = {
            "block_size": 32,
            "vocab_size": 300,
            "n_layer": 2,
            "n_head": 3,
            "n_embd": 24,
            "bias": True,
        }
        self.config = cfg = SimpleNamespace(**sizes | changes)
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(cfg.vocab_size, cfg.n_embd),
                "wpe": nn.Embedding(cfg.block_size, cfg.n_embd),
                "h": nn.ModuleList(NanoBlock(cfg, gelu) for _ in range(cfg.n_layer)),
                "ln_f": nn.LayerNorm(cfg.n_embd, bias=cfg.bias),
            }
        )
        self.lm_head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)
        if tied:
            self.transformer.wte.weight = self.lm_head.weight
        makers.randomly(self, 0)

    def forward(self, idx, targets=None):
        x = self.transformer.wte(idx) + self.transformer.wpe(torch.arange(idx.shape[1]))
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x)[:, [-1]]), None


def new_gelu(x):
    return (
        0.5 * x * (1.0 + torch.tanh((2.0 / torch.pi) ** 0.5 * (x + 0.044715 * torch.pow(x, 3.0))))
    )


@pytest.mark.parametrize(
    ("gelu", "activation", "options"),
    [
        (nn.GELU(), "gelu", {}),
        (nn.GELU(), "gelu", {"bias": False}),
        (new_gelu, "gelu_tanh", {}),
        (nn.functional.gelu, "gelu", {"n_head": 6}),
        (nn.GELU(approximate="tanh"), "gelu_tanh", {}),  # build-nanogpt
        (GELU(), "gelu_tanh", {"tied": False}),  # minGPT
    ],
)
def test_nanogpts_own_model(gelu, activation, options):
    """Which GELU it has is seen while it runs: the two are further apart than what is allowed here."""
    model = GPT(gelu, **options).train()
    lm = gptviz.wrap(model, BYTES)
    assert lm.config.activation == activation and model.training
    assert lm.config.n_heads == options.get("n_head", 3)
    assert lm.config.tie_embeddings == options.get("tied", True)
    assert lm.config.norm_bias == lm.config.qkv_bias == options.get("bias", True)
    with torch.no_grad():
        logits, _ = model.eval()(torch.tensor([IDS]))
    assert torch.allclose(lm.trace(IDS).logits(-1), logits[0, -1], atol=1e-5)


def test_which_gelu_is_read_from_the_modules_where_16_bits_hide_it():
    for gelu, activation in ((new_gelu, "gelu_tanh"), (nn.GELU(), "gelu")):
        assert gptviz.wrap(GPT(gelu).bfloat16(), BYTES).config.activation == activation


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_of_another_type_of_numbers(dtype):
    near = 1e-5 if dtype == torch.float64 else 0.05
    for model in (GPTModel(CONFIG).to(dtype), copy.deepcopy(ours_of_300()).to(dtype)):
        lm = gptviz.wrap(model, BYTES)
        with torch.no_grad():
            expected = model.eval()(torch.tensor([IDS]))[0]
        assert torch.allclose(lm.trace(IDS).logits().float(), expected.float(), atol=near)


def test_a_wrapped_model_is_left_as_it_was():
    """Its modes, its hooks, its gradients; a hook that only looks is no reason to refuse it."""
    for make in (lambda: GPTModel(CONFIG), ours_of_300, lambda: GPT(new_gelu), makers.hf_model):
        model = make().train()
        seen = []
        next(model.children()).eval()
        model.register_forward_hook(lambda *_, seen=seen: seen.append(1))
        before = state_of(model)
        gptviz.wrap(
            model, BYTES if "tok_emb" in dict(model.named_children()) else characters(model)
        )
        assert state_of(model) == before and seen


def state_of(model):
    hooks = [[*module._forward_hooks, *module._forward_pre_hooks] for module in model.modules()]
    weights = [(p.requires_grad, p.grad, p._version, p.data_ptr()) for p in model.parameters()]
    return [module.training for module in model.modules()], hooks, weights


def characters(model):
    """An encoding of as many tokens as the model has."""
    size = model.config.vocab_size
    ranks = {bytes([i]): i for i in range(min(256, size))} | {
        b"%d" % i: i for i in range(256, size)
    }
    return tiktoken.Encoding("own", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={})


# ---- or a sentence ----


class Doubled(GPTModel):
    """Has all tensors of the book's model, and does something else with them."""

    def forward(self, in_idx):
        return 2 * super().forward(in_idx)


class Broken(GPTModel):
    def forward(self, in_idx):
        raise KeyError("labels")


def test_what_cannot_be_wrapped_is_a_sentence():
    odd = GPTModel(CONFIG)
    odd.pos_emb = nn.Embedding(32, 25)
    gpt2 = makers.hf_model()
    crossed = GPT2Config(vocab_size=300, n_embd=24, n_layer=1, n_head=3, add_cross_attention=True)
    for model, options, says in (
        ("mini", {}, "'mini' is no model: give an nn.Module, or gptviz.load"),
        (
            nn.Linear(2, 2),
            {},
            r"Linear has tensors of no model known here, such as bias, weight; known are",
        ),
        (GPT2LMHeadModel(crossed), {}, "add_cross_attention"),
        (gpt2, {"n_heads": 2}, "has 4 heads, not 2: leave n_heads out"),
        (GPTModel(CONFIG), {"n_heads": 4}, "has 3 heads, not 4"),
        (odd, {}, r"pos_emb.weight has the shape \(32, 25\)"),
        (
            Doubled(CONFIG),
            {},
            r"Doubled gives other logits than its weights do in GPTModel \(by up to ",
        ),
        (Broken(CONFIG), {}, "Broken cannot be run on 8 token ids: 'labels'"),
    ):
        with pytest.raises(CheckpointError, match=says):
            gptviz.wrap(model, BYTES, **options)
    with pytest.raises(CheckpointError, match=r"vocabulary of 300 is not GPT-2's: say which it is"):
        gptviz.wrap(GPTModel(CONFIG))
    with pytest.raises(
        CheckpointError, match=r"already is wrapped: gptviz\.wrap\(model, tokenizer\)"
    ):
        gptviz.load(GPTModel(CONFIG))


class WithoutConfig(GPTModel):
    @property
    def config(self):
        raise RuntimeError("not configured yet")


class WithoutState(GPTModel):
    def state_dict(self, *args, **options):
        raise OSError("its weights are on the disk")


class OnlyALoss(GPTModel):
    def forward(self, in_idx):
        return {"loss": super().forward(in_idx).mean()}


class OneRowATextOnly(GPTModel):
    def forward(self, in_idx):
        return super().forward(in_idx).mean(dim=1)


class ConfigAndHead(nn.Module):
    """As many classes are that are no GPT-2."""

    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(n_embd=4)
        self.lm_head = nn.Linear(4, 4, bias=False)


def ours_of_300(change=None, **options):
    model = copy.deepcopy(random_lm(vocab_size=300, **options).model)
    if change is not None:
        change(model)
    return model


def with_head(head):
    return ours_of_300(lambda model: setattr(model, "out_head", head))


def with_gelu(kind, blocks=slice(None)):
    return ours_of_300(
        lambda model: [setattr(b.ff.layers, "1", kind()) for b in model.trf_blocks[blocks]]
    )


def quantised(model):
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear})


def partly_on_meta(model):
    model.trf_blocks[1].ff.to("meta")
    return model


def doubling(_module, _given, output):
    return 2 * output


def hooked(model):
    model.trf_blocks[0].register_forward_hook(doubling)
    return model


@pytest.mark.parametrize(
    ("make", "says"),
    [
        # of ours, which was taken as it is: classes were shown as tokens, a head's bias was left out
        (
            lambda: with_head(nn.Linear(32, 2)),
            r"(?s)is a classifier of the book.*= model\.state_dict\(\)",
        ),
        (lambda: with_head(nn.Linear(32, 2, bias=False)), "is a classifier of the book"),
        (
            lambda: with_head(nn.Linear(32, 400)),
            "gives 400 numbers at each place .* and has 300 tokens",
        ),
        (
            lambda: with_head(nn.Linear(32, 300)),
            r"has out_head\.bias, which such a model does not have",
        ),
        (lambda: with_gelu(nn.ReLU), "gives other logits"),
        (lambda: with_gelu(nn.SiLU, slice(1)), "gives other logits"),
        (lambda: with_gelu(nn.GELU, slice(1)), "exact GELU in some of its blocks"),
        (lambda: hooked(ours_of_300()), "gives other logits .* or with its forward hooks"),
        (lambda: hooked(GPTModel(CONFIG)), "gives other logits .* or with its forward hooks"),
        # of which there are no plain numbers
        (lambda: ours_of_300().to("meta"), "has weights on the device meta"),
        (lambda: GPTModel(CONFIG).to("meta"), "has weights on the device meta"),
        (lambda: makers.hf_model().to("meta"), "has weights on the device meta"),
        (lambda: partly_on_meta(GPTModel(CONFIG)), r"meta \(trf_blocks\.1\.ff"),
        (lambda: quantised(ours_of_300()), "has quantised layers"),
        (lambda: quantised(GPTModel(CONFIG)), "has quantised layers"),
        (lambda: quantised(GPT(nn.GELU())), "has quantised layers"),
        # whose own code fails, or gives something else
        (lambda: WithoutConfig(CONFIG), "RuntimeError: not configured yet"),
        (lambda: WithoutState(CONFIG), "OSError: its weights are on the disk"),
        (lambda: OnlyALoss(CONFIG), "gives no tensor for 8 tokens"),
        (lambda: OneRowATextOnly(CONFIG), r"gives a tensor of \(1, 300\) for 8 tokens"),
        (ConfigAndHead, r"has tensors of no model known here, such as lm_head\.weight"),
        (lambda: nn.Sequential(nn.LazyLinear(3)), "cannot be read"),
        (lambda: GPT(nn.ReLU()), "gives other logits"),
        (lambda: GPT2ForSequenceClassification(GPT2Config(**makers.SIZES)), r"has score\.weight"),
    ],
)
def test_whatever_is_wrong_with_a_model_is_a_sentence(make, says):
    with pytest.raises(CheckpointError, match=says):
        gptviz.wrap(make(), BYTES)


def test_a_classifier_is_no_language_model_however_it_is_made():
    lm = random_lm(vocab_size=300)
    with pytest.raises(ValueError, match="the config has vocab_size 300, and the model 2"):
        gptviz.LanguageModel(with_head(nn.Linear(32, 2)), lm.tokenizer, lm.config, "classes")


def test_a_model_that_does_not_say_its_heads_is_asked_for_them():
    model = GPTModel(CONFIG)
    for block in model.trf_blocks:
        heads = block.att.__dict__.pop("num_heads")
        block.att.forward = lambda x, att=block.att, heads=heads: attended(att, x, heads)
    with pytest.raises(
        CheckpointError, match=r"does not say how many attention heads .*n_heads=\.\.\."
    ):
        gptviz.wrap(model, BYTES)
    is_the_same(gptviz.wrap(model, BYTES, n_heads=3), model)
    with pytest.raises(CheckpointError, match="with another number of heads"):
        gptviz.wrap(model, BYTES, n_heads=6)


def attended(att, x, heads):
    """The attention's forward, with the number of heads from outside."""
    att.__dict__["num_heads"] = heads
    try:
        return MultiHeadAttention.forward(att, x)
    finally:
        del att.__dict__["num_heads"]
