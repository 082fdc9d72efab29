"""A picture as one HTML document: the components' scripts and the numbers are in it, and nothing is fetched.

A notebook shows it in an `<iframe srcdoc>`: that works in Jupyter, VS Code, marimo and Colab alike and stays
alive where the notebook is exported, as a widget (anywidget) would not without a script from elsewhere.
"""

import base64
import gzip
import json
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from gptviz.figures.theme import Mode, palette
from gptviz.ui.components.code import bundle, script

_HERE = Path(__file__).parent


@dataclass(frozen=True, repr=False)
class Picture:
    """A page's picture: as the last line of a notebook's cell it is shown; `to_html` writes it as a file.

    `title` and `lines` stand above it, `parts` below each other, as frame.js draws them.
    """

    title: str
    lines: tuple[str, ...]
    parts: tuple[dict[str, Any], ...]
    mode: Mode = "light"

    def __repr__(self) -> str:
        return f"Picture({self.title!r}, {len(self.html) / 1e6:.1f} MB)"

    @property
    def html(self) -> str:
        """The document. A figure of Plotly's needs its library, packed 1.9 MB; without one it is 0.1 MB."""
        names = {part["draw"]: None for part in self.parts if "draw" in part}
        colors = vars(palette(self.mode)).items()
        figures = any("figure" in part for part in self.parts)
        given = {"parts": self.parts, "mode": self.mode, "plotly": _plotly() if figures else None}
        filled = {
            "TITLE": escape(self.title),
            "LINES": "".join(f"<p>{escape(line)}</p>" for line in self.lines),
            "STYLE": _file("frame.css"),
            "THEME": "".join(f"--{name}:{color};" for name, color in colors if isinstance(color, str)),
            "GIVEN": json.dumps(given).replace("<", r"\u003c"),
            "SCRIPT": script(bundle(*names, *["chart"] * figures) + _file("frame.js")),
        }
        return re.sub(r"\{\{([A-Z]+)\}\}", lambda found: filled[found[1]], _file("frame.html"))

    def to_html(self, path: str | Path) -> Path:
        """Write it as one file, which any browser opens offline; gives back where it is."""
        file = Path(path)
        file.write_text(self.html, encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        """As a notebook shows it, and keeps it."""
        style = "width:100%;height:560px;border:0;display:block"
        return f'<iframe title="{escape(self.title)}" style="{style}" srcdoc="{escape(self.html)}"></iframe>'


@cache
def _plotly() -> str:
    """Plotly's own library, as gzip in base64: 1.9 MB instead of 4.8."""
    file = resources.files("plotly").joinpath("package_data", "plotly.min.js")
    return base64.b64encode(gzip.compress(file.read_bytes(), mtime=0)).decode()


def _file(name: str) -> str:
    return (_HERE / name).read_text("utf-8")
