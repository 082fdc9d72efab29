"""What the model would say next if it stopped at each depth."""

from gptviz.analysis.lens import KEEP
from gptviz.ui.shell.page import page
from gptviz.ui.views.logit_lens import view

scene = page("Logit lens", keep=KEEP, params=view.PARAMS)
view.draw(scene)
