// The prompt's tokens by how surprising each was. What a chip says was worked out in Python.

const said = ({ token, sentence }) => ['', token, ` ${sentence}`];

function tell({ data, root }, position) {
  const chip = data.chips[position];
  const sentence = root.querySelector('.sentence');
  sentence.toggleAttribute('data-unsaved', !chip);  // what a pointer may do is nothing for a file
  gv.render(sentence, gv.prose(chip ? said(chip) : [data.legend.rest]));
}

function chip(view, position) {
  const { data, send } = view, { token, bits, rank, text, color, ghost } = data.chips[position];
  const say = () => tell(view, position);
  return gv.h('button', {
    key: position, type: 'button', class: `chip ${position === data.expected ? 'expected' : ''}`, style: { '--chip': color },
    data: { testid: 'surprise-chip', position, bits: bits ?? undefined, rank: rank ?? undefined, ghost: ghost?.bits },
    disabled: position === 0,
    onmouseenter: say, onfocus: say, onclick: () => send('position', position),
  }, token, gv.h('small', null, text),
  ghost ? gv.h('small', { key: 'ghost', class: 'ghost', style: { '--chip': ghost.color } }, ghost.text) : null);
}

export default gv.component((view) => {
  const { data, root } = view, colors = [[0, data.legend.from], [1, data.legend.to]];
  return [
    gv.h('div', { class: 'surprise', data: { testid: 'surprise' } },
      gv.h('div', { class: 'strip', role: 'toolbar', 'aria-label': 'How surprising each token was', data: { walk: '.chip' },
        onmouseleave: () => tell(view, data.expected) },
      gv.grouped(data.chips.length, data.groups, (position) => chip(view, position))),
      gv.h('div', { class: 'foot' },
        gv.reserving([...data.chips.map(said), [data.legend.rest]], gv.h('p', { class: 'sentence', 'aria-live': 'polite', data: { testid: 'surprise-sentence' } })),
        gv.h('span', { class: 'legend' },
          data.legend.ghost ? gv.h('span', { key: 'ghost' }, data.legend.ghost) : null, gv.h('span', { class: 'low' }, data.legend.low),
          gv.h('span', { class: 'scale' }, gv.gradient('surprise-scale', colors)), gv.h('span', { class: 'high' }, data.legend.high)))),
    gv.saveButtons(() => gv.svgOfElements(root.querySelector('.surprise')), data.saved),
  ];
}, (view) => tell(view, view.data.expected));
