"""The capture: one forward pass of a GPTModel on some tokens, taken down as a Trace.

Hooks sit at the sites of `gptviz.sites`. The model may be shared by many threads: a lock is held
from the first hook to the last, a hook looks at the pass of its own thread only, and all of them are
gone when the pass ends, however it ends.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import tiktoken
import torch
from torch import nn

from gptviz.config import GPTConfig
from gptviz.edits import Edit
from gptviz.model import GPTModel
from gptviz.sites import SITES, Key, Site, expand
from gptviz.trace import Trace, norms_of, tokens_of

# One forward at a time per process: passes side by side, each with several torch threads, are many
# times slower than one after the other.
FORWARD_LOCK = threading.RLock()


class CaptureError(RuntimeError):
    """The model did not do what the table of sites says: nothing of that pass can be shown."""


def capture(
    model: GPTModel,
    tokenizer: tiktoken.Encoding,
    config: GPTConfig,
    name: str,
    ids: Sequence[int],
    keep: Iterable[str | tuple[str, int]] | None = None,
    edits: Iterable[Edit] = (),
) -> Trace:
    """Run the model once on `ids` and keep what was asked for (everything, when `keep` is None).

    The pass runs in eval mode and without gradients; the output head is not part of it. Raises
    ValueError for a site, block, edit or token that does not exist, before anything runs, and
    CaptureError when a site never fired or attention rows do not sum to 1.
    """
    if not len(ids):
        raise ValueError("there are no tokens to trace: give at least one")
    keys = expand(keep, config)
    edits = tuple(edits)
    for edit in edits:
        edit.check(config, len(ids))
    run = _Run(model, config, [*keys, ("final", None)], edits)
    in_idx = torch.tensor([list(ids)], device=model.tok_emb.weight.device)  # (1, T)
    values = run.forward(in_idx)
    return Trace(
        name=name,
        config=config,
        tokens=tokens_of(tokenizer, ids),
        tokenizer=tokenizer,
        values={key: values[key] for key in keys},
        final=values["final", None],
        head=model.out_head.weight.detach(),
        norms=norms_of(model),
    )


class _Run:
    """One forward pass: which hooks it needs, what they caught."""

    def __init__(self, model: GPTModel, config: GPTConfig, keys: Iterable[Key], edits: Sequence[Edit]):
        self.model = model
        self.n_heads = config.n_heads
        self.keep = set(keys)
        self.edits: dict[Key, list[Edit]] = {}
        for edit in edits:
            self.edits.setdefault((edit.site, edit.block), []).append(edit)
        self.values: dict[Key, torch.Tensor] = {}
        self.replaced_mid: dict[int, torch.Tensor] = {}  # block -> the edited resid_mid, (1, T, D)
        self.mlp_out: dict[int, torch.Tensor] = {}
        self.thread = threading.get_ident()

    def forward(self, in_idx: torch.Tensor) -> dict[Key, torch.Tensor]:
        with FORWARD_LOCK, torch.no_grad():
            training = [module for module in self.model.modules() if module.training]
            handles = []
            try:
                self._set_training(training, False)
                handles = [self._hook(site, block) for site, block in self._hooked()]
                self.model.final_hidden(in_idx)
            finally:
                for handle in handles:
                    handle.remove()
                self._set_training(training, True)
        missing = [key for key in self.keep if key not in self.values]
        if missing:
            raise CaptureError(
                f"the pass never came by {missing[0]}: its numbers do not exist, so none are shown"
            )
        return self.values

    @staticmethod
    def _set_training(modules: list[nn.Module], training: bool) -> None:
        for module in modules:
            module.training = training

    def _hooked(self) -> list[Key]:
        """What is kept or edited, and for an edited resid_mid the two places that carry it on."""
        keys = dict.fromkeys([*self.keep, *self.edits])
        for site, block in self.edits:
            if site == "resid_mid":
                keys |= {("mlp_out", block): None, ("resid_post", block): None}
        return list(keys)

    def _hook(self, name: str, block: int | None) -> Any:
        site = SITES[name]
        module = self.model.get_submodule(site.module.format(b=block))
        if site.side == "output":
            return module.register_forward_hook(lambda _m, _args, output: self._visit(site, block, output))
        if name == "resid_pre" and (name, block) in self.edits:
            # the shortcut leaves before norm1: replace what the whole block is given
            module = self.model.get_submodule(f"trf_blocks.{block}")
        return module.register_forward_pre_hook(lambda _m, args: self._visit(site, block, args[0]))

    def _visit(self, site: Site, block: int | None, value: torch.Tensor) -> torch.Tensor | None:
        """Called by the hooks: take the value down; return a replacement, or None to leave it alone."""
        if threading.get_ident() != self.thread:
            return None  # somebody else's pass on the same model
        key = (site.name, block)
        before = value
        if site.name == "resid_post" and block in self.replaced_mid:
            value = self.replaced_mid[block] + self.mlp_out[block]  # the shortcut carries the edit past norm2
        if site.form == "weights":
            _check_rows(value, key)
        if key in self.edits:
            value = self._edited(site, key, value)
        if site.name == "resid_mid" and key in self.edits:
            assert block is not None
            self.replaced_mid[block] = value
        if site.name == "mlp_out" and ("resid_mid", block) in self.edits:
            assert block is not None
            self.mlp_out[block] = value
        if key in self.keep:
            self.values[key] = site.present(value, self.n_heads).float().cpu()
        return None if value is before else value

    def _edited(self, site: Site, key: Key, value: torch.Tensor) -> torch.Tensor:
        shown = site.present(value, self.n_heads)
        for edit in self.edits[key]:
            shown = edit.apply(shown)
        return site.restore(shown, value)


def _check_rows(weights: torch.Tensor, key: Key) -> None:
    worst = (weights.sum(dim=-1, dtype=torch.float32) - 1).abs().max().item()  # (1, H, T)
    if not worst < (1e-3 if weights.dtype == torch.float32 else 2e-2):
        raise CaptureError(f"the rows at {key} do not sum to 1 (off by {worst:.3g}): that is not attention")
