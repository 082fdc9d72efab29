// Matrices over tokens, drawn on canvases that point at each other: what is under the pointer is marked in
// every panel, and every panel says its own number for it. A click on a cell or on a token selects.
//
// A panel has axes ("query", "key" or "dim") for its rows and its columns; the pointer sets one index for
// each axis, and `at` is where it stands now. data: see matrix.py.

const ANGLE = Math.PI / 3;      // of the labels above the columns
const READABLE = 8.5;           // pixels a cell must have for its token to be written beside it
const LARGEST_CELL = 64;
const ABOVE = 360;              // pixels that a page with one line of tokens has above a matrix, and a line below

// ---- numbers ----

function decode(array) {
  const bytes = Uint8Array.from(atob(array.base64), (c) => c.charCodeAt(0));
  const packed = new Float32Array(bytes.buffer);
  if (!array.triangle) return packed;
  const n = array.columns, full = new Float32Array(n * n);
  for (let row = 0, from = 0; row < n; from += ++row) full.set(packed.subarray(from, from + row + 1), row * n);
  return full;
}

function valueOf(state, panel, row, column) {
  return state.arrays[panel.array][row * panel.columns + column] / panel.divisor;
}

const isMasked = (panel, row, column) => panel.masked && column > row;

function digits(value, kind) {
  if (Number.isNaN(value)) return '';
  const magnitude = Math.abs(value);
  let text;
  if (kind === 'number') text = value.toFixed(magnitude >= 1000 ? 0 : 2);
  else if (magnitude >= 0.0995 || value === 0) text = value.toFixed(2);
  else if (magnitude >= 1e-4) text = value.toPrecision(2);
  else {
    const [mantissa, power] = value.toExponential(1).split('e');
    text = `${mantissa} × 10` + [...power.replace('+', '')].map((c) => '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'['-0123456789'.indexOf(c)]).join('');
  }
  return (/^-[0.]+$/.test(text) ? text.slice(1) : text).replace('-', '−');
}

// ---- colours ----

const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

function colorTable(scale) {
  return Array.from({ length: 256 }, (_, i) => {
    const x = i / 255;
    const k = Math.max(1, scale.findIndex(([stop]) => stop >= x));
    const [[x0, c0], [x1, c1]] = [scale[k - 1], scale[k]];
    const part = (x - x0) / (x1 - x0), [a, b] = [channels(c0), channels(c1)];
    return a.map((v, j) => Math.round(v + (b[j] - v) * part));
  });
}

function colorOf(state, panel, row, column) {
  if (isMasked(panel, row, column)) return state.masked;
  const value = valueOf(state, panel, row, column);
  if (Number.isNaN(value)) return state.nothing;
  const x = (value - panel.low) / (panel.high - panel.low || 1);
  return state.tables[panel.scale][Math.max(0, Math.min(255, Math.round(255 * x)))];
}

// ---- layout ----

function shape(state, panel, width) {
  const { data } = state;
  const measure = document.createElement('canvas').getContext('2d');
  measure.font = '14px Source Sans, sans-serif';
  const longest = Math.min(data.small ? 62 : 108, Math.max(...data.tokens.map((t) => measure.measureText(t).width)) + 8);
  let left = 44, top = 22, right = 4;
  const tokenColumns = data.small || panel.column_axis !== 'dim';   // small ones stand side by side: all alike
  const high = Math.max(320, window.innerHeight - ABOVE);           // a low screen gets a smaller matrix
  const fits = (space) => Math.min(space, data.largest, high, LARGEST_CELL * panel.rows);
  let size = fits(width - left - right);
  const labelled = fits(width - longest - (tokenColumns ? longest * Math.cos(ANGLE) : 4)) / panel.rows >= READABLE;
  if (labelled) {
    left = longest;
    if (tokenColumns) [right, top] = [longest * Math.cos(ANGLE), longest * Math.sin(ANGLE) + 6];
    size = fits(width - left - right);
  }
  return { left, top, right, labelled, longest, width: size, height: size, cellX: size / panel.columns, cellY: size / panel.rows };
}

