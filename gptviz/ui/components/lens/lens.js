// The logit lens: a row a depth, a column a token, in each cell the token on top. data: see __init__.py;
// columns.js stands before this file.

const STEP = 1.5;                // of the zoom, a press of a button or a key
const NAMED = 24;                // pixels a column must have for tokens to stand in it; at 16 px a rem

const px = (number) => `${number}px`;

function prepare({ data, state }) {
  if (state.data === data) return;
  const text = JSON.stringify(data.tokens), selected = { row: data.row, position: data.position };
  if (state.text !== text) Object.assign(state, { n: null, width: null });    // another text is looked at from its own beginning
  const moved = JSON.stringify(state.selected) !== JSON.stringify(selected);
  Object.assign(state, { data, text, selected, at: selected, reveal: moved, read: decoded(data.cells), table: gv.colorTable(data.legend.scale) });
}

const colorOf = (state, cell) => state.table[Math.round(255 * within(cell.color, 0, 1))];

// ---- the window ----

function fit(view) {
  const { data, root, state } = view, count = data.tokens.length, grid = root.querySelector('.grid');
  const width = root.querySelector('.lens').clientWidth;
  if (!width) return;
  state.unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  state.room = width - root.querySelector('.names').offsetWidth - 2;
  const fresh = state.n === null || state.width !== width;
  if (fresh) state.n = openedWith(state.room, count, state.unit);
  if (fresh) state.start = startAround(state.selected.position, state.n, count);
  else if (state.reveal) state.start = startShowing(state.start, state.selected.position, state.n, count);
  Object.assign(state, { width, reveal: false, mapped: null });
  grid.classList.toggle('tall', data.rows.length > 16);
  show(view);
}

function look(view, start, n = view.state.n) {
  Object.assign(view.state, { n, start: startAt(start, n, view.data.tokens.length) });
  show(view);
}

function zoom(view, factor, around = view.state.at.position) {
  const { state, data } = view, count = data.tokens.length;
  const n = zoomedTo(state.n, factor, state.room, count, state.unit);
  const inside = around >= state.start && around < state.start + state.n ? around : state.start + Math.floor(state.n / 2);
  look(view, inside - Math.floor(((inside - state.start) * n) / state.n), n);
}

function show(view) {
  const { data, root, state } = view, count = data.tokens.length, { start, n } = state;
  gv.render(root.querySelector('.columns'), columns(view));
  Object.assign(root.querySelector('.lens').dataset, { from: start, to: start + n - 1, of: count, read: state.read.columns.size });
  const all = n >= count;
  root.querySelector('.tools').hidden = openedWith(state.room, count, state.unit) >= count && all;
  for (const [name, off] of [['before', start === 0], ['after', start + n >= count],
    ['in', zoomedTo(n, STEP, state.room, count, state.unit) === n], ['out', zoomedTo(n, 1 / STEP, state.room, count, state.unit) === n]])
    root.querySelector(`[data-testid=lens-${name}]`).disabled = off;
  root.querySelector('.where').textContent = all ? `all ${count} tokens` : `positions ${start}–${start + n - 1} of ${count}`;
  drawMap(view);
  point(view, state.at, false);
}

// ---- cells ----

function columns(view) {
  const { data, state } = view, { start, n } = state, width = Math.min(state.room / n, WIDEST * state.unit), out = [];
  const named = width >= NAMED * state.unit, last = data.rows.length - 1;
  const size = px(within(width * 0.27, 10.5 * state.unit, 14 * state.unit));
  for (let position = start; position < start + n; position++) {
    const token = data.tokens[position], here = `${token} (position ${position})`, end = cellAt(state.read, last, position);
    const chosen = position === state.selected.position ? ' chosen' : '';
    out.push(gv.h('div', { key: `column-${position}`, class: `column${chosen}`, style: { width: px(width), 'font-size': size } },
      gv.h('button', { type: 'button', tabindex: -1, class: 'token', title: here, data: { testid: 'lens-column', position } },
        named ? token : '', gv.h('small', null, named || position % 10 === 0 ? String(position) : '')),
      data.rows.map((_, row) => cell(view, row, position, named, end)),
      gv.h('div', { class: 'came', title: `in the text, after ${here}` }, named ? data.tokens[position + 1] ?? '' : '')));
  }
  return out;
}

