// How a matrix stands on the screen: where it has room, its cells, its labels, the small map of the whole.

const ANGLE = Math.PI / 3;       // of the labels above the columns
const READABLE = 10;             // pixels a cell must have for its token to be written beside it; at 16 px a rem
const TINY = 5;                  // pixels a cell must have for the whole to be what is seen at first
const OPENED = { large: 15, small: 12 };    // pixels that a cell then has in the window that opens
const LARGEST_CELL = 64;
const ABOVE = 360;               // pixels that a page with one line of tokens has above a matrix, and a line below
const PRESENTED = 300;           // the same on a projector, where the prompt is folded; at 16 px a rem
const CHANGED = 70;              // there, what a change of the model has: its bar, and what to show of both; likewise
const MAP = 104;                 // the corner that the map stands in
const NAMED = 56;                // pixels beside the rows for "query ↓", where tokens are shorter

const px = (number) => `${number}px`;
const bold = ({ data, state }) => (data.small ? 13 : 16) * state.unit;

// Room for the longest token beside the rows, measured as it is drawn under the pointer.
function longestLabel(view) {
  const { data, root, state } = view;
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = `700 ${bold(view)}px ${getComputedStyle(root).fontFamily}`;
  return Math.min((data.small ? 62 : 108) * state.unit, Math.max(...data.tokens.map((token) => pen.measureText(token).width)) + 12);
}

// Where a panel's cells lie in the `room` that it has across.
function layout({ data, state }, panel, room) {
  const { unit, longest } = state;
  const named = ({ column_axis }) => column_axis !== 'dim', tokens = (data.small ? data.panels : [panel]).some(named);  // small ones are all alike
  const presented = (PRESENTED + (document.querySelector('.st-key-gv_changes') ? CHANGED : 0)) * unit;
  const high = Math.max(320, innerHeight - (unit > 1 ? presented : ABOVE));   // a low screen gets a smaller matrix
  const most = Math.min(unit > 1 ? high : Math.min(data.largest, high), LARGEST_CELL * unit * data.tokens.length);
  const right = tokens ? longest * Math.cos(ANGLE) : 4;
  let [left, top] = [data.small ? longest : Math.max(longest, NAMED * unit), tokens ? longest * Math.sin(ANGLE) + 6 : 22 * unit];
  const cell = Math.min(most, room - left - right) / data.tokens.length, crowded = cell < READABLE * unit;
  // in a narrow place where the whole is seen anyway, the map would take a third of it
  const mapped = crowded && !data.small && (cell < TINY * unit || room >= 4 * MAP * unit);
  if (mapped) [left, top] = [Math.max(left, MAP * unit), Math.max(top, MAP * unit)];
  const size = Math.max(40, Math.min(most, room - left - right));
  return { left, right, top, longest, crowded, mapped, width: size, height: size };
}

const centre = ({ box, part, cellX, cellY }, axis, i) => (axis === 'row'
  ? box.top + (i - part.row + 0.5) * cellY : box.left + (i - part.column + 0.5) * cellX);

function paint(view, plot) {
  const { data, state } = view, { panel, box, part, canvas } = plot;
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
  Object.assign(canvas.style, { left: px(box.left), top: px(box.top), width: px(box.width), height: px(box.height) });
  const context = canvas.getContext('2d');
  drawCells(context, state, panel, part, canvas.width, canvas.height);
  if (Math.min(plot.cellX, plot.cellY) < 11) return;
  context.fillStyle = gv.palette(data.mode).paper;       // a hair of paper between cells that are large enough
  const [wide, high] = [canvas.width / part.columns, canvas.height / part.rows];
  for (let i = 1; i < part.columns; i++) {                // what is masked stays flat
    const from = panel.masked ? Math.round(clamp(part.column + i - part.row, 0, part.rows) * high) : 0;
    context.fillRect(Math.round(i * wide), from, 1, canvas.height - from);
  }
  for (let i = 1; i < part.rows; i++) {
    const cells = panel.masked ? clamp(part.row + i - part.column, 0, part.columns) : part.columns;
    context.fillRect(0, Math.round(i * high), Math.round(cells * wide), 1);
  }
}

function drawCells(context, state, panel, part, width, height) {
  const [wide, high] = [Math.min(part.columns, width), Math.min(part.rows, height)];
  const small = document.createElement('canvas');
  [small.width, small.height] = [wide, high];
  const bytes = coloured(pooled(state.arrays, panel, part, wide, high), panel, state.colors);
  small.getContext('2d').putImageData(new ImageData(bytes, wide, high), 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, width, height);
}

// ---- labels ----

function label(view, plot, axis, i, kind = '') {
  const { data, state } = view, { box } = plot;
  const cell = axis === 'row' ? plot.cellY : plot.cellX, readable = cell >= READABLE * state.unit;
  const size = kind ? bold(view) : clamp(cell * 0.82, 9 * state.unit, (data.small ? 12 : 15) * state.unit);
  const place = axis === 'row' ? { left: px(box.left), top: px(centre(plot, 'row', i)) }
    : { left: px(centre(plot, 'column', i)), top: px(box.top - 1) };
  return gv.h('button', {
    key: `${axis}-${i}`, type: 'button', tabindex: -1, title: data.tokens[i], data: { axis, index: i },
    class: ['label', axis, kind, kind && axis === 'column' && !readable && 'flat'].filter(Boolean).join(' '),
    style: { ...place, 'font-size': px(size), 'max-width': px(axis === 'row' ? box.left - 6 : box.longest) },
  }, data.tokens[i]);
}

