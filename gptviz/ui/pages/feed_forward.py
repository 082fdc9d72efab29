"""A block's feed-forward: GELU, and what each of its units writes."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.feed_forward import view

scene = page("Feed-forward", keep=view.needs, params=view.PARAMS)
view.draw(scene)
