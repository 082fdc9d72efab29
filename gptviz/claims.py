"""The name of `gptviz.teach.claims` in version 0.1, for whoever imports it from here; it goes in 0.2."""

from gptviz.teach.claims import NAMES, Checked, ClaimError, check, claim, verify

__all__ = ["NAMES", "Checked", "ClaimError", "check", "claim", "verify"]
