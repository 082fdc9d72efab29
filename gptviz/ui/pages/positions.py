"""How a model knows where a token stands: learned rows, sines, rotations, or nothing."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.positions import shuffle, view

scene = page("Positions", keep=shuffle.keep, params=view.PARAMS)
view.draw(scene)
