"""Knock-out: every head, attention and feed-forward muted in turn, and what becomes of the prediction."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.knock_out import view

scene = page("Knock-out", params=view.PARAMS)
view.draw(scene)
