// Matrices over tokens, drawn on canvases that point at each other: what is under the pointer is marked in
// every panel, and every panel says its own number for it. A click on a cell or on a token selects.
//
// A panel has axes ("query", "key" or "dim") for its rows and its columns; the pointer sets one index for
// each axis, and `at` is where it stands now. All panels look through the same window onto the tokens, which
// zooms and moves where they are too many to be read at once. data: see __init__.py; adding.js, cells.js,
// drawing.js and picture.js stand before this file.

const STEP = 1.6;                // of the zoom, a press of a button or a key
const DRAGGED = 4;               // pixels from which a click is a drag

function prepare({ data, state }) {
  if (state.data === data) return;
  const text = JSON.stringify([data.first, data.tokens]);
  const selected = { query: data.query - data.first, key: data.key === null ? null : data.key - data.first, dim: null };
  if (state.text !== text) state.window = null;         // another text is looked at from its own beginning
  const moved = JSON.stringify(state.selected) !== JSON.stringify(selected);
  Object.assign(state, { data, text, selected, at: selected, reveal: moved, arrays: decodeAll(data.arrays), colors: colorsOf(gv.palette(data.mode)) });
}

// ---- the window ----

function look(view, next) {
  const { data, root, state } = view, count = data.tokens.length, matrix = root.querySelector('.matrix');
  state.window = next;
  for (const plot of state.plots) {
    plot.part = partOf(plot.panel, next);
    Object.assign(plot, { cellX: plot.box.width / plot.part.columns, cellY: plot.box.height / plot.part.rows });
    paint(view, plot);
    gv.render(plot.element.querySelector('.labels'), axes(view, plot));
    plot.element.classList.toggle('movable', next.n < count);
    drawMap(view, plot);
  }
  Object.assign(matrix.dataset, {
    from: data.first + next.query, to: data.first + next.query + next.n - 1,
    keysFrom: data.first + next.key, keysTo: data.first + next.key + next.n - 1, zoom: (count / next.n).toFixed(2) });
  const tools = root.querySelector('.tools');
  tools.hidden = !state.zoomable;
  root.querySelector('[data-testid=zoom-in]').disabled = next.n <= FEWEST;
  root.querySelector('[data-testid=zoom-out]').disabled = root.querySelector('[data-testid=zoom-whole]').disabled = next.n >= count;
  root.querySelector('.where').textContent = next.n < count
    ? `queries ${matrix.dataset.from}–${matrix.dataset.to}, keys ${matrix.dataset.keysFrom}–${matrix.dataset.keysTo} of ${count}`
    : `all ${count} ${view.data.together > 1 ? 'rows' : 'tokens'}`;
  show(view, state.at, state.said);
}

function zoom(view, factor, at) {
  const { state, data } = view, count = data.tokens.length;
  state.exact = clamp((Math.round(state.exact ?? 0) === state.window.n ? state.exact : state.window.n) / factor, FEWEST, count);
  if (Math.round(state.exact) !== state.window.n) look(view, zoomed(state.window, state.window.n / Math.round(state.exact), at, count));
}

function zoomAt(view) {          // around what is chosen, if it is in sight, else around the middle
  const { at, window: shown } = view.state, middle = Math.floor(shown.n / 2);
  return shows(shown, at) ? at : { query: shown.query + middle, key: shown.key + middle };
}

function fit(view) {
  const { data, root, state } = view, width = root.querySelector('.matrix').clientWidth, count = data.tokens.length;
  state.width = width;
  if (!width) return;
  state.unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  state.longest = longestLabel(view);
  const perRow = data.small ? (width < 500 ? 2 : data.across ?? 4) : 1, room = Math.floor((width - 10 * (perRow - 1)) / perRow) - 1;
  state.plots = data.panels.map((panel) => {
    const holder = root.querySelector(`[data-testid="panel-${panel.name}"]`), element = holder.querySelector('.plot');
    const box = layout(view, panel, room);
    holder.style.width = px(room);
    element.style.height = px(box.top + box.height + 4);
    return { panel, holder, element, box, canvas: element.querySelector('.cells'), map: element.querySelector('.map') };
  });
  const [{ box }] = state.plots, cells = Math.floor(box.width / (OPENED[data.small ? 'small' : 'large'] * state.unit));
  state.zoomable = box.crowded;
  state.mapped = null;
  const opened = windowAround(state.selected, box.width / count < TINY * state.unit ? cells : count, count);
  const next = !state.window || !box.crowded ? opened
    : !state.reveal || shows(state.window, state.selected) ? state.window : windowAround(state.selected, state.window.n, count);
  state.reveal = false;
  look(view, next);
}

