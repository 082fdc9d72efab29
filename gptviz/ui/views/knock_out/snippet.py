"""The page "Knock-out" in Python: every part muted in turn, and one of them by hand."""

import numpy as np

import gptviz
from gptviz.analysis import knock_out


def muted(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    token: int,
    against: int | None = None,
    baseline: str = "zero",
    block: int = 0,
    head: int = 0,
    special_tokens: bool = False,
) -> np.ndarray:
    """What each part's muting takes away from the difference of logits, in the order of the pass, (parts,).

    It is the logit of `token` minus that of `against`; None: minus the mean of all logits. Printed: all of
    them, and one head by hand.
    """
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    own = lm.trace(ids, keep=[]).logits(position).double()
    print(f"the model's own probability is {own.softmax(0)[token]:.5f}")

    table = knock_out(lm, ids, (token, against), baseline, position)
    lost = own.softmax(0)[token].item() - table["probability"]
    print(table.assign(lost=lost).sort_values("effect").to_string())

    # one of them by hand: a pass with one edit
    t = lm.trace(ids, keep=[], edits=[gptviz.Edit("z", block, baseline, heads=[head])])
    logits = t.logits(position).double()
    print(f"without block {block}, head {head} it is {logits.softmax(0)[token]:.5f}")
    row = table[(table["block"] == block) & (table["head"] == head)]
    np.testing.assert_allclose(row["probability"], [logits.softmax(0)[token]], atol=1e-4)
    if lm.edits:
        print("unchanged:")
        muted(lm.plain, text, position, token, against, baseline, block, head, special_tokens)
    return -table["effect"].to_numpy()
