"""Keys and values of the tokens that were read already, so that one more token costs one token.

Attention is causal: what stands before does not change when a token is appended. Of all that was computed
for the earlier tokens, the later ones look at nothing but their keys and values: `Past` holds those, and
`attend` is the book's attention for the tokens after them. `gptviz.engine.forward` runs a model with them.

B is the batch, H heads, n the tokens of the past, t the new ones.

Reference: Pope et al., Efficiently Scaling Transformer Inference, 2022, section 2.1 (the "KV cache")
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from types import MethodType
from typing import Any, Literal, cast

import torch
from torch import Tensor

from gptviz.engine.config import GPTConfig
from gptviz.engine.weights import Fingerprint, fingerprint, same
from gptviz.fast import kernels, one_token
from gptviz.fast.attention import attention
from gptviz.model import GPTModel, MultiHeadAttention


def past_bytes(config: GPTConfig, n_tokens: int, batch: int = 1, bytes_a_number: int = 4) -> int:
    """The memory of keys and values in bytes: 2 x blocks x tokens x D numbers a text."""
    return 2 * config.n_layers * n_tokens * config.emb_dim * batch * bytes_a_number


@dataclass(eq=False)
class _Memory:
    """The memory of keys and values: (2, L, B, H, room, D/H), of which `used` tokens belong to somebody."""

    kv: Tensor
    used: int

    @cached_property
    def blocks(self) -> list[tuple[Tensor, Tensor]]:
        """Each block's keys and values, (B, H, room, D/H)."""
        with torch.inference_mode(False):  # they are written into outside it, too
            return list(zip(*(part.unbind() for part in self.kv), strict=True))


