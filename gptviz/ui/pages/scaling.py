"""Why attention divides by the square root of d, drops weights at random, and what it costs."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.scaling import view

scene = page("Scaling", params=view.PARAMS)
view.draw(scene)
