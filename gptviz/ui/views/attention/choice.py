"""What is drawn large: a head, or a block's average, with or without the first token."""

from dataclasses import dataclass

import torch

from gptviz import Trace
from gptviz.analysis import attention


@dataclass(frozen=True)
class Choice:
    block: int
    head: int
    average: bool
    hide_first: bool
    arcs: bool

    @property
    def title(self) -> str:
        """What a saved picture of it is called."""
        return f"Attention of block {self.block}, " + (
            "average over heads" if self.average else f"head {self.head}"
        )

    def weights(self, trace: Trace) -> tuple[torch.Tensor, torch.Tensor]:
        """(T, T) each: the model's own weights, or their average, and what is drawn of them.

        The two are one tensor unless the first token is hidden. Needs `attn` of the block.
        """
        attn = trace["attn", self.block]  # (H, T, T)
        own = attention.block_mean(attn) if self.average else attn[self.head]
        return own, self._drawn(own)

    def of_heads(self, trace: Trace) -> torch.Tensor:
        """(H, T, T): what is drawn of all heads of the block, or of their average alone."""
        if self.average:
            return self.weights(trace)[1][None]
        return self._drawn(trace["attn", self.block])

    def _drawn(self, weights: torch.Tensor) -> torch.Tensor:
        return attention.without_first(weights) if self.hide_first else weights
