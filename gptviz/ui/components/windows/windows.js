// Windows over a text. Cells stand in one grid with a column a token; as bars they are shares of the width.
// Once, by itself, the open window slides over the first few and comes back; a frame goes along above, over the text.

const STEP = 400, AWAITS = 700, FEW = 5;      // ms: of a step, and before the first; windows that it slides over

// The window that is open: the selected one, or the one where the slide has come to.
const opened = ({ data, state }) => state.slides ?? data.selected;

const color = (data, position) => ({ '--cell': `var(--position-${position % data.colours})` });
const range = (n) => Array.from({ length: n }, (_, i) => i);

function name(view, row, what) {
  const { data, send } = view, chosen = row.window === opened(view);
  const first = row.start, last = row.start + data.length - 1;
  const title = `Window ${row.window}: positions ${first} to ${last}, targets ${first + 1} to ${last + 1}${row.dropped ? '; dropped, its batch is not full' : ''}`;
  return gv.h('button', { key: `${row.window}-name`, type: 'button', class: `name ${row.dropped ? 'dropped' : ''}`, title,
    'aria-pressed': chosen, onclick: () => send('window', row.window),
    data: { testid: 'window', window: row.window, start: row.start, dropped: row.dropped ? '' : undefined } },
  `${row.window}`, what ? gv.h('span', { class: 'what' }, what) : null);
}

// the selected window's second line
const below = () => gv.h('span', { key: 'target-name', class: 'name below' }, gv.h('span', { class: 'what target' }, 'target'));

// ---- tokens that can be read ----

function cells(view, row, line, kind, shift) {
  const { data, send } = view, at = row.start - data.first + shift;
  return range(data.length).map((i) => gv.h('div', {
    key: `${row.window}-${kind}-${i}`, class: `cell ${kind} ${row.window === opened(view) ? 'open' : ''} ${row.dropped ? 'dropped' : ''}`,
    style: { ...color(data, row.start + shift + i), 'grid-row': line, 'grid-column': at + i + 2 },
    title: kind === 'target' ? `target ${i}: what comes after input ${i}` : `input ${i}, position ${row.start + i}`,
    data: { testid: `window-${kind}`, window: row.window, position: row.start + shift + i },
    onclick: () => send('window', row.window) }, data.tokens[at + i]));
}

function readable(view) {
  const { data } = view, rows = [];
  let line = 2;
  rows.push(gv.h('span', { class: 'name text', style: { 'grid-row': 1 } }, 'text'));
  data.tokens.forEach((shown, i) => rows.push(gv.h('div', { class: 'cell text', style: { 'grid-row': 1, 'grid-column': i + 2 } },
    gv.h('span', { class: 'position' }, data.first + i), shown)));
  for (const row of data.rows) {
    const open = row.window === opened(view);
    const place = (node) => { node.props.style = { 'grid-row': line, 'grid-column': 1 }; return node; };
    rows.push(place(name(view, row, open ? 'input' : null)), cells(view, row, line, 'input', 0));
    if (open) {
      line += 1;
      rows.push(place(below()), cells(view, row, line, 'target', 1));
    }
    line += 1;
  }
  rows.push(gv.h('div', { key: 'frame', class: 'frame', 'aria-hidden': true, data: { testid: 'window-frame' } }));
  return gv.h('div', { class: 'grid', style: { 'grid-template-columns': `max-content repeat(${data.tokens.length}, max-content)` } }, rows);
}

// ---- too many to write: bars ----

function bars(view) {
  const { data, send } = view, share = (n) => `${(100 * n) / data.count}%`;
  const bar = (row, kind, shift) => gv.h('div', { class: `bar ${kind} ${row.dropped ? 'dropped' : ''}`,
    style: { left: share(row.start + shift - data.first), width: share(data.length) },
    data: { testid: `window-${kind}`, window: row.window, position: row.start + shift } });
  const last = data.first + data.count - 1;
  return gv.h('div', { class: 'tracks' },
    gv.h('span', { class: 'name text' }, 'text'), gv.h('div', { class: 'ends' }, gv.h('span', null, `position ${data.first}`), gv.h('span', null, `position ${last}`)),
    data.rows.map((row) => {
      const open = row.window === opened(view);
      return [name(view, row, open ? 'input' : null),
        gv.h('div', { key: `${row.window}-track`, class: 'track', onclick: () => send('window', row.window) }, bar(row, open ? 'input open' : 'input', 0)),
        open ? [below(), gv.h('div', { key: 'target-track', class: 'track' }, bar(row, 'target', 1))] : null];
    }));
}

// ---- the slide ----

function stop(view) {
  const { state } = view;
  clearTimeout(state.tick);
  if (state.slides === undefined) return;
  state.slides = undefined;
  view.redraw();
}

function slide(view) {
  const { data, state } = view, few = data.rows.slice(0, FEW).map((row) => row.window);
  if (gv.still() || few.length < 2 || data.selected !== few[0]) return;
  let at = 0;
  state.slid = 1;
  const next = () => {
    at += 1;
    if (at === few.length) return stop(state.view);
    state.slides = few[at];
    state.tick = setTimeout(next, STEP);
    return state.view.redraw();
  };
  state.tick = setTimeout(next, AWAITS);
}

// Around the open window's tokens in the text's own line, wherever those stand.
function framed(root, view) {
  const frame = root.querySelector('.frame'), { data } = view;
  if (!frame) return;
  const row = data.rows.find(({ window }) => window === opened(view)), cells = root.querySelectorAll('.cell.text');
  const first = cells[row.start - data.first], last = cells[row.start - data.first + data.length - 1];
  Object.assign(frame.style, { left: `${first.offsetLeft}px`, width: `${last.offsetLeft + last.offsetWidth - first.offsetLeft}px`, top: `${first.offsetTop}px`, height: `${first.offsetHeight}px` });
}

export default gv.component((view) => {
  const { data, root, state } = view;
  state.view = view;
  if (state.slides !== undefined && !data.rows.some(({ window }) => window === state.slides)) state.slides = undefined;
  return [
    gv.h('div', { class: 'windows', tabindex: 0, role: 'region', 'aria-label': 'Windows over the text', onpointerdown: () => stop(state.view), onkeydown: () => stop(state.view),
      data: { testid: 'windows', selected: data.selected, opened: opened(view), slid: state.slid ?? 0, walk: 'button.name' } },
      data.tokens ? readable(view) : bars(view)),
    gv.saveButtons(() => gv.svgOfElements(root.querySelector('.windows')), data.saved),
  ];
}, (view) => {
  const { data, root, state } = view;
  const chosen = root.querySelector('.name[aria-pressed="true"]');
  if (state.selected !== undefined && state.selected !== data.selected) stop(view);
  if (chosen && state.selected !== data.selected) gv.reveal(root.querySelector('.windows'), chosen);
  state.selected = data.selected;
  framed(root, view);
  if (state.end) return;
  state.end = () => clearTimeout(state.tick);
  slide(view);      // by itself, once
});
