"""What can be asked of all heads of a model at once: the columns of `General.table`, each with its formula.

Any two of them make a picture of all heads, in which one finds the heads that stand out.
"""

from dataclasses import dataclass

from gptviz.analysis.copying import ALONE_AT, TOP
from gptviz.analysis.head_formulas import ROLES

SHARE = "mean over the queries that have such a key, of their attention to it; "
RANDOM = ": random tokens"  # in which a passage comes back
SAMPLE = ": sample"  # of books


@dataclass(frozen=True)
class Measure:
    """What is asked of all heads, in its `unit`, which may be empty."""

    name: str
    title: str
    unit: str
    formula: str
    source: str


def _share(column: str, role: str, where: str) -> Measure:
    known = ROLES[role]
    return Measure(column, known.label + where, "", SHARE + known.keys, known.source)


_HEAD = "Elhage et al., A Mathematical Framework for Transformer Circuits, 2021"

MEASURES = {
    measure.name: measure
    for measure in (
        _share("induction", "induction", RANDOM),
        _share("copies", "copies", RANDOM),
        _share("first", "first", SAMPLE),
        _share("previous", "previous", SAMPLE),
        _share("itself", "itself", SAMPLE),
        _share("nearby", "nearby", SAMPLE),
        _share("marks", "marks", SAMPLE),
        _share("first_random", "first", RANDOM),
        _share("previous_random", "previous", RANDOM),
        _share("induction_sample", "induction", SAMPLE),
        _share("copies_sample", "copies", SAMPLE),
        Measure(
            *("entropy", "entropy in nats" + SAMPLE, "nats"),
            "mean over the queries of - sum over keys of a ln a, a the attention weights",
            "Clark et al., What Does BERT Look At?, 2019",
        ),
        Measure(
            *("distance", "tokens back" + SAMPLE, "tokens"),
            "sum over queries and keys of a (q - k) / sum of a, without token 0",
            "Vig and Belinkov, Analyzing the Structure of Attention, 2019",
        ),
        Measure(
            *("write", "length written" + SAMPLE, ""),
            "mean over the tokens of |z W_O|, the head's part of the attention's output",
            _HEAD,
        ),
        Measure(
            *("ov_copying", "copying by its weights (OV)", ""),
            "sum of e / sum of |e|, e the eigenvalues of U n2 P W_O W_V n1 P E^T",
            _HEAD,
        ),
        Measure(
            *("qk_matching", "likeness by its weights (QK)", ""),
            "sum of e / sum of |e|, e the eigenvalues of E P n1 W_Q^T W_K n1 P E^T",
            _HEAD,
        ),
        Measure(
            *("copies_top5", "copying by itself", ""),
            f"share of sampled tokens, each alone at position {ALONE_AT} through block 0 and this head, "
            f"whose own logit is among the {TOP} largest",
            "Wang et al., Interpretability in the Wild, 2022",
        ),
    )
}
