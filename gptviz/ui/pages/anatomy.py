"""What the model is made of: every tensor to scale, and the sum of its parameters, line by line."""

from gptviz.ui.shell.page import frame
from gptviz.ui.views.anatomy import view
from gptviz.ui.views.anatomy.form import PARAMS

scene = frame("Anatomy", PARAMS)
view.draw(scene)