// ---- what is under the pointer ----

function show(view, at, panel) {
  const { data, root, state } = view;
  Object.assign(state, { at, said: panel });
  for (const plot of state.plots) {
    gv.render(plot.element.querySelector('.marks'), marks(view, plot, at));
    if (data.small) readout(view, plot, at);
  }
  const place = (i) => (i === null ? '' : i + data.first);
  Object.assign(root.querySelector('.matrix').dataset, { query: place(at.query), key: place(at.key) });
  tell(root.querySelector('.says'), saying(view, panel ?? weightsOf(data), at), (pieces) => gv.prose(pieces));
}

const weightsOf = (data) => data.panels.find(({ name }) => name === 'weights') ?? data.panels[0];

function tell(element, { pieces, value }, words) {
  if (value === null) delete element.dataset.value;
  else element.dataset.value = value;
  gv.render(element, words(pieces));
}

function readout(view, { panel, holder }, at) {
  const said = saying(view, panel, at), [row, column] = [at[panel.row_axis] ?? null, at[panel.column_axis] ?? null];
  tell(holder.querySelector('.readout'), said, () => (row === null || column === null ? panel.idle
    : gv.h('b', null, isMasked(panel, row, column) ? 'masked' : said.value === null ? '' : gv[panel.digits](said.value))));
}

function cellUnder(view, plot, event) {
  const { panel, part } = plot, frame = plot.canvas.getBoundingClientRect();
  const column = Math.floor(((event.clientX - frame.left) / frame.width) * part.columns);
  const row = Math.floor(((event.clientY - frame.top) / frame.height) * part.rows);
  if (row < 0 || column < 0 || row >= part.rows || column >= part.columns) return null;
  return { ...view.state.selected, dim: null, [panel.row_axis]: part.row + row, [panel.column_axis]: part.column + column };
}

function labelUnder(view, { panel }, event) {
  const { axis, index } = event.target.dataset;
  return index === undefined ? null : { [axis === 'row' ? panel.row_axis : panel.column_axis]: Number(index) };
}

function choose(view, panel, at) {
  const { first } = view.data;
  if (panel.column_axis !== 'key') return view.send('pick', { [panel.row_axis]: at[panel.row_axis] + first });
  view.state.selected = { query: at.query, key: at.key, dim: null };
  show(view, view.state.selected, panel);
  view.send('pick', { query: at.query + first, key: at.key + first });
}

// ---- pointer and keyboard ----

