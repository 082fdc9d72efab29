"""What a grid of all heads says of each."""

from typing import TypedDict

from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import HeadRole
from gptviz.digits import fixed, percent


class Words(TypedDict):
    """Of a head: its role, a word or two for it, a sentence without subject, how much it writes."""

    kind: str
    label: str
    says: str
    write: float


def words_of(role: HeadRole, write: float, longest: float) -> Words:
    """Return what is said of a head with this role that writes so much;
    the most that one writes is `longest`.
    """
    label = ROLES[role.kind].label
    share = f"over {fixed(role.spread, 1)} tokens" if role.share is None else percent(role.share)
    says = f"{label}, {share}. It writes {fixed(write, 1)} (the bar; the longest is {fixed(longest, 1)})."
    return {"kind": role.kind, "label": label, "says": says, "write": round(write, 4)}
