"""Baselines: counts, a network that learns them, a small MLP, and what each costs beside the model."""

from gptviz.ui.shell.page import frame
from gptviz.ui.views.baselines import view

scene = frame("Baselines", view.PARAMS)
view.draw(scene)