class Past:
    """The keys and values of every block, of the tokens that a model has read.

    `len(past)` is the number of tokens n; `keys(b)` and `values(b)` of a block are (B, H, n, D/H), in the
    model's own dtype. A pass that is given it appends to it. `next` is the position at which the next token
    is embedded, unless the caller says another.

    The methods that change something give another Past and leave this one as it is.
    """

    def __init__(self, model: GPTModel, batch: int = 1, room: int = 64):
        att: Any = next(iter(cast(Any, model.trf_blocks))).att
        weight = att.W_key.weight
        shape = (2, len(model.trf_blocks), batch, att.num_heads, max(1, room), att.head_dim)
        self._memory = _Memory(_empty(shape, weight.dtype, weight.device), 0)
        self._n = self.next = 0
        self.weights: Fingerprint | None = None  # that made its numbers

    @classmethod
    def of(cls, model: GPTModel, keys: Sequence[Tensor], values: Sequence[Tensor]) -> "Past":
        """One text's keys and values as a Trace has them: of every block (H, n, D/H)."""
        n = keys[0].shape[1]
        made = cls(model, room=min(n + _more(n), model.pos_emb.num_embeddings))
        for into, given in zip(made._memory.kv, (keys, values), strict=True):
            for block, rows in enumerate(given):
                into[block, 0, :, :n] = rows
        made.weights = fingerprint(model)
        made.advance(n, n)
        return made

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"Past({len(self)} tokens, batch {self.batch}, {self.nbytes:,} bytes)"

    @property
    def batch(self) -> int:
        return self._memory.kv.shape[2]

    @property
    def nbytes(self) -> int:
        """The size of the keys and values; the room that is kept for more tokens is not counted."""
        kv = self._memory.kv
        return kv[..., 0, :].numel() * len(self) * kv.element_size()

    def memory(self) -> Tensor:
        """All that is kept alive, the room for more included, as it is: nobody but a pass writes into it."""
        return self._memory.kv

    @property
    def is_float32(self) -> bool:
        """Whether its numbers can be handed out as they are: float32, on the CPU."""
        return self._memory.kv.dtype is torch.float32 and self._memory.kv.is_cpu

    def keys(self, block: int) -> Tensor:
        """A copy of a block's keys, (B, H, n, D/H)."""
        return self.kept("keys", block).clone()

    def values(self, block: int) -> Tensor:
        """A copy of a block's values, (B, H, n, D/H)."""
        return self.kept("values", block).clone()

    def kept(self, which: Literal["keys", "values"], block: int) -> Tensor:
        """A block's keys or values as they are kept: nobody but a pass writes into them."""
        return self._memory.kv[("keys", "values").index(which), block, :, :, : self._n]

    # ---- what a pass does ----

    def append(self, block: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Behind a block's keys and values those of new tokens: (B, H, t, D/H) in, (B, H, n + t, D/H) out."""
        n = self._n
        t = keys.shape[2]
        all_keys, all_values = self._memory.blocks[block]  # with all the room that there is
        all_keys[:, :, n : n + t] = keys
        all_values[:, :, n : n + t] = values
        return all_keys[:, :, : n + t], all_values[:, :, : n + t]

    def make_room(self, t: int, most: int) -> None:
        """For t more tokens, of `most` at all. What is appended must not stand where another has its own."""
        kv = self._memory.kv
        n = self._n
        if self._memory.used == n and n + t <= kv.shape[-2]:
            return
        wider = _empty((*kv.shape[:-2], min(n + t + _more(n + t), most), kv.shape[-1]), kv.dtype, kv.device)
        wider[..., :n, :] = kv[..., :n, :]
        self._memory = _Memory(wider, n)

    def advance(self, t: int, following: int) -> None:
        """All blocks have appended t tokens; the next one stands at the position `following`."""
        self._n += t
        self._memory.used = self._n
        self.next = following

    # ---- other pasts made of it ----

    def cut(self, n: int) -> "Past":
        """The first n tokens; the next one is embedded right after them. Nothing is copied until it grows."""
        if not 0 <= n <= len(self):
            raise ValueError(f"this past has {len(self)} tokens; it cannot be cut to {n}")
        return self._of(self._memory, n, self.next - (len(self) - n))

    def without(self, positions: Iterable[int]) -> "Past":
        """As if nobody could look at these tokens; the next one still stands where it would have stood."""
        gone = {self._place(p) for p in positions}
        left = [p for p in range(len(self)) if p not in gone]
        return self._copied(self._memory.kv[..., left, :])

    def replaced(self, position: int, other: "Past") -> "Past":
        """Return a past with a token's keys and values from another one, such as before something changed."""
        return self._exchanged([(position, other, position)], 0)

    def swapped(self, one: int, two: int, keys: bool = False) -> "Past":
        """Return a past in which two tokens' values change places, or with `keys` both.

        With both no logit changes: attention is a sum over its keys, in whatever order they stand.
        """
        return self._exchanged([(one, self, two), (two, self, one)], 0 if keys else 1)

    def rows(self, rows: Sequence[int]) -> "Past":
        """A batch of these rows of the batch, each as often as it is named: beams, or one text n times."""
        return self._copied(self._memory.kv[:, :, list(rows), :, : self._n])

    def _exchanged(self, pairs: list[tuple[int, "Past", int]], first: int) -> "Past":
        """`first` is 0 for keys and values, 1 for values only."""
        kv = self._memory.kv[..., : self._n, :].clone()
        for place, other, by in pairs:
            kv[first:, ..., self._place(place), :] = other._memory.kv[first:, ..., other._place(by), :]
        return self._copied(kv)

    def _copied(self, kv: Tensor) -> "Past":
        return self._of(_Memory(kv, kv.shape[-2]), kv.shape[-2], self.next)

    def _of(self, memory: _Memory, n: int, following: int) -> "Past":
        made = object.__new__(Past)
        made._memory = memory
        made._n = n
        made.next = following
        made.weights = self.weights
        return made

    def _place(self, position: int) -> int:
        if not -len(self) <= position < len(self):
            raise ValueError(f"there is no token {position} in this past; they go from 0 to {len(self) - 1}")
        return position % len(self)


@dataclass(frozen=True)
class Before:
    """Every block's keys and values of a text's first tokens, (H, n, D/H): what texts that begin so share."""

    keys: Sequence[Tensor]
    values: Sequence[Tensor]

    def __len__(self) -> int:
        return self.keys[0].shape[1]

    def append(self, block: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Behind them those of new tokens, of each text of the batch: as `Past.append`, and keeps nothing."""

        def behind(own: Tensor, new: Tensor) -> Tensor:
            return torch.cat([own.to(new).expand(len(new), -1, -1, -1), new], dim=2)

        return behind(self.keys[block], keys), behind(self.values[block], values)


def attend(att: Any, x: Tensor, past: Past | Before, block: int) -> Tensor:
    """The book's attention for tokens that come after those of `past`: (B, t, D) -> (B, t, D)."""
    b, t, _ = x.shape

    def by_heads(rows: Tensor) -> Tensor:  # (B, t, D) -> (B, t, H, D/H) -> (B, H, t, D/H)
        return rows.view(b, t, att.num_heads, att.head_dim).transpose(1, 2)

    queries = by_heads(att.W_query(x))  # of the new tokens only: nobody asks for the earlier ones' again
    keys, values = past.append(block, by_heads(att.W_key(x)), by_heads(att.W_value(x)))  # (B, H, n + t, D/H)
    n = keys.shape[2] - t

    attn_scores = queries @ keys.transpose(2, 3)  # (B, H, t, n + t)
    attn_scores.masked_fill_(att.mask(t, before=n, device=x.device), -torch.inf)
    attn_weights = att.dropout(torch.softmax(attn_scores / att.head_dim**0.5, dim=-1))

    context_vec = (attn_weights @ values).transpose(1, 2)  # (B, t, H, D/H)
    return att.out_proj(context_vec.reshape(b, t, att.d_out))  # heads side by side


def final_hidden(
    model: GPTModel, in_idx: Tensor, past: Past, position: int | None, visits: one_token.Visits | None
) -> Tensor:
    """`GPTModel.final_hidden` for tokens after those of `past`, which then has them, too.

    (B, t) ids -> (B, t, D). `position` is where the first of them is embedded: None is `past.next`. With
    `visits`, even without one in them, a token goes the short way. Raises ValueError for what does not fit:
    another batch, other weights than those that made the past, or a position beyond the context.
    """
    model._check(in_idx)
    b, t = in_idx.shape
    if position is None:
        first = past.next
    else:
        first = position
    context = model.pos_emb.num_embeddings
    if b != past.batch:
        raise ValueError(f"{b} texts given, after a past of {past.batch}: see Past.rows")
    if first < 0 or max(first, len(past)) + t > context:
        raise ValueError(f"{t} tokens from position {first} on do not fit the context length of {context}")
    past.weights = same(model, past.weights if len(past) else None, "the past was", "read the text")
    past.make_room(t, context)
    positions = torch.arange(first, first + t, device=in_idx.device)
    if visits is not None:
        result = one_token.hidden(model, in_idx, positions, past.append, visits)
    else:
        x = model.drop_emb(model.tok_emb(in_idx) + model.pos_emb(positions))  # (B, t, D)
        with at_work(model, past):  # each block's attention is `attend`
            x = model.trf_blocks(x)
        result = model.final_norm(x)
    past.advance(t, first + t)
    return result


class _Thread(threading.local):
    def __init__(self) -> None:
        # id of an attention module: whose past, which block
        self.blocks: dict[int, tuple[Past | Before, int]] = {}


_this_thread = _Thread()


@contextmanager
def at_work(model: GPTModel, past: Past | Before) -> Iterator[None]:
    """This thread's pass through the model's attention goes on from `past`; other threads' do not."""
    modules: list[Any] = [block.att for block in model.trf_blocks]
    before = [module.__dict__.get("forward") for module in modules]
    try:
        for block, module in enumerate(modules):
            _this_thread.blocks[id(module)] = (past, block)
            module.__dict__["forward"] = MethodType(_Attention.forward, module)
        yield
    finally:
        _this_thread.blocks.clear()
        for module, forward in zip(modules, before, strict=True):
            module.__dict__.pop("forward", None)
            if forward is not None:
                module.__dict__["forward"] = forward


class _Attention(MultiHeadAttention):
    # called `forward` because a bound method is pickled by its name, see `gptviz.fast.kernels`
    def forward(self, x: Tensor) -> Tensor:
        if id(self) not in _this_thread.blocks:
            return MultiHeadAttention.forward(self, x)
        past, block = _this_thread.blocks[id(self)]
        if kernels.serves(x):
            return attention(self, x, partial(past.append, block))
        return attend(self, x, past, block)


def _more(n: int) -> int:
    """Room beyond n tokens, so that not every further one has all of them copied."""
    return max(32, n // 4)


def _empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # a tensor of inference mode could not be written into outside it
        return torch.empty(shape, dtype=dtype, device=device)
