"""The Positions page in Python: a table of positions, what it knows of distance, and a shuffled pass."""

import torch

import gptviz
from gptviz.analysis.moved import pattern_moved
from gptviz.lessons.positions import even_part, rotations, sinusoidal


def position_rows(
    lm: gptviz.LanguageModel,
    text: str,
    scheme: str = "learned",
    distance: int = 3,
    position: int = -1,
    edit: str = "pos_emb=shuffle1",
    block: int = 0,
    head: int = 0,
    special_tokens: bool = False,
) -> torch.Tensor:
    """The table that the scheme has for this model's sizes, (context_length, d)."""
    n, d = lm.config.context_length, lm.config.emb_dim
    tables = {
        "learned": lambda: lm.model.pos_emb.weight.detach().double().cpu(),
        "sinusoidal": lambda: sinusoidal(n, d),
        "rope": lambda: rotations(n, even_part(d // lm.config.n_heads)),
        "none": lambda: torch.zeros(n, d, dtype=torch.float64),
    }
    rows = tables[scheme]()
    apart = (rows @ rows.T).diagonal(-distance)  # (n - distance,): every pair that is so far apart
    print(f"{distance} apart: {apart.mean():.4f} on average, {apart.min():.4f} to {apart.max():.4f}")

    ids = lm.encode(text, special_tokens)[:n]
    passes = [("changed" if lm.edits else "as it is", lm, []), (edit, lm, [gptviz.Edit.parse(edit)])]
    if lm.edits:  # which both have
        passes.insert(0, ("unchanged", lm.plain, []))
    patterns = []
    for named, model, edits in passes:
        t = model.trace(ids, keep=[("attn", block)], edits=edits)
        patterns.append(t["attn", block][head])
        before = patterns[-1].diagonal(-1)  # what each token gives the one before it
        first = t.next_tokens(k=1, position=position).iloc[0]
        print(f"{named}, previous token: {before.mean():.4f}, next: {first['token']}, {first['probability']}")
    print(
        f"{edit}, goes elsewhere: {pattern_moved(*patterns[-2:]):.4f}"
    )  # on average over all tokens but the first

    return rows
