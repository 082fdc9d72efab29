"""The functions and classes that a reader of the book has typed, with the book's names and signatures.

    from gptviz.book import GPTDatasetV1, create_dataloader_v1, generate_text_simple

A reader's own lines run with these imports in place of `previous_chapters`. `get_batch` and
`estimate_loss` are those of "Let's build GPT", which the seeds of this project have beside the book.

    chapter 2   SimpleTokenizerV1, SimpleTokenizerV2, GPTDatasetV1, create_dataloader_v1
    chapter 3   SelfAttention_v2, CausalAttention, MultiHeadAttention
    chapter 4   LayerNorm, GELU, FeedForward, TransformerBlock, GPTModel, GPT_CONFIG_124M,
                generate_text_simple
    chapter 5   batches_of, estimate_loss

Where a function differs from the printed one, its docstring says how. Nothing is fetched: GPT-2's tokenizer
comes with this package.

Shapes in comments: b batch, T tokens, V vocabulary.

References:
  Raschka, Build a Large Language Model (From Scratch), Manning 2024, chapters 2 to 5
  Karpathy, Let's build GPT, 2023
"""

import inspect
import re

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from gptviz.model import (
    GELU,
    GPT_CONFIG_124M,
    FeedForward,
    GPTModel,
    LayerNorm,
    MultiHeadAttention,
    TransformerBlock,
)
from gptviz.tokenizer import END_OF_TEXT, get_encoding
from gptviz.training.datasets import TokenWindows

__all__ = [
    "GELU",
    "GPT_CONFIG_124M",
    "CausalAttention",
    "FeedForward",
    "GPTDatasetV1",
    "GPTModel",
    "LayerNorm",
    "MultiHeadAttention",
    "SelfAttention_v2",
    "SimpleTokenizerV1",
    "SimpleTokenizerV2",
    "TransformerBlock",
    "batches_of",
    "create_dataloader_v1",
    "estimate_loss",
    "generate_text_simple",
]


# ---- chapter 2: text ----


class SimpleTokenizerV1:
    """A token is a word or a punctuation mark (section 2.3). `vocab` is a dict from a word to its id.

    `encode` raises KeyError for a word that is not in `vocab`.
    """

    def __init__(self, vocab):
        self.str_to_int = vocab
        self.int_to_str = {i: s for s, i in vocab.items()}

    def encode(self, text):
        preprocessed = re.split(r'([,.:;?_!"()\']|--|\s)', text)
        preprocessed = [item.strip() for item in preprocessed if item.strip()]
        return [self.str_to_int[s] for s in preprocessed]

    def decode(self, ids):
        text = " ".join([self.int_to_str[i] for i in ids])
        return re.sub(r'\s+([,.?!"()\'])', r"\1", text)


class SimpleTokenizerV2:
    """The same, where an unknown word becomes `<|unk|>` (section 2.4), or `[UNK]` where `vocab` has that.

    Raises ValueError for a `vocab` that has neither.
    """

    def __init__(self, vocab):
        self.str_to_int = vocab
        self.int_to_str = {i: s for s, i in vocab.items()}
        names = [name for name in ("<|unk|>", "[UNK]") if name in vocab]
        if not names:
            raise ValueError(
                "the vocabulary has no token for unknown words; add '<|unk|>' or '[UNK]', "
                "or use SimpleTokenizerV1"
            )
        self.unknown = names[0]

    def encode(self, text):
        preprocessed = re.split(r'([,.:;?_!"()\']|--|\s)', text)
        preprocessed = [item.strip() for item in preprocessed if item.strip()]
        preprocessed = [item if item in self.str_to_int else self.unknown for item in preprocessed]
        return [self.str_to_int[s] for s in preprocessed]

    def decode(self, ids):
        text = " ".join([self.int_to_str[i] for i in ids])
        return re.sub(r'\s+([,.:;?!"()\'])', r"\1", text)


class GPTDatasetV1(TokenWindows):
    """A text's sliding windows (section 2.6): item i is its inputs and its targets, (max_length,) each.

    The same items in the same order as the book's class. That one keeps every window in two lists; here a
    window is cut from the ids when it is asked for, and so are the lists `input_ids` and `target_ids`.
    """

    def __init__(self, txt, tokenizer, max_length, stride):
        token_ids = tokenizer.encode(txt, allowed_special={END_OF_TEXT})
        super().__init__(np.array(token_ids, dtype=np.int64), max_length, stride)

    @property
    def input_ids(self):
        return [self[i][0] for i in range(len(self))]

    @property
    def target_ids(self):
        return [self[i][1] for i in range(len(self))]


