"""Whether a model can overflow: how large its numbers can get for any text, from its weights' largest.

A LayerNorm's output is at most sqrt(D) in every place, whatever comes in; from there on a sum of n products
is at most n times the largest of either factor. What stays far below the largest float32 for every text
never becomes infinity or NaN. Trained models stay below it by a factor of a million and more.
"""

import math
from collections.abc import Mapping

from gptviz.engine.config import GPTConfig

LIMIT = 1e37  # of float32's 3.4e38, and bfloat16's: what is left is for rounding
SMALLEST = 1.2e-38  # float32's; a norm_eps below it is 0, and a LayerNorm of equal numbers divides by it


def largest_possible(config: GPTConfig, largest: Mapping[str, float]) -> float:
    """A bound on every number of a pass, for any text.

    `largest`: the largest absolute value of each tensor that there is; a tied output head may be left out.
    """

    def of(name: str) -> float:
        return largest.get(name, 0.0)

    def linear(at: str, n: int, x: float) -> float:
        return n * of(f"{at}.weight") * x + of(f"{at}.bias")

    def norm(at: str) -> float:
        return math.sqrt(width) * of(f"{at}.scale") + of(f"{at}.shift")

    def variance(x: float) -> float:  # before it is divided: the sum of (x - mean)²
        return width * (2 * x) * (2 * x)  # not **: that raises where this is infinite

    width = config.emb_dim
    stream = of("tok_emb.weight") + of("pos_emb.weight")
    seen = [variance(stream)]
    for block in range(config.n_layers):
        at = f"trf_blocks.{block}"
        x, y = norm(f"{at}.norm1"), norm(f"{at}.norm2")
        q, k, v = (linear(f"{at}.att.W_{part}", width, x) for part in ("query", "key", "value"))
        stream += linear(f"{at}.att.out_proj", width, v)
        seen += [config.head_dim * q * k, variance(stream)]
        up = linear(f"{at}.ff.layers.0", width, y)
        stream += linear(f"{at}.ff.layers.2", 4 * width, up)
        seen += [up, variance(stream), variance(x), variance(y)]
    final = norm("final_norm")
    head = largest.get("out_head.weight", of("tok_emb.weight"))
    return max(*seen, variance(final), width * head * final)
