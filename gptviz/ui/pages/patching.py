"""Patching: one value of another text's pass put into this one's, for every place in turn."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.patching import view

scene = page("Patching", params=view.PARAMS)
view.draw(scene)