def create_dataloader_v1(
    txt,
    batch_size=4,
    max_length=256,
    stride=128,
    shuffle=True,
    drop_last=True,
    num_workers=0,
    tokenizer=None,
):
    """Batches of a text's windows: (inputs, targets), (batch_size, max_length) each (section 2.6).

    `tokenizer` is GPT-2's, as in the book, unless another tiktoken encoding is given.
    """
    if tokenizer is None:
        tokenizer = get_encoding("gpt2")
    dataset = GPTDatasetV1(txt, tokenizer, max_length, stride)
    return DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=shuffle,
        drop_last=drop_last,
        num_workers=num_workers,
    )


# ---- chapter 3: attention; the last class is model.MultiHeadAttention ----


class SelfAttention_v2(nn.Module):
    """Queries, keys and values by nn.Linear (section 3.4.2). (T, d_in) -> (T, d_out)."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)

        attn_scores = queries @ keys.T  # (T, T)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        return attn_weights @ values


class CausalAttention(nn.Module):
    """The same for a batch, with a causal mask and dropout (section 3.5.3). (b, T, d_in) -> (b, T, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        _, num_tokens, _ = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)

        attn_scores = queries @ keys.transpose(1, 2)  # (b, T, T)
        attn_scores.masked_fill_(self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        attn_weights = self.dropout(attn_weights)
        return attn_weights @ values


# ---- chapter 4: writing on ----


def generate_text_simple(model, idx, max_new_tokens, context_size):
    """Append the most probable token, `max_new_tokens` times (section 4.7). (b, T) ids -> (b, T + new) ids.

    `model` is any that gives logits, (b, T) -> (b, T, V). It sees the last `context_size` tokens.
    """
    for _ in range(max_new_tokens):
        idx_cond = idx[:, -context_size:]
        with torch.no_grad():
            logits = model(idx_cond)
        logits = logits[:, -1, :]  # (b, T, V) -> (b, V)
        probas = torch.softmax(logits, dim=-1)
        idx_next = torch.argmax(probas, dim=-1, keepdim=True)  # (b, 1)
        idx = torch.cat((idx, idx_next), dim=1)  # (b, T + 1)
    return idx


# ---- chapter 5: how good it is ----


def batches_of(data, batch_size, ctx_len, held_out=0.1):
    """Make the `get_batch` of "Let's build GPT" for a text's ids, a tensor (n,).

    `get_batch(split)` gives inputs and targets, (batch_size, ctx_len) each, from random places: of all but
    the last `held_out` of the ids for "train", of these for "val". Raises ValueError for a part that is too
    short for one window.
    """
    cut = len(data) - int(held_out * len(data))
    parts = {"train": data[:cut], "val": data[cut:]}
    for split, part in parts.items():
        if len(part) <= ctx_len:
            raise ValueError(
                f'the part for "{split}" has {len(part)} ids; a window of {ctx_len} takes at least '
                f"{ctx_len + 1}: give more text, a smaller ctx_len or another held_out"
            )

    def get_batch(split="train"):
        if split not in parts:
            raise ValueError(f'the split is {split!r}; it must be "train" or "val"')
        part = parts[split]
        idxs = torch.randint(len(part) - ctx_len, (batch_size,))  # (b,)
        x = torch.stack([part[i : i + ctx_len] for i in idxs])  # (b, ctx_len)
        y = torch.stack([part[i + 1 : i + ctx_len + 1] for i in idxs])  # one to the right
        return x, y

    return get_batch


@torch.no_grad()
def estimate_loss(model, eval_iters=200, *, get_batch):
    """The mean loss over `eval_iters` random batches of "train" and of "val", in nats per token.

    The printed one reads `get_batch` from the notebook around it; here it is given: your own, or that of
    `batches_of`. `model(X, Y)` may give logits and loss, as in the notebook, or `model(X)` the logits alone,
    as in the book. Nothing is dropped while it measures.
    """
    gives_loss = len(inspect.signature(model.forward).parameters) > 1
    was_training = model.training
    model.eval()
    out = {}
    for split in ["train", "val"]:
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            X, Y = get_batch(split)
            if gives_loss:
                _, loss = model(X, Y)
            else:
                loss = F.cross_entropy(model(X).flatten(0, 1), Y.flatten())  # (b*T, V), (b*T,)
            losses[k] = loss.item()
        out[split] = losses.mean()
    model.train(was_training)
    return out
