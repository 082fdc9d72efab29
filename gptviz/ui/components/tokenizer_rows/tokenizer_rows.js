// One row a tokenizer: its name, how many tokens, and the tokens themselves.

const many = (number) => number.toLocaleString('en');

function token(cut, i, colours) {
  const [shown, id] = cut.tokens[i];
  return gv.h('span', {
    class: `token ${cut.lost.includes(i) ? 'unknown' : ''}`, style: { '--chip': `var(--position-${i % colours})` },
    data: { id: id ?? 'none' }, title: id === null ? `“${shown}” has no id here` : `“${shown}” is id ${id}`,
  }, shown);
}

function row(cut, colours) {
  return gv.h('div', {
    key: cut.tokenizer, class: 'row',
    data: { testid: 'tokenizer-row', tokenizer: cut.tokenizer, count: cut.count, unknown: cut.unknown },
  },
  gv.h('div', { class: 'name' }, cut.tokenizer, gv.h('span', { class: 'about' }, cut.about)),
  gv.h('div', { class: 'count' }, many(cut.count)),
  gv.h('div', { class: 'tokens', tabindex: 0, role: 'group', 'aria-label': `The tokens of ${cut.tokenizer}` }, gv.grouped(cut.tokens.length, cut.groups, (i) => token(cut, i, colours)),
    cut.count > cut.tokens.length ? gv.h('span', { key: 'more', class: 'more' }, `… and ${many(cut.count - cut.tokens.length)} more`) : null));
}

export default gv.component(({ data, root }) => [
  gv.h('div', { class: 'tokenizers', data: { testid: 'tokenizers' } }, data.rows.map((cut) => row(cut, data.colours))),
  gv.saveButtons(() => gv.svgOfElements(root.querySelector('.tokenizers')), data.saved),
]);
