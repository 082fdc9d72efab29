"""The circuit: the fewest heads that keep the prediction, everything else set to its mean."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.circuit import view

scene = page("Circuit", params=view.PARAMS)
view.draw(scene)
