"""The page "Heads on trial" in Python: what every head does on a text."""

import pandas as pd

import gptviz
from gptviz.analysis.attention import mean_writes
from gptviz.analysis.head_formulas import SHARES
from gptviz.analysis.head_general import general
from gptviz.analysis.head_portrait import portrait
from gptviz.analysis.head_roles import role_table, roles
from gptviz.analysis.head_trial import trial


def measured_heads(
    lm: gptviz.LanguageModel,
    text: str,
    block: int,
    head: int,
    in_general: bool = False,
    label: str | None = None,
    role: str | None = None,
    special_tokens: bool = False,
) -> pd.DataFrame:
    """Every head's label on this text with the shares behind it, a row a head; or that in general.

    In general is of the model as it is, whatever is changed in `lm`.
    """
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids, keep=["attn", "z"])
    here = role_table(roles(t), mean_writes(t, lm.model))
    print("on this text\n", here[(here["block"] == block) & (here["head"] == head)].iloc[0].to_string())
    if lm.edits:
        print("as it is, ", end="")
        measured_heads(lm.plain, text, block, head, special_tokens=special_tokens)
    if not in_general:
        return here
    lm = lm.plain
    if label is not None:  # a label of this head put on trial: some 300 texts, or what they gave
        tried = trial(lm, block, head, label)
        print("on trial as", label, tried.verdict, tried.reasons, tried.repeated, tried.unrepeated)
        print(tried.table.to_string())
    if role is not None:  # the head's portrait, painted by this role: some 40 passes
        over = portrait(lm, block, head, role if role in SHARES else None)
        print(over.pairs.to_string(), "sink", over.sink, "entropy", over.mean_entropy, over.entropies)
        for place in over.passages:
            print(place.share, place.title, repr(lm.decode(place.ids[-12:])))
    found = general(lm)  # some 60 short passes, or what they gave when it was kept on disk
    print("in general\n", found.row(block, head).to_string())
    return found.table
