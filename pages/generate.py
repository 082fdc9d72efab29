"""How a model writes on: token by token, each one drawn, and every step there to go back to."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.generate import view
from gptviz.ui.views.generate.play import PARAMS

scene = page("Generate", keep=("final",), params=PARAMS)
view.draw(scene)
