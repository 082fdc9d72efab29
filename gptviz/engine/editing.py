"""The hooks that make edits in a forward pass, for one text or a batch of texts.

An edit replaces the numbers at a site, a place in the model; a key is a site and its block. The table
`sites.sites_of` gives at which module each site is, so nothing here depends on a single site.

Two sites need care. The residual stream into a block (`resid_pre`) and after its attention (`resid_mid`)
are seen where they enter a LayerNorm, but the shortcut connection has taken the stream before that. A new
value must reach the shortcut, too: `resid_pre` is therefore replaced at the input of the whole block
(`Site.edit_at`), and for `resid_mid` the output of the block is computed anew as the new value plus
`mlp_out` (`Site.shortcut`).
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor

from gptviz.engine.edits import Edit
from gptviz.engine.forward import Hook
from gptviz.engine.kinds import Config
from gptviz.engine.sites import Key, sites_of


def edit_hooks(
    edits: Iterable[Edit], config: Config, first: int, entered: int | None
) -> list[Hook]:
    """The hooks of one pass that make these edits; several edits of one site are made one after the other.

    Put them before all other hooks, which then see the new numbers. `first` is the position of the first
    token of the pass. `entered` is the block at which the pass begins (`forward.hidden_from`), None for a
    pass from the embeddings: an edit of that block's input is left out, as the input has it already.
    """
    return _Editing(edits, config, first).hooks(None if entered is None else ("resid_pre", entered))


class _Editing:
    """The edits of one pass, and the tensors that its hooks have to remember."""

    def __init__(self, edits: Iterable[Edit], config: Config, first: int):
        self.config = config
        self.sites = sites_of(config)
        self.first = first
        self.edits: dict[Key, list[Edit]] = {}
        for edit in edits:
            for block_edit in edit.each(config.n_layers):
                self.edits.setdefault(block_edit.key, []).append(block_edit)
        # For a site with a shortcut, (resid_post, b): ((resid_mid, b), (mlp_out, b)). The tensor at the first
        # key has to become the sum of the other two.
        self.ends: dict[Key, tuple[Key, Key]] = {}
        for site, block in self.edits:
            shortcut = self.sites[site].shortcut
            if shortcut is not None:
                self.ends[shortcut.end, block] = ((site, block), (shortcut.plus, block))
        ends = [key for pair in self.ends.values() for key in pair]
        # the tensors at those two keys
        self.carried: dict[Key, Tensor | None] = dict.fromkeys(ends)

    def hooks(self, done: Key | None) -> list[Hook]:
        """The hooks of the pass, without one for the key `done`, whose edits were made before the pass."""
        keys = dict.fromkeys([*self.edits, *self.ends])
        return [
            *(self._hook(key, self._visit) for key in keys if key != done),
            # last, to remember the tensors as all other hooks left them
            *(self._hook(key, self.carried.__setitem__, last=True) for key in self.carried),
        ]

    def _hook(
        self, key: Key, visit: Callable[[Key, Tensor], Tensor | None], last: bool = False
    ) -> Hook:
        name, block = key
        site = self.sites[name]
        return Hook(site.edited_module.format(b=block), site.side, partial(visit, key), last)

    def _visit(self, key: Key, value: Tensor) -> Tensor | None:
        """The new tensor for a site, made of the model's `value`; None if nothing changes."""
        before = value
        if key in self.ends:
            edited, plus = (self.carried[part] for part in self.ends[key])
            assert edited is not None and plus is not None, "a site's shortcut ends after it began"
            value = edited + plus
        if key in self.edits:
            value = self._edited(key, value)
        if torch.is_grad_enabled() and not value.requires_grad:
            # an edit that puts constant numbers in cuts the graph: let gradients begin at them
            value = value.detach().requires_grad_()
        if value is before:
            return None
        return value

    def _edited(self, key: Key, value: Tensor) -> Tensor:
        """The model's tensor with the edits of this key; the given tensor itself if they change no number."""
        if value.dim() == 2 or len(value) == 1:  # pos_emb is (T, D), whatever the batch
            new = self._edited_text(key, value)
        else:
            # each text (1, T, D) or (1, H, T, T) -> (b, T, D) or (b, H, T, T)
            new = torch.cat([self._edited_text(key, text[None]) for text in value])
        if torch.equal(new, value):
            return value
        return new

    def _edited_text(self, key: Key, value: Tensor) -> Tensor:
        """The tensor of one text with the edits of this key, of the same shape."""
        name, _ = key
        site = self.sites[name]
        shown = site.present(value, self.config)  # as in a Trace: (T, D), (H, T, D/H) or (H, T, T)
        for edit in self.edits[key]:
            shown = edit.apply(shown, self.first)
        return site.restore(shown, value)
