// Matrices side by side, row on row: pointing says where a number comes from, what is given can be typed anew.

const sheetsOf = ({ data }) => data.lines.flatMap(({ items }) => items.filter(({ cells }) => cells));
const said = (sheet, i, j) => sheet.cells[i][j].says;

// The sentence of a number, and marks at the rows and columns that it was worked out of.
function tell({ data, root, state }, sheet, i, j) {
  state.pointed = sheet && [sheet.name, i, j];
  gv.render(root.querySelector('.says'), sheet ? said(sheet, i, j) : data.rest);
  for (const marked of root.querySelectorAll('.from, .at')) marked.classList.remove('from', 'at');
  if (!sheet) return;
  const at = (name, part, index) => [...root.querySelectorAll(`[data-sheet="${name}"][data-${part}="${index}"]`)];
  for (const cell of at(sheet.name, 'row', i)) if (cell.dataset.column === String(j)) cell.classList.add('at');
  for (const { sheet: name, part, index } of sheet.sources)
    for (const cell of at(name, part, index === 'row' ? i : j)) cell.classList.add('from');
}

// A field that is seen while it has the focus: the text under it is what a saved picture has.
function field(view, text, label, send, say, data) {
  return gv.h('input', {
    class: 'field', type: 'text', value: text, maxlength: view.data.longest, spellcheck: false, autocomplete: 'off',
    'aria-label': label, data, onfocus: (event) => { event.target.select(); say(); },
    onkeydown: (event) => { if (event.key === 'Escape') { event.target.value = text; event.target.blur(); } },
    onchange: ({ target }) => {
      const typed = target.value;
      target.value = text;        // until the answer says otherwise: what is no number never comes back
      if (typed !== text) send(typed);
    },
  });
}

function cell(view, sheet, i, j) {
  const { data, send } = view, { text, share, typed } = sheet.cells[i][j];
  const rgb = share === null || !sheet.scale ? null : gv.colorAt(gv.palette(data.mode)[sheet.scale], share);
  const say = () => tell(view, sheet, i, j);
  const props = {
    key: `${i}-${j}`, class: `cell ${text === null ? 'masked' : ''} ${sheet.edit ? 'edit' : ''}`,
    style: rgb ? { background: `rgb(${rgb})`, color: gv.textOn(rgb) } : {},
    data: { testid: 'cell', sheet: sheet.name, row: i, column: j }, onmouseenter: say, onfocusin: say,
  };
  if (sheet.edit) return gv.h('label', props, gv.h('span', null, text), field(view, typed,
    `${sheet.title}, ${sheet.rows[i]}, ${sheet.columns[j]}`, (typed) => send('number', { sheet: sheet.name, row: i, column: j, text: typed }),
    say, { testid: 'number', sheet: sheet.name, row: i, column: j }));
  if (data.picks && sheet.tokens) props.onclick = () => send('row', i);
  return gv.h('span', props, text === null ? 'masked' : text);
}

function label(view, sheet, i) {
  const { data, send } = view, word = sheet.rows[i];
  if (sheet.words) return gv.h('label', { key: `label-${i}`, class: 'label edit', data: { row: i } }, gv.h('span', null, word),
    field(view, word, `Word ${i}`, (text) => send('word', { row: i, text }), () => tell(view), { testid: 'word', row: i }));
  if (!data.picks || !sheet.tokens) return gv.h('span', { key: `label-${i}`, class: 'label', title: word }, word);
  return gv.h('button', { key: `label-${i}`, type: 'button', class: 'label', title: word, 'aria-pressed': i === data.selected,
    'aria-label': `Follow ${word}`, data: { testid: 'row', sheet: sheet.name, row: i }, onclick: () => send('row', i) }, word);
}

function sheetOf(view, sheet) {
  const { selected } = view.data, wide = sheet.columns.length;
  return gv.h('div', {
    key: sheet.name, class: `sheet ${sheet.later ? 'later' : ''} ${sheet.tokens ? 'tokens' : ''}`, role: 'group', 'aria-label': `${sheet.title}: ${sheet.note}`,
    style: { '--wide': wide, '--mark': sheet.color ? `var(--${sheet.color})` : 'var(--quiet)' },
    data: { testid: 'sheet', name: sheet.name, later: sheet.later ? '' : undefined },
  },
  gv.h('div', { class: 'title' }, sheet.title), gv.h('div', { class: 'note' }, sheet.note),
  gv.h('div', { class: 'grid' },
    gv.h('div', { key: 'heads', class: 'row' }, gv.h('span', { class: 'corner' }),
      sheet.columns.map((name, j) => gv.h('span', { key: `head-${j}`, class: 'head', title: name }, name))),
    sheet.rows.map((_, i) => gv.h('div', { key: `row-${i}`, class: `row ${sheet.tokens && i === selected ? 'selected' : ''}` },
      label(view, sheet, i), sheet.columns.map((_, j) => cell(view, sheet, i, j))))));
}

// How wide a cell may be for every line to be as wide as the page: what remains beside labels and signs.
function fit({ data }) {
  const lines = data.lines.map(({ items }) => {
    const columns = items.reduce((sum, { columns }) => sum + (columns?.length ?? 0), 0);
    const fixed = items.reduce((sum, { text }) => sum + (text === undefined ? 0.3 : text ? 4 : 1.4), 1);
    return `calc((100cqw - ${fixed}rem - ${columns}px) / ${columns + 1.4})`;
  });
  return `min(${lines.join(', ')})`;
}

const sign = ({ sign, text, later }, i) => gv.h('div', { key: `sign-${i}`, class: `sign ${later ? 'later' : ''}`, 'aria-hidden': true },
  gv.h('span', { class: 'arrow' }, sign), gv.h('span', { class: 'what' }, text));

export default gv.component((view) => {
  const { data, root } = view;
  const sentences = sheetsOf(view).flatMap((sheet) => sheet.cells.flatMap((row) => row.map(({ says }) => [says])));
  return gv.h('div', { class: 'worksheet', data: { testid: `worksheet-${data.name}` } },
    gv.h('div', { class: `lines ${data.picks ? 'picks' : ''}`, style: { '--fit': fit(view) }, onmouseleave: () => tell(view),
      data: { walk: 'button.label, .sheet:not(.later) .cell:not(.edit)' } },
      data.lines.map(({ heading, items }, n) => gv.h('div', { key: `line-${n}`, class: 'block' },
        heading ? gv.h('div', { class: 'heading' }, heading) : null,
        gv.h('div', { class: 'line' }, items.map((item, i) => (item.cells ? sheetOf(view, item) : sign(item, i))))))),
    gv.h('div', { class: 'foot' },
      gv.reserving([[data.rest], ...sentences], gv.h('p', { class: 'says', 'aria-live': 'polite', data: { testid: 'says', unsaved: '' } })),
      gv.saveButtons(() => gv.svgOfElements(root.querySelector('.lines')), data.saved)));
}, (view) => {      // the numbers may be others now: what is pointed at is said anew
  const [name, i, j] = view.state.pointed ?? [], sheet = sheetsOf(view).find((one) => one.name === name);
  if (sheet?.cells[i]?.[j]) tell(view, sheet, i, j); else tell(view);
});
