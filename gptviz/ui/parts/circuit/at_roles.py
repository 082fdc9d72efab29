"""Over texts with two names: each head of the circuit kept at its role alone, and at which role it works."""

import pandas as pd
import streamlit as st

from gptviz.analysis.circuit_passes import Heads
from gptviz.analysis.circuit_texts import EVERYWHERE, heads_by_role, share_kept, strongest_roles
from gptviz.analysis.role_patches import ROLES
from gptviz.digits import plus_minus
from gptviz.ui import many
from gptviz.ui.sheet import Param
from gptviz.ui.words import counted, percent

AT_ROLES = Param("many_roles", bool, False)
PARAMS = (AT_ROLES,)


def ahead(heads: Heads) -> many.Ahead:
    """What is measured first: at which role each head of this circuit works."""
    return many.Ahead(
        switch=_switch,
        function=heads_by_role,
        passes=1 + len(heads) * len(ROLES),
        columns=["lost"],
        options=lambda means: {"heads": tuple(strongest_roles(means).items())},
        says=_at_which,
        what="heads by role",
        note="By how many logits the difference falls when a head of the circuit is off at this role's token alone; "
        "the circuit's heads are kept at every other one.",
    )


def shares_over(means: pd.DataFrame, heads: Heads) -> str:
    """How much of the way from no head to the whole model this circuit goes, by these means, with a blank before it.

    Of heads at their roles, the same of the heads at every position stands beside it; where there is little way to go,
    the logit difference alone.
    """
    everywhere = means[means["kept"] == EVERYWHERE]
    share = share_kept(means)
    if share is None and len(everywhere) == 0:
        return ""
    if share is None:
        row = everywhere.iloc[0]
        told = plus_minus(row["logit"], row["logit_se"])
        return f" With its heads kept at every position it is {told} logits."
    told = (
        f" Of the way from no head to the whole model, this circuit of {counted(len(heads), 'head')} goes "
        f"**{_way(share, '**')}"
    )
    share_everywhere = None
    if len(everywhere) > 0:
        share_everywhere = share_kept(means, EVERYWHERE)
    if share_everywhere is None:
        return f"{told}."
    return (
        f"{told} with each head at its role alone, and {_way(share_everywhere)} with its heads kept at "
        "every position."
    )


def _way(share: float, end: str = "") -> str:
    """A share of the way, in percent; `end` stands behind the number."""
    told = f"{percent(abs(share))}{end}"
    if share < 0:
        told += " the other way"
    return told


def _switch() -> bool:
    """Draw the switch; return whether each head is kept at its role alone."""
    help = "Each head of the circuit is switched off at IO, S1, S1+1, S2 and END in turn, over all these texts. It is "
    help += "kept only where the logit difference changes most; at every other token it outputs what the heads "
    help += "outside the circuit do, as in Wang et al., 2022. They took the roles from what the heads do; here these "
    help += f"same texts choose them, so that the share is rather too large. {many.OF_ROLES}"
    AT_ROLES.widget(st.toggle, "Keep each head only at the token where it works", help=help)
    return AT_ROLES.value


def _at_which(means: pd.DataFrame) -> str:
    """The heads at each role, with a blank before it."""
    at: dict[str, list[str]] = {role: [] for role in ROLES}
    for (block, head), (role,) in strongest_roles(means).items():
        at[role].append(f"{block}·{head}")
    told = [f"{', '.join(heads)} at {role}" for role, heads in at.items() if heads]
    return f" Each head is kept where the circuit changes most without it: {'; '.join(told)}. {many.OF_ROLES}"
