"""Attention on vectors small enough for a pencil, every number of it."""

from gptviz.ui.shell.page import frame
from gptviz.ui.views.attention_by_hand import view

scene = frame("Attention by hand", view.PARAMS)
view.draw(scene)
