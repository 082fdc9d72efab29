"""The page "Circuit" in Python: what some heads alone keep of a prediction, and the search for the fewest."""

import numpy as np

import gptviz
from gptviz.analysis import circuit
from gptviz.analysis.circuit_passes import Passes, edits_of
from gptviz.analysis.circuit_search import allowed, parse, score, without_each, written


def kept(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    token: int,
    against: int | None = None,
    heads: str = "",
    others: str = "sample",
    feed_forwards: bool = True,
    search: str | None = None,
    special_tokens: bool = False,
) -> np.ndarray:
    """F of the circuit with each head of the model the other way, (L, H).

    Printed: its scores, and the search.
    """
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    target = token if against is None else (token, against)
    passes = Passes(lm, ids, target, others, feed_forwards, position)
    chosen = parse(heads, lm)
    value, empty = passes.of([chosen, ()])
    print(f"{len(chosen)} heads: {value:.5f}; the whole model: {passes.whole:.5f}; no head: {empty:.5f}")
    print(f"the others give: {others}; at most {allowed(passes.whole, empty):.5f} may be wrong, either way")

    if lm.edits:  # what is changed in the model stays changed in the circuit
        old = lm.plain.trace(ids, keep=[]).logits(position).double()
        unchanged = old.softmax(0)[token] if against is None else old[token] - old[against]
        print(f"the whole unchanged model: {unchanged:.5f}")

    # the circuit by hand: one pass with edits
    t = lm.trace(ids, keep=[], edits=edits_of(lm, chosen, others, feed_forwards))
    logits = t.logits(position).double()
    by_hand = logits.softmax(0)[token] if against is None else logits[token] - logits[against]
    np.testing.assert_allclose(by_hand, value, atol=1e-4 if lm.dtype == "float32" else 0.2)

    found = score(passes, chosen)
    least = "" if found.all_subsets else "at least "
    print(f"faithfulness {found.faithfulness:.5f}, {'kept' if found.kept else 'not kept'}")
    print(f"completeness {least}{found.completeness:.5f}")
    print(found.table.to_string())
    if search is not None:
        fewest = circuit(lm, ids, target, others, feed_forwards, search, position=position)
        print(
            f"{search}: {written(fewest.heads)}, {'kept' if fewest.kept else 'not kept'}",
            fewest.steps.to_string(),
            sep="\n",
        )
    return without_each(passes, chosen)
