"""What several tests hold analyses to: a pass written out in float64, frozen norms, weights taken away."""

import copy
import math
from functools import lru_cache

import torch

from gptviz import Edit
from gptviz.engine.language_model import LanguageModel

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
        """Return whether it rose with every step, and at the end all of it was done."""
        return self == sorted(set(self)) and self[-1] == (of, of)


def weights_of(model) -> dict[str, torch.Tensor]:
    return {name: value.detach().double() for name, value in model.state_dict().items()}


def frozen(norm, stream):
    """A LayerNorm without its shift as a linear function of rows (..., D), with the spread of `stream`."""
    spread = (stream.detach().double().var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    return lambda x: (x - x.mean(-1, keepdim=True)) / spread * norm.scale.detach().double()


def without(lm: LanguageModel, *edits: Edit) -> LanguageModel:
    """A copy whose weights are 0 where edits of `z`, `v`, `attn_out` or `mlp_out` put zeros."""
    model, d = copy.deepcopy(lm.model), lm.config.head_dim
    with torch.no_grad():
        for edit, b in ((one, b) for one in edits for b in one.blocks(lm.config.n_layers)):
            att, (_, _, last) = model.trf_blocks[b].att, model.trf_blocks[b].ff.layers
            for part in (slice(h * d, (h + 1) * d) for h in edit.heads or ()):
                if edit.site == "z":
                    att.out_proj.weight[:, part] = 0
                else:
                    att.W_value.weight[part], att.W_value.bias[part] = 0, 0
            if edit.heads is None:
                layer = att.out_proj if edit.site == "attn_out" else last
                layer.weight.zero_(), layer.bias.zero_()
    return LanguageModel(model, lm.tokenizer, lm.config, lm.name)


@lru_cache(maxsize=4)
def by_hand(lm, ids, off=None):
    """What goes in and out of each part when a text is read, a dict a block; a (block, head) may be off."""
    w, count, heads = weights_of(lm.model), len(ids), lm.config.n_heads

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)

    def norm(x, name):
        x = x - x.mean(-1, keepdim=True)
        x = x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5)
        return x * w[f"{name}.scale"] + w.get(f"{name}.shift", 0)

    def split(x):
        return x.view(count, heads, -1).transpose(0, 1)  # (T, D) -> (H, T, d)

    x = w["tok_emb.weight"][list(ids)] + w["pos_emb.weight"][:count]
    out = {"in": x, "blocks": []}
    for b in range(lm.config.n_layers):
        name = f"trf_blocks.{b}"
        found = {"pre": x, "norm1": norm(x, f"{name}.norm1")}
        read = found["norm1"]
        q, k, v = (split(linear(read, f"{name}.att.W_{part}")) for part in ("query", "key", "value"))
        scores, future = q @ k.mT, torch.ones(count, count).triu(1) > 0  # (H, T, T), (T, T)
        weights = (scores / math.sqrt(q.shape[-1])).masked_fill(future, -math.inf).softmax(-1)
        z = weights @ v
        if off is not None and off[0] == b:
            z[off[1]] = 0
        found |= {"q": q, "k": k, "v": v, "scores": scores, "weights": weights, "z": z}
        out_proj = w[f"{name}.att.out_proj.weight"].unflatten(1, (heads, -1)).permute(1, 2, 0)  # (H, d, D)
        found |= {"wrote": z @ out_proj, "brings": v @ out_proj}  # (H, T, D)
        found["attn"] = linear(z.transpose(0, 1).reshape(count, -1), f"{name}.att.out_proj")
        found["mid"] = x + found["attn"]
        found["norm2"] = norm(found["mid"], f"{name}.norm2")
        before = linear(found["norm2"], f"{name}.ff.layers.0")
        after = 0.5 * before * (1 + torch.tanh(math.sqrt(2 / math.pi) * (before + 0.044715 * before**3)))
        found |= {"before": before, "after": after, "mlp": linear(after, f"{name}.ff.layers.2")}
        x = found["post"] = found["mid"] + found["mlp"]
        out["blocks"].append(found)
    out["final"] = norm(x, "final_norm")
    out["logits"] = out["final"] @ w["out_head.weight"].T
    return out
