"""How far the bundled model's numbers are from themselves: grown token by token, and computed in bfloat16.

PYTHONPATH=. python benchmarks/rounding.py
"""

import torch

import gptviz
from gptviz import LanguageModel, Trace
from gptviz.engine.sample import windows

TOKENS = 64
TEXTS = 3
EDITS: list[list[str]] = [
    [],
    ["z.4.3=zero"],
    ["attn.*=hide3"],
    ["z.*.3=sample"],
    ["pos_emb=sample"],
    ["resid_mid.2@4=zero"],
    ["attn.0.1=first", "mlp_out.3=zero"],
    ["v.1.2=zero", "attn.3=uniform"],
]


def texts(lm: LanguageModel) -> list[list[int]]:
    found, _ = windows(lm.encode, lm.config.context_length, most=TEXTS)
    return [list(window.ids[:TOKENS]) for window in found]


def apart(one: Trace, two: Trace) -> tuple[float, float]:
    """Of a site's largest number the largest difference, over all sites; and that of the last logits."""
    sites = [(one.pieces(key).joined(), two.pieces(key).joined()) for key in two.sites()]
    worst = max(float((a - b).abs().max() / b.abs().max()) for a, b in sites if b.abs().max() > 0)
    return worst, float((one.logits(-1) - two.logits(-1)).abs().max())


def main() -> None:
    torch.set_num_threads(1)
    lm = gptviz.load("mini")
    half = gptviz.load("mini", dtype="bfloat16")
    print(
        f"grown one by one to {TOKENS} tokens against a whole pass, {TEXTS} texts: worst site, last logits"
    )
    for edits in EDITS:
        worst = []
        for ids in texts(lm):
            grown = lm.trace(ids[:8], edits=edits)
            for end in range(9, len(ids) + 1):
                grown = lm.trace(ids[:end], edits=edits, after=grown)
            worst.append(apart(grown, lm.trace(ids, edits=edits)))
        site, logits = (max(part) for part in zip(*worst, strict=True))
        print(f"{' '.join(edits) or 'as it is':32} {site:8.1e} {logits:8.1e}", flush=True)
    print(f"\nbfloat16 against float32, {TEXTS} texts of {TOKENS} tokens")
    weights = []
    probabilities = []
    firsts = 0
    for ids in texts(lm):
        one = lm.trace(ids)
        two = half.trace(ids)
        attn = [
            (one["attn", b] - two["attn", b]).abs().flatten() for b in range(lm.config.n_layers)
        ]
        weights.append(torch.cat(attn))
        for position in range(len(ids)):
            p, q = (trace.logits(position).double().softmax(0) for trace in (one, two))
            probabilities.append(float((p - q).abs().max()))
            firsts += int(p.argmax() == q.argmax())
    off = torch.cat(weights)
    print(f"attention weights off by at most {off.max():.3f}, on average {off.mean():.1e}")
    print(f"probabilities of next tokens off by at most {max(probabilities):.3f}")
    print(f"the most probable token is the same at {firsts} of {len(probabilities)} positions")


if __name__ == "__main__":
    main()
