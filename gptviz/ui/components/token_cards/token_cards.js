// Every token as a card: position, text, id, bytes; tokens of one piece share a line under them.

function card({ data, send }, token) {
  return gv.h('button', {
    key: `${token.position}-${token.id}`, type: 'button', class: 'card', title: token.title,
    'aria-pressed': token.position === data.selected, onclick: () => send('position', token.position),
    data: { testid: 'token-card', position: token.position, id: token.id, bytes: token.hex },
  },
  gv.h('span', { class: 'position' }, token.position),
  gv.h('span', { class: 'text', style: { '--chip': `var(--position-${token.position % data.colours})` } }, token.shown),
  gv.h('span', { class: 'id' }, token.id), gv.h('span', { class: 'hex' }, token.hex));
}

function piece(view, cut) {
  const { selected } = view.data, [first, last] = [cut.tokens[0].position, cut.tokens.at(-1).position];
  const mine = first <= selected && selected <= last;
  return gv.h('div', {
    key: first, class: `piece ${cut.special ? 'special' : ''} ${mine ? 'mine' : ''}`, title: cut.title,
    data: { testid: 'piece', text: cut.shown },
  }, gv.grouped(cut.tokens.length, cut.groups, (i) => card(view, cut.tokens[i])));
}

export default gv.component((view) => {
  const { data, root } = view;
  return [
    gv.h('div', { class: 'cards', role: 'toolbar', 'aria-label': 'The tokens; choose one', data: { testid: 'token-cards', walk: '.card' } }, data.pieces.map((cut) => piece(view, cut))),
    gv.saveButtons(() => gv.svgOfElements(root.querySelector('.cards')), data.saved),
  ];
}, ({ data, root, state }) => {
  const shown = JSON.stringify([data.selected, data.pieces.map((cut) => cut.tokens.map((token) => token.id))]);
  const mine = root.querySelector('.mine');
  if (mine && state.shown !== shown) gv.reveal(root.querySelector('.cards'), mine);
  state.shown = shown;
});
