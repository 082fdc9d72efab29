"""The settings that a fresh machine starts with."""

import tomllib
from pathlib import Path

import pytest

from gptviz.figures.theme import PALETTES

CONFIG = tomllib.loads(
    (Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_apps_colours_are_the_figures_colours(mode):
    theme = CONFIG["theme"][mode]
    colors = PALETTES[mode]
    assert theme["primaryColor"] == colors.accent
    assert theme["backgroundColor"] == colors.paper
    assert theme["secondaryBackgroundColor"] == colors.panel
    assert theme["textColor"] == colors.ink


def test_the_browser_chooses_its_theme_and_nothing_is_asked_nor_sent():
    assert "base" not in CONFIG["theme"]
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["server"]["showEmailPrompt"] is False
    assert not any("http" in str(value) for value in CONFIG["theme"].values())
    assert CONFIG["runner"]["postScriptGC"] is False  # no full collection after every run
