"""The KV cache: keys and values of the tokens that a model has read, so that a pass only computes new tokens.

Because of the causal mask, the numbers of earlier tokens do not change when a token is appended. And all that
later tokens need of the earlier ones are their keys and values: `Past` holds those of every block, and
the record of the model has the attention for the tokens after them (`gptviz.engine.attending`).
`gptviz.engine.forward` runs a model with a Past. Where queries and keys are turned by their positions, the keys
are kept turned.

Shapes: B texts in the batch, K heads, or groups of heads that share a key and a value, d head_dim, D emb_dim,
L blocks, n tokens of the past, t new tokens.

Reference: Pope et al., Efficiently Scaling Transformer Inference, 2022, section 2.1 (the "KV cache")
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from types import MethodType
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from gptviz.engine.architecture import architecture_of
from gptviz.engine.attending import Append
from gptviz.engine.kinds import Config, Model
from gptviz.engine.weights import Fingerprint, fingerprint, same
from gptviz.fast import one_token
from gptviz.model import GPTModel


def past_bytes(config: Config, n_tokens: int, batch: int = 1, bytes_a_number: int = 4) -> int:
    """The memory that keys and values take, in bytes: 2 x blocks x tokens x K x d numbers for each text.

    With a key and a value for each head, as in GPT-2, K x d is D.
    """
    numbers = config.n_kv_groups * config.head_dim  # of a token, in a block, for keys
    return 2 * config.n_layers * n_tokens * numbers * batch * bytes_a_number


@dataclass(eq=False)
class _Memory:
    """A tensor for keys and values, (2, L, B, K, room, d): room for more tokens than the `used` ones.

    Several pasts may share one, each with the first tokens of it (`Past.cut`).
    """

    kv: Tensor
    used: int

    @cached_property
    def blocks(self) -> list[tuple[Tensor, Tensor]]:
        """Each block's keys and values, (B, K, room, d)."""
        # views made in inference mode cannot be written into outside it
        with torch.inference_mode(False):
            return list(zip(*(part.unbind() for part in self.kv), strict=True))


