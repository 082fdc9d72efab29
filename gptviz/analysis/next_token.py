"""What the model expects next, and how surprised it was by what came.

`candidates` follows one row of logits through temperature, top-k, top-p and softmax. `surprises` looks back:
how likely was each token, given those before it? Its input are the numbers of a pass; `losses` takes a Trace,
and gives the same table. A token's surprise, minus the logarithm of its probability, is its loss.

Shapes: T tokens, D emb_dim, V vocabulary. A function with `lm` as its first parameter is marked `@reads`: the
decorator checks that this model made the trace, even if the function itself does not need the model.
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

# The words in the column "filter" of a table.
CUT_BY_TOP_K = "top-k"
CUT_BY_TOP_P = "top-p"
KEPT = "kept"


@dataclass(frozen=True)
class Entropy:
    """The entropy of a distribution: H = -sum p ln p."""

    nats: float

    @property
    def bits(self) -> float:
        return self.nats / math.log(2)

    @property
    def perplexity(self) -> float:
        """The number of equally likely tokens that would be as uncertain: e^H."""
        return math.exp(self.nats)


@dataclass(frozen=True)
class Candidates:
    """The next token's distribution: a table of some tokens, and the sum of all the others, the rest.

    `table` has the columns rank (from 1, by logit), id, logit, scaled (logit / temperature), filter ("kept",
    or the filter that cut it, "top-k" or "top-p"), probability, and model_probability: what the token has at
    temperature 1 with no filter. Its probabilities and `rest_probability` sum to 1, and so do its model
    probabilities and `rest_model_probability`.
    """

    table: pd.DataFrame
    chosen: Distribution  # of the whole vocabulary, with temperature and filters
    kept: int  # the number of tokens of the vocabulary that both filters keep
    rest: int  # the number of tokens that are not in the table
    rest_kept: int  # the number of those that both filters keep
    rest_probability: float
    rest_model_probability: float
    # ln of the sum of exp(scaled) over the kept tokens; where the temperature is above 0,
    # a kept token's probability = exp(scaled - log_sum). At 0 it is the largest logit, and means nothing.
    log_sum: float
    entropy: Entropy  # with temperature and filters
    model_entropy: Entropy  # of the model's own distribution


@undisturbed
def entropy(probabilities: Tensor) -> Entropy:
    """Return the entropy of (V,) probabilities; those that are 0 add nothing."""
    return Entropy(float(torch.special.entr(probabilities.double()).sum()))


@undisturbed
def candidates(
    logits: Tensor, k: int = 10, sampling: Sampling = AS_IT_IS, also: Iterable[int] = ()
) -> Candidates:
    """Follow the `k` largest of (V,) logits through every step to their probabilities.

    The token ids in `also` get rows, too, whatever their rank. Raises ValueError for k < 1.
    """
    whole("k", k, 1)
    chosen = distribution(logits, sampling)
    rank = chosen.rank
    probabilities = chosen.probabilities
    ids = chosen.order[:k]
    beyond = sorted({int(i) for i in also if rank[i] >= k}, key=lambda i: int(rank[i]))
    ids = torch.cat([ids, torch.tensor(beyond, dtype=ids.dtype)])  # (rows of the table,)
    if sampling.changes_nothing:
        model_probabilities = probabilities  # (V,)
    else:
        model_probabilities = torch.softmax(logits.double(), dim=0)  # (V,)
    largest = chosen.order[0]  # the id with the largest logit, which no filter cuts
    return Candidates(
        table=_table(logits, chosen, model_probabilities, ids),
        chosen=chosen,
        kept=int(chosen.kept.sum()),
        rest=len(logits) - len(ids),
        rest_kept=int(chosen.kept.sum() - chosen.kept[ids].sum()),
        rest_probability=rest_of(probabilities, ids),
        rest_model_probability=rest_of(model_probabilities, ids),
        # the same as logsumexp over the kept tokens, without gathering them: scaled - ln(probability)
        log_sum=float(chosen.scaled[largest] - probabilities[largest].log()),
        entropy=entropy(probabilities),
        model_entropy=entropy(model_probabilities),
    )


def _table(
    logits: Tensor, chosen: Distribution, model_probabilities: Tensor, ids: Tensor
) -> pd.DataFrame:
    """The rows of these ids as `Candidates.table`; logits and probabilities are (V,)."""
    return pd.DataFrame(
        {
            "rank": (chosen.rank[ids] + 1).numpy(),
            "id": ids.numpy(),
            "logit": logits[ids].float().numpy(),
            "scaled": chosen.scaled[ids].numpy(),
            "filter": filters(chosen, ids),
            "probability": chosen.probabilities[ids].numpy(),
            "model_probability": model_probabilities[ids].numpy(),
        }
    )


@undisturbed
def rest_of(probabilities: Tensor, ids: Tensor) -> float:
    """Add up (V,) probabilities without those of `ids`; 1 minus their sum would lose digits to rounding."""
    remaining = probabilities.clone()
    remaining[ids] = 0
    return float(remaining.sum())


def filters(chosen: Distribution, ids: Tensor) -> list[str]:
    """For each of these ids the word "kept", or the filter that cut it: "top-k" or "top-p"."""

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
    """Make a table of how likely each token of a text was, given those before it: a row per id.

    `final` (T, D) has the rows that the output head reads, after the final LayerNorm; the weights of the
    `head` are (V, D). `ids` are those of the text, and may have one more, the token that followed. The logits
    are worked out for `chunk` positions at a time: with GPT-2's vocabulary all those of 1,024 tokens would
    take 412 MB in float64.

    Columns: position, id, logit, log_sum (the logarithm of the sum of e^logit over the whole vocabulary),
    probability = e^(logit - log_sum), nats and bits (minus its logarithm, to the base e and 2), rank (from 1,
    by logit). The first token has nothing before it: NaN, and <NA> for its rank.
    """
    logit = np.full(len(ids), np.nan)
    log_sum = np.full(len(ids), np.nan)
    log_p = np.full(len(ids), np.nan)
    rank = np.zeros(len(ids), dtype=np.int64)
    for start in range(0, len(ids) - 1, chunk):
        stop = min(start + chunk, len(ids) - 1)
        logits = F.linear(final[start:stop].to(head), head).cpu().double()  # (chunk, V)
        rows = slice(start + 1, stop + 1)  # of the tokens that came after these positions
        targets = torch.tensor(ids[rows])[:, None]  # (chunk, 1)
        steps = loss_steps(logits, targets[:, 0])
        logit[rows] = steps.logit
        log_sum[rows] = steps.log_sum
        log_p[rows] = -steps.loss
        target_logit = steps.logit[:, None]  # (chunk, 1)
        # tokens with a larger logit stand ahead, and of equal logits the lower ids: as in `Distribution.rank`
        ahead = (logits > target_logit) | (
            (logits == target_logit) & (torch.arange(logits.shape[1]) < targets)
        )
        rank[rows] = ahead.sum(1).numpy() + 1
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
    """Make a table like `Candidates.table` of these tokens as the next one after a position; a row per id.

    It goes from the logit through temperature (`scaled`) and filters to the probability.
    """
    logits = t.logits(position)  # (V,)
    # at temperature 1, nothing filtered
    model_probabilities = torch.softmax(logits.double(), dim=0)
    return _table(logits, distribution(logits, sampling), model_probabilities, torch.tensor(ids))


@reads("final")
def entropies(lm: LanguageModel, t: Trace, position: int, sampling: Sampling) -> pd.DataFrame:
    """Make a table of the next token's entropy after a position: a row for the model, one for the settings.

    Columns: distribution, bits, nats, perplexity.
    """
    rows = []
    for name, settings in (("the model", AS_IT_IS), ("with your settings", sampling)):
        uncertainty = entropy(distribution(t.logits(position), settings).probabilities)
        rows.append((name, uncertainty.bits, uncertainty.nats, uncertainty.perplexity))
    return pd.DataFrame(rows, columns=["distribution", "bits", "nats", "perplexity"])


@undisturbed
def curve(logits: Tensor, found: Candidates, points: int = 240) -> pd.DataFrame:
    """Pick at most `points` ranks of the whole vocabulary, for a curve of falling probability.

    They are evenly spaced on a logarithmic axis, so that the first ranks all have a row. `found` belongs to
    these (V,) logits. Columns: rank (from 1), id, model_probability, probability.
    """
    order = found.chosen.order  # (V,) ids
    places = np.unique(np.geomspace(1, len(order), points).round().astype(int)) - 1  # ranks from 0
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
    """Make the table of `surprises` for the text of a pass: a row per token, whose `nats` is its loss.

    `target` is the id of a token that followed the text, as the last target of a training window does; it
    gets a row, too. Columns: position, id, logit, log_sum, probability, nats, bits, rank.
    """
    ids = [token.id for token in t.tokens]
    if target is not None:
        ids.append(target)
    with forward.alone():  # with GPT-2's vocabulary it is as much work as several passes
        return surprises(t["final"], lm.model.out_head.weight.detach(), ids)
