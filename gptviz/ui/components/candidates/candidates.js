// The next token's candidates as rows with bars. Every text of a row was written in Python.

const COLUMNS = ['rank', 'token', 'logit', 'scaled', 'filter', 'bar', 'before', 'p', 'act'];
const NUMBERS = ['rank', 'logit', 'scaled', 'before', 'p'];

const width = (share) => ({ width: `${100 * Math.min(1, share)}%` });
const all = ({ rows, rest }) => (rest ? [...rows, rest] : rows);

// `heads.before` is there where a changed model is compared with the unchanged one.
const columns = ({ heads }) => COLUMNS.filter((name) => name !== 'before' || heads.before);

const swatch = (kind) => gv.h('i', { class: `swatch ${kind}`, 'aria-hidden': true });

function head(data) {
  const { heads } = data, marks = heads.before ? { before: swatch('ghost'), p: swatch('fill') } : {};
  return gv.h('div', { class: 'line head' }, columns(data).map((name) => gv.h('span', { class: name + (NUMBERS.includes(name) ? ' num' : '') },
    name === 'bar' ? [gv.h('span', null, '0'), gv.h('span', null, '1')] : [marks[name], heads[name]])));
}

function bar(row) {
  return [
    gv.h('i', { key: 'fill', class: 'fill', style: width(row.probability) }),
    row.rest ? gv.h('i', { key: 'above', class: 'above', style: width(1 - row.probability) }) : null,
    row.ghost === null ? null : gv.h('i', { key: 'ghost', class: 'ghost', style: width(row.ghost) })];
}

function line(view, row, index) {
  const { data, send } = view, mine = () => tell(view, index);
  const kinds = ['first', 'came', 'out', 'rest'].filter((kind) => row[kind]);
  const act = `${data.action} “${row.token}”`;
  const lock = (event) => {
    if (event.target.closest('.add')) return;
    view.state.locked = row.key;
    mine();
  };
  return gv.h('div', {
    class: ['line row', ...kinds].join(' '), role: 'listitem', onmouseenter: mine, onfocusin: mine, onclick: lock,
    onmouseleave: () => tell(view, resting(view)),
    data: {
      testid: row.rest ? 'rest' : 'candidate', id: row.id, rank: row.rank, logit: row.logit, scaled: row.scaled,
      filter: row.filter, probability: row.probability, modelProbability: row.model_probability, came: row.came,
      ghost: row.ghost, wasFirst: row.was_first,
    },
  },
  gv.h('span', { class: 'rank num' }, row.rank_text),
  gv.h('span', { class: 'token' }, row.token, row.came ? gv.h('span', { class: 'tag' }, 'came next') : null,
    row.was_first ? gv.h('span', { class: 'tag' }, 'was first') : null),
  gv.h('span', { class: 'logit num' }, row.logit_text), gv.h('span', { class: 'scaled num' }, row.scaled_text),
  gv.h('span', { class: 'filter' }, row.filter_text), gv.h('span', { class: 'bar' }, bar(row)),
  data.heads.before ? gv.h('span', { key: 'before', class: 'before num' }, row.ghost_text) : null,
  gv.h('span', { class: 'p num' }, row.p_text),
  row.whole && data.action ? gv.h('button', {
    type: 'button', class: 'add', title: act, 'aria-label': act, onclick: () => send('append', row.id),
    data: { testid: 'append', unsaved: '', id: row.id },
  }, '+', gv.h('span', null, ` ${data.action}`)) : null);
}

const said = (row) => (row.rest ? [row.sentence] : ['', row.token, ` ${row.sentence}`]);
const resting = ({ data, state }) => Math.max(0, all(data).findIndex((row) => row.key === state.locked));

function tell({ data, root }, index) {
  const row = all(data)[index];
  root.querySelectorAll('.row').forEach((node, i) => node.classList.toggle('shown', i === index));
  if (row) gv.render(root.querySelector('.sentence'), gv.prose(said(row)));
}

export default gv.component((view) => {
  const { data, root } = view;
  const lines = data.rows.flatMap((row, i) => [
    i && row.rank > data.rows[i - 1].rank + 1 ? gv.h('div', { key: `gap-${i}`, class: 'gap' }) : null, line(view, row, i)]);
  if (data.rest) lines.push(gv.h('div', { key: 'gap', class: 'gap' }), line(view, data.rest, data.rows.length));
  return gv.h('div', { class: `candidates ${data.heads.before ? 'compared' : ''}`, data: { testid: 'candidates' } },
    head(data),
    gv.h('div', { class: 'rows', role: 'list', 'aria-label': 'The candidates; arrow keys walk', data: { walk: '.row' } }, lines),
    gv.h('div', { class: 'foot' },
      gv.reserving(all(data).map(said),
        gv.h('p', { class: 'sentence', 'aria-live': 'polite', data: { testid: 'sentence' } })),
      gv.saveButtons(() => gv.svgOfElements(root.querySelector('.candidates')), data.saved)));
}, (view) => tell(view, resting(view)));
