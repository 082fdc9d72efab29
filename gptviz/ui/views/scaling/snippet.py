"""The Scaling page in Python: variance, softmax and gradient for every d, a model's own heads, dropout."""

import pandas as pd
import torch

import gptviz
from gptviz.lessons.dropout import drop, ones
from gptviz.lessons.scaling import by_size, sharpened, undivided


def sizes(
    lm: gptviz.LanguageModel,
    text: str,
    block: int = 0,
    factor: int = 10,
    p: float = 0.5,
    seed: int = 123,
    special_tokens: bool = False,
) -> pd.DataFrame:
    """A row for each d, 1 to 1,024: what is drawn at the top of the page."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    for model in (lm, lm.plain) if lm.edits else (lm,):  # of a changed model also the unchanged one's
        t = model.trace(ids, keep=[("q", block), ("k", block)])
        print(undivided(t["q", block], t["k", block]))  # its own heads, with and without the division

    print(sharpened(1), sharpened(factor), sep="\n")

    torch.manual_seed(seed)
    print(torch.nn.Dropout(p)(ones()))
    print(drop(ones(), p, seed).mask)  # the same, with its mask

    return by_size()
