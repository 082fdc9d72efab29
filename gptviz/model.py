"""GPT-2 as in chapters 3 and 4 of "Build a Large Language Model (From Scratch)".

The names, the arithmetic and the order of construction are the book's, so that
`torch.manual_seed(123); GPTModel(GPT_CONFIG_124M)` has the book's weights and prints the book's
numbers. Where this file differs from the book, a comment says so and why.

Shapes in comments: b batch, T tokens, D emb_dim, H heads, V vocabulary.

`cfg` is the book's dict, or anything else that is indexed by the same names (our `GPTConfig`). Keys
that the book's dict does not have are looked up with their book value as the default:

    tie_embeddings   False   out_head shares its weight with tok_emb, as in OpenAI's GPT-2
    activation       "gelu_tanh"   or "gelu": the exact GELU, as in nanoGPT
    norm_eps         1e-5    the LayerNorms' epsilon
    norm_bias        True    whether the LayerNorms have a shift, and
    linear_bias      True    whether out_proj and the feed-forward layers have a bias (nanoGPT's
                             `bias=False` has none of either)

References:
  Radford et al., Language Models are Unsupervised Multitask Learners, 2019
  Raschka, Build a Large Language Model (From Scratch), Manning 2024, chapters 3 and 4
"""

import torch
import torch.nn.functional as F
from torch import nn

GPT_CONFIG_124M = {
    "vocab_size": 50257,  # Vocabulary size
    "context_length": 1024,  # Context length
    "emb_dim": 768,  # Embedding dimension
    "n_heads": 12,  # Number of attention heads
    "n_layers": 12,  # Number of layers
    "drop_rate": 0.1,  # Dropout rate
    "qkv_bias": False,  # Query-Key-Value bias
}


class LayerNorm(nn.Module):
    """Each token's D numbers, shifted to mean 0 and scaled to variance 1, then learnably rescaled.

    Ba et al., Layer Normalization, 2016; the book's section 4.2. (..., D) -> (..., D).
    """

    def __init__(self, emb_dim, eps=1e-5, bias=True):
        super().__init__()
        self.eps = eps  # keeps the division finite where the variance is 0
        self.scale = nn.Parameter(torch.ones(emb_dim))
        self.shift = nn.Parameter(torch.zeros(emb_dim)) if bias else None

    def forward(self, x):
        # torch's fused kernel: the same arithmetic as `formula` in one pass instead of seven
        return F.layer_norm(x, self.scale.shape, self.scale, self.shift, self.eps)

    def formula(self, x):
        """The arithmetic of `forward` as the book writes it (a test holds them equal)."""
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        norm_x = (x - mean) / torch.sqrt(var + self.eps)
        scaled = self.scale * norm_x
        return scaled if self.shift is None else scaled + self.shift


class GELU(nn.Module):
    """Hendrycks & Gimpel, Gaussian Error Linear Units, 2016, in GPT-2's tanh approximation."""

    def forward(self, x):
        # torch's fused kernel: the same arithmetic as `formula` in one pass instead of eight
        return F.gelu(x, approximate="tanh")

    def formula(self, x):
        """The arithmetic of `forward` as the book writes it (a test holds them equal)."""
        inside = torch.sqrt(torch.tensor(2.0 / torch.pi)) * (x + 0.044715 * torch.pow(x, 3))
        return 0.5 * x * (1 + torch.tanh(inside))


class FeedForward(nn.Module):
    """Each token by itself: D -> 4D, GELU, 4D -> D. (b, T, D) -> (b, T, D)."""

    def __init__(self, cfg):
        super().__init__()
        emb_dim = cfg["emb_dim"]
        bias = cfg.get("linear_bias", True)
        activation = cfg.get("activation", "gelu_tanh")
        if activation not in ("gelu_tanh", "gelu"):
            raise ValueError(
                f'activation is {activation!r}; this model knows "gelu_tanh" and "gelu"'
            )
        self.layers = nn.Sequential(
            nn.Linear(emb_dim, 4 * emb_dim, bias=bias),
            GELU() if activation == "gelu_tanh" else nn.GELU(),
            nn.Linear(4 * emb_dim, emb_dim, bias=bias),
        )

    def forward(self, x):
        return self.layers(x)


