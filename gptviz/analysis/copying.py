"""What a head's weights do with tokens, without a text: does it copy a token, and does it look at equal ones?

Elhage et al., A Mathematical Framework for Transformer Circuits, 2021. Of token embeddings E, a head makes
two tables of V x V numbers. The OV circuit says how much a token that is looked at raises each next token's
logit; the QK circuit how much each token wants to look at each other. Where the eigenvalues of the first are
positive, tokens raise themselves: the head copies. Where those of the second are, tokens look at their like.
Wang et al., Interpretability in the Wild, 2022, ask the same of tokens as block 0 leaves them.

Shapes in comments: V vocabulary, D emb_dim, d = D / H of one head.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz.analysis.against import double
from gptviz.engine import forward
from gptviz.engine.architecture import architecture_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.sites import sites_of
from gptviz.engine.undisturbed import undisturbed
from gptviz.fast import kernels

ROWS = 2048  # tokens of the vocabulary at a time: some milliseconds under the lock
TOP = 5
ALONE_AT = 5  # not 0: many heads treat the first token as none
# tokens of the vocabulary that are looked at
FEWEST = 32
MOST = 256
MOST_WORK = 2 * 10**11  # multiply-adds of them all


@undisturbed
def copying_scores(lm: LanguageModel, progress: Progress = ignore_progress) -> pd.DataFrame:
    """Return for every head: `ov_copying` and `qk_matching`, from -1 to 1 each, and `copies_top5`, from 0 to
    1.

    The first two are sum(e) / sum(|e|) over the eigenvalues e of the head's circuit, real parts above:

        OV = U n2 P W_O W_V n1 P E^T        (V, V): the logits that a token looked at gives to each,
                                            minus their mean over the vocabulary
        QK = E P n1 W_Q^T W_K n1 P E^T      (V, V): the score between the query's token and the key's

    E (V, D) are the token embeddings, U (V, D) the output head minus its mean row, P = 1 - 1 1^T / D what a
    LayerNorm takes off first, n1 and n2 the scales of the block's first LayerNorm and of the final one. 1 is
    a head that only copies (or: looks only at its like), -1 one that does the reverse, and about 0 one that
    does neither.
    Exact, without a table of V x V: A B and B A have the same eigenvalues other than 0, so those of
    OV are the d of W_V n1 P (E^T U) n2 P W_O, those of QK the d of W_K n1 P (E^T E) P n1 W_Q^T, which
    are (d, d). Worked out in float64. As in Elhage et al. the embeddings come straight from the table:
    positions, biases, the division by each token's own length, and what earlier blocks make of a token are
    left out. Where block 0 changes tokens a good deal, as in GPT-2, a head of a later block may copy and
    not show it here.

    So `copies_top5` is like the copy score of Wang et al., who take names in their prompts: tokens, each by
    itself at position `ALONE_AT`, go through block 0, then through this head as if it looked at them alone;
    the share of them whose own logit (final LayerNorm, output head) is among the five largest. Over tokens at
    equal steps of the vocabulary, as many as `sampled` says, not all.

    The first two are of the weights, which no edit changes. The third is of tokens without a text, in which
    an edit has no meaning: of a model with edits it is not a number.

    `progress(done, of)` is called between short passes, without a lock: what it raises stops the work.
    """
    steps = -(-lm.config.vocab_size // ROWS) + len(lm.model.trf_blocks) * (1 + lm.config.n_heads)
    rows: list[tuple[int, int, float, float, float]] = []
    for done, head_rows in enumerate(_steps(lm), 1):
        rows += head_rows
        progress(done, steps)
    return pd.DataFrame(rows, columns=["block", "head", "ov_copying", "qk_matching", "copies_top5"])


def sampled(lm: LanguageModel) -> list[int]:
    """The tokens that `copies_top5` is taken over: as many as keep its work within `MOST_WORK`."""
    config = lm.config
    a_token = config.vocab_size * config.emb_dim * config.n_layers * config.n_heads
    ordinary = ordinary_tokens(lm)
    number = min(ordinary, max(FEWEST, min(MOST, MOST_WORK // a_token)))
    return [i * ordinary // number for i in range(number)]


@undisturbed
def copies_of(
    lm: LanguageModel, ids: Sequence[int], sign: int = 1, progress: Progress = ignore_progress
) -> NDArray[np.float64]:
    """Return the share of these tokens that each head copies by its weights alone, (L, H).

    That is `copies_top5` of `copying_scores` for chosen tokens: Wang et al. take names. With `sign` -1 the head
    writes the opposite of what it writes, so that a large share is of a head that writes against tokens. No edit
    changes weights. `progress(done, of)` is called after every block, without a lock: what it raises stops
    the work.
    """
    tokens = torch.tensor([*ids], device=lm.model.tok_emb.weight.device)
    stream = _alone(lm, tokens)
    shares = np.zeros((lm.config.n_layers, lm.config.n_heads))
    for b in range(lm.config.n_layers):
        for h in range(lm.config.n_heads):
            shares[b, h] = _copied(lm, (b, h), tokens, stream, sign)
        progress(b + 1, lm.config.n_layers)
    return shares


def _alone(lm: LanguageModel, ids: torch.Tensor) -> torch.Tensor:
    """Tokens as block 0 leaves each of them by itself, (n, D)."""
    with forward.running(lm.model):
        position = torch.tensor([min(ALONE_AT, lm.config.context_length - 1)], device=ids.device)
        # (n, 1) ids -> (n, 1, D): texts of one token
        alone = architecture_of(lm.model).embed(lm.model, ids[:, None], position)
        return lm.model.trf_blocks[0](alone)[:, 0]


def _copied(
    lm: LanguageModel, at: tuple[int, int], ids: torch.Tensor, stream: torch.Tensor, sign: int = 1
) -> float:
    """The share of tokens whose own logit is among the largest where the head at (block, head) writes alone."""
    block = lm.model.trf_blocks[at[0]]
    head_slice = _rows(lm, "q", at[1])
    with forward.running(lm.model):
        value = block.att.W_value(block.norm1(stream))[:, _rows(lm, "v", at[1])]  # (n, d)
        # (n, D)
        written = lm.model.final_norm(sign * value @ block.att.out_proj.weight[:, head_slice].T)
        logits = kernels.linear(written, lm.model.out_head.weight)  # (n, V)
        above = (logits > logits.gather(1, ids[:, None])).sum(dim=1)
    return float((above < TOP).float().mean())


def _rows(lm: LanguageModel, site: str, head: int) -> slice:
    """The rows of this site's projection that a head uses; those of its group where heads share them."""
    d = lm.config.head_dim
    place = sites_of(lm.config)[site].of_head(head, lm.config)
    return slice(place * d, (place + 1) * d)


