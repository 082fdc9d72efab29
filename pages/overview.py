"""The whole way from the text to the next token, on one screen."""

from gptviz.analysis.overview import SITES
from gptviz.ui.shell.page import page
from gptviz.ui.views.overview import view

scene = page("Overview", keep=SITES)
view.draw(scene)