class MultiHeadAttention(nn.Module):
    """Causal self-attention, all heads at once. (b, T, d_in) -> (b, T, d_out).

    Vaswani et al., Attention Is All You Need, 2017; the book's section 3.6.
    """

    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, proj_bias=True
    ):
        super().__init__()
        if num_heads < 1 or d_out % num_heads != 0:
            raise ValueError(
                f"{d_out} dimensions cannot be divided among {num_heads} heads: "
                f"emb_dim must be divisible by n_heads"
            )
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.context_length = context_length

        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=proj_bias)  # combines the heads' outputs
        self.dropout = nn.Dropout(dropout)

    def mask(self, num_tokens, before=0, device=None):
        """The causal mask, True where a key comes after its query: (num_tokens, before + num_tokens).

        Made for the text's length, unlike the book's buffer for the whole context, which takes 1 GiB a block
        where that is 32,768 tokens. `before` counts keys of earlier tokens, which every query may see.
        """
        num_keys = before + num_tokens
        if num_keys > self.context_length:
            raise ValueError(
                f"{num_keys} tokens do not fit the context length of {self.context_length}"
            )
        ones = torch.ones(num_tokens, num_keys, dtype=torch.bool, device=device)
        return torch.triu(ones, diagonal=before + 1)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        state_dict.pop(prefix + "mask", None)  # a buffer in a checkpoint of the book's own class
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x):
        b, num_tokens, _ = x.shape

        queries = self.W_query(x)  # (b, T, d_out)
        keys = self.W_key(x)  # (b, T, d_out)
        values = self.W_value(x)  # (b, T, d_out)

        # split d_out among the heads: (b, T, d_out) -> (b, T, H, head_dim) -> (b, H, T, head_dim)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)

        attn_scores = queries @ keys.transpose(2, 3)  # (b, H, T, T): one dot product a pair
        attn_scores.masked_fill_(self.mask(num_tokens, device=x.device), -torch.inf)
        attn_weights = torch.softmax(attn_scores / self.head_dim**0.5, dim=-1)  # rows sum to 1
        attn_weights = self.dropout(attn_weights)

        context_vec = (attn_weights @ values).transpose(1, 2)  # (b, T, H, head_dim)
        # (b, T, d_out): heads side by side
        context_vec = context_vec.reshape(b, num_tokens, self.d_out)
        return self.out_proj(context_vec)


class TransformerBlock(nn.Module):
    """Attention, then feed-forward, each behind a LayerNorm and added back. (b, T, D) -> (b, T, D)."""

    def __init__(self, cfg):
        super().__init__()
        eps = cfg.get("norm_eps", 1e-5)
        bias = cfg.get("norm_bias", True)
        self.att = MultiHeadAttention(
            d_in=cfg["emb_dim"],
            d_out=cfg["emb_dim"],
            context_length=cfg["context_length"],
            num_heads=cfg["n_heads"],
            dropout=cfg["drop_rate"],
            qkv_bias=cfg["qkv_bias"],
            proj_bias=cfg.get("linear_bias", True),
        )
        self.ff = FeedForward(cfg)
        self.norm1 = LayerNorm(cfg["emb_dim"], eps, bias)
        self.norm2 = LayerNorm(cfg["emb_dim"], eps, bias)
        self.drop_shortcut = nn.Dropout(cfg["drop_rate"])

    def forward(self, x):
        shortcut = x
        x = self.norm1(x)
        x = self.att(x)
        x = self.drop_shortcut(x)
        x = x + shortcut  # add the original input back

        shortcut = x
        x = self.norm2(x)
        x = self.ff(x)
        x = self.drop_shortcut(x)
        x = x + shortcut  # add the original input back
        return x


class GPTModel(nn.Module):
    """Token ids in, logits out: V numbers for each token. (b, T) integers -> (b, T, V).

    Raises ValueError for anything that is not such a tensor, for more tokens than
    `context_length`, and for ids outside the vocabulary.
    """

    def __init__(self, cfg):
        super().__init__()
        self.tok_emb = nn.Embedding(cfg["vocab_size"], cfg["emb_dim"])
        self.pos_emb = nn.Embedding(cfg["context_length"], cfg["emb_dim"])
        self.drop_emb = nn.Dropout(cfg["drop_rate"])

        self.trf_blocks = nn.Sequential(*[TransformerBlock(cfg) for _ in range(cfg["n_layers"])])

        self.final_norm = LayerNorm(
            cfg["emb_dim"], cfg.get("norm_eps", 1e-5), cfg.get("norm_bias", True)
        )
        self.out_head = nn.Linear(cfg["emb_dim"], cfg["vocab_size"], bias=False)
        if cfg.get("tie_embeddings", False):
            self.out_head.weight = self.tok_emb.weight

    def forward(self, in_idx):
        return self.out_head(self.final_hidden(in_idx))  # (b, T, V)

    def final_hidden(self, in_idx):
        """Everything but the output head: (b, T) -> (b, T, D), after the final LayerNorm.

        Apart from `forward`, unlike the book's, because the head is a third of a small GPT-2's
        work and is often wanted at one position only.
        """
        self._check(in_idx)
        _, seq_len = in_idx.shape
        tok_embeds = self.tok_emb(in_idx)  # (b, T, D)
        pos_embeds = self.pos_emb(torch.arange(seq_len, device=in_idx.device))  # (T, D)
        x = tok_embeds + pos_embeds  # (b, T, D): the same positions for every text of the batch
        x = self.drop_emb(x)
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
        if in_idx.shape[1] > self.pos_emb.num_embeddings:
            raise ValueError(
                f"{in_idx.shape[1]} tokens do not fit the context length of {self.pos_emb.num_embeddings}"
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
