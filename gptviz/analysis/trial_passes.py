"""The passes behind a trial: one text read with each of some heads off, or made to look where a label says.

Shapes: B edits of one batch, T tokens, n of them a passage (T = 2 n), H heads, D emb_dim, d = D / H.
"""

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F

from gptviz.analysis.ablation import BATCH_NUMBERS
from gptviz.engine.edits import Edit
from gptviz.engine.forward import logits_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.reader import ready
from gptviz.engine.trace import Trace
from gptviz.engine.variants import variants

WORK = 2**32  # multiply-adds of a batch: about a tenth of a second, in which nobody else has the model


def losses(
    lm: LanguageModel,
    ids: Sequence[int],
    block: int,
    head: int,
    off: Sequence[Edit],
    looking: Sequence[torch.Tensor],
) -> Iterator[list[float]]:
    """Yield nats per token of a text's second half but its first token, which nothing in its half announces.

    First of the model as it is, [loss]; then, batch by batch, with each of the edits `off` of this block,
    and with the head looking evenly at each of these sets of keys, (T, T) booleans, where a query has one.
    """
    trace = lm.trace(ids, keep=[("resid_pre", block), ("attn", block), ("v", block), "final"])
    yield _measured(lm, ids, trace["final"][None])
    edits = [*off, *(Edit("z", block, _looks(lm, trace, block, head, keys), [head]) for keys in looking)]
    stream = trace["resid_pre", block]  # (T, D)
    weights = 12 * (lm.config.n_layers - block) * lm.config.emb_dim**2
    size = max(1, min(WORK // (weights * len(ids)), BATCH_NUMBERS // (4 * stream.numel())))
    for finals in variants(lm, stream, block, edits, size):
        yield _measured(lm, ids, finals)


def _measured(lm: LanguageModel, ids: Sequence[int], finals: torch.Tensor) -> list[float]:
    """(B, T, D) -> of each the mean over the predicted tokens of -ln of their probability."""
    half = len(ids) // 2
    wanted = torch.tensor(ids[half + 1 :])  # (n - 1,)
    return [float(F.cross_entropy(logits_of(lm.model, one), wanted)) for one in finals[:, half:-1]]


def _looks(lm: LanguageModel, trace: Trace, block: int, head: int, keys: torch.Tensor) -> torch.Tensor:
    """Return z (H, T, d) with the head looking evenly at these keys (T, T), then the model's own edits."""
    asked, attn = keys.sum(dim=1, keepdim=True), trace["attn", block][head]  # (T, 1), (T, T)
    z = torch.where(asked > 0, keys / asked.clamp(min=1), attn) @ trace["v", block]  # (H, T, d)
    for edit in ready(lm, lm.edits):
        z = edit.apply(z) if (edit.site, edit.block) == ("z", block) else z
    return z
