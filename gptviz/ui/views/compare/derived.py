"""What the Compare page works out once for two runs."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz import LanguageModel, Run
from gptviz.analysis import compare
from gptviz.analysis.compare import Alignment
from gptviz.analysis.moved import kl_bits
from gptviz.reduction import Reduction
from gptviz.trace import Token, Trace
from gptviz.ui import runs
from gptviz.ui.runs import Keep, per_run
from gptviz.ui.shell.state import BLOCK
from gptviz.ui.views.heads import fit_whole
from gptviz.ui.views.target import logits_at

SHOWN = 6  # of each side's most probable tokens


def needs(lm: LanguageModel, tokens: Sequence[Token]) -> tuple[Keep, tuple[Reduction, ...]]:
    """What the page reads of a pass: all attention where that is little, else of one block."""
    return sites(lm, len(tokens), BLOCK.within(lm.config.n_layers)), ()


def sites(lm: LanguageModel, n_tokens: int, block: int | None) -> Keep:
    ends = ("resid_pre", ("resid_post", lm.config.n_layers - 1))
    if fit_whole(lm.config, n_tokens):
        return ("attn", *ends)
    return ends if block is None else (("attn", block), *ends)


def trace_of(run: Run, block: int | None = None) -> Trace:
    return runs.get(run, sites(runs.model(run), len(run), block))


@per_run
def pairs(run: Run, other: Run, one_text: bool) -> Alignment:
    left, right = (runs.model(side).tokens(side.ids) for side in (run, other))
    return compare.align(left, right, one_text)


def one_vocabulary(run: Run, other: Run) -> bool:
    """Whether both sides' next tokens are those of one vocabulary."""
    left, right = (runs.model(side) for side in (run, other))
    same = left.tokenizer is right.tokenizer or left.tokenizer.name == right.tokenizer.name
    return same and left.config.vocab_size == right.config.vocab_size


@per_run
def expected(run: Run, other: Run, at: int, other_at: int, k: int = SHOWN) -> pd.DataFrame:
    """`compare.next_tokens` at two positions that belong together."""
    left, right = runs.model(run), runs.model(other)
    mine, theirs = logits_at(run, at), logits_at(other, other_at)
    return compare.next_tokens(mine, theirs, left.tokenizer, right.tokenizer, k)


@per_run
def divergence(run: Run, other: Run, at: int, other_at: int) -> tuple[float, float] | None:
    """KL(left || right) and KL(right || left) in bits; None where the vocabularies are two."""
    if not one_vocabulary(run, other):
        return None
    left, right = logits_at(run, at), logits_at(other, other_at)
    return kl_bits(left, right), kl_bits(right, left)


def one_shape(run: Run, other: Run) -> bool:
    """Whether each head of the one has its counterpart in the other, and the streams have one width."""
    left, right = (runs.model(side).config for side in (run, other))
    return (left.n_layers, left.n_heads, left.emb_dim) == (right.n_layers, right.n_heads, right.emb_dim)


def passes(run: Run, other: Run) -> int:
    """How many passes `heads_apart` makes: none where both sides' attention is kept whole."""
    long = [side for side in (run, other) if not fit_whole(runs.model(side).config, len(side))]
    return sum(runs.model(side).config.n_layers for side in long)


Progress = Callable[[int, int], object]


def heads_apart(
    run: Run, other: Run, one_text: bool, progress: Progress | None = None
) -> NDArray[np.float64]:
    """(L, H): `compare.heads_apart`; of long texts a block at a time, whose weights are let go again."""

    def work() -> NDArray[np.float64]:
        found = pairs(run, other, one_text)
        blocks = range(runs.model(run).config.n_layers)
        rows = []
        for b in blocks:
            left, right = (_attention(side, b) for side in (run, other))
            rows.append(compare.block_apart(left["attn", b], right["attn", b], found).numpy())
            if progress is not None:
                progress(b + 1, len(blocks))
        return np.stack(rows)

    return runs.runs().derived((f"{__name__}.heads_apart", other, one_text), run, work)


def _attention(run: Run, block: int) -> Trace:
    lm = runs.model(run)
    if fit_whole(lm.config, len(run)):
        return trace_of(run)
    return lm.trace(run.ids, keep=[("attn", block)])  # not into the cache: a block is 48 MiB, all are 576


@per_run
def streams_apart(run: Run, other: Run, one_text: bool) -> NDArray[np.float64]:
    """(L + 1, P): `compare.streams_apart`."""
    return compare.streams_apart(trace_of(run), trace_of(other), pairs(run, other, one_text)).numpy()


@per_run
def weights(run: Run, block: int, head: int) -> NDArray[np.float32]:
    """(T, T): one head's attention weights."""
    found: NDArray[np.float32] = trace_of(run, block)["attn", block][head].numpy().copy()
    return found


@per_run
def difference(
    run: Run, other: Run, one_text: bool, head: tuple[int, int], other_head: tuple[int, int]
) -> NDArray[np.float32]:
    """(P, P): the right side's weights less the left's, between the paired tokens."""
    found = pairs(run, other, one_text)
    left, right = (
        compare.grouped(trace_of(side, b)["attn", b][h : h + 1], ends)[0]
        for side, (b, h), ends in ((run, head, found.left), (other, other_head, found.right))
    )
    return (right - left).float().numpy()
