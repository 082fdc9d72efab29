"""How a text becomes training examples: windows that slide over it, and their batches."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.data_windows import view

scene = page("Data windows", params=view.PARAMS)
view.draw(scene)
