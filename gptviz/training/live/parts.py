"""A GPTModel with parts of it off, for a run that shows what they are good for.

What can be off in a plain GPTModel is off there: weights that are held at 0 (`held_at_zero`). The rest
replaces modules, and such a model's `state_dict` is not that of a GPTModel.

Shapes in comments: b batch, T tokens, D emb_dim.
"""

import numpy as np
import torch
from torch import nn

from gptviz.engine.config import GPTConfig
from gptviz.model import FeedForward, GPTModel, TransformerBlock
from gptviz.training.live.config import LiveConfig


class NoShortcutBlock(TransformerBlock):
    """A block whose two results replace the stream instead of being added to it. (b, T, D) -> (b, T, D).

    A part that is absent hands the stream on. Absent attention is computed all the same, so that its weights
    can be looked at.
    """

    def __init__(self, cfg: GPTConfig, attention: bool = True, feed_forward: bool = True):
        super().__init__(cfg)
        self.has_attention = attention
        self.has_feed_forward = feed_forward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = self.drop_shortcut(self.att(self.norm1(x)))
        if self.has_attention:
            x = mixed
        if self.has_feed_forward:
            x = self.drop_shortcut(self.ff(self.norm2(x)))
        return x


class NoFeedForward(FeedForward):
    """What a FeedForward computes whose last layer is all 0, without the work. (b, T, D) -> (b, T, D)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)


class SteppedDropout(nn.Dropout):
    """Dropout with random numbers of its own, so that a step can be done again with the same ones."""

    def __init__(self, p: float, noise: torch.Generator):
        super().__init__(p)
        self.noise = noise

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        mask = torch.empty_like(x).bernoulli_(1 - self.p, generator=self.noise)
        return x * mask / (1 - self.p)


def set_noise(noise: torch.Generator, seed: int, step: int) -> None:
    """Begin the random numbers of a step: a pure function of (seed, step), as its batch is."""
    # no batch is drawn from four
    number = np.random.default_rng((seed, step, 0, 4)).integers(2**63)
    noise.manual_seed(int(number))


def make_model(
    live: LiveConfig, config: GPTConfig, noise: torch.Generator | None = None
) -> GPTModel:
    """The model to train. The switches of `live` that need no other modules are `held_at_zero`'s.

    `noise` is what dropout draws from; a model that is only read needs none.
    """
    model = GPTModel(config)
    for i in range(config.n_layers):
        if not live.shortcut:
            model.trf_blocks[i] = NoShortcutBlock(config, live.attention, live.feed_forward)
        block = model.trf_blocks[i]
        if not live.feed_forward:
            block.ff = NoFeedForward(config)
        if live.activation == "relu":
            block.ff.layers[1] = nn.ReLU()
        if noise is not None:
            block.att.dropout = SteppedDropout(live.dropout, noise)
            block.drop_shortcut = SteppedDropout(live.dropout, noise)
        if not live.layer_norm:
            block.norm1 = nn.Identity()
            block.norm2 = nn.Identity()
    if not live.layer_norm:
        model.final_norm = nn.Identity()
    if noise is not None:
        model.drop_emb = SteppedDropout(live.dropout, noise)
    return model


def held_at_zero(live: LiveConfig, config: GPTConfig) -> dict[str, torch.Tensor]:
    """For each weight that is not wholly there a mask of its shape: 0 where it stays 0, 1 elsewhere.

    A head that is off writes nothing: its columns of out_proj are 0. So what was trained is a GPTModel
    in which that head is off, wherever it is opened. Without attention all of out_proj is 0, its bias too.
    """
    masks: dict[str, torch.Tensor] = {}
    if not live.positions:
        masks["pos_emb.weight"] = torch.zeros(config.context_length, config.emb_dim)
    for i in range(config.n_layers):
        prefix = f"trf_blocks.{i}."
        width = config.head_dim
        if not live.feed_forward:
            masks[f"{prefix}ff.layers.2.weight"] = torch.zeros(config.emb_dim, 4 * config.emb_dim)
            masks[f"{prefix}ff.layers.2.bias"] = torch.zeros(config.emb_dim)
        if not live.attention:
            masks[f"{prefix}att.out_proj.bias"] = torch.zeros(config.emb_dim)
        off = [head for block, head in live.off if block == i]
        if off:
            columns = torch.ones(config.n_heads, width)
            columns[off] = 0
            # (H, D/H) -> (D,) -> (D, D): the same for every row
            mask = columns.flatten().expand(config.emb_dim, config.emb_dim)
            masks[f"{prefix}att.out_proj.weight"] = mask.clone()
    return masks
