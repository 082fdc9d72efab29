"""Numbers in, pictures out. The only room that knows Plotly."""

from plotly.graph_objects import Figure

__all__ = ["Figure"]