def ordinary_tokens(lm: LanguageModel) -> int:
    """The number of ids that are no special tokens; special tokens are the last of a vocabulary."""
    return max(1, lm.config.vocab_size - len(lm.tokenizer.special_tokens_set))


def _steps(lm: LanguageModel) -> Iterator[list[tuple[int, int, float, float, float]]]:
    """All the work in short pieces, without a lock in between: a head's row, or nothing yet."""
    model = lm.model
    embedding = model.tok_emb.weight.detach()
    unembedding = model.out_head.weight.detach()
    tied = embedding.data_ptr() == unembedding.data_ptr()
    like = torch.zeros(lm.config.emb_dim, lm.config.emb_dim, dtype=torch.float64)  # E^T E (D, D)
    out = like if tied else torch.zeros_like(like)  # E^T of the output head (D, D)
    tokens, heads = torch.zeros(2, lm.config.emb_dim, dtype=torch.float64)  # (D,): sums of rows
    for start in range(0, len(embedding), ROWS):
        with forward.alone():
            chunk = embedding[start : start + ROWS].double().cpu()  # (rows, D)
            like += chunk.T @ chunk
            if tied:
                outputs = chunk
            else:
                outputs = unembedding[start : start + ROWS].double().cpu()
                out += chunk.T @ outputs
            tokens += chunk.sum(dim=0)
            heads += outputs.sum(dim=0)
        yield []
    # E^T U: a logit alone supports nothing
    out = out - torch.outer(tokens, heads / len(unembedding))
    ids = torch.tensor(sampled(lm), device=embedding.device)
    stream = _alone(lm, ids)
    for b, block in enumerate(model.trf_blocks):
        with forward.alone():
            circuits = _eigenvalues(lm, block, like, out)
        yield []
        for h, scores in enumerate(circuits):
            if lm.edits:
                yield [(b, h, *scores, math.nan)]
                continue
            yield [(b, h, *scores, _copied(lm, (b, h), ids, stream))]


def _eigenvalues(
    lm: LanguageModel, block: Any, like: torch.Tensor, out: torch.Tensor
) -> list[tuple[float, float]]:
    """Return, for each head of a block, the scores of its OV and its QK circuit."""
    kind = architecture_of(lm.model)
    one = torch.ones(lm.config.head_dim, dtype=torch.float64)
    first = double(block.norm1.scale)
    last = double(lm.model.final_norm.scale)
    w_q, w_k, w_v = (
        double(getattr(block.att, f"W_{name}").weight) for name in ("query", "key", "value")
    )
    w_o = double(block.att.out_proj.weight)
    # where both tokens stand at one place, which turns queries and keys alike
    for_query, for_key = (kind.projected(block.att, site, one, one, 0) for site in ("q", "k"))
    between = _centred if kind.centred else _as_it_is
    reads = first[:, None] * between(out * last)  # (D, D): n1 P (E^T U) n2 P
    meets = first[:, None] * between(like) * first
    scores = []
    for h in range(lm.config.n_heads):
        of_query, of_key, of_value = (_rows(lm, site, h) for site in ("q", "k", "v"))
        ov = w_v[of_value] @ reads @ w_o[:, of_query]  # (d, D) (D, D) (D, d) -> (d, d)
        keys = for_key[:, None] * w_k[of_key]  # (d, D)
        qk = keys @ meets @ (for_query[:, None] * w_q[of_query]).T
        scores.append((_sign(ov), _sign(qk)))
    return scores


def _as_it_is(between: torch.Tensor) -> torch.Tensor:
    """X: an RMSNorm takes no mean off."""
    return between


def _centred(between: torch.Tensor) -> torch.Tensor:
    """P X P: (D, D) with the mean of every row and column taken off."""
    between = between - between.mean(dim=0, keepdim=True)
    return between - between.mean(dim=1, keepdim=True)


def _sign(square: torch.Tensor) -> float:
    """sum(e) / sum(|e|) of the eigenvalues: (d, d) -> from -1 to 1; 0 where all are 0."""
    values = torch.linalg.eigvals(square)
    size = float(values.abs().sum())
    if size > 0:
        return float(values.real.sum()) / size
    return 0.0
