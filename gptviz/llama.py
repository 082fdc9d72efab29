"""Llama and its relatives, as in the bonus code of "Build a Large Language Model (From Scratch)".

The names and the arithmetic are those of the book's repository, chapter 5: "From GPT to Llama" and "Qwen3
From Scratch". Read it beside `model.py`: the blocks, the shortcuts, the final norm and the output head are
GPT-2's. Five things are not:

    position       GPT-2 adds a vector for each position once; here every block rotates queries and keys
    norm           RMSNorm divides by the root of the mean square: no mean, no shift
    heads          a group of query heads shares a key and a value
    feed-forward   two layers side by side, whose outputs are multiplied: SwiGLU
    biases         none

Where this file differs from the book's, a comment says so and why. Nothing of it depends on the length of
the context: cosines, sines and masks are made for a text's own length.

Shapes in comments: b batch, T tokens, D emb_dim, H heads, K groups of heads, d head_dim, F hidden_dim,
V vocabulary.

`cfg` is the book's dict, or anything else that is indexed by the same names (our `LlamaConfig`). Its
`dtype` is not read: `model.to(torch.bfloat16)` does the same. Keys that a dict may leave out:

    head_dim         None     the width of a head where it is not emb_dim / n_heads, as in Qwen3
    qk_norm          False    whether each head's queries and keys are normalised, as in Qwen3
    qkv_bias         False    whether queries, keys and values have a bias, as in Qwen2
    rope_freq        None     the four numbers by which Llama 3.1 slows down slow rotations
    tie_embeddings   False    out_head shares its weight with tok_emb
    norm_eps         1e-5     the RMSNorms' epsilon: Llama 3's

References:
  Touvron et al., LLaMA: Open and Efficient Foundation Language Models, 2023
  Grattafiori et al., The Llama 3 Herd of Models, 2024
  Yang et al., Qwen2 Technical Report, 2024, and Qwen3 Technical Report, 2025
  Raschka, Build a Large Language Model (From Scratch), Manning 2024: its repository, ch05/07 and ch05/11
"""

import torch
import torch.nn.functional as F
from torch import nn

LLAMA32_CONFIG = {  # Llama 3.2 1B
    "vocab_size": 128_256,  # Vocabulary size
    "context_length": 131_072,  # Context length
    "emb_dim": 2048,  # Embedding dimension
    "n_heads": 32,  # Number of attention heads
    "n_layers": 16,  # Number of layers
    "hidden_dim": 8192,  # Width of the feed-forward layers
    "n_kv_groups": 8,  # Number of keys and values, each for a group of heads
    "rope_base": 500_000.0,  # Base of RoPE's frequencies
    "rope_freq": {  # Scaling of RoPE's frequencies
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_context_length": 8192,
    },
}

QWEN3_CONFIG = {  # Qwen3 0.6B
    "vocab_size": 151_936,
    "context_length": 40_960,
    "emb_dim": 1024,
    "n_heads": 16,
    "n_layers": 28,
    "hidden_dim": 3072,
    "head_dim": 128,
    "qk_norm": True,
    "n_kv_groups": 8,
    "rope_base": 1_000_000.0,
    "norm_eps": 1e-6,  # in the book's Qwen3 the default of its RMSNorm
}


class RMSNorm(nn.Module):
    """Each token's numbers, divided by the root of their mean square, then learnably rescaled.

    Zhang & Sennrich, Root Mean Square Layer Normalization, 2019. (..., D) -> (..., D).
    """

    def __init__(self, emb_dim, eps=1e-5):
        super().__init__()
        self.eps = eps  # keeps the division finite where all numbers are 0
        self.scale = nn.Parameter(torch.ones(emb_dim))

    def forward(self, x):
        exact = x.float()  # squares of 16-bit numbers lose too much
        mean_square = exact.pow(2).mean(dim=-1, keepdim=True)
        norm_x = exact * torch.rsqrt(mean_square + self.eps)
        return self.scale * norm_x.to(x.dtype)


