"""All heads of the opened head's block that do the same, switched off at one click."""

from gptviz import Edit
from gptviz.analysis.head_formulas import ROLES
from gptviz.ui.views import change
from gptviz.ui.views.change_actions import Action
from gptviz.ui.views.heads import words
from gptviz.ui.views.heads.chosen import Chosen

Heads = tuple[int, ...]


def draw(chosen: Chosen) -> None:
    """A button for the heads of one label: on this text, and in general where these are others."""
    for where, (role, heads) in same_label(chosen).items():
        action = switch_off(chosen.block, role, heads, where)
        change.switch(action, f"heads_{where}", words.who(chosen.block, heads, role, where))


def same_label(chosen: Chosen) -> dict[str, tuple[str, Heads]]:
    """The opened head's label and its block's heads that bear it, by where it was measured.

    That is "here", and "general" where these are others. Only where there are several, and the label claims
    something and was not withdrawn. A head's pattern does not depend on its own block's outputs, so that the
    heads stay the same ones once they are off.
    """
    block = chosen.block
    found = {"here": {role.head: role.kind for role in chosen.here.roles[block]}}
    if chosen.labels is not None:
        found["general"] = {h: role for (b, h), (role, _) in chosen.labels.items() if b == block}
    made: dict[str, tuple[str, Heads]] = {}
    for where, roles in found.items():
        role = roles[chosen.head]
        alike = sorted(h for h, kind in roles.items() if kind == role)
        heads = tuple(h for h in alike if chosen.verdict(block, h, role) != "withdrawn")
        several = len(heads) > 1 and chosen.head in heads and not ROLES[role].quiet
        if several and heads not in [others for _, others in made.values()]:
            made[where] = role, heads
    return made


def switch_off(block: int, role: str, heads: Heads, where: str) -> Action:
    return Action(
        words.switch_off(block, len(heads), role, where),
        Edit("z", block, "zero", heads),
        "zᵢ = 0",
        words.TOGETHER,
        undone=words.switch_on(block, len(heads), role, where),
    )
