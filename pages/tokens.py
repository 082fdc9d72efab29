"""How the prompt became numbers: pieces, bytes, merges, ids. And how other tokenizers cut it."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.tokens import view

scene = page("Tokens")
view.draw(scene)
