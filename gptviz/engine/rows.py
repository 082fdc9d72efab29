"""Rows: the numbers of one site of a Trace, in one tensor or in several pieces.

A trace that was taken after another one (`lm.trace(ids, after=earlier)`) has the rows of the earlier tokens
in common with it. It holds the earlier tensor and a new one for the new tokens, and joins them only when
needed.
"""

import weakref
from collections.abc import Sequence

import torch

# The number of rows up to which two pieces are joined, so that a text that grew token by token has few
# pieces.
SMALL = 64


class Rows:
    """The numbers of one site, with a row for each token, in one or more pieces.

    The tokens are in the last dimension but one of every piece: (T, D), (H, T, D/H) or, for attention weights
    (`weights`), (H, T, K) with the K keys up to the last token of the piece. Large pieces are never copied,
    so traces of texts with the same beginning can share them. `joined` makes one tensor of all.
    """

    def __init__(self, parts: Sequence[torch.Tensor], weights: bool):
        self.parts = tuple(parts)
        self.weights = weights
        # weak: callers at the same time share the joined tensor, and it goes when none of them needs it
        self._joined: weakref.ref[torch.Tensor] | None = None

    def __len__(self) -> int:
        return sum(part.shape[-2] for part in self.parts)

    def joined(self) -> torch.Tensor:
        """All rows as one tensor: (T, D), (H, T, D/H) or (H, T, T), with 0 where the causal mask hides a key.

        Do not write into it: it may be the piece itself.
        """
        if len(self.parts) == 1:
            return self.parts[0]
        if self._joined is None:
            tensor = None
        else:
            tensor = self._joined()
        if tensor is None:
            tensor = _together(self.parts, self.weights)
            self._joined = weakref.ref(tensor)
        return tensor

    def copied(self) -> torch.Tensor:
        """The same as `joined`, in memory of its own."""
        if len(self.parts) == 1:
            return self.parts[0].clone()
        return _together(self.parts, self.weights)

    def between(self, start: int, stop: int) -> torch.Tensor:
        """The rows from `start` to before `stop`, joined; attention weights have the keys before `stop`."""
        return _together(self._pieces(start, stop), self.weights)

    def cut(self, n: int) -> "Rows":
        """The rows of the first n tokens: views, no copies."""
        if n == len(self):
            return self
        return Rows(self._pieces(0, n), self.weights)

    def _pieces(self, start: int, stop: int) -> list[torch.Tensor]:
        """The rows from `start` to before `stop`, as views of the pieces."""
        wanted = []
        offset = 0
        for part in self.parts:
            first = max(start - offset, 0)
            last = min(stop - offset, part.shape[-2])
            if first < last:
                rows = part[..., first:last, :]
                # later keys are hidden from these
                wanted.append(rows[..., :stop] if self.weights else rows)
            offset += part.shape[-2]
        return wanted

    def then(self, more: torch.Tensor) -> "Rows":
        """These rows, followed by a further piece."""
        parts = [*self.parts, more]
        while len(parts) > 1 and parts[-2].shape[-2] <= parts[-1].shape[-2] <= SMALL // 2:
            parts[-2:] = [_together(parts[-2:], self.weights)]
        return Rows(parts, self.weights)


def _together(parts: Sequence[torch.Tensor], weights: bool) -> torch.Tensor:
    """Join pieces to one tensor. Attention weights get 0 for keys after those of their own piece."""
    if len(parts) == 1:
        return parts[0]
    if not weights:
        return torch.cat(list(parts), dim=-2)  # (n, D) or (H, n, D/H)
    n = sum(part.shape[-2] for part in parts)
    keys = parts[-1].shape[-1]
    rows = parts[0].new_zeros((*parts[0].shape[:-2], n, keys))
    start = 0
    for part in parts:
        end = start + part.shape[-2]
        rows[..., start:end, : part.shape[-1]] = part
        start = end
    return rows
