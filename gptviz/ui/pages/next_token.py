"""What comes next, how sure the model is of it, and how temperature, top-k and top-p choose."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.next_token import view

scene = page("Next token", keep=("final",), params=view.PARAMS)
view.draw(scene)