class Past:
    """The keys and values of the tokens that a model has read, in every block.

    `len(past)` is the number of tokens n. `keys(b)` and `values(b)` are those of block b, (B, K, n, d), in
    the model's own dtype. A pass that is given a Past appends its tokens to it. `next` is the position at
    which the next token is embedded, unless the caller gives another.

    `cut`, `without`, `replaced`, `swapped` and `rows` return a new Past and leave this one as it is.
    """

    def __init__(self, model: Model, batch: int = 1, room: int = 64):
        att: Any = next(iter(cast(Any, model.trf_blocks))).att
        weight = att.W_key.weight
        d = att.head_dim
        shape = (2, len(model.trf_blocks), batch, weight.shape[0] // d, max(1, room), d)
        self._memory = _Memory(_empty(shape, weight.dtype, weight.device), 0)
        self._n = self.next = 0
        # of the model that computed its numbers; None while empty
        self.weights: Fingerprint | None = None

    @classmethod
    def of(cls, model: Model, keys: Sequence[Tensor], values: Sequence[Tensor]) -> "Past":
        """A Past of one text, from keys and values as a Trace has them: (K, n, d) for each block."""
        n = keys[0].shape[1]
        past = cls(model, room=min(n + _more(n), architecture_of(model).context_length(model)))
        for into, blocks in zip(past._memory.kv, (keys, values), strict=True):
            for block, rows in enumerate(blocks):
                into[block, 0, :, :n] = rows
        past.weights = fingerprint(model)
        past.advance(n, n)
        return past

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"Past({len(self)} tokens, batch {self.batch}, {self.nbytes:,} bytes)"

    @property
    def batch(self) -> int:
        """The number of texts."""
        return self._memory.kv.shape[2]

    @property
    def nbytes(self) -> int:
        """The bytes of the keys and values, without the memory that is kept free for more tokens."""
        kv = self._memory.kv
        return kv[..., 0, :].numel() * len(self) * kv.element_size()

    def memory(self) -> Tensor:
        """The tensor that this past keeps in memory, with the free room. Only a pass may write into it."""
        return self._memory.kv

    @property
    def is_float32(self) -> bool:
        """Whether its numbers are float32 on the CPU, as a Trace hands them out."""
        return self._memory.kv.dtype is torch.float32 and self._memory.kv.is_cpu

    def keys(self, block: int) -> Tensor:
        """A copy of a block's keys, (B, K, n, d)."""
        return self.kept("keys", block).clone()

    def values(self, block: int) -> Tensor:
        """A copy of a block's values, (B, K, n, d)."""
        return self.kept("values", block).clone()

    def kept(self, which: Literal["keys", "values"], block: int) -> Tensor:
        """A block's keys or values, (B, K, n, d), without a copy. Do not write into them."""
        return self._memory.kv[("keys", "values").index(which), block, :, :, : self._n]

    # ---- called during a pass ----

    def append(self, block: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the keys and values of t new tokens into a block's memory, and return those of all tokens.

        (B, K, t, d) each in, (B, K, n + t, d) each out. `len(past)` changes in `advance` only, when all
        blocks have done it.
        """
        n = self._n
        t = keys.shape[2]
        all_keys, all_values = self._memory.blocks[block]  # (B, K, room, d) each
        all_keys[:, :, n : n + t] = keys
        all_values[:, :, n : n + t] = values
        return all_keys[:, :, : n + t], all_values[:, :, : n + t]

    def make_room(self, t: int, most: int) -> None:
        """Make sure that t more tokens fit, copying to a larger memory if need be, for `most` tokens at most.

        If another past has gone on in the same memory, this one gets its own, so as to overwrite nothing.
        """
        kv = self._memory.kv
        n = self._n
        if self._memory.used == n and n + t <= kv.shape[-2]:
            return
        wider = _empty(
            (*kv.shape[:-2], min(n + t + _more(n + t), most), kv.shape[-1]), kv.dtype, kv.device
        )
        wider[..., :n, :] = kv[..., :n, :]
        self._memory = _Memory(wider, n)

    def advance(self, t: int, following: int) -> None:
        """Count t tokens that all blocks have appended; the next token's position will be `following`."""
        self._n += t
        self._memory.used = self._n
        self.next = following

    # ---- these return another Past ----

    def cut(self, n: int) -> "Past":
        """A past of the first n tokens; the next one is embedded right after them.

        Both share their memory until one of them grows. Raises ValueError unless n is from 0 to `len(past)`.
        """
        if not 0 <= n <= len(self):
            raise ValueError(f"this past has {len(self)} tokens; it cannot be cut to {n}")
        return self._of(self._memory, n, self.next - (len(self) - n))

    def without(self, positions: Iterable[int]) -> "Past":
        """A past without these tokens, so that no later token can attend to them; `next` stays as it is."""
        gone = {self._place(p) for p in positions}
        remaining = [p for p in range(len(self)) if p not in gone]
        return self._copied(self._memory.kv[..., remaining, :])

    def replaced(self, position: int, other: "Past") -> "Past":
        """A past with one token's keys and values taken from `other`, such as a past of an edited text."""
        return self._exchanged([(position, other, position)], 0)

    def swapped(self, one: int, two: int, keys: bool = False) -> "Past":
        """A past in which two tokens' values are swapped; with `keys`, their keys and values.

        Swapping both changes no logit, since attention is a sum over the keys, and their order is no part of
        it.
        """
        return self._exchanged([(one, self, two), (two, self, one)], 0 if keys else 1)

    def rows(self, rows: Sequence[int]) -> "Past":
        """A past of these texts of the batch, by index, each as often as it is listed.

        Beam search goes on from some beams several times and drops others.
        """
        return self._copied(self._memory.kv[:, :, list(rows), :, : self._n])

    def _exchanged(self, pairs: list[tuple[int, "Past", int]], first: int) -> "Past":
        """Copy tokens from other pasts. `pairs`: (position here, the other past, position there).

        `first` is 0 for keys and values, 1 for values only: the first index of the memory's first dimension.
        """
        kv = self._memory.kv[..., : self._n, :].clone()
        for place, other, origin in pairs:
            kv[first:, ..., self._place(place), :] = other._memory.kv[
                first:, ..., other._place(origin), :
            ]
        return self._copied(kv)

    def _copied(self, kv: Tensor) -> "Past":
        """A past of all the tokens in `kv`, (2, L, B, K, n, d), which is nobody else's memory."""
        return self._of(_Memory(kv, kv.shape[-2]), kv.shape[-2], self.next)

    def _of(self, memory: _Memory, n: int, following: int) -> "Past":
        past = object.__new__(Past)
        past._memory = memory
        past._n = n
        past.next = following
        past.weights = self.weights
        return past

    def _place(self, position: int) -> int:
        """A position counted from 0. Raises ValueError if it is out of range."""
        if not -len(self) <= position < len(self):
            raise ValueError(
                f"there is no token {position} in this past; they go from 0 to {len(self) - 1}"
            )
        return position % len(self)


@dataclass(frozen=True)
class Before:
    """The keys and values of the n tokens with which several texts begin, for passes over what follows them.

    Unlike a Past it does not grow, and it serves a batch of any size.
    """

    keys: Sequence[Tensor]  # (K, n, d) for each block
    values: Sequence[Tensor]  # (K, n, d) for each block

    def __len__(self) -> int:
        return self.keys[0].shape[1]

    def append(self, block: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """As `Past.append`, for each text of the batch, but without keeping the new keys and values."""

        def behind(earlier: Tensor, new: Tensor) -> Tensor:
            # (K, n, d) for every text, then (B, K, t, d) -> (B, K, n + t, d)
            return torch.cat([earlier.to(new).expand(len(new), -1, -1, -1), new], dim=2)

        return behind(self.keys[block], keys), behind(self.values[block], values)


def final_hidden(
    model: Model,
    in_idx: Tensor,
    past: Past,
    position: int | None,
    visits: one_token.Visits | None,
) -> Tensor:
    """The model's own `final_hidden` for tokens after those of `past`, to which they are appended.

    (B, t) ids -> (B, t, D). `position` is where the first of them is embedded; None is `past.next`. If
    `visits` is not None, even if it is empty, `gptviz.fast.one_token` computes the pass (t is 1 then), and
    `visits` are the hooks that it calls. Raises ValueError for another batch size than that of the past, for
    other weights than those that made it, and for a position beyond the context length.
    """
    model._check(in_idx)
    b, t = in_idx.shape
    if position is None:
        first = past.next
    else:
        first = position
    kind = architecture_of(model)
    context = kind.context_length(model)
    if b != past.batch:
        raise ValueError(f"{b} texts given, after a past of {past.batch}: see Past.rows")
    if first < 0 or max(first, len(past)) + t > context:
        raise ValueError(
            f"{t} tokens from position {first} on do not fit the context length of {context}"
        )
    past.weights = same(model, past.weights if len(past) else None, "the past was", "read the text")
    past.make_room(t, context)
    positions = torch.arange(first, first + t, device=in_idx.device)
    if visits is not None:
        result = one_token.hidden(cast(GPTModel, model), in_idx, positions, past.append, visits)
    else:
        x = kind.embed(model, in_idx, positions)  # (B, t, D)
        with at_work(model, past, first):
            x = model.trf_blocks(x)
        result = model.final_norm(x)
    past.advance(t, first + t)
    return result


@dataclass(frozen=True)
class _After:
    """What an attention module goes on from: the past, its block's number, and the first token's position."""

    past: Past | Before
    block: int
    first: int
    attend: Callable[[Any, Tensor, int, Append], Tensor]


class _Thread(threading.local):
    def __init__(self) -> None:
        # id() of an attention module -> what it goes on from in this thread
        self.blocks: dict[int, _After] = {}


_this_thread = _Thread()


@contextmanager
def at_work(model: Model, past: Past | Before, first: int) -> Iterator[None]:
    """Let the model's attention go on from `past` in passes of this thread; other threads see no change.

    The first token of such a pass is at the position `first`. Inside the block, each attention module of the
    model has `_Attention.forward` as its forward method.
    """
    attend = architecture_of(model).attend
    modules: list[Any] = [block.att for block in model.trf_blocks]
    before = [module.__dict__.get("forward") for module in modules]
    try:
        for block, module in enumerate(modules):
            _this_thread.blocks[id(module)] = _After(past, block, first, attend)
            module.__dict__["forward"] = MethodType(_Attention.forward, module)
        yield
    finally:
        _this_thread.blocks.clear()
        for module, forward in zip(modules, before, strict=True):
            module.__dict__.pop("forward", None)
            if forward is not None:
                module.__dict__["forward"] = forward


class _Attention(nn.Module):
    """Holds the forward method for attention after a past; no module is made of this class."""

    # It must be called `forward`: a bound method is pickled by its name (see `gptviz.fast.kernels`).
    def forward(self, x: Tensor) -> Tensor:
        """Compute attention, (B, t, D) -> (B, t, D), after the past of this thread, if `at_work` gave one."""
        if id(self) not in _this_thread.blocks:
            return type(self).forward(self, x)
        after = _this_thread.blocks[id(self)]
        return after.attend(self, x, after.first, partial(after.past.append, after.block))


def _more(n: int) -> int:
    """The number of tokens to keep room for beyond n, so that not every new token needs a larger copy."""
    return max(32, n // 4)


def _empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """An uninitialised tensor that can be written into in inference mode and outside it."""
    with torch.inference_mode(False):
        return torch.empty(shape, dtype=dtype, device=device)
