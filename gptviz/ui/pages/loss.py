"""The loss: what a text costs the model, from logits to cross-entropy."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.loss import view

scene = page("Loss", keep=("final",))
view.draw(scene)