// ---- drawing ----

function paint(state, panel, view) {
  const { canvas, box } = view;
  const image = new ImageData(panel.columns, panel.rows);
  for (let row = 0, i = 0; row < panel.rows; row++)
    for (let column = 0; column < panel.columns; column++, i += 4)
      image.data.set([...colorOf(state, panel, row, column), 255], i);
  const small = document.createElement('canvas');
  [small.width, small.height] = [panel.columns, panel.rows];
  small.getContext('2d').putImageData(image, 0, 0);
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(panel.columns, Math.round(box.width * ratio));
  canvas.height = Math.max(panel.rows, Math.round(box.height * ratio));
  Object.assign(canvas.style, {
    left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px` });
  const context = canvas.getContext('2d');
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  if (Math.min(box.cellX, box.cellY) < 11) return;
  context.fillStyle = state.data.colors.paper;            // a hair of paper between cells that are large enough
  const [wide, high] = [canvas.width / panel.columns, canvas.height / panel.rows];
  for (let i = 1; i < panel.columns; i++) {               // what is masked stays flat
    const from = panel.masked ? Math.round(i * high) : 0;
    context.fillRect(Math.round(i * wide), from, 1, canvas.height - from);
  }
  for (let i = 1; i < panel.rows; i++)
    context.fillRect(0, Math.round(i * high), panel.masked ? Math.round(i * wide) : canvas.width, 1);
}

function place(parent, className, style, text = '') {
  const element = document.createElement(className.startsWith('label') ? 'button' : 'div');
  element.className = className;
  element.textContent = text;
  Object.assign(element.style, style);
  parent.appendChild(element);
  return element;
}

const px = (number) => `${number}px`;
const centre = (box, axis, i) => (axis === 'row' ? box.top + (i + 0.5) * box.cellY : box.left + (i + 0.5) * box.cellX);

function label(state, view, axis, i, className, size) {
  const { box } = view;
  const style = axis === 'row'
    ? { left: px(box.left), top: px(centre(box, 'row', i)) }
    : { left: px(centre(box, 'column', i)), top: px(box.top - 1) };
  const tight = state.data.small && axis === 'row';         // a neighbour stands to the left
  const most = tight ? box.left - 5 : box.longest;
  const room = className && !tight ? {} : { maxWidth: px(most), overflow: 'hidden', textOverflow: 'ellipsis' };
  const element = place(
    view.plot, `label ${axis} ${className}`, { ...style, ...room, fontSize: px(size) }, state.data.tokens[i]);
  element.tabIndex = -1;
  element.dataset.axis = axis;
  element.dataset.index = i;
  return element;
}

function ticks(view, axis, count, first) {
  const { box } = view;
  const cell = axis === 'row' ? box.cellY : box.cellX;
  const step = [1, 2, 5, 10, 20, 50, 100, 200].find((s) => s * cell >= 26) ?? 500;
  for (let i = (step - (first % step)) % step; i < count; i += step) {
    const style = axis === 'row'
      ? { left: px(box.left), top: px(centre(box, 'row', i)) }
      : { left: px(centre(box, 'column', i)), top: px(box.top) };
    place(view.plot, `label ${axis} tick`, { ...style, fontSize: '11px' }, String(first + i)).tabIndex = -1;
  }
}

function axes(state, panel, view) {
  const { box, plot } = view;
  const fontSize = Math.max(9, Math.min(state.data.small ? 12 : 15, box.cellY * 0.82));
  for (const [axis, name, count] of [['row', panel.row_axis, panel.rows], ['column', panel.column_axis, panel.columns]]) {
    if (name === 'dim' || !box.labelled) ticks(view, axis, count, name === 'dim' ? 0 : state.data.first);
    else for (let i = 0; i < count; i++) label(state, view, axis, i, '', fontSize);
  }
  if (!panel.masked || panel.rows < 4 || box.width < 90) return;
  const across = { left: px(box.left + 0.72 * box.width), top: px(box.top + 0.27 * box.height) };
  place(plot, 'hidden-by-mask', across, 'masked').dataset.testid = 'masked';
}

function build(state) {
  const { data, root } = state;
  const matrix = document.createElement('div');
  matrix.className = 'matrix';
  matrix.dataset.testid = `matrix-${data.name}`;
  for (const name of ['query', 'key', 'quiet', 'accent']) matrix.style.setProperty(`--${name}`, data.colors[name]);
  const panels = document.createElement('div');
  panels.className = 'panels';
  state.views = data.panels.map((panel) => {
    const holder = document.createElement('div');
    holder.className = 'panel';
    holder.dataset.testid = `panel-${panel.name}`;
    const view = { panel, holder };
    if (panel.title) {
      place(holder, 'title', { color: data.colors[panel.color] ?? '' }, panel.title);
      place(holder, 'note', {}, panel.note);
    }
    view.plot = place(holder, 'plot', {});
    view.plot.tabIndex = 0;
    view.plot.setAttribute('role', 'application');
    view.plot.setAttribute('aria-label', `${panel.label}. Arrow keys move, Enter selects.`);
    if (data.small) {
      view.readout = place(holder, 'readout', {});
      view.readout.dataset.testid = `value-${panel.name}`;
    }
    panels.appendChild(holder);
    listen(state, view);
    return view;
  });
  state.says = document.createElement('div');
  state.says.className = 'says';
  state.says.dataset.testid = `says-${data.name}`;
  state.says.setAttribute('aria-live', 'polite');
  const foot = document.createElement('div');
  foot.className = 'foot';
  foot.append(state.says);
  saveButtons(foot, () => toSvg(state), data.file);
  matrix.append(panels, foot);
  state.matrix?.remove();
  state.matrix = matrix;
  root.appendChild(matrix);
}

function fit(state) {
  const { data } = state;
  const width = state.matrix.clientWidth;
  if (!width) return;
  const perRow = data.small ? (width < 500 ? 2 : 4) : 1;
  state.views.forEach((view) => {
    const room = Math.floor((width - 10 * (perRow - 1)) / perRow) - 1;
    const box = (view.box = shape(state, view.panel, room));
    view.holder.style.width = px(room);
    view.plot.replaceChildren();
    view.plot.style.height = px(box.top + box.height + 4);
    view.canvas = document.createElement('canvas');
    view.canvas.className = 'cells';
    view.canvas.dataset.testid = `cells-${view.panel.name}`;
    view.plot.appendChild(view.canvas);
    paint(state, view.panel, view);
    axes(state, view.panel, view);
    view.marks = [];
  });
  show(state, state.selected, null);
}

// ---- what is under the pointer ----

function show(state, at, panel) {
  state.at = at;
  for (const view of state.views) {
    view.marks.forEach((mark) => mark.remove());
    view.marks = marks(state, view, at);
    if (view.readout) readout(state, view, at);
  }
  state.matrix.dataset.query = at.query + state.data.first;
  state.matrix.dataset.key = at.key + state.data.first;
  sentence(state, at, panel ?? state.data.panels.find(({ name }) => name === 'weights'));
}

function marks(state, { panel, plot, box }, at) {
  const found = [];
  const row = at[panel.row_axis] ?? null, column = at[panel.column_axis] ?? null;
  const view = { plot, box };
  if (row !== null) {
    found.push(place(plot, `band row by-${panel.row_axis}`, {
      left: px(box.left), width: px(box.width), top: px(box.top + row * box.cellY), height: px(Math.max(3, box.cellY)) }));
    const focus = label(state, view, 'row', row, 'focus', state.data.small ? 13 : 16);
    focus.style.color = state.data.colors[panel.row_axis];
    found.push(focus);
  }
  if (column !== null) {
    found.push(place(plot, `band column by-${panel.column_axis}`, {
      top: px(box.top), height: px(box.height), left: px(box.left + column * box.cellX), width: px(Math.max(3, box.cellX)) }));
    if (panel.column_axis !== 'dim')
      found.push(label(state, view, 'column', column, box.labelled ? 'focus' : 'focus flat', state.data.small ? 13 : 16));
  }
  const { selected } = state;
  if (panel.column_axis === 'key' && selected.key !== null) {
    found.push(place(plot, 'ring', {
      left: px(box.left + selected.key * box.cellX - 1), top: px(box.top + selected.query * box.cellY - 1),
      width: px(Math.max(6, box.cellX + 2)), height: px(Math.max(6, box.cellY + 2)) }));
  }
  return found;
}

function readout(state, { panel, readout: element }, at) {
  const row = at[panel.row_axis] ?? null, column = at[panel.column_axis] ?? null;
  delete element.dataset.value;
  if (row === null || column === null) {
    element.textContent = panel.idle;
    return;
  }
  const strong = document.createElement('b');
  if (isMasked(panel, row, column)) strong.textContent = 'masked';
  else {
    const value = valueOf(state, panel, row, column);
    element.dataset.value = value;
    strong.textContent = digits(value, panel.digits);
  }
  element.replaceChildren(strong);
}

function sentence(state, at, panel) {
  const row = at[panel.row_axis] ?? null, column = at[panel.column_axis] ?? null;
  const says = state.says;
  delete says.dataset.value;
  if (row === null || column === null) return;
  const value = valueOf(state, panel, row, column);
  let text = panel.says;
  if (isMasked(panel, row, column)) text = panel.says_masked;
  else if (Number.isNaN(value)) text = panel.says_nothing;
  else says.dataset.value = value;
  const name = (i) => `\`${state.data.tokens[i]}\` (position ${i + state.data.first})`;
  const named = { query: () => name(at.query), key: () => name(at.key), dim: () => at.dim,
    value: () => digits(value, panel.digits), product: () => digits(value * panel.divisor, panel.digits) };
  says.textContent = text.replace(/\{(\w+)\}/g, (_, word) => named[word]());
}

function listen(state, view) {
  const { panel, plot } = view;
  const under = (event) => {
    const frame = view.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - frame.left) / frame.width) * panel.columns);
    const row = Math.floor(((event.clientY - frame.top) / frame.height) * panel.rows);
    if (row < 0 || column < 0 || row >= panel.rows || column >= panel.columns) return null;
    return { ...state.selected, dim: null, [panel.row_axis]: row, [panel.column_axis]: column };
  };
  plot.onmousemove = (event) => {
    const at = under(event);
    if (at && (at.query !== state.at.query || at.key !== state.at.key || at.dim !== state.at.dim)) show(state, at, panel);
    if (!at) onLabel(state, panel, event.target);
  };
  plot.onmouseleave = () => show(state, state.selected, null);
  plot.onclick = (event) => {
    const at = under(event);
    if (at) return select(state, panel, at);
    const { axis, index } = event.target.dataset;
    if (index === undefined) return;
    const name = axis === 'row' ? panel.row_axis : panel.column_axis;
    state.send(name === 'query' ? { query: Number(index) + state.data.first } : { key: Number(index) + state.data.first });
  };
  plot.onkeydown = (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); select(state, panel, state.at); }
    if (!step) return;
    event.preventDefault();
    const move = (axis, by, count) => Math.max(0, Math.min(count - 1, (state.at[axis] ?? 0) + by));
    const next = { ...state.at };
    next[panel.row_axis] = move(panel.row_axis, step[0], panel.rows);
    next[panel.column_axis] = move(panel.column_axis, step[1], panel.columns);
    show(state, next, panel);
  };
}

