"""What each block adds to a token's row of numbers."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.residual_stream import view

scene = page("Residual stream", keep=view.KEEP, params=view.PARAMS)
view.draw(scene)
