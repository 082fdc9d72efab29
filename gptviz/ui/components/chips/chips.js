// The prompt's tokens as a strip of chips. A click selects, arrow keys walk; a strip that is cut says so.

const name = (token, position) => `“${token.shown}” (position ${position}), token id ${token.id}`;

function chip({ data, send }, position) {
  const token = data.tokens[position], selected = position === data.selected, weight = data.weights?.[position] ?? null, gave = data.shares?.[position] ?? null;
  const style = {};
  if (weight !== null || gave !== null) {
    const { attention, signed } = gv.palette(data.mode);
    const color = gave === null ? gv.colorAt(attention, weight) : gv.colorAt(signed, (gave.at + 1) / 2);
    Object.assign(style, { '--chip': `rgb(${color})`, '--on-chip': gv.textOn(color) });
  } else if (data.coloured) style['--chip'] = `var(--position-${position % gv.palette(data.mode).positions.length})`;
  const gets = weight !== null ? `; attention weight ${gv.weight(weight)}` : gave !== null ? `; gave ${gv.significant(gave.share)}` : '';
  const masked = (data.weights ?? data.shares) && weight === null && gave === null;
  return gv.h('button', {
    key: `${position}-${token.id}`, type: 'button', style,
    class: ['chip', data.highlight[position], masked && 'masked'].filter(Boolean).join(' '),
    title: name(token, position) + gets, 'aria-label': name(token, position) + gets,
    'aria-pressed': selected,
    data: { testid: 'chip', position, id: token.id, weight: weight ?? undefined, share: gave?.share },
    onclick: () => send('position', position),
  }, token.shown);
}

function following({ data: { next, appends }, send }) {
  if (!next) return null;
  const { shown, id, probability } = next;
  const title = `The most probable next token is “${shown}”, with probability ${gv.significant(probability)}.`;
  return gv.h(appends ? 'button' : 'span', {
    key: 'next', class: 'next', title: appends ? `${title} Click to append it.` : title,
    'aria-label': appends ? `Append “${shown}”` : title, type: appends ? 'button' : undefined,
    data: { testid: 'next-token', id, probability }, onclick: appends ? () => send('append', id) : undefined,
  }, shown);
}

// How many chips lie outside of the strip's window, and on which sides the fade goes.
function cut({ root, state }) {
  const strip = root.querySelector('.strip'), frame = strip.getBoundingClientRect();
  const boxes = [...strip.querySelectorAll('.chip')].map((node) => node.getBoundingClientRect());
  const above = boxes.filter((box) => box.bottom < frame.top + 4).length;
  const below = boxes.filter((box) => box.top > frame.bottom - 4).length;
  const button = root.querySelector('.more');
  const long = strip.scrollHeight > strip.clientHeight + 2 || state.open;
  strip.classList.toggle('above', strip.scrollTop > 2);
  strip.classList.toggle('below', strip.scrollTop + strip.clientHeight < strip.scrollHeight - 2);
  button.hidden = !long;
  button.dataset.hidden = above + below;
  button.setAttribute('aria-expanded', Boolean(state.open));
  const where = [above && `${above} more above`, below && `${below} more below`].filter(Boolean).join(', ');
  button.textContent = state.open ? 'Show fewer lines' : `${where || 'More'} · show all ${boxes.length}`;
}

export default gv.component((view) => {
  const { data, state } = view;
  return [
    gv.h('div', {
      class: `strip ${state.open ? 'open' : ''}`, role: 'toolbar', 'aria-label': 'The tokens of the prompt; choose one',
      data: { testid: 'chips', walk: '.chip' }, onscroll: () => cut(view),
    }, gv.grouped(data.tokens.length, data.groups, (position) => chip(view, position)), following(view)),
    gv.h('button', { class: 'more', type: 'button', data: { testid: 'chips-more' }, onclick: () => {
      state.open = !state.open;
      view.redraw();
    } }),
  ];
}, (view) => {
  const { data, root, state } = view, strip = root.querySelector('.strip');
  const shown = JSON.stringify([data.selected, data.tokens.map((token) => token.id)]);
  const chosen = strip.querySelector('[aria-pressed="true"]');
  if (chosen && state.shown !== shown) gv.reveal(strip, chosen);     // but where a reader scrolled to stays
  state.shown = shown;
  state.observer?.disconnect();
  state.observer = new ResizeObserver(() => cut(view));
  state.observer.observe(strip);
  state.end = () => state.observer.disconnect();
});
