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

    def weights(self, trace: Trace) -> tuple[torch.Tensor, torch.Tensor]:
        """(T, T) each: the model's own weights, or their average, and what is drawn of them.

        The two are one tensor unless the first token is hidden. Needs `attn` of the block.
        """
        attn = trace["attn", self.block]  # (H, T, T)
        own = attention.block_mean(attn) if self.average else attn[self.head]
        return own, attention.without_first(own) if self.hide_first else own
