"""What every site gives on average over a sample of text: the value "sample" of an edit.

A head that is replaced by its mean over many texts still gives what it gives to any token of any text, and
nothing of this one: of the two nulls, this and zero, the better one, since the later parts have learnt to
expect it (Wang et al., Interpretability in the Wild, 2022, section 2.2, "mean ablation").
"""

import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from weakref import WeakKeyDictionary

import torch

from gptviz import forward
from gptviz.config import GPTConfig
from gptviz.model import GPTModel
from gptviz.sample import windows
from gptviz.sites import SITES, Key, all_keys

MOST_WINDOWS = 12  # of at most 256 tokens, evenly from the sample: 3,072 tokens, a second of a core with mini

Means = dict[Key, torch.Tensor]

_known: WeakKeyDictionary[GPTModel, tuple[int, Means]] = WeakKeyDictionary()
_one_at_a_time = threading.Lock()


def sample_means(model: GPTModel, config: GPTConfig, encode: Callable[[str], Sequence[int]]) -> Means:
    """Of every site but the attention weights the mean over all tokens of the sample, one row of it.

    (1, D) for a site of rows, (H, 1, D/H) for one that is split by heads, in float32 on the CPU. Worked out
    once for a model and its weights as they are, and forgotten with the model. The text is `gptviz.sample`'s,
    at most `MOST_WINDOWS` of its windows; one with a token that the model does not have is left out.

    Raises ValueError where that leaves none.
    """
    version = forward.version(model)
    with _one_at_a_time:
        known = _known.get(model)
        if known is None or known[0] != version:
            known = _known[model] = (version, _measured(model, config, _texts(config, encode)))
    return known[1]


def _texts(config: GPTConfig, encode: Callable[[str], Sequence[int]]) -> list[tuple[int, ...]]:
    found, _ = windows(encode, config.context_length, most=sys.maxsize)
    read = [window.ids for window in found if max(window.ids) < config.vocab_size]
    if not read:
        raise ValueError(
            "this model has no tokens for the sample of text, so there is no mean over it: "
            'choose "mean", which is over the text itself, or "zero"'
        )
    some = min(len(read), MOST_WINDOWS)
    return [read[i * len(read) // some] for i in range(some)]


def _measured(model: GPTModel, config: GPTConfig, texts: list[tuple[int, ...]]) -> Means:
    keys = [key for key in all_keys(config) if SITES[key[0]].form != "weights"]
    sums: dict[Key, torch.Tensor] = {}

    def add(key: Key, value: torch.Tensor) -> None:
        shown = SITES[key[0]].present(value, config.n_heads)
        of_text = shown.sum(dim=-2, keepdim=True, dtype=torch.float64).cpu()  # (1, D) or (H, 1, D/H)
        sums[key] = of_text + sums[key] if key in sums else of_text

    hooks = [
        forward.Hook(SITES[name].module.format(b=block), SITES[name].side, partial(add, (name, block)))
        for name, block in keys
    ]
    for ids in texts:
        forward.hidden(model, torch.tensor([ids], device=model.tok_emb.weight.device), hooks)
    tokens = sum(map(len, texts))
    return {key: (sums[key] / tokens).float() for key in keys}