function onLabel(state, panel, element) {
  const { axis, index } = element.dataset;
  if (index === undefined) return;
  const name = axis === 'row' ? panel.row_axis : panel.column_axis;
  show(state, { ...state.selected, dim: null, [name]: Number(index) }, panel);
}

function select(state, panel, at) {
  const { first } = state.data;
  if (panel.column_axis === 'key') {
    state.selected = { query: at.query, key: at.key, dim: null };
    show(state, state.selected, panel);
    state.send({ query: at.query + first, key: at.key + first });
  } else {
    state.send({ [panel.row_axis]: at[panel.row_axis] + first });
  }
}

// ---- the picture as a file ----

function toSvg(state) {
  const parts = [], gap = 16;
  const { colors, tokens, first } = state.data;
  let x0 = gap, height = 0;
  for (const { panel, box } of state.views) {
    const top = box.top + (panel.title ? 30 : 8);
    if (panel.title) parts.push(svgText(x0 + box.left, 18, panel.title, { color: colors[panel.color] ?? colors.ink, size: 14, weight: 650 }));
    const paths = new Map();
    for (let row = 0; row < panel.rows; row++)
      for (let column = 0; column < panel.columns; column++) {
        const color = colorOf(state, panel, row, column).join(',');
        paths.set(color, (paths.get(color) ?? '') + `M${column} ${row}h1v1h-1z`);
      }
    parts.push(`<g transform="translate(${x0 + box.left} ${top}) scale(${box.cellX} ${box.cellY})" shape-rendering="crispEdges">`);
    for (const [color, path] of paths) parts.push(`<path fill="rgb(${color})" d="${path}"/>`);
    parts.push('</g>');
    const size = Math.max(6, Math.min(14, box.cellY * 0.82));
    for (let i = 0; box.labelled && i < panel.rows; i++)
      parts.push(svgText(x0 + box.left - 5, top + (i + 0.5) * box.cellY + size / 3, tokens[i], { anchor: 'end', color: colors.ink, size }));
    for (let i = 0; box.labelled && panel.column_axis !== 'dim' && i < panel.columns; i++)
      parts.push(svgText(x0 + box.left + (i + 0.5) * box.cellX, top - 5, tokens[i], { color: colors.ink, size, turn: -60 }));
    if (!box.labelled)
      parts.push(svgText(x0 + box.left, top - 6, `positions ${first} to ${first + panel.rows - 1}`, { color: colors.quiet }));
    if (panel.masked && panel.rows >= 4)
      parts.push(svgText(x0 + box.left + 0.72 * box.width, top + 0.27 * box.height, 'masked', { anchor: 'middle', color: colors.quiet }));
    x0 += box.left + box.width + box.right + gap;
    height = Math.max(height, top + box.height + gap);
  }
  return svgFile(Math.ceil(x0), Math.ceil(height), colors.paper, parts);
}

export default function (component) {
  const { data, parentElement: root, setTriggerValue } = component;
  root.gptviz?.observer.disconnect();
  const { first } = data;
  const state = {
    data, root, matrix: root.gptviz?.matrix,
    arrays: Object.fromEntries(Object.entries(data.arrays).map(([name, array]) => [name, decode(array)])),
    tables: Object.fromEntries(Object.entries(data.scales).map(([name, scale]) => [name, colorTable(scale)])),
    masked: channels(data.colors.masked), nothing: channels(data.colors.panel),
    selected: { query: data.query - first, key: data.key === null ? null : data.key - first, dim: null },
    send: (value) => setTriggerValue('pick', value),
  };
  state.at = state.selected;
  root.gptviz = state;
  const focused = root.activeElement?.closest?.('.panel')?.dataset.testid;
  build(state);
  fit(state);
  if (focused) root.querySelector(`[data-testid="${focused}"] .plot`)?.focus();
  let width = state.matrix.clientWidth;
  state.observer = new ResizeObserver(() => {
    if (state.matrix.clientWidth === width) return;
    width = state.matrix.clientWidth;
    fit(state);
  });
  state.observer.observe(state.matrix);
  return () => root.gptviz?.observer.disconnect();
}
