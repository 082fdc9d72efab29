"""What the cache saves, in Python: multiply-adds from the model's sizes, and the same tokens both ways."""

from collections.abc import Sequence

import pandas as pd

import gptviz
from gptviz.analysis.decoding_cost import steps, work
from gptviz.analysis.decoding_time import written_again


def both_ways(
    lm: gptviz.LanguageModel, text: str, position: int, new: Sequence[int], special_tokens: bool = False
) -> pd.DataFrame:
    """A row for each token that was written after a position: its cost both ways, and the cache's bytes."""
    prompt = lm.encode(text, special_tokens)[: position + 1]
    number_bytes = lm.model.tok_emb.weight.element_size()
    # where an edit depends on the whole text, nothing can be kept: both ways are alike
    table = steps(lm.config, len(prompt), len(new), number_bytes, cache=lm.is_causal)
    c, tokens = lm.config, int(table["tokens"].iloc[-1])
    by_hand = c.n_layers * (12 * c.emb_dim**2 + 2 * tokens * c.emb_dim) + c.vocab_size * c.emb_dim
    print(f"one token after {tokens - 1} in the cache: {by_hand:,} multiply-adds")
    assert work(c, 1, tokens - 1).total == by_hand
    print(table[["tokens", "cached", "with_cache", "without_cache", "all_logits"]].sum())

    few = new[:8]
    ways = zip(written_again(lm, prompt, few, True), written_again(lm, prompt, few, False), strict=True)
    for (quick, one), (slow, other) in ways:
        off = float((one - other).abs().max())
        print(f"{quick:7.2f} ms with the cache, {slow:7.2f} ms without: logits differ by up to {off:.1e}")
    return table
