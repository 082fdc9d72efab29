"""Numbers in, pictures out. The only room that knows Plotly."""

from gptviz.figures.theme import Figure

__all__ = ["Figure"]
