"""Every LayerNorm: what it is given, what it makes of it, and why."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.layernorm import view

scene = page("LayerNorm", keep=("resid_pre", "resid_mid", "resid_post"), params=view.PARAMS)
view.draw(scene)
