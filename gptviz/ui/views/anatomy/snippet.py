"""The Anatomy page in Python: every tensor of a model, from its config alone."""

import torch

from gptviz.engine.config import GPTConfig
from gptviz.model import GPTModel


def tensor_sizes(config: GPTConfig) -> dict[str, tuple[tuple[int, ...], int]]:
    """Each parameter's shape, and how many numbers it has; a tied output head has no entry of its own."""
    with torch.device("meta"):  # every shape, and no memory
        model = GPTModel(config)

    for name, module in model.named_children():  # a tied head's numbers are tok_emb's again
        print(f"{name:12} {sum(p.numel() for p in module.parameters()):>18,}")
    total = sum(p.numel() for p in model.parameters())  # a tied head is counted once
    print(f"{'together':12} {total:>18,}")
    for dtype in (torch.float32, torch.bfloat16):
        print(f"as {dtype}: {total * dtype.itemsize:,} bytes")

    return {name: (tuple(p.shape), p.numel()) for name, p in model.named_parameters()}
