"""Every head on trial: what it does here and in general, and whether its label holds when it is muted."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.block import head_needs
from gptviz.ui.views.heads import view

scene = page("Heads on trial", head_needs, params=view.PARAMS, strip=False)
view.draw(scene)