// One button of a mouse drags, two fingers drag and pinch; one finger scrolls the page, as everywhere.
function handlers(view, index) {
  const { data, state } = view, count = data.tokens.length, touches = new Map();
  const plot = () => state.plots[index];
  const around = (event) => cellUnder(view, plot(), event) ?? zoomAt(view);
  let from = null;
  const spread = () => {
    const [a, b] = [...touches.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.hypot(a.x - b.x, a.y - b.y) || 1 };
  };
  const middle = () => ({ clientX: spread().x, clientY: spread().y });
  const ours = (event) => { if (event.touches.length > 1) event.preventDefault(); };    // or the page scrolls with two
  const move = (by) => look(view, panned(from.window, -by.y / plot().cellY, -by.x / plot().cellX, count));
  return {
    onpointerdown: (event) => {
      touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
      state.dragged = false;
      if (touches.size === 2) from = { window: state.window, ...spread(), at: around(middle()) };
      else from = event.pointerType !== 'touch' && event.button === 0 && state.window.n < count
        ? { window: state.window, x: event.clientX, y: event.clientY } : null;
    },
    onpointermove: (event) => {
      if (touches.has(event.pointerId)) touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (from && touches.size === 2) {
        const now = spread(), wanted = clamp(Math.round((from.window.n * from.apart) / now.apart), Math.min(FEWEST, count), count);
        const nearer = zoomed(from.window, from.window.n / wanted, from.at, count), cells = wanted / state.window.n;
        state.dragged = true;
        look(view, panned(nearer, ((from.y - now.y) / plot().cellY) * cells, ((from.x - now.x) / plot().cellX) * cells, count));
        return;
      }
      const by = from && { x: event.clientX - from.x, y: event.clientY - from.y };
      if (by && (state.dragged || Math.hypot(by.x, by.y) > DRAGGED)) {
        if (!state.dragged) plot().element.setPointerCapture(event.pointerId);
        state.dragged = true;
        return move(by);
      }
      const at = cellUnder(view, plot(), event), { panel } = plot(), named = at ? null : labelUnder(view, plot(), event);
      if (at && (at.query !== state.at.query || at.key !== state.at.key || at.dim !== state.at.dim)) show(view, at, panel);
      else if (named) show(view, { ...state.selected, ...named }, panel);
    },
    ontouchstart: ours,
    ontouchmove: ours,
    onpointerup: (event) => { touches.delete(event.pointerId); from = null; },
    onpointercancel: (event) => { touches.delete(event.pointerId); from = null; },
    onpointerleave: (event) => {
      touches.delete(event.pointerId);
      if (!state.dragged || !from) show(view, state.selected, null);
    },
    onclick: (event) => {
      if (state.dragged) return (state.dragged = false);
      const at = cellUnder(view, plot(), event), named = labelUnder(view, plot(), event);
      if (at) return choose(view, plot().panel, at);
      const [[axis, i]] = Object.entries(named ?? { none: null });
      if (named && axis !== 'dim') view.send('pick', { [axis]: i + data.first });
    },
    onwheel: (event) => {          // of a trackpad's pinch too; without ctrl the page scrolls
      if (!event.ctrlKey || !state.zoomable) return;
      event.preventDefault();
      zoom(view, Math.exp(clamp(-event.deltaY, -60, 60) * 0.01), around(event));
    },
    onkeydown: (event) => keys(view, plot(), event),
  };
}

function keys(view, { panel }, event) {
  const { data, state } = view, count = data.tokens.length;
  const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  const acts = {
    Enter: () => choose(view, panel, state.at), ' ': () => choose(view, panel, state.at),
    '+': () => zoom(view, STEP, zoomAt(view)), '=': () => zoom(view, STEP, zoomAt(view)),
    '-': () => zoom(view, 1 / STEP, zoomAt(view)), 0: () => look(view, windowAt(0, 0, count, count)),
  };
  if (event.ctrlKey || event.metaKey || event.altKey || (!step && !acts[event.key])) return;
  event.preventDefault();
  if (!step) return acts[event.key]();
  if (event.shiftKey) return look(view, panned(state.window, ...step.map((by) => by * Math.ceil(state.window.n / 2)), count));
  const next = { ...state.at };
  const go = (axis, by, size) => { next[axis] = clamp((next[axis] ?? 0) + by, 0, size - 1); };
  go(panel.row_axis, step[0], panel.rows);
  go(panel.column_axis, step[1], panel.columns);
  Object.assign(state, { at: next, said: panel });
  if (step[0] && panel.column_axis === 'key' && panel.scale === 'attention')
    gv.render(view.root.querySelector('.aloud'), [data.saved.title, rowSaid(view, panel, next.query)].filter(Boolean).join(': '));
  if (shows(state.window, next)) show(view, next, panel);
  else look(view, revealing(state.window, next, count));
}

function onMap(view, event) {
  const { data, state } = view, count = data.tokens.length;
  if (event.type === 'pointerdown') event.currentTarget.setPointerCapture(event.pointerId);
  else if (!event.buttons) return event.stopPropagation();
  event.stopPropagation();
  const frame = event.currentTarget.getBoundingClientRect();
  const cell = (from, length, at) => Math.floor(((at - from) / length) * count);
  look(view, windowAround({ query: cell(frame.top, frame.height, event.clientY), key: cell(frame.left, frame.width, event.clientX) }, state.window.n, count));
}

// ---- what there is ----

