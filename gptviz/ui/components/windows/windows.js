// Windows over a text. Cells stand in one grid with a column a token; as bars they are shares of the width.

const color = (data, position) => ({ '--cell': `var(--position-${position % data.colours})` });
const range = (n) => Array.from({ length: n }, (_, i) => i);

function name(view, row, what) {
  const { data, send } = view, chosen = row.window === data.selected;
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
    key: `${row.window}-${kind}-${i}`, class: `cell ${kind} ${row.window === data.selected ? 'open' : ''} ${row.dropped ? 'dropped' : ''}`,
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
    const open = row.window === data.selected;
    const place = (node) => { node.props.style = { 'grid-row': line, 'grid-column': 1 }; return node; };
    rows.push(place(name(view, row, open ? 'input' : null)), cells(view, row, line, 'input', 0));
    if (open) {
      line += 1;
      rows.push(place(below()), cells(view, row, line, 'target', 1));
    }
    line += 1;
  }
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
      const open = row.window === data.selected;
      return [name(view, row, open ? 'input' : null),
        gv.h('div', { key: `${row.window}-track`, class: 'track', onclick: () => send('window', row.window) }, bar(row, open ? 'input open' : 'input', 0)),
        open ? [below(), gv.h('div', { key: 'target-track', class: 'track' }, bar(row, 'target', 1))] : null];
    }));
}

export default gv.component((view) => {
  const { data, root } = view;
  return [
    gv.h('div', { class: 'windows', tabindex: 0, role: 'region', 'aria-label': 'Windows over the text', data: { testid: 'windows', selected: data.selected, walk: 'button.name' } },
      data.tokens ? readable(view) : bars(view)),
    gv.saveButtons(() => gv.svgOfElements(root.querySelector('.windows')), data.saved),
  ];
}, ({ data, root, state }) => {
  const chosen = root.querySelector('.name[aria-pressed="true"]');
  if (chosen && state.selected !== data.selected) gv.reveal(root.querySelector('.windows'), chosen);
  state.selected = data.selected;
});
