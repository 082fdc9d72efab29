"""Two texts, two models, or one model before and after a change, side by side."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.compare import view
from gptviz.ui.views.compare.derived import needs
from gptviz.ui.views.compare.sides import PARAMS

scene = page("Compare", needs, params=PARAMS)
view.draw(scene)
