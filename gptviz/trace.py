"""Trace: every number that one forward pass of a GPTModel made. `gptviz.capture` makes them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
import tiktoken
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from gptviz import kernels
from gptviz.config import GPTConfig
from gptviz.edits import Edit
from gptviz.model import GPTModel, LayerNorm
from gptviz.reduction import Reduction
from gptviz.sampling import Sampling, distribution
from gptviz.sites import Key, all_keys, check_key, expand
from gptviz.sizes import nbytes_of
from gptviz.tokenizer import named_bytes
from gptviz.tokenizer.one import OneToken, one_token


@dataclass(frozen=True)
class Token:
    """A token of the prompt. `raw` is its bytes; `text` is them decoded, with U+FFFD where that fails."""

    position: int
    id: int
    text: str
    raw: bytes


@dataclass(frozen=True)
class Norm:
    """A LayerNorm's weights as a Trace needs them: `scale` and `shift` (D,), and where its input is kept."""

    name: str
    block: int | None
    source: Key
    eps: float
    scale: torch.Tensor
    shift: torch.Tensor | None


@dataclass(frozen=True)
class NormStatistics:
    """What every LayerNorm does to every token: (N, T) float32 each, norms in the order of the pass."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("mean", "variance", "mean_after", "variance_after")

    names: list[str]
    mean: NDArray[np.float32]
    variance: NDArray[np.float32]  # biased, as the module uses it
    mean_after: NDArray[np.float32]  # after scale and shift
    variance_after: NDArray[np.float32]

    def grid(self, column: str) -> NDArray[np.float32]:
        """One of the four by its name. ValueError for any other."""
        if column not in self.COLUMNS:
            raise ValueError(f"norms have no column {column!r}; they have {', '.join(self.COLUMNS)}")
        grid: NDArray[np.float32] = getattr(self, column)
        return grid


def norms_of(model: GPTModel) -> list[Norm]:
    """Every LayerNorm of the model, in the order of the forward pass."""

    def norm(name: str, block: int | None, source: Key, module: LayerNorm) -> Norm:
        shift = None if module.shift is None else module.shift.detach()
        return Norm(name, block, source, module.eps, module.scale.detach(), shift)

    found = []
    for b, trf_block in enumerate(model.trf_blocks):
        found.append(norm(f"block {b} · norm1", b, ("resid_pre", b), cast(LayerNorm, trf_block.norm1)))
        found.append(norm(f"block {b} · norm2", b, ("resid_mid", b), cast(LayerNorm, trf_block.norm2)))
    return [*found, norm("final", None, ("resid_post", len(model.trf_blocks) - 1), model.final_norm)]


class Trace:
    """What one forward pass computed. Read it, do not write into it.

    `trace["attn", 3]` is a site of a block, `trace["embed"]` one outside the blocks; `sites()` lists
    what was kept, `reduced(name)` gives what was made of a site during the pass, `edits` are those of
    the pass. Tensors are CPU float32. A Trace holds no model: only the output head's and the
    LayerNorms' own weights (the same tensors, not copies), so that logits and statistics can be
    worked out where somebody asks for them. `nbytes` is what it holds beyond those.
    """

    def __init__(
        self,
        name: str,
        config: GPTConfig,
        tokens: list[Token],
        tokenizer: tiktoken.Encoding,
        values: dict[Key, torch.Tensor],
        final: torch.Tensor,
        head: torch.Tensor,
        norms: list[Norm],
        edits: tuple[Edit, ...] = (),
        reduced: dict[Reduction, list[Any]] | None = None,
    ):
        self.name = name
        self.config = config
        self.tokens = tokens
        self._tokenizer = tokenizer
        self._values = values
        self._final = final
        self._head = head
        self._norms = norms
        self.edits = edits
        self._reduced = {} if reduced is None else reduced

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Trace({self.name!r}, {len(self)} tokens, {len(self._values)} sites, {self.nbytes:,} bytes)"

    def __getitem__(self, key: str | tuple[str, int]) -> torch.Tensor:
        name, block = (key, None) if isinstance(key, str) else key
        return self._values_of(check_key(name, block, self.config.n_layers))

    def _values_of(self, key: Key) -> torch.Tensor:
        if key not in self._values:
            kept = ", ".join(dict.fromkeys(site for site, _ in self._values)) or "none"
            raise ValueError(
                f"{key} was not kept in this trace (it has sites {kept}); trace again and keep it"
            )
        return self._values[key]

    def sites(self) -> list[Key]:
        """The (site, block) pairs that were kept, in the order of the forward pass."""
        return list(self._values)

    def reduced(self, name: str) -> list[Any]:
        """What the reduction called `name` made of its site: a result a block, in order."""
        for reduction, results in self._reduced.items():
            if reduction.name == name:
                return list(results)
        kept = ", ".join(reduction.name for reduction in self._reduced) or "none"
        raise ValueError(
            f"there is no reduction {name!r} in this trace (it has {kept}); trace again with reduce=[...]"
        )

    def holds(
        self, keep: Iterable[str | tuple[str, int]] | None = None, reduce: Iterable[Reduction] = ()
    ) -> bool:
        """Whether all of this is here already. Raises ValueError for sites and blocks that do not exist."""
        return self._values.keys() >= set(expand(keep, self.config)) and self._reduced.keys() >= set(reduce)

    def joined(self, other: "Trace") -> "Trace":
        """One trace with all that either holds, of two that were taken of the same pass.

        Raises ValueError if they belong to different texts, models or edits, or if two different
        reductions have one name. Nothing is copied.
        """
        for what, one, two in (
            ("models", self.name, other.name),
            ("models", self.config, other.config),
            ("tokens", [token.id for token in self.tokens], [token.id for token in other.tokens]),
            ("edits", self.edits, other.edits),
        ):
            if one != two:
                raise ValueError(f"these traces cannot be joined: their {what} differ, {one} and {two}")
        if self._head.data_ptr() != other._head.data_ptr() and not torch.equal(self._head, other._head):
            raise ValueError(f"these traces cannot be joined: two different models are called {self.name!r}")
        names = {reduction.name: reduction for reduction in self._reduced}
        for reduction in other._reduced:
            if names.get(reduction.name, reduction) != reduction:
                raise ValueError(
                    f"these traces cannot be joined: each has another reduction called {reduction.name!r}"
                )
        values = other._values | self._values
        return Trace(
            name=self.name,
            config=self.config,
            tokens=self.tokens,
            tokenizer=self._tokenizer,
            values={key: values[key] for key in all_keys(self.config) if key in values},
            final=self._final,
            head=self._head,
            norms=self._norms,
            edits=self.edits,
            reduced=other._reduced | self._reduced,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of what was captured; two names of one tensor (resid_post 0, resid_pre 1) count once."""
        results = [result for results in self._reduced.values() for result in results]
        return nbytes_of(*self._values.values(), self._final, *results)

    def logits(self, position: int = -1) -> torch.Tensor:
        """(vocab_size,): the row of logits at one position. ValueError if there is no such position."""
        final = self._final[self._position(position)]
        return (
            kernels.linear(final.to(self._head)[None], self._head)[0].float().cpu()
        )  # (1, D) x (V, D) -> (V,)

    def next_tokens(
        self,
        k: int = 10,
        position: int = -1,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> pd.DataFrame:
        """The `k` most probable next tokens: rank (from 1), id, token, logit, probability.

        Probabilities are over the whole vocabulary, after temperature, top-k and top-p: what the
        rows lack to 1 is the mass of the tokens that are not shown. The logits are the model's own.
        """
        return next_tokens_of(self._tokenizer, self.logits(position), k, Sampling(temperature, top_k, top_p))

    def norms(self) -> pd.DataFrame:
        """A row per LayerNorm and position: mean and (biased) variance over the D numbers, before and after.

        Columns: norm, block (<NA> for the final one), position, token, mean, variance, mean_after,
        variance_after. "After" is after scale and shift. Needs resid_pre, resid_mid and the last
        resid_post in the trace.
        """
        found, tokens = self.norm_statistics(), len(self)
        blocks = [norm.block for norm in self._norms for _ in range(tokens)]
        return pd.DataFrame(
            {
                "norm": np.repeat(found.names, tokens).astype(object),
                "block": pd.array(blocks, dtype="Int64"),
                "position": np.tile(np.arange(tokens), len(found.names)),
                "token": [token.text for token in self.tokens] * len(found.names),
                **{column: found.grid(column).ravel() for column in NormStatistics.COLUMNS},
            }
        )

    def norm_statistics(self) -> "NormStatistics":
        """The numbers of `norms()` as arrays, a row a norm and a column a token."""
        rows = []
        for norm in self._norms:
            before = self._values_of(norm.source)
            shift = None if norm.shift is None else norm.shift.float().cpu()
            after = F.layer_norm(
                before, before.shape[-1:], norm.scale.float().cpu(), shift, norm.eps
            )  # (T, D)
            rows.append(
                [*_mean_and_variance(before.numpy()), *_mean_and_variance(after.numpy())]
            )  # 4 of (T,)
        grids = np.array(rows, dtype=np.float32).swapaxes(0, 1)  # (4, N, T)
        return NormStatistics([norm.name for norm in self._norms], *grids)

    def token_id(self, token: OneToken, what: str = "token") -> int:
        """The id of a token of the vocabulary, given by it or by its text; see `tokenizer.one.one_token`."""
        return one_token(self._tokenizer, self.config.vocab_size, token, what)

    def _position(self, position: int) -> int:
        if (
            not isinstance(position, int)
            or isinstance(position, bool)
            or not -len(self) <= position < len(self)
        ):
            raise ValueError(f"there is no position {position!r}; they go from 0 to {len(self) - 1}")
        return position % len(self)


def tokens_of(tokenizer: tiktoken.Encoding, ids: Iterable[int]) -> list[Token]:
    """The tokens with their positions, their text and their bytes; `<id N>` where the tokenizer has none."""
    raws = [named_bytes(tokenizer, i) for i in ids]
    return [
        Token(p, i, raw.decode("utf-8", "replace"), raw)
        for p, (i, raw) in enumerate(zip(ids, raws, strict=True))
    ]


def next_tokens_of(
    tokenizer: tiktoken.Encoding, logits: torch.Tensor, k: int, sampling: Sampling
) -> pd.DataFrame:
    """`Trace.next_tokens`, for one row of logits (V,)."""
    if k < 1:
        raise ValueError(f"k is {k}; ask for at least 1 token")
    chosen = distribution(logits, sampling)
    ids = chosen.order[:k]
    return pd.DataFrame(
        {
            "rank": range(1, len(ids) + 1),
            "id": ids.numpy(),
            "token": [token.text for token in tokens_of(tokenizer, ids.tolist())],
            "logit": logits[ids].numpy(),
            "probability": chosen.probabilities[ids].numpy(),
        }
    )


def _mean_and_variance(x: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each row of (T, D), summed in float64; the variance is biased. (T,) each.

    NumPy and one thread: for a few rows, torch's threads cost more than the sums.
    """
    mean = x.mean(axis=-1, dtype=np.float64)
    return mean, np.square(x - mean[:, None]).mean(axis=-1)