function panelOf(view, panel, index) {
  const { data } = view, color = { color: gv.palette(data.mode)[panel.color] };
  const map = (event) => onMap(view, event);
  return gv.h('div', { key: panel.name, class: 'panel', data: { testid: `panel-${panel.name}` } },
    panel.title ? [gv.h('div', { class: 'title', style: color }, panel.title, data.adds?.output === panel.name
      ? gv.h('span', { key: 'adder', class: 'adder', data: { unsaved: '' } }) : null), gv.h('div', { class: 'note' }, panel.note)] : null,
    gv.h('div', { class: 'plot', tabindex: 0, role: 'application', ...handlers(view, index),
      'aria-label': `${panel.label}. Arrow keys move, Enter selects, plus and minus zoom, 0 shows the whole.` },
    gv.h('canvas', { class: 'cells', data: { testid: `cells-${panel.name}` } }),
    gv.h('div', { class: 'labels' }), gv.h('div', { class: 'marks' }),
    !data.small && gv.h('div', { class: 'map', data: { testid: 'map' }, title: 'The whole matrix: click or drag to look elsewhere',
      onpointerdown: map, onpointermove: map, onclick: (event) => event.stopPropagation() },
    gv.h('canvas', null), gv.h('div', { class: 'frame' }))),
    data.small && gv.h('div', { class: 'readout', data: { testid: `value-${panel.name}` } }));
}

function tools(view) {
  const { data, state } = view, count = data.tokens.length;
  const button = (name, shown, title, act) => gv.h('button', { type: 'button', title, 'aria-label': gv.spoken(shown, title), data: { testid: `zoom-${name}` }, onclick: act }, shown);
  return gv.h('div', { class: 'tools', data: { unsaved: '' } },
    button('out', '−', 'Smaller cells (-)', () => zoom(view, 1 / STEP, zoomAt(view))),
    button('in', '+', 'Larger cells (+), or ctrl and the wheel', () => zoom(view, STEP, zoomAt(view))),
    button('whole', 'Whole', 'All tokens (0)', () => look(view, windowAt(0, 0, count, count))),
    button('chosen', 'Selected', 'To the selected cell', () => look(view, windowAround(state.selected, Math.min(state.window.n,
      Math.floor(state.plots[0].box.width / (OPENED[data.small ? 'small' : 'large'] * state.unit))), count))),
    gv.h('span', { class: 'where', data: { testid: `where-${data.name}` } }));
}

export default gv.component((view) => {
  if (view.state.data !== view.data) stopAdding(view, true);
  prepare(view);
  const { data, state } = view, longest = data.tokens.reduce((a, b) => (b.length > a.length ? b : a), '');
  const fill = (text) => text.replace(/\{(query|key)\}/g, `${longest} (position 1000)`).replace(/\{\w+\}/g, '0.00000');
  const { pieces } = saying(view, weightsOf(data), state.selected);
  const saved = { ...data.saved, lines: [...data.saved.lines, plain(pieces)].filter(Boolean) };
  return gv.h('div', { class: `matrix ${data.small ? 'small' : 'large'}`, data: { testid: `matrix-${data.name}` } },
    gv.h('div', { class: 'panels' }, data.panels.map((panel, i) => panelOf(view, panel, i))),
    data.adds ? gv.h('div', { key: 'adding', class: 'adding', 'aria-hidden': true, data: { unsaved: '' } }) : null,
    tools(view),
    gv.h('div', { class: 'foot' },
      gv.reserving(data.panels.flatMap((panel) => [[fill(panel.says)], [fill(panel.says_masked)]]),
        gv.h('p', { class: 'says', 'aria-live': 'polite', data: { testid: `says-${data.name}` } })),
      gv.h('p', { class: 'aloud', 'aria-live': 'polite', data: { testid: `aloud-${data.name}`, unsaved: '' } }),
      gv.saveButtons(() => pictureOf(view), saved)));
}, (view) => {
  const { root, state } = view, matrix = root.querySelector('.matrix');
  fit(view);
  state.observer?.disconnect();
  state.observer = new ResizeObserver(() => {
    if (matrix.clientWidth === state.width) return;       // asked of a page that is laid out, and not anew after what was drawn
    stopAdding(view);
    fit(view);
  });
  state.observer.observe(matrix);
  watchAdder(view);
  state.end = () => {
    state.observer.disconnect();
    state.coming?.disconnect();
    cancelAnimationFrame(state.frame);
    clearTimeout(state.tick);
    if (state.hurry) document.removeEventListener('pointerdown', state.hurry, { capture: true });
  };
});
