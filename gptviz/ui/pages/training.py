"""Train one now: a small GPT learns while one watches."""

from gptviz.ui.shell.page import frame
from gptviz.ui.views.training import view

scene = frame("Train one now", view.PARAMS)
view.draw(scene)
