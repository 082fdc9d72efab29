// The hand-out: what is typed, chosen and changed, and the passes that it takes. tokens.js, pages.js and guide.js
// stand before this file; model.js is in the worker.

// ---- the worker ----

const worker = new Worker(URL.createObjectURL(new Blob([given.model], { type: 'text/javascript' })));
const waiting = new Map();
let asked = 0;

function ask(what, ...args) {
  worker.postMessage({ number: ++asked, ask: what, args });
  return new Promise((done, failed) => waiting.set(asked, { done, failed }));
}

worker.onmessage = ({ data: { number, answer, error } }) => {
  const { done, failed } = waiting.get(number);
  waiting.delete(number);
  if (error === undefined) done(answer);
  else failed(new Error(error));
};

const weights = document.getElementById('weights');
const loaded = ask('load', { ...given, model: null, weights: weights.textContent });
weights.remove();

// For a test, and for who is curious: `await gptviz.trace("The cat", ["z.4.3=zero"])` is `lm.trace` in Python, with
// { ids, sites: { "attn.3": { shape, data }, ... }, logits: those of the last position }.
window.gptviz = { trace: async (text, edits = [], { special: on = false } = {}) => ask('trace', String(text), edits, on) };

// ---- what is looked at: the address holds it, by the names that the app's addresses have ----

const whole = (text, below, otherwise) => (/^\d+$/.test(text ?? '') && Number(text) < below ? Number(text) : otherwise);

function fromAddress() {
  const held = new URLSearchParams(location.hash.slice(1));
  return stateOf(held, whole(held.get('step'), steps.length, steps.length && !location.hash ? 0 : null));
}

// A step that has just been turned to brings its own place; what is chosen afterwards stands in the address.
function stateOf(held, step) {
  const own = step !== null && !held.has('text');
  return { ...placed(own ? new URLSearchParams({ page: steps[step].page, ...steps[step].place }) : held), step };
}

function placed(held) {
  const { start } = given, heat = Number(held.get('temperature') || 1);
  return {
    page: Object.hasOwn(PAGES, held.get('page')) ? held.get('page') : start.page,
    text: held.get('text') ?? start.text,
    token: whole(held.get('token'), Infinity, null),
    block: whole(held.get('block'), config.n_layers, start.block),
    head: whole(held.get('head'), config.n_heads, start.head),
    key: whole(held.get('key'), Infinity, null),
    dim: whole(held.get('emb_dim'), config.emb_dim, null),
    norm: held.get('ln_norm') ?? 'block 0 · norm1',
    temperature: Number.isNaN(heat) ? 1 : Math.min(2, Math.max(0, heat)),
    edits: held.has('edits') ? held.get('edits').split(',').filter(Boolean) : start.edits,
    off: held.get('edits_off') === 'on',
    special: held.get('special') === 'on' };
}

function toAddress() {
  const { page, text, token, block, head, key, dim, norm, temperature, edits, off, special: on, step } = state;
  const held = new URLSearchParams({ page, text, block, head, edits: edits.join(','), temperature, ln_norm: norm });
  for (const [name, value] of Object.entries({ token, key, emb_dim: dim, step })) if (value !== null) held.set(name, value);
  for (const [name, value] of Object.entries({ edits_off: off, special: on })) if (value) held.set(name, 'on');
  written = `#${held}`;
  if (location.hash !== written) location.replace(written);
}

let written = null, state = fromAddress();

function go(changes) {
  state = { ...state, ...changes };
  toAddress();
  work();
}

const turn = (step) => go(stateOf(new URLSearchParams(), step));

function append(id) {
  const text = state.text + (specials.get(id) ?? decoded(rawOf(id)).text ?? '');
  go({ text, token: null, special: state.special || needsTheSwitch(id) });
}

// ---- a pass, or two where something is changed ----

const READ = 100000;           // characters that are read at most

let run = null;                // of what is on the screen: { pieces, ids, notice, refusals, now, was } or { refused }
const position = () => (state.token === null || state.token >= run.ids.length ? run.ids.length - 1 : state.token);
const label = (at = position()) => shownOf(run.ids[at]);

async function passes({ text, special: on, edits, off }) {
  const pieces = await ask('read', text.slice(0, READ), on), all = pieces.flatMap((piece) => piece.ids), limit = config.context_length;
  const ids = all.slice(0, limit), count = `${text.length > READ ? 'more than ' : ''}${all.length.toLocaleString('en')}`;
  if (!ids.length) return { refused: 'There is no text yet. Type one above.' };
  if (ids.some((id) => id >= config.vocab_size)) return { refused: `${NAME} knows only the ${V} tokens it was trained on, and your text contains others. Remove them.` };
  const notice = all.length <= limit && text.length <= READ ? ''
    : `Your text has ${count} tokens; ${NAME} reads at most ${limit.toLocaleString('en')}. You see the first ${ids.length.toLocaleString('en')} tokens.`;
  const was = await ask('run', ids, []), refusals = [];
  const now = off || !edits.length ? was : await ask('run', ids, edits).catch(({ message }) => {
    refusals.push(message);
    return was;
  });
  return { pieces, ids, notice, refusals, now, was: now === was ? null : was };
}

