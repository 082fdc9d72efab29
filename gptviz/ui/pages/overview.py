"""The whole way from the text to the next token, on one screen."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.overview import view

scene = page("Overview", view.needs)
view.draw(scene)
