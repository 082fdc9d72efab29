// The rows of one piece, from its bytes to its tokens. What a row says was worked out in Python; here it is
// only drawn, and walked through: slider, buttons, arrow keys, or a click on a row.

const PAUSE = 1100;               // milliseconds between two merges that are played

function stop({ state }) {
  clearInterval(state.timer);
  state.timer = null;
}

function go(view, step, { playing = false } = {}) {
  const { data, root, state } = view, last = data.stages.length - 1;
  if (!playing) stop(view);
  state.step = Math.max(0, Math.min(last, step));
  if (state.step === last) stop(view);
  view.redraw();
  root.querySelector('.stage.now')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

function play(view) {
  if (view.state.timer) {
    stop(view);
    return view.redraw();
  }
  const last = view.data.stages.length - 1, from = view.state.step >= last ? 0 : view.state.step + 1;
  view.state.timer = setInterval(() => go(view, view.state.step + 1, { playing: true }), PAUSE);
  return go(view, from, { playing: true });
}

function controls(view) {
  const { state, data } = view, last = data.stages.length - 1;
  const button = (name, text, label, disabled, onclick) => gv.h('button', {
    key: name, type: 'button', title: label, 'aria-label': gv.spoken(text, label), disabled, onclick, data: { testid: `merge-${name}` } }, text);
  return gv.h('div', { class: 'controls', data: { unsaved: '' } },
    button('back', '◀', 'One merge back', state.step === 0, () => go(view, state.step - 1)),
    gv.h('input', { type: 'range', min: 0, max: last, step: 1, value: String(state.step), 'aria-label': 'Merges applied',
      data: { testid: 'merge-slider' }, oninput: (event) => go(view, Number(event.target.value)) }),
    button('on', '▶', 'One merge on', state.step === last, () => go(view, state.step + 1)),
    button('play', state.timer ? 'Stop' : 'Play', 'Show the merges one after the other', false, () => play(view)));
}

// A row: its parts at their bytes, the ranks between them, and the tokens' ids under the last one.
function stage(view, row, index) {
  const { data, state } = view, last = data.stages.length - 1, { width } = data;
  const place = (start, bytes) => ({ left: `${start * width}px`, width: `${bytes * width - 4}px` });
  const lane = [];
  let at = 0;
  row.parts.forEach((part, i) => {
    const token = index === last ? data.tokens[i] : null, side = part.mine ? 'mine' : 'other';
    const small = part.shown.length * 10 > part.bytes * width - 8 ? 'small' : '';
    const fresh = index > 0 && at === row.joined ? 'new' : '';
    lane.push(gv.h('div', { class: `part ${side} ${small} ${fresh}`, title: part.title,
      style: { ...place(at, part.bytes), '--chip': token ? `var(--position-${token.position % data.colours})` : undefined },
      data: { testid: 'part', bytes: part.hex } }, part.shown));
    if (index === 0) lane.push(gv.h('div', { class: 'hex', style: place(at, part.bytes) }, part.hex));
    if (token) lane.push(gv.h('div', { class: `id ${side}`, style: place(at, part.bytes),
      data: { testid: 'merge-id', id: token.id, position: token.position } }, token.id));
    at += part.bytes;
    if (i < row.ranks.length && index < last) {
      const rank = row.ranks[i], chosen = i === row.chosen;
      lane.push(gv.h('span', { class: `rank ${chosen ? 'chosen' : rank === null ? 'none' : ''}`, title: row.titles[i],
        style: { left: `${at * width}px` }, data: { testid: 'rank', rank: rank ?? 'none', chosen } }, rank ?? '–'));
    }
  });
  const kinds = ['stage', index > state.step && 'later', index === state.step && last > 0 && 'now'].filter(Boolean);
  return gv.h('div', { class: kinds.join(' '), data: { testid: 'stage', stage: index }, onclick: () => go(view, index) },
    gv.h('div', { class: 'label' }, index ? `merge ${index}` : 'bytes'),
    gv.h('div', { class: 'lane', style: { width: `${at * width + 4}px` } }, lane));
}

export default gv.component((view) => {
  const { data, root, state } = view, last = data.stages.length - 1;
  const signature = JSON.stringify([data.stages, data.tokens]);
  if (state.signature !== signature) {
    stop(view);
    Object.assign(state, { signature, step: last });
  }
  state.end = () => stop(view);
  return [
    gv.h('div', { class: 'merges', data: { testid: 'merges', steps: last, step: state.step } },
      gv.h('div', { class: 'head' }, last > 0 ? controls(view) : null,
        gv.reserving(data.stages.map(({ says }) => says),
          gv.h('p', { class: 'says', 'aria-live': 'polite', data: { testid: 'merge-says' } }, gv.prose(data.stages[state.step].says)))),
      gv.h('div', { class: 'rows', tabindex: 0, role: 'group', 'aria-label': 'The merges' }, data.stages.map((row, index) => stage(view, row, index)))),
    gv.saveButtons(() => gv.svgOfElements(root.querySelector('.merges')), data.saved),
  ];
}, ({ root, state }) => {
  if (state.shown === state.signature) return;
  state.shown = state.signature;
  gv.reveal(root.querySelector('.rows'), root.querySelector('.id.mine'));     // on a phone it may be far to the right
});
