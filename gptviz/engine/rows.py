"""Rows: a site's numbers in the pieces in which passes made them."""

import weakref
from collections.abc import Sequence

import torch

SMALL = 64  # rows: pieces of fewer are put together, so that a text of many single tokens has few pieces


class Rows:
    """The capture of one site: a row a token, in one piece or several, as the passes gave them.

    Every piece has its tokens in its last dimension but one: (T, D), (H, T, D/H) or, for attention weights,
    (H, T, K) with the K keys up to its own last token. Large pieces are never copied: traces of texts that
    begin alike share them. `joined` makes one tensor of all, when somebody looks.
    """

    def __init__(self, parts: Sequence[torch.Tensor], weights: bool):
        self.parts = tuple(parts)
        self.weights = weights
        self._joined: weakref.ref[torch.Tensor] | None = None  # the same for all who look at the same time

    def __len__(self) -> int:
        return sum(part.shape[-2] for part in self.parts)

    def joined(self) -> torch.Tensor:
        """All of it as one tensor: (T, D), (H, T, D/H) or (H, T, T), with 0 where the mask hides a key."""
        if len(self.parts) == 1:
            return self.parts[0]
        if self._joined is None:
            found = None
        else:
            found = self._joined()
        if found is None:
            found = _together(self.parts, self.weights)
            self._joined = weakref.ref(found)
        return found

    def copied(self) -> torch.Tensor:
        """The same as `joined`, in memory of its own."""
        if len(self.parts) == 1:
            return self.parts[0].clone()
        return _together(self.parts, self.weights)

    def between(self, start: int, stop: int) -> torch.Tensor:
        """Return the rows of these tokens; of attention weights over the keys before `stop`."""
        return _together(self._pieces(start, stop), self.weights)

    def cut(self, n: int) -> "Rows":
        """Return those of the first n tokens: views, no copies."""
        if n == len(self):
            return self
        return Rows(self._pieces(0, n), self.weights)

    def _pieces(self, start: int, stop: int) -> list[torch.Tensor]:
        wanted = []
        at = 0
        for part in self.parts:
            first = max(start - at, 0)
            last = min(stop - at, part.shape[-2])
            if first < last:
                rows = part[..., first:last, :]
                wanted.append(rows[..., :stop] if self.weights else rows)  # later keys are hidden from these
            at += part.shape[-2]
        return wanted

    def then(self, more: torch.Tensor) -> "Rows":
        """These, and a further piece."""
        parts = [*self.parts, more]
        while len(parts) > 1 and parts[-2].shape[-2] <= parts[-1].shape[-2] <= SMALL // 2:
            parts[-2:] = [_together(parts[-2:], self.weights)]
        return Rows(parts, self.weights)


def _together(parts: Sequence[torch.Tensor], weights: bool) -> torch.Tensor:
    """Pieces that follow each other as one; the rows of attention weights have as many keys as the last."""
    if len(parts) == 1:
        return parts[0]
    if not weights:
        return torch.cat(list(parts), dim=-2)
    n = sum(part.shape[-2] for part in parts)
    keys = parts[-1].shape[-1]
    rows = parts[0].new_zeros((*parts[0].shape[:-2], n, keys))
    at = 0
    for part in parts:
        end = at + part.shape[-2]
        rows[..., at:end, : part.shape[-1]] = part
        at = end
    return rows
