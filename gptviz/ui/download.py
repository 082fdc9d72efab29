"""A chart in a page, and the buttons that save it as PNG and SVG, offline.

The buttons are a component in the page's own document: it takes the layers that Plotly drew, as they
are on the screen, and puts them into one standalone SVG; the PNG is that SVG on a canvas, twice as large.
"""

import re
from collections.abc import Callable
from typing import Any

import streamlit as st

from gptviz.figures import Figure
from gptviz.figures.theme import Mode, palette

CSS = """
:host { display: block; }
.row { display: flex; justify-content: flex-end; gap: 2px; font-family: var(--st-font); }
button {
  all: unset; cursor: pointer; font-size: 0.8rem; padding: 1px 7px; border-radius: 5px;
  color: var(--st-text-color); opacity: 0.6;
}
button:hover { opacity: 1; background: var(--st-secondary-background-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); }
"""

JS = """
const passing = '.hoverlayer, .draglayer, .zoomlayer';   // not part of the picture

function standalone(plot, paper) {
  const layers = [...plot.querySelectorAll('.main-svg')];
  const { width, height } = layers[0].getBoundingClientRect();
  const [w, h] = [Math.round(width), Math.round(height)];
  const ns = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('xmlns', ns);
  svg.setAttribute('xmlns:xlink', 'http://www.w3.org/1999/xlink');
  svg.setAttribute('width', w);
  svg.setAttribute('height', h);
  svg.setAttribute('viewBox', `0 0 ${w} ${h}`);
  const back = document.createElementNS(ns, 'rect');
  back.setAttribute('width', w);
  back.setAttribute('height', h);
  back.setAttribute('fill', paper);
  svg.appendChild(back);
  for (const layer of layers) {
    for (const child of layer.children) {
      const copy = child.cloneNode(true);
      if (copy.matches?.(passing)) continue;
      copy.querySelectorAll?.(passing).forEach((node) => node.remove());
      svg.appendChild(copy);
    }
  }
  return { text: new XMLSerializer().serializeToString(svg), w, h };
}

function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function png(text, w, h) {
  const picture = new Image();
  picture.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
  await picture.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [2 * w, 2 * h];
  const context = canvas.getContext('2d');
  context.scale(2, 2);
  context.drawImage(picture, 0, 0, w, h);
  return new Promise((done) => canvas.toBlob(done, 'image/png'));
}

export default function (component) {
  const { data, parentElement } = component;
  let row = parentElement.querySelector('.row');
  if (!row) {
    row = document.createElement('div');
    row.className = 'row';
    for (const format of ['PNG', 'SVG']) {
      const button = document.createElement('button');
      button.textContent = format;
      button.dataset.testid = 'save-' + format.toLowerCase();
      row.appendChild(button);
    }
    parentElement.appendChild(row);
  }
  for (const button of row.children) {
    const format = button.textContent;
    button.title = `Save this picture as ${format}`;
    button.setAttribute('aria-label', button.title);
    button.onclick = async () => {
      const plot = document.querySelector(`.st-key-${data.key} .js-plotly-plot`);
      if (!plot) return;
      const { text, w, h } = standalone(plot, data.paper);
      const name = data.file + '.' + format.toLowerCase();
      if (format === 'SVG') save(new Blob([text], { type: 'image/svg+xml' }), name);
      else save(await png(text, w, h), name);
    };
  }
}
"""

_buttons = st.components.v2.component("gptviz.download", css=CSS, js=JS)


def chart(
    fig: Figure,
    key: str,
    alt: str,
    mode: Mode,
    height: int | None = None,
    on_select: Callable[[], Any] | None = None,
) -> None:
    """Draw `fig` as wide as the page, with buttons under it that save it; see `Scene.chart`."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", key):
        raise ValueError(f"a chart's key is {key!r}; it names a CSS class: letters, digits and _ only")
    if height is not None:
        fig.update_layout(height=height)
    selecting: dict[str, Any] = (
        {} if on_select is None else {"on_select": on_select, "selection_mode": ("points",)}
    )
    st.plotly_chart(
        fig,
        theme=None,
        key=key,
        alt=alt,
        config={"displaylogo": False, "displayModeBar": False, "scrollZoom": False, "doubleClick": False},
        **selecting,
    )
    _buttons(key=f"{key}_save", data={"key": key, "file": f"gptviz-{key}", "paper": palette(mode).paper})
