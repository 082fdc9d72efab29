"""Every head of every block, one of them large, its steps, and the arithmetic behind one weight."""

from gptviz.ui.shell.block import head_needs
from gptviz.ui.shell.page import page
from gptviz.ui.views.attention import view
from gptviz.ui.views.attention.controls import PARAMS

scene = page("Attention", head_needs, params=PARAMS, strip=False)
view.draw(scene)
