"""What the Compare page works out once for two runs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz import LanguageModel, Run
from gptviz.analysis import compare
from gptviz.analysis.compare import Alignment
from gptviz.analysis.moved import kl_bits
from gptviz.engine.progress import Progress
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Token, Trace
from gptviz.ui import runs
from gptviz.ui.heads import fit_whole
from gptviz.ui.runs import Keep, per_run
from gptviz.ui.shell.slow import watched
from gptviz.ui.shell.state import BLOCK
from gptviz.ui.shell.target import logits_at
from gptviz.ui.views.compare import words

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


def one_vocabulary(run: Run, right: Run) -> bool:
    """Whether both sides' next tokens are those of one vocabulary."""
    one, other = (runs.model(side) for side in (run, right))
    same = one.tokenizer is other.tokenizer or one.tokenizer.name == other.tokenizer.name
    return same and one.config.vocab_size == other.config.vocab_size


@per_run
def expected(run: Run, right: Run, at: int, right_at: int, count: int = SHOWN) -> pd.DataFrame:
    """`compare.next_tokens` at two positions that belong together."""
    one, other = (runs.model(side).tokenizer for side in (run, right))
    return compare.next_tokens(logits_at(run, at), logits_at(right, right_at), one, other, count)


@per_run
def divergence(run: Run, right: Run, at: int, right_at: int) -> tuple[float, float] | None:
    """KL(left || right) and KL(right || left) in bits; None where the vocabularies are two."""
    if not one_vocabulary(run, right):
        return None
    one, other = logits_at(run, at), logits_at(right, right_at)
    return kl_bits(one, other), kl_bits(other, one)


def one_shape(run: Run, right: Run) -> bool:
    """Whether each head of the one has its counterpart in the other, and the streams have one width."""
    one, other = (runs.model(side).config for side in (run, right))
    return (one.n_layers, one.n_heads, one.emb_dim) == (other.n_layers, other.n_heads, other.emb_dim)


def passes(run: Run, right: Run) -> int:
    """How many passes `heads_apart` makes: none where both sides' attention is kept whole."""
    long = [side for side in (run, right) if not fit_whole(runs.model(side).config, len(side))]
    return sum(runs.model(side).config.n_layers for side in long)


def heads_apart(run: Run, right: Run, pairs: Alignment) -> NDArray[np.float64]:
    """(L, H): `compare.heads_apart`; of long texts a block at a time, whose weights are let go again."""

    def work(progress: Progress) -> NDArray[np.float64]:
        blocks = range(runs.model(run).config.n_layers)
        rows = []
        for b in blocks:
            one, other = (_attention(side, b)["attn", b] for side in (run, right))
            rows.append(compare.block_apart(one, other, pairs).numpy())
            progress(b + 1, len(blocks))
        return np.stack(rows)

    return watched((f"{__name__}.heads_apart", right, pairs), run, work, words.blocks)


def _attention(run: Run, block: int) -> Trace:
    lm = runs.model(run)
    if fit_whole(lm.config, len(run)):
        return trace_of(run)
    return lm.trace(run.ids, keep=[("attn", block)])  # not into the cache: a block is 48 MiB, all are 576


@per_run
def streams_apart(run: Run, right: Run, pairs: Alignment) -> NDArray[np.float64]:
    """(L + 1, P): `compare.streams_apart`."""
    return compare.streams_apart(trace_of(run), trace_of(right), pairs).numpy()


@per_run
def weights(run: Run, block: int, head: int) -> NDArray[np.float32]:
    """(T, T): one head's attention weights."""
    found: NDArray[np.float32] = trace_of(run, block)["attn", block][head].numpy().copy()
    return found


@per_run
def difference(
    run: Run, right: Run, pairs: Alignment, heads: tuple[tuple[int, int], tuple[int, int]]
) -> NDArray[np.float32]:
    """(P, P): the right side's weights less the left's, between the paired tokens; `heads` of the two."""
    one, other = (
        compare.grouped(trace_of(side, b)["attn", b][h : h + 1], ends)[0]
        for side, (b, h), ends in zip((run, right), heads, (pairs.left, pairs.right), strict=True)
    )
    return (other - one).float().numpy()
