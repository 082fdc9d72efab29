"""Rows: a site's numbers in the pieces in which passes made them."""

import weakref
from collections.abc import Sequence

import torch


class Rows:
    """What was captured at one site: a row a token, in one piece or several, as the passes gave them.

    Every piece has its tokens in its last dimension but one: (T, D), (H, T, D/H) or, for attention weights,
    (H, T, K) with the K keys up to its own last token. Pieces are never copied: traces of texts that begin
    alike share them. `joined` makes one tensor of them, when somebody looks.
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
        found = None if self._joined is None else self._joined()
        if found is None:
            found = self.between(0, len(self))
            self._joined = weakref.ref(found)
        return found

    def between(self, start: int, stop: int) -> torch.Tensor:
        """The rows of these tokens; of attention weights over the keys before `stop`."""
        wanted, at = [], 0
        for part in self.parts:
            first, last = max(start - at, 0), min(stop - at, part.shape[-2])
            if first < last:
                wanted.append(part[..., first:last, :])
            at += part.shape[-2]
        if not self.weights:
            return wanted[0] if len(wanted) == 1 else torch.cat(wanted, dim=-2)
        rows = wanted[0].new_zeros((*wanted[0].shape[:-2], stop - start, stop))
        at = 0
        for part in wanted:
            keys = min(part.shape[-1], stop)  # a later key of the same piece is hidden from all of these
            rows[..., at : at + part.shape[-2], :keys] = part[..., :keys]
            at += part.shape[-2]
        return rows

    def cut(self, n: int) -> "Rows":
        """Those of the first n tokens: views, no copies."""
        if n == len(self):
            return self
        kept, at = [], 0
        for part in self.parts:
            if at < n:
                part = part[..., : n - at, :]
                # the piece that is cut through has keys that were cut off
                kept.append(part[..., : at + part.shape[-2]] if self.weights else part)
            at += part.shape[-2]
        return Rows(kept, self.weights)

    def then(self, more: torch.Tensor) -> "Rows":
        """These, and a further piece."""
        return Rows((*self.parts, more), self.weights)
