// The picture of a matrix as a file: what is on the screen, with its axes named, its scale, and its sentence.

const MANY = 20000;              // cells from which they are an image and not shapes
const MARGIN = 12;

function cellsOf(view, { panel, part, box, canvas }, x, y) {
  if (part.rows * part.columns > MANY)
    return `<image x="${x}" y="${y}" width="${box.width}" height="${box.height}" preserveAspectRatio="none"`
      + ` style="image-rendering: pixelated" href="${canvas.toDataURL()}"/>`;
  const values = pooled(view.state.arrays, panel, part, part.columns, part.rows), bytes = coloured(values, panel, view.state.colors);
  const paths = new Map();
  for (let i = 0; i < values.length; i++) {
    const color = bytes.subarray(4 * i, 4 * i + 3).join(',');
    paths.set(color, `${paths.get(color) ?? ''}M${i % part.columns} ${Math.floor(i / part.columns)}h1v1h-1z`);
  }
  return `<g transform="translate(${x} ${y}) scale(${box.width / part.columns} ${box.height / part.rows})" shape-rendering="crispEdges">`
    + [...paths].map(([color, path]) => `<path fill="rgb(${color})" d="${path}"/>`).join('') + '</g>';
}

// A strip of the panel's colours with the numbers at its ends.
function scaleOf(view, panel, x, y) {
  const { data } = view, colors = gv.palette(data.mode), id = `scale-${panel.name}`;
  const stops = colors[panel.scale].map(([stop, color]) => `<stop offset="${stop}" stop-color="${color}"/>`).join('');
  const [low, high] = [panel.low, panel.high].map((value) => (panel.digits === 'weight' ? gv.fixed(value, 0) : gv.number(value)));
  const wide = 8 + 6.2 * low.length;
  return `<linearGradient id="${id}">${stops}</linearGradient>` + gv.svgText(x, y + 9, low, { color: colors.quiet, size: 11 })
    + `<rect x="${x + wide}" y="${y}" width="70" height="10" fill="url(#${id})" stroke="${colors.quiet}" stroke-width="0.5"/>`
    + gv.svgText(x + wide + 76, y + 9, high, { color: colors.quiet, size: 11 });
}

function pictureOf(view) {
  const { data, root, state } = view, colors = gv.palette(data.mode), parts = [];
  const panels = root.querySelector('.panels'), frame = panels.getBoundingClientRect();
  let [width, height] = [0, 0];
  for (const plot of state.plots) {
    const { panel, box, part, cellX, cellY } = plot;
    const [holder, area] = [plot.holder, plot.element].map((node) => node.getBoundingClientRect());
    const used = (cellX < READABLE * state.unit ? 40 : box.longest * Math.sin(ANGLE)) + 10;
    const lift = panel.title ? 0 : Math.max(0, box.top - used);       // the map's corner is not in the picture
    const [x0, y0] = [area.left - frame.left + MARGIN, area.top - frame.top + MARGIN - lift];
    const [left, top] = [x0 + box.left, y0 + box.top];
    if (panel.title) {
      const y = holder.top - frame.top + MARGIN + 13;
      parts.push(gv.svgText(x0, y, panel.title, { color: colors[panel.color] ?? colors.ink, size: 14, weight: 650 }));
      parts.push(gv.svgText(x0, y + 15, panel.note, { color: colors.quiet, size: 11 }));
    }
    parts.push(cellsOf(view, plot, left, top));
    for (const node of plot.element.querySelectorAll('.labels > *')) {
      const { fontSize, color, maxWidth } = getComputedStyle(node), size = parseFloat(fontSize);
      const [x, y] = [x0 + parseFloat(node.style.left), y0 + parseFloat(node.style.top)];
      const text = cutTo(node.textContent, maxWidth, size);
      if (node.matches('.axis.by-dim')) parts.push(gv.svgText(left, y - 1.5 * size - 6, text, { color, size, weight: 650 }));
      else if (node.matches('.axis.column')) parts.push(gv.svgText(x, y - 1.35 * size - 11, text, { anchor: 'end', color, size, weight: 650 }));
      else if (node.matches('.axis.row')) parts.push(gv.svgText(x, y - 11, text, { anchor: 'end', color, size, weight: 650 }));
      else if (node.matches('.row')) parts.push(gv.svgText(x - 5, y + size / 3, text, { anchor: 'end', color, size }));
      else if (node.matches('.tick')) parts.push(gv.svgText(x, y - 4, text, { anchor: 'middle', color, size }));
      else if (node.matches('.column')) parts.push(gv.svgText(x, y - 4, text, { color, size, turn: -60 }));
      else parts.push(gv.svgText(x, y, text, { anchor: 'middle', color, size }));
    }
    if (panel.column_axis === 'key' && state.selected.key !== null && shows(state.window, state.selected))
      for (const [grow, color, wide] of [[2.5, colors.paper, 1.5], [1, colors.accent, 2.5]])
        parts.push(`<rect x="${left + (state.selected.key - part.column) * cellX - grow}" y="${top + (state.selected.query - part.row) * cellY - grow}"`
          + ` width="${Math.max(3, cellX) + 2 * grow}" height="${Math.max(3, cellY) + 2 * grow}" rx="3" fill="none" stroke="${color}" stroke-width="${wide}"/>`);
    parts.push(scaleOf(view, panel, left, top + box.height + 8));
    width = Math.max(width, left + box.width + box.right + MARGIN);
    height = Math.max(height, top + box.height + 8 + 10 + MARGIN);
  }
  return gv.svgFile(Math.ceil(width), Math.ceil(height), colors.paper, parts);
}

// A text as CSS would cut it, for its room in pixels.
function cutTo(text, room, size) {
  const pen = (cutTo.pen ??= document.createElement('canvas').getContext('2d'));
  pen.font = `${size}px "Source Sans", sans-serif`;
  const fits = (part) => !(pen.measureText(part).width > parseFloat(room));
  if (fits(text)) return text;
  const letters = [...text];
  while (letters.length && !fits(`${letters.join('')}…`)) letters.pop();
  return `${letters.join('')}…`;
}
