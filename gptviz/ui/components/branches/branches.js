// The branches of a text as a small tree; x is the number of the token, a row is a branch.

const ROW = 40;       // px of a row

// In the SVG's own units: 100 wide, so that lines keep their width whatever the screen's is.
function rails({ rows, chosen, step }) {
  const span = Math.max(1, ...rows.map((row) => row.length)), x = (at) => 2 + (96 * at) / span, y = (number) => (number + 0.5) * ROW;
  const paths = [];
  const stroke = (on) => ({ fill: 'none', 'vector-effect': 'non-scaling-stroke', 'stroke-linecap': 'round', class: on ? 'rail on' : 'rail' });
  const way = new Map();                    // branch -> up to which step it lies on the way to the chosen one
  for (let number = chosen, until = rows[chosen].length; number !== null; until = rows[number].at, number = rows[number].parent) way.set(number, until);
  rows.forEach(({ parent, at, length }, number) => {
    const draw = (from, to, on) => to > from && paths.push(gv.h('path', { d: `M${x(from)} ${y(number)}H${x(to)}`, ...stroke(on) }));
    const until = way.get(number) ?? at;
    if (parent !== null) paths.push(gv.h('path', { d: `M${x(at)} ${y(parent)}C${x(at)} ${y(number)} ${x(at)} ${y(number)} ${x(Math.min(at + 0.5, length))} ${y(number)}`, ...stroke(way.has(number)) }));
    const from = parent === null ? 0 : Math.min(at + 0.5, length);
    draw(Math.max(from, until), length, false);
    draw(from, until, way.has(number));
  });
  const svg = gv.h('svg', { viewBox: `0 0 100 ${rows.length * ROW}`, preserveAspectRatio: 'none', 'aria-hidden': true }, paths);
  return { svg, left: (at) => x(at), dot: x(Math.min(step + 1, span)) };
}

export default gv.component((view) => {
  const { data, send } = view, { rows, chosen } = data;
  const { svg, left, dot } = rails(data);
  const compared = rows.every(({ unchanged }) => (unchanged ?? null) !== null);
  const heads = ['', 'branch', 'tokens', 'ln p', ...(compared ? ['unchanged'] : []), 'perplexity'];
  const title = ({ text, log_p, unchanged }) => (compared ? `${text} · ln p ${log_p}, unchanged ${unchanged || 'not known'}` : text);
  return gv.h('div', { class: `branches ${compared ? 'compared' : ''}`, data: { testid: 'branches', chosen } },
    gv.h('div', { class: 'head' }, heads.map((text) => gv.h('span', null, text))),
    gv.h('div', { class: 'tree', data: { walk: '.branch' }, role: 'toolbar', 'aria-label': 'The branches; choose one' },
      gv.h('div', { class: 'rails' }, svg,
        rows.map((row, number) => gv.h('i', { key: `end-${number}`, class: `end ${number === chosen ? 'on' : ''}`, style: { left: `${left(row.length)}%`, top: `${(number + 0.5) * ROW}px` } })),
        gv.h('i', { key: 'here', class: 'here', style: { left: `${dot}%`, top: `${(chosen + 0.5) * ROW}px` } })),
      gv.h('div', { class: 'names' }, rows.map((row, number) => gv.h('button', {
        key: number, type: 'button', class: 'branch', 'aria-pressed': number === chosen, title: title(row),
        onclick: () => send('branch', number), data: { testid: 'branch-row', branch: number, parent: row.parent, at: row.at, length: row.length, logP: row.log_probability, perplexity: row.value, unchanged: row.unchanged_value },
      }, gv.h('span', { class: 'text' }, row.text), gv.h('span', { class: 'num length' }, row.length),
      gv.h('span', { class: 'num' }, row.log_p), compared ? gv.h('span', { class: 'num ghost' }, row.unchanged) : null,
      gv.h('span', { class: 'num perplexity' }, row.perplexity))))),
    gv.saveButtons(() => gv.svgOfElements(view.root.querySelector('.branches')), data.saved));
});
