"""The passes behind a trial: one text read with each of some heads off, or made to look where a label says.

What is tried differs only from a block on, so the text goes once as far as that block, and the rest of the
pass is made from what came into it. Heads part ways after the weighted values: until there one text is enough
for all of them, and after it they go through the model together, as one batch.

Shapes: B changes of one batch, T tokens, n of them a passage (T = 2 n), H heads, D emb_dim, d = D / H, V
vocabulary.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from gptviz.analysis.ablation import BATCH_NUMBERS
from gptviz.engine.forward import Hook, hidden_from, running
from gptviz.engine.language_model import LanguageModel
from gptviz.fast import kernels

WORK = 2**32  # multiply-adds of a batch: about a tenth of a second, in which nobody else has the model


@dataclass(frozen=True)
class Change:
    """What is done to a head: its z is `value` (d,), zero if None, at every position, or, with `looking`, its
    attention is spread evenly over keys.

    `looking` (T, T) booleans; a query that has no such key looks where it does.
    """

    head: int
    looking: torch.Tensor | None = None
    value: torch.Tensor | None = None


def losses(
    lm: LanguageModel, ids: Sequence[int], block: int, changes: Sequence[Change]
) -> Iterator[list[float]]:
    """Nats a token of a text's second half but its first token, which nothing in its half announces.

    First of the model as it is, [loss], then batch by batch with each of the changes in this block: those of
    `lm.trace(ids, edits=[...])` within 1e-5. The model's own edits are made in every pass.
    """
    trace = lm.trace(ids, keep=[("resid_pre", block), "final"])
    yield _measured(lm, ids, trace["final"][None])
    stream = trace["resid_pre", block][None].to(lm.model.out_head.weight)  # (1, T, D)
    weights = 12 * (lm.config.n_layers - block) * lm.config.emb_dim**2
    size = max(1, min(WORK // (weights * len(ids)), BATCH_NUMBERS // (4 * stream.numel())))
    for i in range(0, len(changes), size):
        some = changes[i : i + size]
        hooks = _Hooks(lm.config.n_heads, block, some)
        edits = lm.hooks(len(ids), entered=block)
        final = hidden_from(lm.model, block, stream, [*hooks.before(), *edits, *hooks.after()])  # (B, T, D)
        yield _measured(lm, ids, final)


def _measured(lm: LanguageModel, ids: Sequence[int], final: torch.Tensor) -> list[float]:
    """(B, T, D) -> of each the mean over the predicted tokens of -ln of their probability."""
    half, head = len(ids) // 2, lm.model.out_head.weight
    wanted = torch.tensor(ids[half + 1 :], device=head.device)  # (n - 1,)
    found = []
    for one in final[:, half:-1].to(head):  # (n - 1, D)
        with running(lm.model):
            logits = kernels.linear(one, head).float()  # (n - 1, D) x (V, D) -> (n - 1, V)
            found.append(float(F.cross_entropy(logits, wanted)))
    return found


class _Hooks:
    """What makes one text B texts in a block, a change each."""

    def __init__(self, n_heads: int, block: int, changes: Sequence[Change]):
        self.n_heads, self.path, self.changes = n_heads, f"trf_blocks.{block}.att", changes
        self.values: torch.Tensor | None = None  # (1, T, D)
        self.attn: torch.Tensor | None = None  # (1, H, T, T)

    def before(self) -> list[Hook]:
        """Before the model's own edits of z: they are made of what a head gives that looks elsewhere."""
        return [Hook(f"{self.path}.out_proj", "input", self._parted)]

    def after(self) -> list[Hook]:
        """After them: what the head looks at is theirs, and a head that is off stays off."""
        hooks = [Hook(f"{self.path}.out_proj", "input", self._off)]
        if any(change.looking is not None for change in self.changes):
            hooks.append(Hook(f"{self.path}.W_value", "output", self._keeps("values")))
            hooks.append(Hook(f"{self.path}.dropout", "input", self._keeps("attn")))
        return hooks

    def _keeps(self, name: str) -> Callable[[torch.Tensor], None]:
        return lambda value: setattr(self, name, value)

    def _parted(self, z: torch.Tensor) -> torch.Tensor:
        z = z.repeat(len(self.changes), 1, 1)  # (1, T, D) -> (B, T, D)
        for row, change in zip(z, self.changes, strict=True):
            if change.looking is not None:
                row[:, self._of(change, z)] = self._looking(change, change.looking.to(z.device))
        return z

    def _looking(self, change: Change, keys: torch.Tensor) -> torch.Tensor:
        """(T, d): the head's z when it looks evenly at these keys, (T, T)."""
        assert self.attn is not None and self.values is not None, "both come before z"
        asked = keys.sum(dim=1, keepdim=True)  # (T, 1)
        own = self.attn[0, change.head]  # (T, T)
        even = keys.to(own) / asked.clamp(min=1)
        return torch.where(asked > 0, even, own) @ self.values[0, :, self._of(change, self.values)]

    def _off(self, z: torch.Tensor) -> torch.Tensor:
        z = z.clone()
        for row, change in zip(z, self.changes, strict=True):
            if change.looking is None:
                row[:, self._of(change, z)] = 0 if change.value is None else change.value.to(z)
        return z

    def _of(self, change: Change, value: torch.Tensor) -> slice:
        """The head's own numbers, of (..., D)."""
        d = value.shape[-1] // self.n_heads
        return slice(change.head * d, (change.head + 1) * d)
