"""Edits at work in a pass: the hooks that replace what sites pass on, for one text or a batch of them.

What is special about a site stands in its row of `sites.SITES`; this module only reads the table.
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor

from gptviz.engine.config import GPTConfig
from gptviz.engine.edits import Edit
from gptviz.engine.forward import Hook
from gptviz.engine.sites import SITES, Key


def edit_hooks(edits: Iterable[Edit], config: GPTConfig, first: int, entered: int | None) -> list[Hook]:
    """The hooks of one pass that make these edits, one after the other where they are of one site.

    To be put before all other hooks, which then see what was replaced. `first` is the position of the first
    token that goes through (`Edit.apply`). `entered`: the pass begins with a stream that is in this block
    already (`forward.hidden_from`), so that an edit of what comes into it was made before.
    """
    return _Editing(edits, config, first).hooks(None if entered is None else ("resid_pre", entered))


class _Editing:
    def __init__(self, edits: Iterable[Edit], config: GPTConfig, first: int):
        self.n_heads = config.n_heads
        self.first = first
        self.edits: dict[Key, list[Edit]] = {}
        for edit in edits:
            for one in edit.each(config.n_layers):
                self.edits.setdefault(one.key, []).append(one)
        # where an edited value's shortcut ends: that key -> (the edited key, the key that is added to it)
        self.ends: dict[Key, tuple[Key, Key]] = {}
        for site, block in self.edits:
            shortcut = SITES[site].shortcut
            if shortcut is not None:
                self.ends[shortcut.end, block] = ((site, block), (shortcut.plus, block))
        ends = [key for pair in self.ends.values() for key in pair]
        self.carried: dict[Key, Tensor | None] = dict.fromkeys(ends)

    def hooks(self, done: Key | None) -> list[Hook]:
        keys = dict.fromkeys([*self.edits, *self.ends])
        return [
            *(self._hook(key, self._visit) for key in keys if key != done),
            # what others put there is carried, too
            *(self._hook(key, self.carried.__setitem__, last=True) for key in self.carried),
        ]

    def _hook(self, key: Key, visit: Callable[[Key, Tensor], Tensor | None], last: bool = False) -> Hook:
        name, block = key
        site = SITES[name]
        return Hook(site.edited_module.format(b=block), site.side, partial(visit, key), last)

    def _visit(self, key: Key, value: Tensor) -> Tensor | None:
        before = value
        if key in self.ends:
            edited, plus = (self.carried[part] for part in self.ends[key])
            assert edited is not None and plus is not None, "a site's shortcut ends after it began"
            value = edited + plus
        if key in self.edits:
            value = self._edited(key, value)
        if torch.is_grad_enabled() and not value.requires_grad:  # it was put in: gradients begin at it
            value = value.detach().requires_grad_()
        if value is before:
            return None
        return value

    def _edited(self, key: Key, value: Tensor) -> Tensor:
        """The tensor with its edits; the very one that was given where they change nothing."""
        if value.dim() == 2 or len(value) == 1:  # pos_emb is (T, D), whatever the batch
            new = self._of_one(key, value)
        else:
            new = torch.cat([self._of_one(key, one[None]) for one in value])
        if torch.equal(new, value):
            return value
        return new

    def _of_one(self, key: Key, value: Tensor) -> Tensor:
        site = SITES[key[0]]
        shown = site.present(value, self.n_heads)
        for edit in self.edits[key]:
            shown = edit.apply(shown, self.first)
        return site.restore(shown, value)
