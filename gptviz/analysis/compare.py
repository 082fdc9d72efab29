"""Two passes side by side: which of their tokens belong together, and what differs there.

The passes may be of two texts, of two models, or of one model before and after a change. Tokens are paired
where both have read as far: where two tokenizers end a token at the same byte of one text, or where two
texts have the same token in the same place. What stands between two pairs counts with the second, so that
each row of attention weights still sums to 1 and can be compared with the other's.

Shapes: H heads, T tokens, P pairs, L blocks, D emb_dim, V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

import pandas as pd
import torch
import torch.nn.functional as F
from tiktoken import Encoding

from gptviz.analysis.moved import kl_bits, total_variation
from gptviz.analysis.reads import reads
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sampling import Distribution, distribution
from gptviz.engine.tokens import Token
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer import named_bytes

ROUNDING = 1e-5  # of a share of attention: a pass worked out in another order gives as much


@dataclass(frozen=True)
class Alignment:
    """Pairs of positions, one of each text, both rising."""

    pairs: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def left(self) -> list[int]:
        return [left for left, _ in self.pairs]

    @property
    def right(self) -> list[int]:
        return [right for _, right in self.pairs]

    def nearest(self, left: int) -> int:
        """The index of the pair of a position of the left text; if it has none, the next, else the last."""
        return next((i for i, position in enumerate(self.left) if position >= left), len(self) - 1)


def align(left: Sequence[Token], right: Sequence[Token], one_text: bool) -> Alignment:
    """The pairs of two tokenized texts; of `one_text` where both tokenizers end a token, else by tokens.

    Two texts are paired from the end, where both are asked what comes next, then from the beginning, then
    where the same tokens stand in between (`difflib`); as many tokens in the one as in the other between two
    pairs are paired one by one, and the last tokens where neither has a partner.
    """
    return Alignment(tuple(_by_bytes(left, right) if one_text else _by_tokens(left, right)))


def _by_bytes(left: Sequence[Token], right: Sequence[Token]) -> list[tuple[int, int]]:
    """Pair the tokens of one text after which both have read the same number of bytes."""
    left_ends = {end: i for i, end in enumerate(accumulate(len(token.raw) for token in left))}
    right_ends = {end: j for j, end in enumerate(accumulate(len(token.raw) for token in right))}
    return [(i, right_ends[end]) for end, i in left_ends.items() if end in right_ends]


def _by_tokens(left: Sequence[Token], right: Sequence[Token]) -> list[tuple[int, int]]:
    left_raw = [token.raw for token in left]
    right_raw = [token.raw for token in right]
    most = min(len(left_raw), len(right_raw))
    after = next((n for n in range(most) if left_raw[-1 - n] != right_raw[-1 - n]), most)
    before = next((n for n in range(most - after) if left_raw[n] != right_raw[n]), most - after)
    left_end = len(left_raw) - after
    right_end = len(right_raw) - after
    pairs = [(n, n) for n in range(before)]
    for kind, i1, i2, j1, j2 in SequenceMatcher(
        None, left_raw[before:left_end], right_raw[before:right_end], autojunk=False
    ).get_opcodes():
        if kind == "equal" or i2 - i1 == j2 - j1:
            pairs += [(before + i1 + n, before + j1 + n) for n in range(i2 - i1)]
    pairs += [(left_end + n, right_end + n) for n in range(after)]
    last = (len(left_raw) - 1, len(right_raw) - 1)
    if not pairs or (pairs[-1][0] < last[0] and pairs[-1][1] < last[1]):
        pairs.append(last)
    return pairs


def grouped(weights: torch.Tensor, ends: Sequence[int]) -> torch.Tensor:
    """Attention weights between paired tokens: (H, T, T) -> (H, P, P), rows that still sum to 1.

    The rows of these positions; each key has the weights of all tokens after the pair before it.
    """
    index = torch.tensor(list(ends))
    sums = weights[:, index].double().cumsum(dim=-1)[..., index]  # (H, P, T) -> (H, P, P)
    return sums.diff(dim=-1, prepend=torch.zeros_like(sums[..., :1]))


@reads("attn")
def heads_apart(left: Trace, right: Trace, pairs: Alignment) -> torch.Tensor:
    """(L, H): how far each head's pattern is from the other's, the mean `total_variation` over the pairs
    after the first, 0 to 1; NaN where there is one pair only. Needs `attn`.

    ValueError for models with different numbers of blocks or heads: no head then belongs to another.
    """
    _check_shapes(left, right, "heads", "n_layers", "n_heads")
    blocks = range(left.config.n_layers)
    # L of (H,) -> (L, H)
    return torch.stack([block_apart(left["attn", b], right["attn", b], pairs) for b in blocks])


def block_apart(left: torch.Tensor, right: torch.Tensor, pairs: Alignment) -> torch.Tensor:
    """(H,): one block of `heads_apart`."""
    return total_variation(grouped(left, pairs.left), grouped(right, pairs.right))[:, 1:].mean(
        dim=-1
    )


@reads(lambda lm, pairs: ("resid_pre", ("resid_post", lm.config.n_layers - 1)))
def streams_apart(left: Trace, right: Trace, pairs: Alignment) -> torch.Tensor:
    """(L + 1, P): 1 - cosine of the two residual streams before each block, and after the last.

    0 is the same direction, 1 none in common, 2 the opposite one.

    Needs resid_pre, and resid_post of the last block. ValueError for models of different widths.
    """
    _check_shapes(left, right, "streams", "n_layers", "emb_dim")
    last = left.config.n_layers - 1
    sites = [*(("resid_pre", b) for b in range(last + 1)), ("resid_post", last)]
    rows = [
        1
        - F.cosine_similarity(
            left[key][pairs.left].double(), right[key][pairs.right].double(), dim=-1
        )
        for key in sites
    ]  # (P,) each
    return torch.stack(rows).clamp(min=0)  # (L + 1, P); below 0 is only rounding


def _check_shapes(left: Trace, right: Trace, what: str, *sizes: str) -> None:
    """Raise a ValueError where these sizes of the two models are not the same."""
    left_sizes, right_sizes = (
        ", ".join(f"{name} = {side.config[name]}" for name in sizes) for side in (left, right)
    )
    if left_sizes != right_sizes:
        raise ValueError(
            f"{left.name} has {left_sizes} and {right.name} {right_sizes}: {what} can be compared in "
            "models of one shape only"
        )


def next_tokens(
    left: torch.Tensor,
    right: torch.Tensor,
    left_tokenizer: Encoding,
    right_tokenizer: Encoding,
    k: int = 6,
) -> pd.DataFrame:
    """The `k` most probable next tokens of either side, in both: one row per token, by the larger probability.

    Logits (V,) of each side; tokens of two vocabularies are the same where their bytes are. Columns: left_id,
    right_id, left, right (probabilities), left_rank, right_rank (from 1); missing where a vocabulary does not
    have the token. With one vocabulary there are kl_bits_left_right and kl_bits_right_left, too (`kl_bits`).
    """
    one_vocabulary = left_tokenizer.name == right_tokenizer.name and left.shape == right.shape
    p = distribution(left)
    q = distribution(right)
    best_left, best_right = (side.order[:k].tolist() for side in (p, q))
    if one_vocabulary:
        ids: list[tuple[int | None, int | None]] = [(i, i) for i in best_left + best_right]
    else:
        ids = [
            (i, _find(named_bytes(left_tokenizer, i), right_tokenizer, len(right)))
            for i in best_left
        ]
        ids += [
            (_find(named_bytes(right_tokenizer, j), left_tokenizer, len(left)), j)
            for j in best_right
        ]
    table = pd.DataFrame(
        [(*_numbers(p, i), *_numbers(q, j)) for i, j in dict.fromkeys(ids)],
        columns=["left_id", "left", "left_rank", "right_id", "right", "right_rank"],
    ).astype({"left_id": "Int64", "left_rank": "Int64", "right_id": "Int64", "right_rank": "Int64"})
    if one_vocabulary:
        table = table.assign(
            kl_bits_left_right=kl_bits(left, right), kl_bits_right_left=kl_bits(right, left)
        )
    larger = table[["left", "right"]].max(axis=1)
    return table.loc[larger.sort_values(ascending=False, kind="stable").index].reset_index(
        drop=True
    )


def _find(raw: bytes, tokenizer: Encoding, size: int) -> int | None:
    try:
        i = tokenizer.encode_single_token(raw)
    except KeyError:
        return None
    return i if i < size else None  # a character model's tokenizer has ids for what it never saw


def _numbers(side: Distribution, i: int | None) -> tuple[int | None, float, int | None]:
    """A token's id, probability and rank."""
    if i is None:
        return (None, math.nan, None)
    return (i, float(side.probabilities[i]), 1 + int(side.rank[i]))


@undisturbed
def expected(left: Trace, right: Trace, at: int, right_at: int, k: int = 6) -> pd.DataFrame:
    """`next_tokens` after a position of each of two passes."""
    logits = left.logits(at), right.logits(right_at)
    return next_tokens(*logits, left.tokenizer, right.tokenizer, k)


@undisturbed
def side_by_side(
    lm: LanguageModel,
    text: str,
    other: LanguageModel,
    position: int = -1,
    other_text: str | None = None,
    special_tokens: bool = False,
) -> pd.DataFrame:
    """A table of what comes next in both models, at the pair of tokens of `position` in `text`.

    `block_apart` and `streams_apart` compare the two traces themselves.
    """
    left, right = (
        model.trace(model.encode(read, special_tokens)[: model.config.context_length])
        for model, read in ((lm, text), (other, text if other_text is None else other_text))
    )
    pairs = align(left.tokens, right.tokens, one_text=other_text is None)
    return expected(left, right, *pairs.pairs[pairs.nearest(position % len(left))])