function cell(view, row, position, named, end) {
  const { state } = view, found = cellAt(state.read, row, position);
  const base = `cell${startsBlock(row) ? ' first' : ''}`;
  if (!found) return gv.h('div', { class: `${base} unread`, data: { testid: 'lens-unread', row, position } });
  const color = colorOf(state, found), ring = row === state.selected.row && position === state.selected.position;
  const moved = found.ghost && found.ghost.id !== found.id;
  return gv.h('div', {
    class: `${base}${found.id === end.id ? ' same' : ''}${ring ? ' ring' : ''}${moved ? ' moved' : ''}${state.read.pieces.has(found.id) ? ' piece' : ''}`,
    style: { background: `rgb(${color})`, color: gv.textOn(color) },
    data: { testid: 'lens-cell', row, position, id: found.id, probability: found.probability, color: found.color, ghost: found.ghost?.id },
  }, named ? found.tops[0].shown : '');
}

const startsBlock = (row) => row % 2 === 1;

// ---- the map of the whole ----

function drawMap(view) {
  const { data, root, state } = view, count = data.tokens.length, map = root.querySelector('.map');
  map.hidden = state.n >= count;
  if (map.hidden) return;
  const canvas = map.querySelector('canvas'), frame = map.querySelector('.frame'), rows = data.rows.length;
  map.style.marginLeft = px(state.width - state.room - 2);
  map.classList.toggle('coarse', count < state.room);     // a column is more than a pixel
  if (state.mapped !== state.read) {                      // the whole stays as it is while the window moves
    state.mapped = state.read;
    [canvas.width, canvas.height] = [count, rows];
    const bytes = new Uint8ClampedArray(4 * count * rows), grey = gv.channels(gv.palette(data.mode).masked);
    for (let row = 0; row < rows; row++)
      for (let position = 0; position < count; position++) {
        const column = state.read.columns.get(position);
        const color = column === undefined ? grey : colorOf(state, { color: state.read.color[row * state.read.columns.size + column] });
        bytes.set([...color, 255], 4 * (row * count + position));
      }
    canvas.getContext('2d').putImageData(new ImageData(bytes, count, rows), 0, 0);
  }
  Object.assign(frame.style, { left: `${(100 * state.start) / count}%`, width: `${(100 * state.n) / count}%` });
}

function onMap(view, event) {
  if (event.type === 'pointerdown') event.currentTarget.setPointerCapture(event.pointerId);
  else if (!event.buttons) return;
  const { left, width } = event.currentTarget.getBoundingClientRect(), count = view.data.tokens.length;
  look(view, startAround(within(Math.floor(((event.clientX - left) / width) * count), 0, count - 1), view.state.n, count));
}

// ---- what is under the pointer ----

const elementAt = (view, { row, position }) => view.root.querySelector(`.cell[data-row="${row}"][data-position="${position}"]`);

function point(view, at, tip) {
  const { root, state } = view, element = elementAt(view, at);
  state.at = at;
  root.querySelectorAll('.cell.at').forEach((node) => node !== element && node.classList.remove('at'));
  element?.classList.add('at');
  const box = root.querySelector('.tip');
  box.hidden = !tip || !element;
  Object.assign(root.querySelector('.lens').dataset, { row: at.row, position: at.position });
  if (box.hidden) return;
  gv.render(box, tops(view, at));
  const [frame, here, own] = [root.querySelector('.lens'), element, box].map((node) => node.getBoundingClientRect());
  const right = here.right - frame.left + 8, left = here.left - frame.left - own.width - 8;
  const below = window.innerHeight - frame.top - own.height - 8;        // as far down as the screen goes
  box.style.left = px(within(right + own.width <= frame.width ? right : left, 0, Math.max(0, frame.width - own.width)));
  box.style.top = px(Math.min(here.top - frame.top - 20, Math.max(below, -frame.top + 8)));
}

