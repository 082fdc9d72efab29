"""How the prompt became numbers: pieces, bytes, merges, ids. And how other tokenizers cut it."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.tokens import view
from gptviz.ui.views.tokens.comparison import PARAMS

scene = page("Tokens", params=PARAMS, strip=False)
view.draw(scene)
