"""The sample of text, under the name by which analyses know it: see `gptviz.sample`."""

from gptviz.sample import MOST_WINDOWS, WINDOW, Passage, Window, long_passages, passages, windows

__all__ = ["MOST_WINDOWS", "WINDOW", "Passage", "Window", "long_passages", "passages", "windows"]
