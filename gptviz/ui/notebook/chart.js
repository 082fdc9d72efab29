// A chart that was drawn as an SVG: what its parts say under a pointer and by keyboard, and buttons that save it.
// Stands between the components (ui/components/code.py) and frame.js; `hover` is what figures/still/hover.py gives.

const NEAR = 14;                 // pixels from a point at which it is pointed at
const SLIM = 3;                  // pixels beside a bar that count as the bar

// The sentence of a map's cell.
function saidOfCell({ says }, row, column) {
  return says.map((piece) => {
    if (typeof piece === 'string') return piece;
    if (piece.column) return piece.column[column];
    return piece.row ? piece.row[row] : piece.cell[row][column];
  }).join('');
}

// A map's cells as places { x, y, said }, a list a row from the top.
function placesOfMap(map) {
  const { box: [left, top, width, height], rows, columns, leftwards, upwards, silent } = map, none = new Set(silent);
  const across = Array.from({ length: columns }, (_, i) => (leftwards ? columns - 1 - i : i));
  const down = Array.from({ length: rows }, (_, i) => (upwards ? rows - 1 - i : i));
  return down.map((row, r) => across.map((column, c) => (none.has(row * columns + column) ? null : {
    x: left + ((c + 0.5) * width) / columns, y: top + ((r + 0.5) * height) / rows, said: saidOfCell(map, row, column) })).filter(Boolean));
}

// All that can be pointed at, as lists that arrow keys walk along.
function placesOf({ boxes, points, maps }) {
  const bars = boxes.map(([x, y, width, height, said]) => ({ x: x + width / 2, y: y + height / 2, said }));
  const marks = [...bars, ...points.map(([x, y, said]) => ({ x, y, said }))].sort((a, b) => a.x - b.x || a.y - b.y);
  return [marks, ...maps.flatMap(placesOfMap)].filter((list) => list.length);
}

// What stands at a point of the picture: the nearest dot, else the smallest bar, else a map's cell.
function placeAt({ boxes, points, maps }, x, y) {
  const dots = points.map(([px, py, said]) => ({ x: px, y: py, said, far: Math.hypot(px - x, py - y) })).filter(({ far }) => far <= NEAR);
  if (dots.length) return dots.reduce((best, dot) => (dot.far < best.far ? dot : best));
  const inside = ([left, top, width, height], more) => x >= left - more && x <= left + width + more && y >= top - more && y <= top + height + more;
  const bars = boxes.filter((box) => inside(box, SLIM)).sort((a, b) => a[2] * a[3] - b[2] * b[3]);
  if (bars.length) return { x: bars[0][0] + bars[0][2] / 2, y: bars[0][1] + bars[0][3] / 2, said: bars[0][4] };
  const map = maps.find(({ box }) => inside(box, -0.01));
  if (!map) return null;
  const { box: [left, top, width, height], rows, columns, leftwards, upwards, silent } = map;
  const c = Math.floor(((x - left) / width) * columns), r = Math.floor(((y - top) / height) * rows);
  const column = leftwards ? columns - 1 - c : c, row = upwards ? rows - 1 - r : r;
  if (silent.includes(row * columns + column)) return null;
  return { x: left + ((c + 0.5) * width) / columns, y: top + ((r + 0.5) * height) / rows, said: saidOfCell(map, row, column) };
}

// The place that a key leads to, from number `n` of list `row`.
function led(lists, { row, n }, key) {
  const other = lists[row + ({ ArrowDown: 1, ArrowUp: -1 }[key] ?? 0)], last = lists[row].length - 1;
  if (other && other !== lists[row]) return { row: lists.indexOf(other), n: Math.min(n, other.length - 1) };
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[key];
  return { row, n: Math.max(0, Math.min(last, n + step)) };
}

function tell({ root, data }, place) {
  const tip = root.querySelector('.tip'), sheet = root.querySelector('.sheet');
  tip.hidden = !place;
  if (!place) return;
  const scale = sheet.clientWidth / data.width;
  tip.textContent = place.said;
  const side = place.x > data.width / 2 ? { right: `${sheet.clientWidth - place.x * scale + 10}px`, left: 'auto' } : { left: `${place.x * scale + 10}px`, right: 'auto' };
  Object.assign(tip.style, side, { top: `${place.y * scale + 10}px` });
}

function pointed({ root, data }, event) {
  const box = root.querySelector('.sheet').getBoundingClientRect(), scale = data.width / box.width;
  return placeAt(data.hover, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
}

function pin({ root }, place) {
  if (place) root.querySelector('.pinned').textContent = place.said;
}

function walked(view, event) {
  const { data, state } = view, moves = /^(Arrow|Home$|End$)/.test(event.key);
  if (event.altKey || event.ctrlKey || event.metaKey || !(moves || ['Enter', ' '].includes(event.key))) return;
  const lists = (state.lists ??= placesOf(data.hover));
  if (!lists.length) return;
  event.preventDefault();
  if (moves) state.at = state.at ? led(lists, state.at, event.key) : { row: 0, n: 0 };
  if (!state.at) return;
  const place = lists[state.at.row][state.at.n];
  tell(view, place);
  if (moves) view.root.querySelector('.aloud').textContent = place.said;
  else pin(view, place);
}

gvComponents.still = gv.styled(gv.component((view) => {
  const { data } = view;
  return [
    gv.h('div', { class: 'sheet', style: { 'max-width': `${data.width}px` }, data: { testid: 'chart' }, onpointermove: (event) => tell(view, pointed(view, event)), onpointerleave: () => tell(view, null),
      onclick: (event) => pin(view, pointed(view, event)) }, gv.h('div', { role: 'img', 'aria-label': data.alt, markup: data.svg }),
    gv.h('p', { class: 'tip', hidden: true, data: { testid: 'chart-tip' } })),
    gv.h('p', { class: 'pinned', 'aria-live': 'polite', data: { testid: 'pinned' } }),
    gv.h('div', { class: 'walk', role: 'application', tabindex: 0, data: { testid: 'chart-keys' }, onkeydown: (event) => walked(view, event), onblur: () => tell(view, null),
      'aria-label': `${data.alt}. Arrow keys walk from number to number, Enter keeps what is said.` }, '← ↑ ↓ → walk through the picture, Enter keeps what is said'),
    gv.h('p', { class: 'aloud', 'aria-live': 'polite', data: { testid: 'chart-aloud' } }),
    gv.saveButtons(() => [data.svg, data.width, data.height], data.saved)];
}), `:host { display: block; }
.sheet { position: relative; }
.sheet svg { display: block; width: 100%; height: auto; }
.tip { position: absolute; z-index: 2; margin: 0; padding: 4px 8px; max-width: 22rem; pointer-events: none; border: 1px solid var(--grid);
  border-radius: 4px; background: var(--panel); color: var(--ink); font-size: 0.95rem; line-height: 1.35; white-space: pre-line; }
.pinned { margin: 0.1rem 0; min-height: 1.5em; color: var(--ink); white-space: pre-line; }
.walk { font-size: 0.8rem; color: var(--ink); }
.walk:not(:focus) { position: absolute; clip-path: inset(50%); }
.aloud { position: absolute; clip-path: inset(50%); }`);
