"""Models of the reader's own code, wrapped: the same numbers, or a sentence.

The first half is the book's chapters 3 and 4 as a reader has them in a file; nothing of it is gptviz'.
"""

import pytest
import tiktoken
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import gptviz
from gptviz import CheckpointError
from gptviz.tokenizer import GPT2_PATTERN
from tests.checkpoints import makers
from tests.conftest import random_lm

CONFIG = {
    "vocab_size": 300, "context_length": 32, "emb_dim": 24, "n_heads": 3, "n_layers": 2,
    "drop_rate": 0.1, "qkv_bias": False,
}  # fmt: skip
BYTES = tiktoken.Encoding(
    "bytes", pat_str=GPT2_PATTERN, mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens={}
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
        self.layers = nn.Sequential(nn.Linear(cfg["emb_dim"], wide), gelu(), nn.Linear(wide, cfg["emb_dim"]))

    def forward(self, x):
        return self.layers(x)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out, self.num_heads, self.head_dim = d_out, num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        b, num_tokens, _ = x.shape
        split = (b, num_tokens, self.num_heads, self.head_dim)
        keys = self.W_key(x).view(split).transpose(1, 2)
        queries = self.W_query(x).view(split).transpose(1, 2)
        values = self.W_value(x).view(split).transpose(1, 2)
        scores = queries @ keys.transpose(2, 3)
        scores.masked_fill_(self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        weights = self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))
        return self.out_proj((weights @ values).transpose(1, 2).contiguous().view(b, num_tokens, self.d_out))


class TransformerBlock(nn.Module):
    def __init__(self, cfg, gelu=GELU):
        super().__init__()
        sizes = cfg["emb_dim"], cfg["emb_dim"], cfg["context_length"], cfg["drop_rate"], cfg["n_heads"]
        self.att = MultiHeadAttention(*sizes, cfg["qkv_bias"])
        self.ff = FeedForward(cfg, gelu)
        self.norm1, self.norm2 = LayerNorm(cfg["emb_dim"]), LayerNorm(cfg["emb_dim"])
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
        self.trf_blocks = nn.Sequential(*[TransformerBlock(cfg, gelu) for _ in range(cfg["n_layers"])])
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
    byte_level = Tokenizer(models.BPE({c: i for i, c in enumerate(pre_tokenizers.ByteLevel.alphabet())}, []))
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for tokenizer in (byte_level, PreTrainedTokenizerFast(tokenizer_object=byte_level)):
        lm = gptviz.wrap(model, tokenizer)
        assert lm.encode("Aé") == byte_level.encode("Aé").ids
        is_the_same(lm, model)


def test_ours_is_taken_as_it_is():
    lm = random_lm(n_heads=2, tie_embeddings=True, norm_eps=1e-4)
    again = gptviz.wrap(lm.model, lm.tokenizer)
    assert again.model is lm.model and again.config == lm.config


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
    scaled = GPT2Config(vocab_size=300, n_embd=24, n_layer=1, n_head=3, scale_attn_by_inverse_layer_idx=True)
    for model, options, says in (
        ("mini", {}, "'mini' is no model: give an nn.Module, or gptviz.load"),
        (nn.Linear(2, 2), {}, r"Linear has tensors of no model known here, such as bias, weight; known are"),
        (gpt2.transformer, {}, "GPT2Model has tensors of no model known here"),
        (GPT2LMHeadModel(scaled), {}, "scale_attn_by_inverse_layer_idx"),
        (gpt2, {"n_heads": 2}, "has 4 heads, not 2: leave n_heads out"),
        (GPTModel(CONFIG), {"n_heads": 4}, "has 3 heads, not 4"),
        (odd, {}, r"pos_emb.weight has the shape \(32, 25\)"),
        (Doubled(CONFIG), {}, r"Doubled gives other logits than its weights do in GPTModel \(by up to "),
        (Broken(CONFIG), {}, "Broken cannot be run on 8 token ids: 'labels'"),
    ):
        with pytest.raises(CheckpointError, match=says):
            gptviz.wrap(model, BYTES, **options)
    with pytest.raises(CheckpointError, match=r"vocabulary of 300 is not GPT-2's: say which it is"):
        gptviz.wrap(GPTModel(CONFIG))
    with pytest.raises(CheckpointError, match=r"already is wrapped: gptviz\.wrap\(model, tokenizer\)"):
        gptviz.load(GPTModel(CONFIG))


def test_a_model_that_does_not_say_its_heads_is_asked_for_them():
    model = GPTModel(CONFIG)
    for block in model.trf_blocks:
        heads = block.att.__dict__.pop("num_heads")
        block.att.forward = lambda x, att=block.att, heads=heads: attended(att, x, heads)
    with pytest.raises(CheckpointError, match=r"does not say how many attention heads .*n_heads=\.\.\."):
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
