"""The Python behind the Anatomy page."""

from gptviz.config import GPTConfig


def anatomy(config: GPTConfig) -> str:
    """Ends in `picture`: each parameter's name -> (shape, how many numbers); a tied head has no entry.

    It needs the config alone: no model is loaded, and nothing is allocated.
    """
    sizes = ",\n    ".join(f"{name}={value!r}" for name, value in config.to_dict().items())
    return f"""\
import torch

from gptviz.config import GPTConfig
from gptviz.model import GPTModel

config = GPTConfig(
    {sizes},
)
with torch.device("meta"):  # every shape, and no memory
    model = GPTModel(config)

for name, module in model.named_children():
    print(f"{{name:12}} {{sum(p.numel() for p in module.parameters()):>18,}}")  # a tied head: tok_emb's again
total = sum(p.numel() for p in model.parameters())  # a tied head is counted once
print(f"{{'together':12}} {{total:>18,}}")
for dtype in (torch.float32, torch.bfloat16):
    print(f"as {{dtype}}: {{total * dtype.itemsize:,}} bytes")

picture = {{name: (tuple(p.shape), p.numel()) for name, p in model.named_parameters()}}
"""