// The ten most probable tokens of a cell.
function tops({ data, state }, at) {
  const found = cellAt(state.read, at.row, at.position), [, name] = data.rows[at.row];
  const head = [gv.h('div', { class: 'title' }, name),
    gv.h('div', { class: 'under' }, 'what comes after ', gv.h('code', null, data.tokens[at.position]), ` (position ${at.position})`)];
  if (!found) return [...head, gv.h('p', { data: { testid: 'lens-says' } }, 'Nobody has read this column yet: click it, or read all.')];
  const { ghost } = found;
  if (ghost) head.push(gv.h('div', { class: 'under', data: { testid: 'lens-ghost', id: ghost.id, probability: ghost.probability } },
    'unchanged: ', gv.h('code', null, ghost.shown), ` ${percent(ghost.probability)}`));
  return [...head, found.tops.map((top, i) => gv.h('div', { class: 'top', data: { testid: 'lens-top', id: top.id, probability: top.probability, rank: i + 1 } },
    gv.h('span', { class: 'name' }, state.read.pieces.has(top.id) ? `${top.shown} (piece)` : top.shown), gv.h('span', { class: 'bar' }, gv.h('i', { style: { width: `${100 * top.probability}%` } })),
    gv.h('span', { class: 'share' }, percent(top.probability)))),
  gv.h('div', { class: 'numbers', data: { testid: 'lens-numbers' } }, found.numbers.map((number) => gv.h('span', { data: { value: number.value } }, `${number.label} ${written(number)}`)))];
}

function handlers(view) {
  const { data, state } = view, count = data.tokens.length;
  const under = (event) => {
    const found = event.target.closest('.cell');
    return found && { row: Number(found.dataset.row), position: Number(found.dataset.position) };
  };
  return {
    onpointermove: (event) => {
      const at = under(event);
      if (event.pointerType === 'touch' || !at) return;
      if (at.row !== state.at.row || at.position !== state.at.position || root(view).querySelector('.tip').hidden) point(view, at, true);
    },
    onpointerleave: () => point(view, state.selected, false),
    onblur: () => point(view, state.selected, false),
    onclick: (event) => {
      const at = under(event), column = event.target.closest('.token');
      if (at) choose(view, at);
      else if (column) view.send('pick', { position: Number(column.dataset.position) });
    },
    onwheel: (event) => {          // of a trackpad's pinch too; without ctrl the page scrolls, as everywhere
      if (event.ctrlKey && !root(view).querySelector('.tools').hidden) {
        event.preventDefault();
        zoom(view, Math.exp(within(-event.deltaY, -60, 60) * 0.01), under(event)?.position);
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && state.n < count) {
        event.preventDefault();
        look(view, state.start + Math.sign(event.deltaX) * Math.max(1, Math.round(Math.abs(event.deltaX) / (state.room / state.n))));
      }
    },
    onkeydown: (event) => keys(view, event),
  };
}

const root = (view) => view.root;

function choose(view, at) {
  view.state.selected = at;
  show(view);
  view.send('pick', at);
}

function keys(view, event) {
  const { data, state } = view, count = data.tokens.length;
  const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  const acts = {
    Enter: () => choose(view, state.at), ' ': () => choose(view, state.at), Escape: () => point(view, state.selected, false),
    '+': () => zoom(view, STEP), '=': () => zoom(view, STEP), '-': () => zoom(view, 1 / STEP),
    Home: () => look(view, 0), End: () => look(view, count),
  };
  if (event.ctrlKey || event.metaKey || event.altKey || (!step && !acts[event.key])) return;
  event.preventDefault();
  if (!step) return acts[event.key]();
  const at = { row: within(state.at.row + step[0], 0, data.rows.length - 1), position: within(state.at.position + step[1], 0, count - 1) };
  const start = startShowing(state.start, at.position, state.n, count);
  if (start !== state.start) look(view, start);
  point(view, at, true);
}

