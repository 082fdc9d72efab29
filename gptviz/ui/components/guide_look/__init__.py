"""Frames what a step of a guide speaks of, and brings it into sight once it is drawn."""

from gptviz.ui.components.kernel import Component

_component = Component("guide_look")


def look_at(key: str) -> None:
    """Frame the element of the page that was drawn with this key; with "key > cell" the part of a component
    that has this `data-testid`."""
    _component("guide_look", {"look": key})
