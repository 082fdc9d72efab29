"""Every figure that a test of this folder makes is checked when the test is over."""

import json

import plotly.graph_objects as go
import pytest
from plotly.io import to_json

from gptviz.figures.theme import Figure


@pytest.fixture(autouse=True)
def figures(monkeypatch):
    """What the browser gets of a figure is what Plotly's own objects, with all their checks, make of it."""
    made = []
    build = Figure.__init__

    def recorded(self, written):
        made.append(written)
        build(self, written)

    monkeypatch.setattr(Figure, "__init__", recorded)
    yield made
    monkeypatch.undo()
    for written in made:
        sent = json.loads(to_json(Figure(written), validate=False))
        checked = go.Figure(sent).update_layout(template=None)
        assert without_empty(json.loads(to_json(checked, validate=False))) == without_empty(sent)


def without_empty(value):
    """Plotly's objects leave out lists and dictionaries that have nothing in them."""
    if isinstance(value, dict):
        kept = {key: without_empty(part) for key, part in value.items()}
        return {key: part for key, part in kept.items() if part not in ({}, [])}
    return value
