// What is changed in the model: a chip a change with its own way back, and what they did to the prediction.
// data: see __init__.py.

function chip({ data, send }, number) {
  const { text, says, state, note } = data.chips[number];
  return gv.h('span', { key: `${number}-${text}`, class: `chip ${state}`, title: note ? `${says} (${text}): ${note}` : text,
    data: { testid: 'change', number, edit: text, state, note: note || undefined } },
  gv.h('span', { class: 'says' }, says), note && state === 'made' && gv.h('span', { class: 'mark', 'aria-hidden': true }, '○'),
  gv.h('button', { type: 'button', class: 'undo', title: 'Undo this change', 'aria-label': `Undo: ${says}`,
    data: { testid: 'change-remove', number }, onclick: () => send('remove', number) }, '×'));
}

const token = (shown) => gv.h('code', null, shown);

const KL = 'KL divergence, from the unchanged prediction to the changed one. What the unchanged model would say next surprises the changed one by this many bits more, on average: each bit halves its probability. 0: nothing changed.';

function effect({ data: { effect: e, off } }) {
  if (!e) return off && gv.h('span', { class: 'effect' }, 'Off for now: what you see is the model as it is.');
  const facts = { testid: 'change-effect', position: e.position, token: e.token, before: e.before, now: e.now, top: e.top, topNow: e.top_now, kl: e.kl, nothing: e.nothing };
  const after = [gv.h('span', { class: 'quiet' }, 'after '), token(e.after), gv.h('span', { class: 'quiet' }, ': ')];
  if (e.nothing) return gv.h('span', { class: 'effect', data: facts }, after, token(e.token), ` ${e.before_text}, `, gv.h('b', null, 'nothing changed'));
  return gv.h('span', { class: 'effect', data: facts }, after, token(e.token), ' ', gv.h('span', { class: 'was' }, e.before_text), ' → ', gv.h('b', null, e.now_text),
    e.top !== e.token && [gv.h('span', { class: 'quiet' }, ', now '), token(e.top), ' ', gv.h('b', null, e.top_text)],
    gv.h('span', { class: 'kl', title: KL }, `whole prediction: ${e.kl_text} bits away (KL)`));
}

function act({ send }, name, label, title) {
  return gv.h('button', { type: 'button', class: 'act', title, data: { testid: `changes-${name}` }, onclick: () => send('act', name) }, label);
}

export default gv.component((view) => {
  const { chips, off, notes, ask } = view.data, many = chips.length > 1;
  return gv.h('section', { class: `bar ${off ? 'off' : ''}`, 'aria-label': 'What is changed in the model',
    data: { testid: 'changes', count: chips.length, off } },
  gv.h('div', { class: 'row' },
    gv.h('button', { type: 'button', class: 'switch', role: 'switch', 'aria-checked': !off, title: off ? 'Make all of these changes again' : 'Leave all of these changes out for now',
      data: { testid: 'changes-switch' }, onclick: () => view.send('act', 'switch') },
    gv.h('span', { class: 'knob' }), gv.h('span', { class: 'name' }, off ? 'Unchanged model' : 'Changed model')),
    gv.h('span', { class: 'chips' }, chips.map((_, number) => chip(view, number))),
    effect(view),
    many && gv.h('span', { class: 'acts' }, act(view, 'undo', 'Undo last', 'Undo the last change'), act(view, 'clear', 'Undo all', 'Undo all changes'))),
  (notes.length > 0 || ask) && gv.h('ul', { class: 'notes' }, notes.map((note, i) => gv.h('li', { key: i, data: { testid: 'change-note' } }, gv.prose(note))),
    ask && gv.h('li', { key: 'ask', data: { testid: 'change-ask' } }, `${ask[0]} `, act(view, 'try', ask[1], ask[0]))));
});
