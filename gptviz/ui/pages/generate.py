"""How a model writes on: token by token, each one drawn, and every step there to go back to."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.generate import view

scene = page("Generate", keep=("final",), params=view.PARAMS)
view.draw(scene)
