// A text that is being written. While it plays, the next token is asked for once this one is on the screen.

function chip({ data, send }, step) {
  const { shown, id, probability, p_text: text, sentence, put } = data.tokens[step], chosen = step === data.chosen;
  return [gv.h('button', {
    key: `token-${step}`, type: 'button', class: `token ${put ? 'put' : ''}`, title: sentence,
    'aria-pressed': chosen, onclick: () => send('step', step),
    data: { testid: 'written-token', step, id, probability, put },
  }, gv.h('span', { class: 'text' }, shown),
  gv.h('span', { class: 'share' }, gv.h('i', { style: { width: `${100 * probability}%` } })),
  gv.h('small', null, text)),
  shown.includes('⏎') ? gv.h('br', { key: `break-${step}` }) : null];
}

function next({ data, send }) {
  const step = data.tokens.length, chosen = step === data.chosen;
  return gv.h('button', {
    key: 'next', type: 'button', class: 'token next', title: 'The token that is not written yet', 'aria-label': 'The token that is not written yet',
    'aria-pressed': chosen, onclick: () => send('step', step), data: { testid: 'written-next', step },
  }, gv.h('span', { class: 'text' }, '?'));
}

// In place: the browser's history has a step for the playing, not for each of its tokens.
function say(address) {
  let search = location.search;
  for (const [name, value] of Object.entries(address)) {
    const said = `${name}=${encodeURIComponent(value)}`, there = new RegExp(`([?&])${name}=[^&]*`);
    search = there.test(search) ? search.replace(there, `$1${said}`) : `${search}${search ? '&' : '?'}${said}`;
  }
  if (search !== location.search) history.replaceState(history.state, '', location.pathname + search + location.hash);
}

// The first row in sight is a whole one, which the chosen token is in or below.
function wholeRows(page) {
  if (page.scrollTop <= 0) return;
  const frame = page.getBoundingClientRect().top + 5;      // the padding
  const row = [...page.querySelectorAll('.token')].map((token) => token.getBoundingClientRect().top).find((top) => top >= frame - 2);
  if (row !== undefined) page.scrollTop += row - frame;
}

// Where there is more than is in sight, above and below.
function hints(root, page) {
  const writing = root.querySelector('.writing'), below = page.scrollHeight - page.clientHeight - page.scrollTop;
  writing.toggleAttribute('data-above', page.scrollTop > 6);
  writing.toggleAttribute('data-below', below > 6);
}

const more = (view, where, words, to) => gv.h('button', {
  key: where, type: 'button', class: `more ${where}`, tabindex: -1, data: { testid: `writing-${where}` },
  onclick: () => { view.root.querySelector('.page').scrollTop = to; },
}, words);

export default gv.component((view) => {
  const { data } = view;
  return gv.h('div', { class: 'writing', data: { testid: 'writing', chosen: data.chosen, count: data.tokens.length, playing: data.delay === null ? undefined : '' } },
    gv.h('div', { class: 'page', role: 'toolbar', 'aria-label': 'The text; choose a written token', data: { walk: '.token' }, onscroll: (event) => hints(view.root, event.target) },
      gv.h('span', { class: 'before', data: { testid: 'before' } }, data.before),
      gv.grouped(data.tokens.length, data.groups, (step) => chip(view, step)), data.open ? next(view) : null),
    more(view, 'above', '▲ the beginning', 0), more(view, 'below', '▼ the end', 1e9));
}, (view) => {
  const { data, root, state } = view, page = root.querySelector('.page');
  const shown = `${data.chosen} ${data.tokens.length} ${data.before.length}`;
  const chosen = page.querySelector('[aria-pressed="true"]');
  if (chosen && state.shown !== shown) {     // but where a reader scrolled to stays
    gv.reveal(page, chosen);
    wholeRows(page);
  }
  hints(root, page);
  state.shown = shown;
  if (data.address) say(data.address);
  state.end = () => clearTimeout(state.timer);
  state.end();
  if (data.delay === null) state.asked = null;
  else if (state.asked !== data.chosen) {      // once for each token: what draws the same again asks for nothing
    state.timer = setTimeout(() => {
      state.asked = data.chosen;
      view.send('turn', data.chosen);
    }, data.delay);
  }
});