function ticks({ data, state }, plot, axis, name) {
  const { box, part } = plot, first = name === 'dim' ? 0 : data.first, out = [];
  const [cell, from, count] = axis === 'row' ? [plot.cellY, part.row, part.rows] : [plot.cellX, part.column, part.columns];
  const step = [1, 2, 5, 10, 20, 50, 100, 200].find((s) => s * cell >= 26 * state.unit) ?? 500;
  for (let i = from + ((step - ((first + from) % step)) % step); i < from + count; i += step) {
    const place = axis === 'row' ? { left: px(box.left), top: px(centre(plot, axis, i)) }
      : { left: px(centre(plot, axis, i)), top: px(box.top) };
    out.push(gv.h('span', { key: `tick-${axis}-${i}`, class: `label ${axis} tick`, style: place }, String(first + i)));
  }
  return out;
}

// Of the masked corner that a window shows: where its word stands, if it has room.
function maskedAt({ box, part, panel, cellX, cellY }) {
  const cells = clamp(part.columns - 1 + part.column - part.row, 0, part.columns);
  if (!panel.masked || cells * cellX < 80) return null;
  return { x: box.left + box.width - 0.28 * cells * cellX, y: box.top + 0.27 * cells * cellY };
}

function axes(view, plot) {
  const { state } = view, { panel, box } = plot, out = [];
  for (const [axis, name, from, count, cell] of [
    ['row', panel.row_axis, plot.part.row, plot.part.rows, plot.cellY],
    ['column', panel.column_axis, plot.part.column, plot.part.columns, plot.cellX]])
    if (name === 'dim' || cell < READABLE * state.unit) out.push(...ticks(view, plot, axis, name));
    else for (let i = from; i < from + count; i++) out.push(label(view, plot, axis, i));
  const masked = maskedAt(plot);
  if (masked) out.push(gv.h('span', { key: 'masked', class: 'hidden-by-mask', data: { testid: 'masked' }, style: { left: px(masked.x), top: px(masked.y) } }, 'masked'));
  for (const [kind, name, arrow] of [['column', panel.column_axis, '→'], ['row', panel.row_axis, '↓']])
    out.push(gv.h('span', { key: `axis-${kind}`, class: `axis ${kind} by-${name}`,
      style: { left: px(box.left - 6), top: px(box.top) } }, `${name === 'dim' ? 'dimension' : name} ${arrow}`));
  return out;
}

// ---- the small map of the whole ----

function drawMap(view, plot) {
  const { data, state } = view, { map, panel } = plot, count = data.tokens.length;
  if (!map) return;
  const side = Math.round((MAP - 40) * state.unit), ratio = window.devicePixelRatio || 1;
  map.hidden = !plot.box.mapped;
  if (map.hidden) return;
  Object.assign(map.style, { width: px(side), height: px(side) });
  const canvas = map.querySelector('canvas'), frame = map.querySelector('.frame');
  if (state.mapped !== state.arrays) {                    // the whole stays as it is while the window moves
    state.mapped = state.arrays;
    canvas.width = canvas.height = Math.round(side * ratio);
    drawCells(canvas.getContext('2d'), state, panel, { row: 0, column: 0, rows: count, columns: count }, canvas.width, canvas.height);
  }
  const { query, key, n } = state.window, cell = side / count;
  Object.assign(frame.style, { left: px(key * cell), top: px(query * cell), width: px(n * cell), height: px(n * cell) });
}

// ---- what is under the pointer ----

function marks(view, plot, at) {
  const { state } = view, { panel, box, part, cellX, cellY } = plot, out = [];
  const inside = (i, from, count) => i !== null && i !== undefined && i >= from && i < from + count;
  const row = at[panel.row_axis], column = at[panel.column_axis], { selected } = state;
  if (inside(row, part.row, part.rows)) {
    out.push(gv.h('div', { key: 'row', class: `band row by-${panel.row_axis}`, style: {
      left: px(box.left), width: px(box.width), top: px(box.top + (row - part.row) * cellY), height: px(Math.max(3, cellY)) } }));
    out.push(label(view, plot, 'row', row, `focus by-${panel.row_axis}`));
  }
  if (inside(column, part.column, part.columns)) {
    out.push(gv.h('div', { key: 'column', class: `band column by-${panel.column_axis}`, style: {
      top: px(box.top), height: px(box.height), left: px(box.left + (column - part.column) * cellX), width: px(Math.max(3, cellX)) } }));
    if (panel.column_axis !== 'dim') out.push(label(view, plot, 'column', column, `focus by-${panel.column_axis}`));
  }
  if (panel.column_axis === 'key' && inside(selected.key, part.column, part.columns) && inside(selected.query, part.row, part.rows))
    out.push(gv.h('div', { key: 'ring', class: 'ring', style: {
      left: px(box.left + (selected.key - part.column) * cellX - 1), top: px(box.top + (selected.query - part.row) * cellY - 1),
      width: px(Math.max(6, cellX + 2)), height: px(Math.max(6, cellY + 2)) } }));
  return out;
}
