"""A picture as one HTML document: the components' scripts and the numbers are in it, and nothing is fetched.

A notebook shows it in an `<iframe srcdoc>`: that works in Jupyter, VS Code, marimo and Colab alike and stays
alive where the notebook is exported, as a widget (anywidget) would not without a script from elsewhere. Each
picture holds all that it needs, and needs no other cell: charts are drawn here, as SVG, and no library of
charts goes with them.

Where a notebook is not trusted its frames and scripts are taken out: JupyterLab keeps `<img>` with its data
(packages/apputils/src/sanitizer.ts), VS Code leaves out `text/html` and shows `image/png`. So a still picture
stands behind the frame, whose script hides it, and is given as a PNG besides, where matplotlib is installed.
"""

import base64
import json
import re
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from gptviz.figures.still import raster
from gptviz.figures.still.canvas import Canvas
from gptviz.figures.still.charts import chart
from gptviz.figures.still.svg import svg
from gptviz.figures.theme import PALETTES, Mode
from gptviz.ui.components.code import bundle, script
from gptviz.ui.notebook.stills import drawn_still

_HERE = Path(__file__).parent

STILL = (
    "A still picture. It answers pointers and clicks where the notebook is trusted: run its cell again, "
    "or choose File → Trust Notebook."
)
KINDS = (".svg", ".png", ".pdf")
STILL_HEIGHT = 900.0  # pixels of a still picture in a notebook; a file by `save` has all
WHITE = "#ffffff"


@dataclass(frozen=True, repr=False)
class Picture:
    """A page's picture; a notebook shows it if it is the last line of a cell.

    `to_html` writes it as a file that answers clicks, `save` as a figure for a paper. `title` and `lines`
    stand above it, `parts` below each other, as frame.js draws them. Without a `mode` it is as light or dark
    as the notebook; a part's `dark` is then what it has in a dark one.
    """

    title: str
    lines: tuple[str, ...]
    parts: tuple[dict[str, Any], ...]
    mode: Mode | None = None

    def __repr__(self) -> str:
        return f"Picture({self.title!r}, {len(self.html) / 1e6:.1f} MB)"

    @cached_property
    def html(self) -> str:
        """The document, with all that it needs: some 0.1 MB of scripts, and its numbers."""
        names = {part["draw"]: None for part in self.parts if "draw" in part}
        payload = {"parts": [_sent(part) for part in self.parts], "mode": self.mode}
        filled = {
            "TITLE": escape(self.title),
            "LINES": "".join(f"<p>{escape(line)}</p>" for line in self.lines),
            "STYLE": _file("frame.css"),
            "LIGHT": _colors(self.mode or "light"),
            "DARK": _colors(self.mode or "dark"),
            "GIVEN": json.dumps(payload).replace("<", r"\u003c"),
            "SCRIPT": script(bundle(*names) + _file("chart.js") + _file("frame.js")),
        }
        return re.sub(r"\{\{([A-Z]+)\}\}", lambda match: filled[match[1]], _file("frame.html"))

    def to_html(self, path: str | Path) -> Path:
        """Write it as one file, which any browser opens offline; return its path."""
        file = Path(path)
        file.write_text(self.html, encoding="utf-8")
        return file

    def save(self, path: str | Path, words: bool = True) -> Path:
        """Write it as a figure, by the ending of the name, without a browser; return its path.

        .svg has shapes and text that can be edited, .pdf shapes and their fonts; .png has two pixels for one
        of the screen. The last two need matplotlib. It stands on white, in the "dark" mode on dark paper.
        Without `words` it has no title, no text and no model above it. The machine of "overview" has only its
        numbers and what they say: a browser lays it out.

        Raises ValueError for another ending, and without matplotlib where it is needed.
        """
        file = Path(path)
        kind = file.suffix.lower()
        if kind not in KINDS:
            raise ValueError(
                f"{file.name!r} ends in none of {', '.join(KINDS)}, which can be saved; .html is to_html's"
            )
        canvas = self.still(words)
        if self.mode != "dark":
            canvas.paper = WHITE
        if kind == ".svg":
            file.write_text(svg(canvas, self.title), encoding="utf-8")
        elif kind == ".png":
            file.write_bytes(raster.png(canvas))
        else:
            file.write_bytes(raster.pdf(canvas))
        return file

    def still(self, words: bool = True) -> Canvas:
        """The picture as shapes that do not move."""
        title = self.title if words else ""
        lines = self.lines if words else ()
        return drawn_still(title, lines, self.parts, self.mode or "light")

    def _first(self) -> Canvas:
        """The still picture, only as tall as a notebook keeps it."""
        return drawn_still(self.title, self.lines, self.parts, self.mode or "light", STILL_HEIGHT)

    def _repr_html_(self) -> str:
        """HTML for a notebook: the frame, and the still picture where frames are not allowed."""
        style = "width:100%;height:560px;border:0;display:block"
        attributes = f'title="{escape(self.title)}" style="{style}"'
        frame = f"<iframe {attributes} srcdoc='{_attribute(self.html)}'></iframe>"
        return f'<div class="gptviz-picture">{frame}{self._still_html()}</div>'

    def _still_html(self) -> str:
        encoded = base64.b64encode(svg(self._first()).encode()).decode()
        alt_text = escape(" ".join((self.title, *self.lines)))
        image = f'<img alt="{alt_text}" src="data:image/svg+xml;base64,{encoded}">'
        return f'<div class="gptviz-still">{image}<p>{STILL}</p></div>'

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return every kind that a notebook keeps: a reader shows the richest that it allows."""
        kinds = {"text/plain": repr(self), "text/html": self._repr_html_()}
        if raster.is_installed():
            kinds["image/png"] = base64.b64encode(raster.small_png(self._first())).decode()
        return kinds


def _attribute(html: str) -> str:
    """Escape a document for single quotation marks: most of its own are double and may stay."""
    return html.replace("&", "&amp;").replace("'", "&#x27;")


def _sent(part: dict[str, Any]) -> dict[str, Any]:
    """A part as frame.js reads it: a figure as SVG, with the texts of its parts."""
    if "figure" not in part:
        return part
    sent = {key: value for key, value in part.items() if key not in ("figure", "dark")}
    canvas, hover = chart(part["figure"])
    sent |= {"svg": svg(canvas), "hover": hover.data()}
    if "dark" in part:
        dark, _ = chart(part["dark"]["figure"])
        sent["dark"] = {"svg": svg(dark)}
    return sent


def _colors(mode: Mode) -> str:
    colors = vars(PALETTES[mode]).items()
    return "".join(f"--{name}:{color};" for name, color in colors if isinstance(color, str))


def _file(name: str) -> str:
    return (_HERE / name).read_text("utf-8")
