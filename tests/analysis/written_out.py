"""What several tests hold analyses to: a pass written out in float64, frozen norms, weights taken away."""

import copy
import math
from functools import lru_cache, partial

import torch

from gptviz import Edit
from gptviz.engine.language_model import LanguageModel
from tests.engine.test_trace import plain_forward

IDS = [5, 300, 17, 17, 4000, 8, 300]
OTHER = [5, 300, 99, 17, 4000, 7, 300]  # the same but for two tokens

NO_BIASES = {"qkv_bias": False, "linear_bias": False, "norm_bias": False}
SHAPES = {"biases": {}, "none": NO_BIASES, "one head": {"n_heads": 1}}


class Stopped(Exception):
    """What a `Told` raises."""


class Told(list):
    """The progress of a work, a (done, of) for each time it is told; after some of them it is stopped."""

    def __init__(self, stop_after: float = math.inf):
        self.stop_after = stop_after

    def __call__(self, done: int, of: int) -> None:
        self.append((done, of))
        if len(self) >= self.stop_after:
            raise Stopped

    def came_to(self, of: int) -> bool:
        """Whether it rose with every step, and at the end all of it was done."""
        return self == sorted(set(self)) and self[-1] == (of, of)


def weights_of(model) -> dict[str, torch.Tensor]:
    return {name: value.detach().double() for name, value in model.state_dict().items()}


def frozen(norm, stream):
    """A LayerNorm without its shift as a linear function of rows (..., D), with the spread of `stream`."""
    spread = (stream.detach().double().var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    return lambda x: (x - x.mean(-1, keepdim=True)) / spread * norm.scale.detach().double()


def without(lm: LanguageModel, *edits: Edit) -> LanguageModel:
    """A copy whose weights are 0 where edits of `z`, `v`, `attn_out` or `mlp_out` put zeros."""
    model = copy.deepcopy(lm.model)
    d = lm.config.head_dim
    with torch.no_grad():
        for edit, b in ((one, b) for one in edits for b in one.blocks(lm.config.n_layers)):
            att = model.trf_blocks[b].att
            (_, _, last) = model.trf_blocks[b].ff.layers
            for part in (slice(h * d, (h + 1) * d) for h in edit.heads or ()):
                if edit.site == "z":
                    att.out_proj.weight[:, part] = 0
                else:
                    att.W_value.weight[part] = 0
                    att.W_value.bias[part] = 0
            if edit.heads is None:
                layer = att.out_proj if edit.site == "attn_out" else last
                layer.weight.zero_(), layer.bias.zero_()
    return LanguageModel(model, lm.tokenizer, lm.config, lm.name)


@lru_cache(maxsize=4)
def by_hand(lm, ids, off=None):
    """What goes in and out of each part when a text is read, a dict a block; a (block, head) may be off.

    The sites are those of the forward that tests/engine/test_trace.py writes out, in float64.
    """
    sites = plain_forward(lm, list(ids), partial(without_head, off), torch.float64)
    out = {
        "in": sites["embed", None],
        "blocks": [],
        "final": sites["final", None],
        "logits": sites["logits"],
    }
    for b, block in enumerate(lm.model.trf_blocks):
        found = {name: sites[site, b] for name, site in SITES_OF.items()}
        out_proj = block.att.out_proj.weight.detach().double().unflatten(1, (lm.config.n_heads, -1))
        out_proj = out_proj.permute(1, 2, 0)  # (D, H, d) -> (H, d, D)
        found |= {"wrote": found["z"] @ out_proj, "brings": found["v"] @ out_proj}  # (H, T, D)
        found["scores"] = found["q"] @ found["k"].mT  # (H, T, T)
        out["blocks"].append(found)
    return out


# what `by_hand` calls the sites of a block
SITES_OF = {
    "pre": "resid_pre", "norm1": "norm1", "q": "q", "k": "k", "v": "v", "weights": "attn", "z": "z",
    "attn": "attn_out", "mid": "resid_mid", "norm2": "norm2", "before": "mlp_pre", "after": "mlp_act",
    "mlp": "mlp_out", "post": "resid_post",
}  # fmt: skip


def without_head(off, key, value):
    """The site's value; where this (block, head) is off, nothing of what the head hands on."""
    return (
        value
        if off is None or key != ("z", off[0])
        else value.index_fill(0, torch.tensor(off[1]), 0)
    )
