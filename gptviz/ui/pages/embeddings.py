"""The rows that go into block 0: token embedding + position embedding."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.embeddings import view

scene = page("Embeddings", keep=("tok_emb", "pos_emb", "embed"), params=view.PARAMS)
view.draw(scene)
