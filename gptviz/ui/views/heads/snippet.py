"""The page "Heads on trial" in Python: what every head does on a text."""

import pandas as pd

import gptviz
from gptviz.analysis.attention import mean_writes
from gptviz.analysis.head_general import general
from gptviz.analysis.head_roles import role_table, roles


def on_trial(
    lm: gptviz.LanguageModel,
    text: str,
    block: int,
    head: int,
    in_general: bool = False,
    special_tokens: bool = False,
) -> pd.DataFrame:
    """Every head's label on this text with the shares behind it, a row a head; or that in general."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids, keep=["attn", "z"])
    here = role_table(roles(t), mean_writes(t, lm.model))
    print("on this text\n", here[(here["block"] == block) & (here["head"] == head)].iloc[0].to_string())
    if not in_general:
        return here
    found = general(lm)  # some 60 short passes, or what they gave when it was kept on disk
    print("in general\n", found.row(block, head).to_string())
    return found.table