let works = 0;                 // a later one makes an earlier one needless

async function work() {
  const mine = ++works, key = JSON.stringify([state.text, state.special, state.edits, state.off]);
  document.body.dataset.busy = '';
  if (run?.key !== key) {
    const found = await passes(state).catch(({ message }) => ({ refused: message }));
    if (mine !== works) return;
    run = { ...found, key };
  }
  for (const one of run.refused ? [] : new Set([run.now, run.was ?? run.now])) {
    const at = position(), D = config.emb_dim;
    if (one.at === at) continue;
    const logits = await ask('logits', one.sites.final.data.slice(at * D, (at + 1) * D));
    if (mine !== works) return;
    Object.assign(one, { logits, at });
  }
  draw();
  delete document.body.dataset.busy;
}

// ---- the screen ----

const main = document.querySelector('main');
const dark = matchMedia('(prefers-color-scheme: dark)');
const mode = () => (dark.matches ? 'dark' : 'light');

function draw() {
  const root = gv.mount(main, mode()), { paper, ink } = gv.palette(mode()), { n_layers, n_heads, emb_dim } = config;
  const size = given.parameters < 1e6 ? given.parameters.toLocaleString('en') : `${gv.fixed(given.parameters / 1e6, 1)} million`;
  Object.assign(document.body.style, { background: paper, color: ink });
  gv.render(root,
    h('header', null, h('h1', null, 'A real GPT in one file'),
      h('p', null, `${NAME}: ${many(n_layers, 'block')}, ${many(n_heads, 'head')} per block, vectors of ${many(emb_dim, 'number')}, ${size} numbers (parameters). `,
        'Type any text. Your browser runs the whole model and sends nothing anywhere. ',
        state.step === null && steps.length > 0 && button(given.guide.title, () => turn(0)))),
    guideBar(),
    part('prompt', { text: state.text, page: 'handout', back: false }, (_, text) => go({ text, token: null, key: null })),
    specialHint(),
    run.refused ? h('p', { class: 'notice', role: 'status' }, run.refused) : [
      run.notice && h('p', { key: 'notice', class: 'notice', role: 'status' }, run.notice),
      ...(waits() ? [] : [chips(), strip()]),
      h('nav', { key: 'nav', 'aria-label': 'Pages' }, Object.keys(PAGES).map(pageLink)),
      waits() ? h('p', { key: 'waits', class: 'notice' }, 'Answer the question to see the picture.')
        : h('section', { key: state.page, 'aria-label': PAGES[state.page][0], data: { page: state.page } }, PAGES[state.page][1]())],
    h('footer', null, 'Made with gptviz. ', !run.refused && ['The same numbers in Python: ', code(inPython()), '. In this browser\'s console: ',
      code('await gptviz.trace(text, edits)'), '.']));
}

function inPython() {
  const { page, block, edits, special: on, temperature } = state;
  const numbers = { tokens: '.tokens', embeddings: '["embed"]', attention: `["attn", ${block}]`, layernorm: '.norms()',
    next_token: `.next_tokens(position=${position()}, temperature=${temperature})` };
  const options = (run.was ? `, edits=${JSON.stringify(edits)}` : '') + (on ? ', special_tokens=True' : '');
  return `gptviz.load(${JSON.stringify(NAME)}).trace(text${options})${numbers[page]}`;
}

function pageLink(page) {
  const turned = (event) => {
    event.preventDefault();
    go({ page });
  };
  return h('a', { key: page, href: `#${new URLSearchParams({ page })}`, 'aria-current': page === state.page ? 'page' : undefined, onclick: turned }, PAGES[page][0]);
}

function specialHint() {
  const name = Object.keys(special).find((text) => !words.includes(text) && state.text.includes(text));
  if (!name) return null;
  return h('p', { class: 'how' }, code(name), ...(state.special
    ? [' is read as the special token now. ', button('Read it as plain text', () => go({ special: false }))]
    : [' is read as plain text now. It is also the name of a special token. ', button('Read it as the special token', () => go({ special: true }))]));
}

dark.addEventListener('change', () => run && draw());
addEventListener('hashchange', () => {
  if (location.hash === written) return;
  state = fromAddress();
  work();
});
loaded.then(work).then(() => document.getElementById('unpacking')?.remove());
