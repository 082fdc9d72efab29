"""Pure functions from a Trace to numbers; those with a name that is fixed can be imported from here."""

from gptviz.analysis.attribution import attribution, source_tokens
from gptviz.analysis.circuit import circuit
from gptviz.analysis.knock_out import knock_out
from gptviz.analysis.logit_lens import logit_lens
from gptviz.analysis.patching import patching

__all__ = ["attribution", "circuit", "knock_out", "logit_lens", "patching", "source_tokens"]