class FeedForward(nn.Module):
    """Each token by itself: D -> F twice, a gate and what it lets through, F -> D. (b, T, D) -> (b, T, D).

    SwiGLU of Shazeer, GLU Variants Improve Transformer, 2020. silu(x) is x * sigmoid(x).
    """

    def __init__(self, cfg):
        super().__init__()
        self.fc1 = nn.Linear(cfg["emb_dim"], cfg["hidden_dim"], bias=False)  # the gate
        self.fc2 = nn.Linear(cfg["emb_dim"], cfg["hidden_dim"], bias=False)  # what it is for
        self.fc3 = nn.Linear(cfg["hidden_dim"], cfg["emb_dim"], bias=False)

    def forward(self, x):
        gate = F.silu(self.fc1(x))  # (b, T, F)
        return self.fc3(gate * self.fc2(x))


def compute_rope_params(
    head_dim, theta_base=10_000.0, context_length=4096, freq_config=None, device=None
):
    """The cosines and sines of RoPE's angles: two of (context_length, d), float32.

    Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021. Of a head's d numbers,
    number i and number i + d/2 are a pair, the two coordinates of a point in a plane. At position p it is
    turned by the angle p * theta_base^(-2i/d): pair 0 by one radian a token, the later ones more slowly.
    """
    if head_dim % 2 != 0:
        raise ValueError(f"head_dim is {head_dim}; RoPE turns pairs, so it must be even")
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32, device=device) / head_dim
    inv_freq = 1.0 / theta_base**exponents  # (d/2,): radians a token
    if freq_config is not None:
        inv_freq = scaled_frequencies(inv_freq, freq_config)
    positions = torch.arange(context_length, dtype=torch.float32, device=device)
    angles = positions[:, None] * inv_freq  # (context_length, d/2)
    # (context_length, d/2) -> (context_length, d): one for each number of a pair
    angles = torch.cat([angles, angles], dim=1)
    return torch.cos(angles), torch.sin(angles)


def scaled_frequencies(inv_freq, freq_config):
    """Llama 3.1's way to a longer context: slow rotations become slower. (d/2,) -> (d/2,).

    A pair that turns at least `high_freq_factor` times in the original context keeps its frequency; one that
    turns at most `low_freq_factor` times gets it divided by `factor`; in between the two are mixed.
    Part of `compute_rope_params` in the book.
    """
    low = freq_config["low_freq_factor"]
    high = freq_config["high_freq_factor"]
    turns = freq_config["original_context_length"] * inv_freq / (2 * torch.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)  # 1 for a fast pair, 0 for a slow one
    return kept * inv_freq + (1 - kept) * inv_freq / freq_config["factor"]


def apply_rope(x, cos, sin):
    """Turn each pair of `x` by the angle of its position. (b, heads, T, d) -> (b, heads, T, d).

    `cos` and `sin` are the rows of `compute_rope_params` for these T positions, (T, d).
    """
    half = x.shape[-1] // 2
    quarter_turn = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return (x * cos + quarter_turn * sin).to(x.dtype)


