// How one token is drawn. Every text was written in Python.

const percent = (share) => `${100 * Math.max(0, Math.min(1, share))}%`;

function segment(view, part, drawn) {
  const { index, start, stop, shown, kind } = part;
  const point = (on) => () => light(view, on ? index : null);
  return gv.h('span', {
    class: ['segment', kind, drawn ? 'drawn' : '', index !== null && index % 2 ? 'odd' : ''].join(' '), style: { left: percent(start), width: percent(stop - start) },
    title: `${shown}: ${gv.significant(start)} to ${gv.significant(stop)}`, onmouseenter: point(true), onmouseleave: point(false),
    data: { testid: 'segment', start, stop, index, drawn },
  }, stop - start > 0.045 ? gv.h('b', null, shown) : null);
}

function bar(view) {
  const { data } = view, { point, segments, rows } = data;
  return gv.h('div', { class: 'lane' },
    gv.h('div', { class: 'needle-lane' }, point ? gv.h('span', { class: 'needle', style: { left: percent(point.at) }, data: { testid: 'point', at: point.at } },
      gv.h('span', { class: `number ${point.at > 0.9 ? 'left' : point.at < 0.1 ? 'right' : ''}` }, point.text)) : null),
    gv.h('div', { class: 'bar' }, segments.map((part) => segment(view, part, part.index !== null && rows[part.index].drawn))),
    gv.h('div', { class: 'ends' }, ['0', '0.25', '0.5', '0.75', '1'].map((text) => gv.h('span', null, text))));
}

function light({ root }, index) {
  for (const [name, at] of [['.row', 'index'], ['.segment', 'index']])
    for (const node of root.querySelectorAll(name)) node.classList.toggle('lit', index !== null && node.dataset[at] === String(index));
}

const absent = (value) => value === undefined || value === null;

// What the unchanged model gives, where a changed one is compared with it.
const before = ({ compared }, one) => (compared ? gv.h('span', { key: 'before', class: 'p before' }, one.ghost_text) : null);

function key({ compared }) {
  if (!compared) return null;
  return gv.h('div', { key: 'key', class: 'key' }, gv.h('i', { class: 'swatch ghost' }), compared[0], gv.h('i', { class: 'swatch fill' }), compared[1]);
}

function row(view, one, index) {
  const { data, send } = view, { id, rank, shown, probability, model_probability: own, p_text: p, place, drawn, cut, sentence, ghost, standing } = one;
  return gv.h('div', {
    class: `row ${drawn ? 'drawn' : ''} ${cut ? 'cut' : ''}`, role: 'listitem', title: sentence,
    onmouseenter: () => light(view, index), onmouseleave: () => light(view, null), onfocusin: () => light(view, index),
    data: { testid: 'draw-row', index, id, rank, probability, modelProbability: own, ghost: ghost ?? undefined, drawn },
  },
  gv.h('span', { class: 'rank' }, rank.toLocaleString('en-US')),
  gv.h('span', { class: 'shown' }, shown),
  gv.h('span', { class: 'track' }, gv.h('i', { class: 'fill', style: { width: percent(probability) } }),
    absent(ghost) ? null : gv.h('i', { class: 'ghost', style: { width: percent(ghost) } })),
  before(data, one), gv.h('span', { class: 'p' }, p), gv.h('span', { class: 'place' }, place),
  drawn ? gv.h('span', { class: 'mark', data: { testid: 'drawn' } }, standing)
    : data.branch ? gv.h('button', {
      type: 'button', class: 'branch', title: `Go on with “${shown}” instead`, 'aria-label': `Go on with “${shown}” instead`,
      onclick: () => send('branch', id), data: { testid: 'branch', id, unsaved: '' },
    }, '↳', gv.h('span', null, ' instead')) : gv.h('span', null));
}

export default gv.component((view) => {
  const { data, root } = view, { rows, rest } = data;
  return gv.h('div', { class: `draws ${data.compared ? 'compared' : ''}`, data: { testid: 'draws' } },
    bar(view), key(data),
    gv.h('div', { class: 'rows', role: 'list', 'aria-label': 'The candidates; arrow keys walk', data: { walk: '.row' } }, rows.map((one, i) => [
      i && one.rank > rows[i - 1].rank + 1 ? gv.h('div', { key: 'gap', class: 'gap' }) : null, row(view, one, i)]),
    rest ? gv.h('div', { class: 'row rest', role: 'listitem', data: { testid: 'draw-rest', probability: rest.probability } }, gv.h('span', { class: 'rank' }), gv.h('span', { class: 'shown' }, rest.shown),
      gv.h('span', { class: 'track' }), before(data, rest), gv.h('span', { class: 'p' }, rest.p_text), gv.h('span', { class: 'place' }, rest.place), gv.h('span')) : null),
    gv.saveButtons(() => gv.svgOfElements(root.querySelector('.draws')), data.saved));
});
