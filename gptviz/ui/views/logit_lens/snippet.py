"""The Logit lens page in Python: one position read at every depth, and the token on top of every cell."""

from collections.abc import Sequence

import numpy as np
import torch

import gptviz
from gptviz.analysis.lens import KEEP, cells, logit_lens, row_names


def says_next(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    row: int,
    start: int = 0,
    stop: int | None = None,
    follow: Sequence[int] = (),
    special_tokens: bool = False,
) -> np.ndarray:
    """The ids that stand on top in the grid's columns from `start` to before `stop`, (rows, columns).

    Of a model with edits (2, rows, columns): in the changed model, and in the unchanged one.
    """
    where = (text, position, row, start, stop, follow, special_tokens)
    if lm.edits:
        print("changed:")
        changed = read(lm, *where)
        print("unchanged:")
        return np.stack([changed, read(lm.plain, *where)])
    return read(lm, *where)


def read(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    row: int,
    start: int,
    stop: int | None,
    follow: Sequence[int],
    special_tokens: bool,
) -> np.ndarray:
    """Of one model: (rows, columns)."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids, keep=KEEP)
    model, names = lm.model, row_names(lm.config)

    # the residual stream of one token at every depth, through the final LayerNorm and the output head
    blocks = range(lm.config.n_layers)
    halves = [t[site, b][position] for b in blocks for site in ("resid_mid", "resid_post")]
    stream = torch.stack([t["embed"][position], *halves])  # (rows, emb_dim)
    with torch.no_grad():
        final = model.final_norm(stream.to(model.final_norm.scale))  # (rows, emb_dim)
        logits = (final @ model.out_head.weight.T).float().cpu()  # (rows, vocabulary)
    near = 1e-3 if lm.dtype == "float32" else 0.2
    own = t.logits(position)  # the model's own output
    if all(edit.site != "final" for edit in lm.edits):  # else it is not made of the stream alone
        torch.testing.assert_close(logits[-1], own, rtol=near, atol=near)

    lens = logit_lens(t, model, position)  # the same, and its last row is the model's own to the bit
    assert torch.equal(lens[-1], own)
    torch.testing.assert_close(lens[:-1], logits[:-1], rtol=near, atol=near)

    log_p = torch.log_softmax(lens, dim=-1)  # (rows, vocabulary)
    p = log_p.exp()
    for name, one, log_one in zip(names, p, log_p, strict=True):
        entropy = torch.special.entr(one).sum() / np.log(2)  # bits
        kl = (p[-1] * (log_p[-1] - log_one)).sum() / np.log(2)  # bits, from the row to the end
        best = int(one.argmax())
        print(f"{name:24} {lm.decode([best])!r:16} {one[best]:8.4f}  entropy {entropy:6.2f}  kl {kl:6.2f}")
        for token in follow:
            rank = 1 + int((one > one[token]).sum())
            print(f"{'':24} {lm.decode([token])!r:16} {one[token]:8.4f}  rank {rank}")

    print(f"After {names[row]}, beside the end:")
    for token in p[row].argsort(descending=True, stable=True)[:10].tolist():
        print(f"{lm.decode([token])!r:16} {p[row, token]:8.4f} {p[-1, token]:8.4f}")

    # the grid: some positions at a time, since all logits at once would be rows x tokens x vocabulary
    stop = len(ids) if stop is None else stop
    parts = [cells(t, model, i, min(i + 32, stop)).ids[..., 0] for i in range(start, stop, 32)]
    picture = np.concatenate(parts, axis=1)
    itself = int((picture[0] == np.array(ids[start:stop])).sum())
    print(f"the embedding gives back the token itself in {itself} of {stop - start} columns")
    return picture