class GroupedQueryAttention(nn.Module):
    """Causal self-attention with RoPE; a group of heads shares a key and a value. (b, T, D) -> (b, T, D).

    Ainslie et al., GQA: Training Generalized Multi-Query Transformer Models, 2023.

    What no layer gives out by itself passes through an `nn.Identity`, where a hook can see it: the rotated
    queries (b, H, T, d), the rotated keys (b, K, T, d), and the attention weights (b, H, T, T).
    """

    def __init__(
        self,
        d_in,
        num_heads,
        num_kv_groups,
        context_length,
        head_dim=None,
        qk_norm=False,
        qkv_bias=False,
        rope_base=10_000.0,
        rope_freq=None,
        norm_eps=1e-5,
    ):
        super().__init__()
        if num_kv_groups < 1 or num_heads % num_kv_groups != 0:
            raise ValueError(
                f"{num_heads} heads cannot be divided among {num_kv_groups} groups: "
                f"n_heads must be divisible by n_kv_groups"
            )
        if head_dim is None:
            if d_in % num_heads != 0:
                raise ValueError(
                    f"{d_in} dimensions cannot be divided among {num_heads} heads: "
                    f"emb_dim must be divisible by n_heads, or head_dim be given"
                )
            head_dim = d_in // num_heads
        self.num_heads = num_heads
        self.num_kv_groups = num_kv_groups
        self.group_size = num_heads // num_kv_groups
        self.head_dim = head_dim
        self.d_out = num_heads * head_dim
        self.context_length = context_length
        self.rope_base = rope_base
        self.rope_freq = rope_freq

        self.W_query = nn.Linear(d_in, self.d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, num_kv_groups * head_dim, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, num_kv_groups * head_dim, bias=qkv_bias)
        self.out_proj = nn.Linear(self.d_out, d_in, bias=False)  # combines the heads' outputs
        self.q_norm = RMSNorm(head_dim, norm_eps) if qk_norm else None
        self.k_norm = RMSNorm(head_dim, norm_eps) if qk_norm else None
        self.rotated_queries = nn.Identity()
        self.rotated_keys = nn.Identity()
        self.attn_weights = nn.Identity()

    def mask(self, num_tokens, before=0, device=None):
        """The causal mask, True where a key comes after its query: (num_tokens, before + num_tokens).

        As in `model.py`. `before` counts keys of earlier tokens, which every query may see.
        """
        num_keys = self.check(before + num_tokens)
        ones = torch.ones(num_tokens, num_keys, dtype=torch.bool, device=device)
        return torch.triu(ones, diagonal=before + 1)

    def rope(self, num_tokens, before=0, device=None):
        """The cosines and sines of `num_tokens` positions after `before` others: two of (num_tokens, d).

        Made in every block, unlike the book's, where the model has them for its whole context and hands
        them down: so a block is a function of `x` alone, and can be run by itself.
        """
        length = self.check(before + num_tokens)
        cos, sin = compute_rope_params(
            self.head_dim, self.rope_base, length, self.rope_freq, device
        )
        return cos[before:], sin[before:]

    def check(self, num_tokens):
        """The number of tokens as it is. Raises ValueError if the context is shorter."""
        if num_tokens > self.context_length:
            raise ValueError(
                f"{num_tokens} tokens do not fit the context length of {self.context_length}"
            )
        return num_tokens

    def forward(self, x):
        b, num_tokens, _ = x.shape

        queries = self.W_query(x)  # (b, T, H * d)
        keys = self.W_key(x)  # (b, T, K * d)
        values = self.W_value(x)  # (b, T, K * d)

        # split among the heads, or the groups: (b, T, H * d) -> (b, T, H, d) -> (b, H, T, d)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        # (b, T, K * d) -> (b, T, K, d) -> (b, K, T, d)
        keys = keys.view(b, num_tokens, self.num_kv_groups, self.head_dim).transpose(1, 2)
        values = values.view(b, num_tokens, self.num_kv_groups, self.head_dim).transpose(1, 2)

        if self.q_norm is not None:
            queries = self.q_norm(queries)
            keys = self.k_norm(keys)

        cos, sin = self.rope(num_tokens, device=x.device)  # (T, d) each
        queries = self.rotated_queries(apply_rope(queries, cos, sin))
        keys = self.rotated_keys(apply_rope(keys, cos, sin))

        # (b, K, T, d) -> (b, H, T, d): the heads of a group stand side by side, 0 0 0 1 1 1
        keys = keys.repeat_interleave(self.group_size, dim=1)
        values = values.repeat_interleave(self.group_size, dim=1)

        attn_scores = queries @ keys.transpose(2, 3)  # (b, H, T, T): one dot product a pair
        attn_scores.masked_fill_(self.mask(num_tokens, device=x.device), -torch.inf)
        attn_weights = torch.softmax(attn_scores / self.head_dim**0.5, dim=-1)  # rows sum to 1
        attn_weights = self.attn_weights(attn_weights)

        context_vec = (attn_weights @ values).transpose(1, 2)  # (b, T, H, d)
        # (b, T, H * d): heads side by side
        context_vec = context_vec.reshape(b, num_tokens, self.d_out)
        return self.out_proj(context_vec)