// ---- what there is ----

function names({ data }) {
  const chosen = (row) => (row === data.row ? ' chosen' : '');
  return gv.h('div', { class: 'names' }, gv.h('div', { class: 'token' }, gv.h('span', { class: 'axis' }, 'token →'), gv.h('small', null, 'position')),
    data.rows.map(([name, full], row) => gv.h('button', { key: row, type: 'button', tabindex: -1, title: full, data: { testid: 'lens-row', row },
      class: `name${startsBlock(row) ? ' first' : ''}${chosen(row)}` }, name)),
    gv.h('div', { class: 'came' }, 'in the text'));
}

function tools(view) {
  const { state } = view;
  const button = (name, shown, title, act) => gv.h('button', { type: 'button', title, 'aria-label': gv.spoken(shown, title), data: { testid: `lens-${name}` }, onclick: act }, shown);
  return gv.h('div', { class: 'tools', data: { unsaved: '' } },
    button('before', '‹', 'Earlier tokens', () => look(view, state.start - Math.max(1, state.n - 2))),
    button('after', '›', 'Later tokens', () => look(view, state.start + Math.max(1, state.n - 2))),
    button('out', '−', 'Narrower columns (-)', () => zoom(view, 1 / STEP)),
    button('in', '+', 'Wider columns (+), or ctrl and the wheel', () => zoom(view, STEP)),
    button('chosen', 'Selected', 'To the selected token', () => look(view, startAround(state.selected.position, state.n, view.data.tokens.length))),
    gv.h('span', { class: 'where', data: { testid: 'lens-where' } }));
}

export default gv.component((view) => {
  prepare(view);
  const { data } = view, { title, low, high } = data.legend, drag = (event) => onMap(view, event);
  const pickRow = (event) => {
    const name = event.target.closest('.name');
    if (name) view.send('pick', { row: Number(name.dataset.row) });
  };
  return gv.h('div', { class: 'lens', data: { testid: 'lens' } },
    gv.h('div', { class: 'map', data: { testid: 'lens-map', unsaved: '' }, title: 'The whole text: click or drag to look elsewhere', onpointerdown: drag, onpointermove: drag },
      gv.h('canvas', null), gv.h('div', { class: 'frame' })),
    gv.h('div', { class: 'picture' },
      gv.h('div', { class: 'grid', tabindex: 0, role: 'application', ...handlers(view),
        'aria-label': 'What each depth says comes next. Rows are depths, columns tokens. Arrow keys move, Enter selects, plus and minus zoom.' },
      gv.h('div', { class: 'left', onclick: pickRow }, names(view)), gv.h('div', { class: 'columns' })),
      gv.h('div', { class: 'legend' }, gv.h('span', null, title), gv.h('span', { class: 'end' }, low), gv.h('span', { class: 'scale' }, gv.gradient('lens-scale', data.legend.scale)),
        gv.h('span', { class: 'end' }, high), gv.h('b', null, 'bold: what the last row says, too'))),
    gv.h('div', { class: 'foot' }, tools(view), gv.saveButtons(() => gv.svgOfElements(view.root.querySelector('.picture')), data.saved)),
    gv.h('div', { class: 'tip', hidden: true, role: 'status', data: { testid: 'lens-tip', unsaved: '' } }));
}, (view) => {
  const { root, state } = view, lens = root.querySelector('.lens');
  fit(view);
  state.observer?.disconnect();
  state.observer = new ResizeObserver(() => { if (lens.clientWidth !== state.width) fit(view); });
  state.observer.observe(lens);
  state.end = () => state.observer.disconnect();
});
