"""Pure functions from a Trace to numbers; those with a name that is fixed can be imported from here."""

from gptviz.analysis.logit_lens import logit_lens

__all__ = ["logit_lens"]