class TransformerBlock(nn.Module):
    """Attention, then feed-forward, each behind an RMSNorm and added back. (b, T, D) -> (b, T, D)."""

    def __init__(self, cfg):
        super().__init__()
        eps = cfg.get("norm_eps", 1e-5)
        self.att = GroupedQueryAttention(
            d_in=cfg["emb_dim"],
            num_heads=cfg["n_heads"],
            num_kv_groups=cfg["n_kv_groups"],
            context_length=cfg["context_length"],
            head_dim=cfg.get("head_dim"),
            qk_norm=cfg.get("qk_norm", False),
            qkv_bias=cfg.get("qkv_bias", False),
            rope_base=cfg["rope_base"],
            rope_freq=cfg.get("rope_freq"),
            norm_eps=eps,
        )
        self.ff = FeedForward(cfg)
        self.norm1 = RMSNorm(cfg["emb_dim"], eps)
        self.norm2 = RMSNorm(cfg["emb_dim"], eps)

    def forward(self, x):
        shortcut = x
        x = self.norm1(x)
        x = self.att(x)
        x = x + shortcut  # add the original input back

        shortcut = x
        x = self.norm2(x)
        x = self.ff(x)
        x = x + shortcut  # add the original input back
        return x


class LlamaModel(nn.Module):
    """Token ids in, logits out: V numbers for each token. (b, T) integers -> (b, T, V).

    The book's Llama3Model and Qwen3Model in one. Raises ValueError for anything that is not such a tensor,
    for more tokens than `context_length`, and for ids outside the vocabulary.
    """

    def __init__(self, cfg):
        super().__init__()
        self.context_length = cfg["context_length"]
        self.tok_emb = nn.Embedding(cfg["vocab_size"], cfg["emb_dim"])

        self.trf_blocks = nn.Sequential(*[TransformerBlock(cfg) for _ in range(cfg["n_layers"])])

        self.final_norm = RMSNorm(cfg["emb_dim"], cfg.get("norm_eps", 1e-5))
        self.out_head = nn.Linear(cfg["emb_dim"], cfg["vocab_size"], bias=False)
        if cfg.get("tie_embeddings", False):
            self.out_head.weight = self.tok_emb.weight

    def forward(self, in_idx):
        return self.out_head(self.final_hidden(in_idx))  # (b, T, V)

    def final_hidden(self, in_idx):
        """Everything but the output head: (b, T) -> (b, T, D), after the final norm; as in `model.py`."""
        self._check(in_idx)
        x = self.tok_emb(in_idx)  # (b, T, D): nothing is added for the position
        x = self.trf_blocks(x)
        return self.final_norm(x)

    def _check(self, in_idx):
        """Raise what an embedding table would only say as `index out of range in self`."""
        if not isinstance(in_idx, torch.Tensor) or in_idx.dim() != 2 or in_idx.is_floating_point():
            got = (
                f"{in_idx.dtype} of shape {tuple(in_idx.shape)}"
                if isinstance(in_idx, torch.Tensor)
                else type(in_idx)
            )
            raise ValueError(f"expected token ids as an integer tensor (batch, tokens), got {got}")
        if in_idx.shape[1] > self.context_length:
            raise ValueError(
                f"{in_idx.shape[1]} tokens do not fit the context length of {self.context_length}"
            )
        # a look at the data would break the graph
        if torch.compiler.is_compiling() or in_idx.numel() == 0:
            return
        low = in_idx.min().item()
        high = in_idx.max().item()
        if low < 0 or high >= self.tok_emb.num_embeddings:
            raise ValueError(
                f"token ids from {low} to {high} given; "
                f"the vocabulary has ids 0 to {self.tok_emb.num_embeddings - 1}"
            )
