"""What stands around a saved model, taken off: words before all of its names, and dicts that hold it.

torch.compile puts `_orig_mod.` before every name, DataParallel and DDP `module.`, a LightningModule the name
of its attribute, often `model.`; a training script saves `{"model": state_dict, "step": 9}`. All of it comes
off here, for every reader and for `wrap`, so that each of them knows the names of its own model only.
"""

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

# of a dict that holds a state dict, or another such dict
KEYS = ("model", "state_dict", "model_state_dict", "module", "model_state", "weights")
DEEPEST = 8  # dicts in dicts: a pickle can be made to hold itself

# torch puts these around single layers, too, and calls nothing else so
AROUND_A_LAYER = re.compile(
    r"(?:^|(?<=\.))(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|_forward_module)\."
)

# a name that every model of a family has: what stands before it and before all others belongs to none of them
FIRST_NAMES = (
    "transformer.wte.weight",
    "wte.weight",
    "tok_emb.weight",
    "model.embed_tokens.weight",
    "embed_tokens.weight",
)


def bare_names(names: Iterable[str]) -> dict[str, str]:
    """Each name, and the same without the words that stand before all names or around a layer.

    Real names may begin with `model.` or `transformer.`, too: such a word goes only where the name of a token
    embedding begins behind it, and where all names begin with it.
    """
    bare = {name: AROUND_A_LAYER.sub("", name) for name in names}
    start = _before_all(list(bare.values()))
    return {name: bare_name.removeprefix(start) for name, bare_name in bare.items()}


def _before_all(names: list[str]) -> str:
    for name in names:
        for first in FIRST_NAMES:
            if name == first:
                return ""
            if name.endswith(f".{first}"):
                start = name.removesuffix(first)
                if all(other.startswith(start) for other in names):
                    return start
                return ""
    return ""


def inner_model(model: nn.Module) -> nn.Module:
    """The model inside of torch.compile's, DataParallel's or a LightningModule's, or the model itself."""
    for name, bare in bare_names(model.state_dict()).items():
        if bare in FIRST_NAMES and name.endswith(bare):
            return model.get_submodule(name.removesuffix(bare).removesuffix("."))
    return model


def keys_to_state(saved: object) -> tuple[str, ...]:
    """The keys that lead from what was saved to its state dict: () where it is one itself."""
    keys: list[str] = []
    while isinstance(saved, dict) and len(keys) < DEEPEST:
        inner = {key: saved[key] for key in KEYS if isinstance(saved.get(key), dict)}
        # beside the weights there may be a dict of settings under another of these names
        of_weights = [key for key, value in inner.items() if _has_weights(value)]
        candidates = of_weights or [*inner]
        if not candidates:
            break
        keys.append(candidates[0])
        saved = inner[candidates[0]]
    return tuple(keys)


def _has_weights(values: dict[Any, Any]) -> bool:
    if any(isinstance(value, torch.Tensor) for value in values.values()):
        return True
    return any(isinstance(values.get(key), dict) for key in KEYS)
