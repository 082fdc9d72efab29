// The Overview's small pictures. Each is a link to its page: a plain click stays in this session,
// a click with Ctrl or the middle button opens a tab, with the same prompt.

const pictures = {
  tokens: ({ tokens, groups }) => gv.grouped(tokens.length, groups, (i) => {
    const { position, id, shown, chosen } = tokens[i];
    return gv.h('div', { class: 'token', data: { testid: 'door-token', position, id } },
      gv.h('span', { class: `chip ${chosen ? 'chosen' : ''}` }, shown), gv.h('span', { class: 'id' }, id));
  }),
  strips: ({ strips }) => strips.map(({ label, image, alt, unchanged }) => gv.h('div', { class: `strip ${unchanged ? 'both' : ''}` },
    gv.h('span', null, label), gv.h('img', { src: image, alt, title: alt }),
    unchanged ? gv.h('img', { class: 'ghost', src: unchanged.image, alt: unchanged.alt, title: unchanged.alt }) : null)),
  heads: ({ image, alt, marks }, mode) => gv.h('div', { class: 'grid-of-heads', title: alt },
    gv.h('img', { src: image, alt }), marks ? marked(marks, gv.palette(mode)) : null),
  svg: ({ svg, alt }) => gv.h('div', { class: 'lines', title: alt, role: 'img', 'aria-label': alt, markup: svg }),
  bars: ({ bars }) => {
    const wide = (p) => ({ width: `${100 * p}%` });      // from 0 to 1, as on every page
    return bars.map(({ id, shown, probability, percent, title, ghost }) => gv.h('div', {
      class: 'bar', title, data: { testid: 'door-bar', id, probability, ghost } },
    gv.h('span', { class: 'name' }, shown), gv.h('span', { class: 'value' }, percent),
    gv.h('div', { class: 'track' }, gv.h('div', { class: 'fill', style: wide(probability) }),
      ghost === undefined || ghost === null ? null : gv.h('div', { class: 'ghost', style: wide(ghost) }))));
  },
};

// Over the picture of all heads, pixel on pixel: which are changed, and how far each one's pattern moved.
function marked({ side, gap, heads }, { accent, positive }) {
  const [width, height] = [heads[0].length, heads.length].map((n) => n * (side + gap) - gap);
  const cells = heads.flatMap((row, b) => row.map((head, h) =>
    `<g data-testid="door-head" data-block="${b}" data-head="${h}" data-moved="${head.moved}" data-changed="${head.changed}">`
    + `${gv.headMarks([h * (side + gap), b * (side + gap), side], head, positive)}</g>`));
  return gv.h('span', { markup: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" aria-hidden="true">`
    + `${gv.hatching(accent, side / 3)}${cells.join('')}</svg>` });
}

function door({ page, href, title, picture, caption }, step, mode, send) {
  const open = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    send('page', page);
  };
  return gv.h('a', { class: 'door', href, onclick: open, data: { testid: 'door', page } },
    gv.h('span', { class: 'head' }, gv.h('span', { class: 'step' }, step + 1), gv.h('span', { class: 'title' }, title),
      gv.h('span', { class: 'go' }, '→')),
    gv.h('div', { class: 'picture' }, pictures[picture.draw](picture, mode)),
    gv.h('span', { class: 'caption' }, gv.prose(caption)),
    step ? gv.h('span', { class: 'then', 'aria-hidden': true }, '›') : null);   // an element: a saved picture knows no ::before
}

// over the doors that belong together
function around({ first, last, label }) {
  const style = { 'grid-column': `${first + 1} / ${last + 2}` };
  return gv.h('div', { class: 'around', style, data: { testid: 'door-around' } }, label);
}

export default gv.component(({ data, root, send }) => [
  gv.h('nav', { class: 'doors', 'aria-label': 'From the text to the next token, step by step', data: { testid: 'doors' } },
    data.around ? around(data.around) : null,
    data.doors.map((card, step) => door(card, step, data.mode, send))),
  gv.saveButtons(() => gv.svgOfElements(root.querySelector('.doors')), data.saved),
]);
