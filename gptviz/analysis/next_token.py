"""What the model expects next, and how surprised it was by what came.

`candidates` follows one row of logits through temperature, top-k, top-p and softmax; `surprises` looks back
over a prompt, and `losses` over the text of a pass. Shapes: T tokens, D emb_dim, V vocabulary.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from gptviz.analysis.loss import loss_steps
from gptviz.analysis.reads import reads
from gptviz.engine import forward
from gptviz.engine.index import whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sampling import AS_IT_IS, Distribution, Sampling, distribution
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed

CUT_BY_TOP_K = "top-k"
CUT_BY_TOP_P = "top-p"
KEPT = "kept"


@dataclass(frozen=True)
class Entropy:
    """How spread out a distribution is: H = -sum p ln p."""

    nats: float

    @property
    def bits(self) -> float:
        return self.nats / math.log(2)

    @property
    def perplexity(self) -> float:
        """As many equally likely tokens would be as uncertain."""
        return math.exp(self.nats)


@dataclass(frozen=True)
class Candidates:
    """The next token's distribution: some rows of it, and the sum of all the others.

    `table` has the columns rank (from 1, by logit), id, logit, scaled, filter ("kept", "top-k" or
    "top-p": which filter cut it), probability, and model_probability: what the token has at
    temperature 1 with no filter. Its probabilities and `rest_probability` sum to 1.
    """

    table: pd.DataFrame
    chosen: Distribution
    kept: int  # how many tokens of the vocabulary both filters left
    rest: int  # how many tokens are not in the table
    rest_kept: int  # and how many of them both filters left
    rest_probability: float
    rest_model_probability: float
    log_sum: float  # ln of the kept tokens' sum of exp(scaled): probability = exp(scaled - log_sum), T > 0
    entropy: Entropy
    model_entropy: Entropy


def entropy(probabilities: Tensor) -> Entropy:
    """Return the entropy of (V,) probabilities; those that are 0 add nothing."""
    return Entropy(float(torch.special.entr(probabilities.double()).sum()))


@undisturbed
def candidates(
    logits: Tensor, k: int = 10, sampling: Sampling = AS_IT_IS, also: Iterable[int] = ()
) -> Candidates:
    """The `k` largest of (V,) logits through every step; the ids `also` get their rows at any rank.

    Raises ValueError for k < 1.
    """
    whole("k", k, 1)
    chosen = distribution(logits, sampling)
    rank = chosen.rank
    probabilities = chosen.probabilities
    ids = chosen.order[:k]
    beyond = sorted({int(i) for i in also if rank[i] >= k}, key=lambda i: int(rank[i]))
    ids = torch.cat([ids, torch.tensor(beyond, dtype=ids.dtype)])
    plain = sampling.changes_nothing
    model = probabilities if plain else torch.softmax(logits.double(), dim=0)  # (V,)
    spread = entropy(probabilities)
    largest = chosen.order[0]
    return Candidates(
        table=_table(logits, chosen, model, ids),
        chosen=chosen,
        kept=int(chosen.kept.sum()),
        rest=len(logits) - len(ids),
        rest_kept=int(chosen.kept.sum() - chosen.kept[ids].sum()),
        rest_probability=rest_of(probabilities, ids),
        rest_model_probability=rest_of(model, ids),
        log_sum=float(chosen.scaled[largest] - probabilities[largest].log()),
        entropy=spread,
        model_entropy=spread if plain else entropy(model),
    )


def _table(logits: Tensor, chosen: Distribution, model: Tensor, ids: Tensor) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "rank": (chosen.rank[ids] + 1).numpy(),
            "id": ids.numpy(),
            "logit": logits[ids].float().numpy(),
            "scaled": chosen.scaled[ids].numpy(),
            "filter": filters(chosen, ids),
            "probability": chosen.probabilities[ids].numpy(),
            "model_probability": model[ids].numpy(),
        }
    )


def rest_of(probabilities: Tensor, ids: Tensor) -> float:
    """The sum of (V,) probabilities without those of `ids`, as a sum of small numbers."""
    others = probabilities.clone()
    others[ids] = 0
    return float(others.sum())


def filters(chosen: Distribution, ids: Tensor) -> list[str]:
    """For each of these ids: kept, or the filter that cut it."""

    def filter_of(in_top_k: bool, kept: bool) -> str:
        if kept:
            return KEPT
        if in_top_k:
            return CUT_BY_TOP_P
        return CUT_BY_TOP_K

    rows = zip(chosen.in_top_k[ids].tolist(), chosen.kept[ids].tolist(), strict=True)
    return [filter_of(in_top_k, kept) for in_top_k, kept in rows]


@undisturbed
def surprises(final: Tensor, head: Tensor, ids: Sequence[int], chunk: int = 64) -> pd.DataFrame:
    """A table of how likely each token of a prompt was, given those before it: T rows.

    final (T, D) and the output head (V, D) give the logits, `chunk` positions at a time: a prompt
    of 1,024 tokens would need 200 MB at once with GPT-2's vocabulary. Columns: position, id, logit,
    log_sum (the logarithm of the sum of e^logit over the vocabulary), probability, nats and bits (minus
    the logarithm of the probability), rank (from 1). The first token has nothing before it: NaN, and <NA>
    for its rank.
    """
    logit, log_sum, log_p = (np.full(len(ids), np.nan) for _ in range(3))
    rank = np.zeros(len(ids), dtype=np.int64)
    for start in range(0, len(ids) - 1, chunk):
        stop = min(start + chunk, len(ids) - 1)
        logits = F.linear(final[start:stop].to(head), head).cpu().double()  # (chunk, V)
        came = torch.tensor(ids[start + 1 : stop + 1])[:, None]  # (chunk, 1): what each position met next
        steps = loss_steps(logits, came[:, 0])
        here = slice(start + 1, stop + 1)
        logit[here] = steps.logit
        log_sum[here] = steps.log_sum
        log_p[here] = -steps.loss
        own = steps.logit[:, None]
        ahead = (logits > own) | ((logits == own) & (torch.arange(logits.shape[1]) < came))
        rank[start + 1 : stop + 1] = ahead.sum(1).numpy() + 1
    return pd.DataFrame(
        {
            "position": range(len(ids)),
            "id": list(ids),
            "logit": logit,
            "log_sum": log_sum,
            "probability": np.exp(log_p),
            "nats": -log_p,
            "bits": -log_p / math.log(2),
            "rank": pd.Series(rank, dtype="Int64").mask(rank == 0),
        }
    )


@reads("final")
def next_table(
    lm: LanguageModel, t: Trace, position: int, sampling: Sampling, ids: Sequence[int]
) -> pd.DataFrame:
    """A table of how these tokens come by their probability after a position: `Candidates.table`.

    From the logit through temperature (`scaled`) and filters to softmax; a row per id.
    """
    logits = t.logits(position)  # (V,)
    model = torch.softmax(logits.double(), dim=0)  # at temperature 1, nothing filtered
    return _table(logits, distribution(logits, sampling), model, torch.tensor(ids))


@reads("final")
def entropies(lm: LanguageModel, t: Trace, position: int, sampling: Sampling) -> pd.DataFrame:
    """A table of the entropy after a position: a row for the model, one for these settings.

    Columns: distribution, bits, nats, perplexity.
    """
    rows = []
    for name, how in (("the model", AS_IT_IS), ("with your settings", sampling)):
        found = entropy(distribution(t.logits(position), how).probabilities)
        rows.append((name, found.bits, found.nats, found.perplexity))
    return pd.DataFrame(rows, columns=["distribution", "bits", "nats", "perplexity"])


def curve(logits: Tensor, found: Candidates, points: int = 240) -> pd.DataFrame:
    """The whole vocabulary in falling order, at no more than `points` ranks, closer where they are few.

    `found` belongs to these (V,) logits. Columns: rank (from 1), id, model_probability, probability.
    """
    order = found.chosen.order  # (V,) ids
    places = np.unique(np.geomspace(1, len(order), points).round().astype(int)) - 1
    ids = order[torch.from_numpy(places)]
    return pd.DataFrame(
        {
            "rank": places + 1,
            "id": ids.numpy(),
            "model_probability": torch.softmax(logits.double(), dim=0)[ids].numpy(),
            "probability": found.chosen.probabilities[ids].numpy(),
        }
    )


@reads("final")
def losses(lm: LanguageModel, t: Trace, target: int | None = None) -> pd.DataFrame:
    """Return `surprises` of the text that `t` read, a row per token; the first has nothing before it: NaN.

    `target` is a token after the last one that has a row, too, as a training window's last target has.
    Columns: position, id, logit, log_sum, probability, nats (−ln of it: the loss), bits, rank.
    """
    ids = [token.id for token in t.tokens] + ([] if target is None else [target])
    with forward.alone():  # with GPT-2's vocabulary as much work as several passes
        return surprises(t["final"], lm.model.out_head.weight.detach(), ids)
