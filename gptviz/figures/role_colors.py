"""The colour of each role of a head, in every picture of roles."""

from gptviz.analysis.head_formulas import ROLES
from gptviz.figures.theme import Mode, mixed, palette


def role_colors(mode: Mode) -> dict[str, str]:
    """Return a colour for each role; those that claim nothing are grey, a head at rest the darker one."""
    colors = palette(mode)
    faint = mixed(colors.paper, colors.quiet, 0.5)
    found = {name: colors.quiet if name == "first" else faint for name in ROLES}
    loud = [name for name, role in ROLES.items() if not role.quiet]
    return found | dict(zip(loud, colors.heads, strict=False))
