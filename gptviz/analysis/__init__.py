"""Pure functions from a Trace to numbers; those with a name that is fixed can be imported from here."""

from gptviz.analysis.ablation import knock_out
from gptviz.analysis.activation_patching import patching
from gptviz.analysis.circuit_search import circuit
from gptviz.analysis.lens import logit_lens
from gptviz.analysis.logit_attribution import attribution, attributions, source_tokens
from gptviz.analysis.patched_paths import path_patching

__all__ = [
    "attribution",
    "attributions",
    "circuit",
    "knock_out",
    "logit_lens",
    "patching",
    "path_patching",
    "source_tokens",
]
