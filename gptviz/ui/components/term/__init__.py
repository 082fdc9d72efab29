"""A term of the field with a dotted underline, and its definition on hover, tap and focus: HTML, no script.

It works in `st.html` and in `st.markdown(..., unsafe_allow_html=True)`, on a page that has `term_style`.
"""

from functools import cache
from html import escape
from pathlib import Path

from gptviz.figures.theme import Mode, palette

_CSS = Path(__file__).parent / "term.css"


def term(words: str, definition: str) -> str:
    """`words` as HTML with their one-sentence `definition`, both plain text. ValueError if one is empty."""
    if not words.strip() or not definition.strip():
        raise ValueError(f"a term needs words and a definition; these are {words!r} and {definition!r}")
    said = escape(" ".join(definition.split()), quote=True)
    label = escape(f"{words}: {' '.join(definition.split())}", quote=True)
    return (
        f'<span class="gv-term" role="note" tabindex="0" data-definition="{said}" aria-label="{label}">'
        f"{escape(words)}</span>"
    )


@cache
def term_style(mode: Mode) -> str:
    """The <style> that `term` needs, once a page."""
    colors = palette(mode)
    css = _CSS.read_text("utf-8").replace("PANEL", colors.panel)
    return f"<style>{css.replace('GRID', colors.grid).replace('INK', colors.ink)}</style>"
