// The hand-out's page: what is typed, chosen and changed, and the app's components with what the model in the
// worker gives for it. `gv`, `gvDraw` (ui/components/bundle.py) and tokens.js stand before it; model.js is in the worker.

const { config, name: NAME } = given;

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
window.gptviz = { trace: async (text, edits = [], { special = false } = {}) => ask('trace', String(text), edits, special) };

// ---- what is looked at: the address holds it, by the names that the app's addresses have ----

const PAGES = { tokens: 'Tokens', embeddings: 'Embeddings', attention: 'Attention', layernorm: 'LayerNorm', next_token: 'Next token' };
const whole = (text, below, otherwise) => (/^\d+$/.test(text ?? '') && Number(text) < below ? Number(text) : otherwise);

const steps = given.guide?.steps ?? [];

function fromAddress() {
  const held = new URLSearchParams(location.hash.slice(1)), first = steps.length && !location.hash ? 0 : null;
  return stateOf(held, whole(held.get('step'), steps.length, first));
}

// A step that has just been turned to brings its own place; what is chosen afterwards stands in the address.
const stateOf = (held, step) => (step !== null && !held.has('text') ? { ...placed(new URLSearchParams({ page: steps[step].page, ...steps[step].place })), step } : { ...placed(held), step });

function placed(held) {
  const { start } = given;
  return {
    page: held.get('page') in PAGES ? held.get('page') : start.page, text: held.get('text') ?? start.text,
    token: whole(held.get('token'), Infinity, null), block: whole(held.get('block'), config.n_layers, start.block), head: whole(held.get('head'), config.n_heads, start.head),
    key: whole(held.get('key'), Infinity, null), edits: held.has('edits') ? held.get('edits').split(',').filter(Boolean) : start.edits,
    dim: whole(held.get('emb_dim'), config.emb_dim, null), off: held.get('edits_off') === 'on', special: held.get('special') === 'on', norm: held.get('ln_norm') ?? 'block 0 · norm1',
    temperature: Math.min(2, Math.max(0, Number(held.get('temperature') || 1) || 0)),
  };
}

function toAddress() {
  const { page, text, token, block, head, key, dim, step, edits, off, special: on, norm, temperature } = state;
  const held = new URLSearchParams({ page, text, block, head, edits: edits.join(','), temperature, ln_norm: norm });
  for (const [name, value] of Object.entries({ token, key, emb_dim: dim, step })) if (value !== null) held.set(name, value);
  for (const [name, value] of Object.entries({ edits_off: off, special: on })) if (value) held.set(name, 'on');
  written = `#${held}`;
  if (location.hash !== written) location.replace(written);
}

let written = null, state = fromAddress();
let run = null;                // of what is on the screen: { pieces, ids, notice, now, was } or { refused }
const dark = matchMedia('(prefers-color-scheme: dark)');
const mode = () => (dark.matches ? 'dark' : 'light');
const position = () => (state.token === null || state.token >= run.ids.length ? run.ids.length - 1 : state.token);
const label = (at = position()) => shownOf(run.ids[at]);

// ---- a pass, or two where something is changed ----

const READ = 100000;           // characters that are read at most

async function passes({ text, special: on, edits, off }) {
  const pieces = await ask('read', text.slice(0, READ), on), ids = pieces.flatMap((piece) => piece.ids), limit = config.context_length;
  const count = `${text.length > READ ? 'more than ' : ''}${ids.length.toLocaleString('en')}`;
  const notice = ids.length > limit || text.length > READ ? `The text has ${count} tokens; ${NAME} reads at most ${limit}. What you see are its first ${Math.min(limit, ids.length)} tokens.` : '';
  const read = ids.slice(0, limit);
  if (!read.length) return { refused: 'There is no text yet: type one above.' };
  if (read.some((id) => id >= config.vocab_size)) return { refused: `${NAME} knows only the ${config.vocab_size.toLocaleString('en')} tokens it was trained on, and this text has others.` };
  const made = off ? [] : edits, was = await ask('run', read, []), refusals = [];
  let now = was;
  if (made.length)
    try {
      now = await ask('run', read, made);
    } catch (error) {
      refusals.push(error.message);
    }
  return { pieces, ids: read, notice, refusals, now, was: now === was ? null : was };
}

async function work() {
  const { text, special: on, edits, off } = state, key = JSON.stringify([text, on, edits, off]);
  document.body.dataset.busy = '';
  if (run?.key !== key) {
    const found = await passes(state).catch(({ message }) => ({ refused: message }));
    if (key !== JSON.stringify([state.text, state.special, state.edits, state.off])) return;        // somebody went on
    run = { ...found, key };
  }
  if (!run.refused)
    for (const one of new Set([run.now, run.was ?? run.now]))
      if (one.at !== position()) {
        const at = position(), D = config.emb_dim;
        Object.assign(one, { logits: await ask('logits', one.sites.final.data.slice(at * D, (at + 1) * D)), at });
      }
  draw();
  delete document.body.dataset.busy;
}

function go(changes) {
  state = { ...state, ...changes };
  toAddress();
  work();
}

const append = (id) => {
  const text = state.text + (specials.get(id) ?? decoded(rawOf(id)).text ?? '');
  go({ text, token: null, special: state.special || specials.has(id) });
};

// ---- pieces of the page ----

const h = gv.h;

// What a saved picture is called, and what stands above it, as Scene.saved says it in the app.
function saved(title, ...which) {
  const brief = (text, most = 80) => (text.length <= most ? text : `${text.slice(0, most / 2)} … ${text.slice(3 - most / 2)}`);
  const changed = run.was ? [`Changed: ${brief(state.edits.join(', '))}`] : [], words = [state.page, ...which, `token${position()}`, ...(run.was ? ['changed'] : [])];
  const lines = [`Selected: ${label()} (position ${position()})`, `Text: ${brief(state.text.replace(/\s+/g, ' '))}`, ...changed, `Model: ${NAME}`];
  return { saved: { stem: ['gptviz', ...words].map((word) => String(word).replace(/[^\w.]+/g, '-')).join('-'), title, lines } };
}

// A component in an element of its own.
function part(name, data, send, key = name) {
  const into = (element) => {
    if (element) into.end = gvDraw(element, name, { mode: mode(), ...data }, send);
    else into.end?.();
  };
  return h('div', { key, class: 'part', ref: into, data: { part: key } });
}

const code = (text) => h('code', null, text);
const place = (at) => [code(label(at)), ` (position ${at})`];
const button = (text, onclick, more = {}) => h('button', { type: 'button', onclick, ...more }, text);
const say = (...pieces) => h('p', { class: 'says', 'aria-live': 'polite' }, pieces);
const how = (...pieces) => h('p', { class: 'how' }, pieces);
const row = (site, at, of = run.now) => { const { shape, data } = of.sites[site]; return data.subarray(at * shape[1], (at + 1) * shape[1]); };
const mean = (values) => values.reduce((total, value) => total + value, 0) / values.length;
const variance = (values) => { const middle = mean(values); return mean(values.map((value) => (value - middle) ** 2)); };

// "0.988", and where something is changed and this with it "0.988 (unchanged 1.02)".
function both(f, digits = gv.significant) {
  const now = digits(f(run.now)), was = run.was && digits(f(run.was));
  return run.was && was !== now ? `${now} (unchanged ${was})` : now;
}

// How large a number may be before it has the last colour: all but one in a hundred are smaller.
function limitOf(...arrays) {
  const all = Float32Array.from(arrays.flatMap((array) => [...array]), Math.abs).sort();
  return all[Math.floor(0.99 * (all.length - 1))] || 1;
}

const panel = (name, array, rows, more) => ({
  name, array, row_axis: 'query', column_axis: 'dim', scale: 'signed', digits: 'number', masked: false, divisor: 1, title: '', note: '', color: '',
  idle: '', label: '', says: '', says_masked: '', says_nothing: '', rows, columns: config.emb_dim, ...more });

const encoded = (data, columns) => {
  let text = '';
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return { base64: btoa(text), triangle: false, columns };
};

const matrix = (name, panels, arrays, small, more = {}) => part('matrix', {
  name, panels, arrays, tokens: run.ids.map(shownOf), first: 0, positions: null, query: position(), key: null, small, largest: 520, ...more,
}, (_, { query, key }) => go(key === undefined ? { token: query } : { token: query ?? position(), key: key ?? state.key }), name);

// ---- the pages ----

function tokensPage() {
  let at = 0, chosen = null;
  const cut = [], count = run.ids.length, letters = given.tokenizer.cut === '[^]', V = config.vocab_size.toLocaleString('en');
  for (const { raw, ids, special: one } of run.pieces) {
    const own = ids.slice(0, count - at).map((id, i) => {
      const bytes = rawOf(id), hex = hexOf(bytes), title = `“${shownOf(id)}” (position ${at + i}) is token ${id}, ${many(bytes.length, 'byte')}: ${hex}`;
      return { position: at + i, id, shown: shownOf(id), hex, title };
    });
    if (position() >= at && position() < at + own.length) chosen = { raw, ids, special: one, part: position() - at };
    at += ids.length;
    if (own.length) cut.push({ shown: shown(raw), special: one, title: one ? `“${shown(raw)}”, a special token` : `The regex cut the piece “${shown(raw)}”`,
      groups: sharing(own.map(({ id }) => rawOf(id))), tokens: own });
  }
  return [
    say(letters ? `${NAME} reads characters: each of its ${V} tokens is one. Your text is ` : `${NAME} does not read letters. Its ${V} tokens are pieces that were frequent in the text they were learnt from. Yours is `,
      h('b', null, `${count} token${count === 1 ? '' : 's'}`), ', and ', place(position()), ` has the number ${run.ids[position()]}.`),
    part('token_cards', { ...saved('The tokens'), pieces: cut, selected: position(), colours: gv.palette(mode()).positions.length }, (_, token) => go({ token })),
    h('h2', null, 'How ', code(label()), ' came about'), part('merges', { ...saved(`How ${label()} came about`, 'merges'), ...mergesOf(chosen, chosen.part, position()) }),
    how('Each card is a token: its position, its text (· is a space), its number, its bytes.', letters ? '' : ' A regex cuts the text into pieces first: the lines under the cards. Then, inside of a piece, the two neighbours that merge at the lowest rank become one, again and again; a rank is a token\'s number, and what was frequent where the tokens were learnt has a low one.')];
}

function embeddingsPage() {
  const at = position(), T = run.ids.length, parts = [['tok_emb', 'token', 'which token it is'], ['pos_emb', '+ position', 'where it stands'], ['embed', '= sum', 'what block 0 is given']];
  const rows = parts.map(([site]) => row(site, at)), farthest = rows[2].reduce((best, value, i) => (Math.abs(value) > Math.abs(rows[2][best]) ? i : best), 0);
  const limit = limitOf(...parts.map(([site]) => run.now.sites[site].data)), dim = state.dim ?? farthest;
  const [token, spot, total] = rows.map((values) => gv.fixed(values[dim], 3)), sum = `${token} + ${spot.startsWith('−') ? `(${spot})` : spot}`;
  const replaced = rows[2].some((value, i) => Math.abs(rows[0][i] + rows[1][i] - value) > 1e-4);       // an edit put something else there
  return [
    say('A token is a row of ', h('b', null, config.emb_dim), ' numbers that the model has learnt, and so is a position. Added up, they go into block 0. Of ', place(at), `, dimension ${dim}: ${sum}${replaced ? ', and block 0 is given ' : ' = '}`, h('b', null, total), replaced ? ' instead.' : '.'),
    strips(parts, rows, limit, dim, `The ${config.emb_dim} numbers of ${label()}, position ${at}: its token's, its position's, and what block 0 is given. Dimension ${dim}: ${token}, ${spot}, ${total}.`),
    matrix('embeddings', parts.map(([site, title, note]) => panel(site, site, T, {
      title, note, low: -limit, high: limit, label: `${title}: a row for each token, a column for each dimension`, says: `{query}, dimension {dim} of ${site}: {value}` })),
    Object.fromEntries(parts.map(([site]) => [site, encoded(run.now.sites[site].data, config.emb_dim)])), true, { across: 3, ...saved('Token embedding, position embedding and their sum') }),
    how(`Above: the chosen token; a click chooses a dimension. Below: all tokens, a row each. Blue is below zero, orange above, the strongest colour from ${gv.significant(limit)} on.`)];
}

// Rows of numbers under each other, a cell each; `dim` is framed.
function strips(parts, rows, limit, dim, said) {
  const D = config.emb_dim, colors = gv.palette(mode());
  const cell = (value, i, y) => h('rect', { key: `${y}-${i}`, x: i, y: y * 1.25, width: 1.03, height: 1, fill: `rgb(${gv.colorAt(colors.signed, (value / limit + 1) / 2)})` });
  const choose = ({ currentTarget, clientX }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    go({ dim: Math.min(D - 1, Math.floor(((clientX - left) / width) * D)) });
  };
  return h('div', { class: 'strips', role: 'img', 'aria-label': said, data: { testid: 'strips', dim } },
    h('div', { class: 'names' }, parts.map(([site, title]) => h('span', { key: site }, title))),
    h('svg', { viewBox: `0 0 ${D} 3.5`, preserveAspectRatio: 'none', onclick: choose }, rows.map((values, y) => [...values].map((value, i) => cell(value, i, y))),
      h('rect', { key: 'chosen', x: dim, y: -0.1, width: 1, height: 3.7, fill: 'none', stroke: colors.accent, 'stroke-width': 2, 'vector-effect': 'non-scaling-stroke' })),
    h('div', { class: 'names' }, rows.map((values, y) => h('b', { key: y }, gv.fixed(values[dim], 3)))));
}

const weightsOf = ({ sites }, block, head) => { const { shape: [, T], data } = sites[`attn.${block}`]; return data.subarray(head * T * T, (head + 1) * T * T); };
const mine = () => `z.${state.block}.${state.head}=zero`;

function attentionPage() {
  const { block, head } = state, at = position(), T = run.ids.length, H = config.n_heads;
  const own = weightsOf(run.now, block, head), most = [...Array(at + 1).keys()].reduce((best, key) => (own[at * T + key] > own[at * T + best] ? key : best), 0);
  const key = state.key !== null && state.key <= at ? state.key : most, isOff = state.edits.includes(mine());
  const limits = { low: 0, high: 1, scale: 'attention', digits: 'weight', masked: true, column_axis: 'key', columns: T };
  return [
    say('In ', h('b', null, `block ${block}, head ${head}`), ', ', place(at), ' looks most at ', place(most), ': ', both((of) => weightsOf(of, block, head)[at * T + most], gv.weight),
      ' of its attention. ', button(isOff ? 'Switch on again' : 'Switch off', () => go({ off: false, edits: isOff ? state.edits.filter((edit) => edit !== mine()) : [...state.edits, mine()] }),
        { class: 'act', 'aria-pressed': isOff, data: { testid: 'switch-head' } })),
    h('div', { class: 'two' },
      part('heads', { ...saved('All heads: where each looks', 'heads'), ...grid() }, (_, picked) => go(picked)),
      matrix('head', [panel('weights', 'weights', T, { ...limits, label: 'Attention weights: rows are queries, columns are keys',
        says: '{query} attends {value} to {key}', says_masked: '{query} cannot see {key}, which comes later: the causal mask hides it.' })],
      { weights: encoded(own, T) }, false, { key, largest: Math.max(300, innerHeight - 480), ...saved(`Attention of block ${block}, head ${head}`, `block${block}`, `head${head}`) })),
    how(`All ${config.n_layers * H} heads, and one of them large. A row is a token that looks, a column one that is looked at${state.edits.some((edit) => edit.startsWith('attn')) ? '' : '; a row sums to 1'}. What comes later is masked. A click on a thumbnail opens that head. `,
      'A word below one says where more than half of its attention goes on average: to the first token, to the token before, or to the token itself.')];
}

// Every head's picture in one, and in a sentence where it looks on average.
function grid() {
  const T = run.ids.length, { n_layers, n_heads } = config, side = Math.min(T, 48), colors = gv.palette(mode());
  const canvas = Object.assign(document.createElement('canvas'), { width: n_heads * side, height: n_layers * side });
  const pixels = new ImageData(canvas.width, canvas.height), table = gv.colorTable(colors.attention), masked = gv.channels(colors.masked);
  const from = (i) => Math.floor((i * T) / side), roles = [], longest = Math.max(...run.now.writes.flat()) || 1;
  for (let b = 0; b < n_layers; b++) {
    roles.push([]);
    for (let one = 0; one < n_heads; one++) {
      const own = weightsOf(run.now, b, one);
      for (let y = 0; y < side; y++)
        for (let x = 0; x < side; x++) {
          let best = 0;
          for (let i = from(y); i < from(y + 1); i++) for (let j = from(x); j < from(x + 1); j++) best = Math.max(best, own[i * T + j]);
          const at = 4 * ((b * side + y) * canvas.width + one * side + x);
          pixels.data.set([...(x > y ? masked : table[Math.round(255 * best)]), 255], at);
        }
      roles[b].push(thumbnail(own, run.was && weightsOf(run.was, b, one), b, one, longest));
    }
  }
  canvas.getContext('2d').putImageData(pixels, 0, 0);
  return { picture: canvas.toDataURL(), side, blocks: n_layers, heads: n_heads, roles, largest_write: longest, block: state.block, head: state.head };
}

function thumbnail(own, was, block, head, longest) {
  const T = run.ids.length, write = run.now.writes[block][head], queries = [...Array(T).keys()].slice(1);
  const means = T > 1 ? { first: mean(queries.map((q) => own[q * T])), before: mean(queries.map((q) => own[q * T + q - 1])), itself: mean(queries.map((q) => own[q * T + q])) } : { itself: 1 };
  const looks = T > 1 ? `On average it gives ${gv.weight(means.first)} to the first token, ${gv.weight(means.before)} to the token before and ${gv.weight(means.itself)} to the token itself.` : 'It has only one token to look at.';
  const [word] = Object.entries(means).find(([, share]) => share > 0.5) ?? [''];
  const changed = !state.off && state.edits.some((edit) => new RegExp(`^(q|k|v|attn|z)\\.(${block}|\\*)(\\.(\\d+\\+)*${head}(\\+\\d+)*)?[@=]`).test(edit));
  const moved = was && T > 1 ? mean(queries.map((q) => 0.5 * own.subarray(q * T, (q + 1) * T).reduce((total, weight, i) => total + Math.abs(weight - was[q * T + i]), 0))) : 0;
  const says = `${looks} It writes ${gv.fixed(write, 1)} (the bar; the longest is ${gv.fixed(longest, 1)}).${was ? `${changed ? ' It is changed.' : ''} Its pattern moved by ${gv.significant(moved, 2)}.` : ''}`;
  return { kind: word || 'mixed', label: word, says, write, ...(was ? { changed, moved } : {}) };
}

function layernormPage() {
  const names = Object.keys(run.now.norms), name = names.includes(state.norm) ? state.norm : names[0], T = run.ids.length, at = position(), D = config.emb_dim;
  const [, block, which] = /^block (\d+) · norm(\d)$/.exec(name) ?? [];
  const site = block === undefined ? `resid_post.${config.n_layers - 1}` : `${which === '1' ? 'resid_pre' : 'resid_mid'}.${block}`;
  const stages = [['before', (of) => of.sites[site].data], ['after', (of) => of.norms[name]]];
  const mineOf = (data) => data.subarray(at * D, (at + 1) * D);
  const moved = (of, data) => (run.was && of(data(run.was)).some((value, i) => value !== of(data(run.now))[i]) ? of(data(run.was)) : null);
  const choose = h('select', { 'aria-label': 'LayerNorm', value: name, onchange: (event) => go({ norm: event.target.value }) }, names.map((one) => h('option', { value: one }, one)));
  return [
    say(`The ${D} numbers of `, place(at), ' have a variance of ', both((of) => variance(mineOf(stages[0][1](of)))), ' when they come into ', choose, ', and of ', h('b', null, both((of) => variance(mineOf(stages[1][1](of))))), ' when they leave it.'),
    h('div', { class: 'spreads' }, stages.map(([when, data]) => histogram(when, mineOf(data(run.now)), moved(mineOf, data), name))),
    matrix('norm', stages.map(([when, data]) => {
      const limit = limitOf(data(run.now));
      return panel(when, when, T, { title: when, note: `strongest colour from ${gv.significant(limit)} on`, low: -limit, high: limit,
        label: `${when} ${name}: a row for each token, a column for each dimension`, says: `{query}, dimension {dim}, ${when} ${name}: {value}` });
    }), Object.fromEntries(stages.map(([when, data]) => [when, encoded(data(run.now), D)])), true, { across: 2, ...saved(`Before and after ${name}`, name) }),
    how('Above: how many of the token\'s numbers have about which size; the line is their mean. Below: all tokens. A LayerNorm takes the mean away, divides by the standard deviation, and then multiplies each dimension by its own learnt scale', config.norm_bias ? ' and adds its own shift.' : '.')];
}

function histogram(when, values, was, name) {
  const BINS = 40, low = Math.min(...values, ...(was ?? [])), high = Math.max(...values, ...(was ?? [])), span = high - low || 1, colors = gv.palette(mode());
  const count = (of) => of.reduce((bins, value) => { bins[Math.min(BINS - 1, Math.floor(((value - low) / span) * BINS))]++; return bins; }, Array.from({ length: BINS }, () => 0));
  const [now, before] = [count(values), was && count(was)], most = Math.max(...now, ...(before ?? [])), middle = mean(values);
  const said = `${when}: mean ${Math.abs(middle) < 1e-6 ? '0' : gv.significant(middle)}, variance ${gv.significant(variance(values))}`;
  const bar = (height, i, paint) => h('rect', { key: i, x: i, y: 1 - height / most, width: 0.92, height: height / most, ...paint });
  return h('figure', { key: when },
    h('figcaption', null, said),
    h('svg', { viewBox: `0 0 ${BINS} 1`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `How the ${values.length} numbers of ${label()} are spread ${when} ${name}. ${said}.` },
      now.map((height, i) => bar(height, i, { fill: when === 'after' ? colors.accent : colors.quiet })),
      before?.map((height, i) => bar(height, BINS + i, { x: i, fill: 'none', stroke: colors.ghost, 'vector-effect': 'non-scaling-stroke' })),
      h('line', { x1: ((middle - low) / span) * BINS, x2: ((middle - low) / span) * BINS, y1: 0, y2: 1, stroke: colors.ink, 'stroke-width': 1.5, 'vector-effect': 'non-scaling-stroke' })),
    h('div', { class: 'ends' }, h('span', null, gv.significant(low)), h('span', null, gv.significant(high))));
}

// ---- the next token ----

// A probability with the digits that mean something, and never 0 or 1 by rounding (figures/next_token.py).
function probable(p) {
  if (p === 0 || p === 1) return p.toFixed(0);
  if (p < 0.99) return gv.significant(p);
  return p.toFixed(Math.max(3, Math.min(15, Math.floor(-Math.log10(Math.max(1 - p, 1e-15)))) + 1));
}

// Logits by temperature: { order, p, scaled, logSum }; temperature 0 gives the largest everything.
function distribution(logits, temperature) {
  const order = [...logits.keys()].sort((a, b) => logits[b] - logits[a] || a - b);
  if (!temperature) return { order, scaled: logits, p: Float64Array.from(logits, (_, id) => (id === order[0] ? 1 : 0)) };
  const scaled = Float64Array.from(logits, (logit) => logit / temperature), most = scaled[order[0]];
  const total = scaled.reduce((all, one) => all + Math.exp(one - most), 0);
  return { order, scaled, p: scaled.map((one) => Math.exp(one - most) / total), logSum: most + Math.log(total) };
}

const SHOWS = 10;

function nextPage() {
  const { temperature: t } = state, now = distribution(run.now.logits, t), was = run.was && distribution(run.was.logits, t), own = t === 1 ? now : distribution(run.now.logits, 1);
  const rank = was && new Map(was.order.map((id, i) => [id, i + 1])), ids = now.order.slice(0, SHOWS);
  const model = run.was ? 'changed model' : 'model', V = config.vocab_size.toLocaleString('en');
  if (was && !ids.includes(was.order[0])) ids.push(was.order[0]);
  const place_ = new Map(now.order.map((id, i) => [id, i + 1]));
  const rows = ids.map((id) => {
    const logit = run.now.logits[id], scaled = gv.fixed(now.scaled[id], 2), p = probable(now.p[id]), raw = rawOf(id), at = place_.get(id), sum = t ? gv.fixed(now.logSum, 2) : '';
    const softmax = `Softmax: e^(${scaled} ${now.logSum >= 0 ? `− ${sum}` : `+ ${sum.slice(1)}`}) = ${p}, where ${sum} is the logarithm of the sum of e^x over all ${V} tokens.`;
    const steps = t ? `logit ${gv.fixed(logit, 2)}${t === 1 ? '' : ` ÷ temperature ${t} = ${scaled}`}. ${softmax}`
      : `logit ${gv.fixed(logit, 2)}, ${at === 1 ? 'the largest: temperature 0 gives it everything' : 'not the largest'}. Probability ${p}.`;
    const unsettled = t === 1 ? '' : ` The ${model} itself gives it ${probable(own.p[id])}.`, ghost = was ? was.p[id] : t === 1 ? null : own.p[id];
    return {
      key: String(id), id, token: shown(raw), rank: at, rank_text: at.toLocaleString('en'), logit, logit_text: gv.fixed(logit, 2), scaled: now.scaled[id], scaled_text: t ? scaled : '',
      filter: 'kept', filter_text: '', probability: now.p[id], model_probability: own.p[id], p_text: p, ghost, ghost_text: was ? probable(ghost) : '',
      first: at === 1, was_first: Boolean(was) && rank.get(id) === 1 && at > 1, out: false, rest: false, came: id === run.ids[position() + 1] && position() + 1 < run.ids.length,
      whole: position() === run.ids.length - 1 && run.ids.length < config.context_length && decoded(raw).text !== undefined,
      sentence: `(rank ${at.toLocaleString('en')}): ${steps}${unsettled}${was ? ` Unchanged, it has ${probable(ghost)}, rank ${rank.get(id).toLocaleString('en')}.` : ''}`,
    };
  });
  const others = (of) => of.p.reduce((total, p, id) => (ids.includes(id) ? total : total + p), 0), left = config.vocab_size - ids.length;
  const rest = left > 0 && { ...rows[0], key: 'rest', id: null, token: `${left.toLocaleString('en')} others`, rank: 0, rank_text: '', logit: undefined, logit_text: '', scaled: undefined, scaled_text: '',
    probability: others(now), model_probability: others(own), p_text: probable(others(now)), ghost: was ? others(was) : null, ghost_text: was ? probable(others(was)) : '', first: false, was_first: false,
    rest: true, whole: false, came: false, sentence: `The other ${left.toLocaleString('en')} tokens of the vocabulary share ${probable(others(now))}.${was ? ` Unchanged, these tokens share ${probable(others(was))}.` : ''}` };
  const heads = { rank: 'rank', token: 'token', logit: 'logit', scaled: `÷ ${t}`, filter: '', ...(was ? { before: 'unchanged', p: 'changed' } : { p: 'probability' }) };
  return [
    say('After ', place(position()), `, ${NAME} expects `, code(shownOf(now.order[0])), ' with a probability of ', h('b', null, both((of) => distribution(of.logits, t).p[now.order[0]], probable)), '.'),
    h('label', { class: 'slider' }, `Temperature ${gv.fixed(t, 2)} `, h('input', { type: 'range', min: 0, max: 2, step: 0.05, value: t, 'aria-label': 'Temperature', oninput: (event) => go({ temperature: Number(event.target.value) }) })),
    part('candidates', { ...saved(`What comes next, at temperature ${gv.fixed(t, 2)}`), rows, rest: rest || null, heads, action: 'Append' }, (_, id) => append(id)),
    how(`The model has a probability for each of its ${V} tokens. Temperature divides the logits first: below 1 the favourite gets more, above 1 less, at 0 everything. A click on + Append writes on.`)];
}

const PAGE = { tokens: tokensPage, embeddings: embeddingsPage, attention: attentionPage, layernorm: layernormPage, next_token: nextPage };

// ---- the guide ----

const answers = new Map(), hints = new Map();      // by step: what was said, and how many hints are shown
const html = (tag, markup, more = {}) => h(tag, { markup, ...more });
const turn = (step) => { state = stateOf(new URLSearchParams(), step); toAddress(); work(); };
const waits = () => state.step !== null && steps[state.step].page === state.page && steps[state.step].ask !== null && !answers.has(state.step);

function guideBar() {
  if (state.step === null) return null;
  const { step } = state, { heading, text, ask: asked, page, until = null, after } = steps[step], said = answers.get(step);
  const told = asked && said !== undefined, done = until !== null && state.edits.join(',') === until;
  return h('section', { class: 'guide', 'aria-label': given.guide.title, lang: given.guide.language, data: { testid: 'guide', step } },
    h('div', { class: 'way' }, h('b', null, heading), h('span', { class: 'how' }, `${given.guide.title}, step ${step + 1} of ${steps.length}`),
      h('span', { class: 'turn' }, step > 0 && button('Back', () => turn(step - 1), { class: 'act' }), step + 1 < steps.length && button('Next step', () => turn(step + 1), { class: 'act' }),
        button('Leave', () => go({ step: null }), { class: 'act' }))),
    state.page === page ? null : h('p', null, button(`This step is on the page ${PAGES[page]}: go there`, () => go({ page }), { class: 'act' })),
    told ? null : html('div', done && after ? after : text), done ? h('p', { role: 'status' }, 'Done.') : null, asked && !told && run.now && state.page === page ? ballot(asked, step) : null,
    told ? h('div', { role: 'status' }, h('p', null, said === null ? '' : `You said ${said}. `, 'This model: ', html('b', asked.truth), '.'),
      html('div', asked.after.replaceAll('\ue000', () => gv.escapeXml(said ?? 'nothing')))) : null,
    step + 1 === steps.length && given.guide.missing ? h('p', { class: 'how' }, `The app has ${given.guide.missing} more steps of this guide, on pages that are not here.`) : null);
}

// How a question is answered, with hints; nobody is told the truth before that.
function ballot(asked, step) {
  const seen = hints.get(step) ?? 0, name = `guess-${step}`;
  const say_ = (said) => { answers.set(step, said); draw(); };
  const sent = (event) => {
    event.preventDefault();
    const said = new FormData(event.target).get(name);
    if (said?.trim()) say_(said.trim().slice(0, 60));
  };
  const typed = { type: asked.kind === 'number' ? 'number' : 'text', step: 'any', autocomplete: 'off', 'aria-label': 'Your guess', maxlength: 60, min: asked.between?.[0], max: asked.between?.[1] };
  const field = asked.options.length ? h('span', { class: 'options' }, asked.options.map((option) => h('label', { key: option }, h('input', { type: 'radio', name, value: option }), ` ${option}`)))
    : h('input', { name, ...typed });
  const clicked = asked.kind === 'head' ? part('heads', unnamed(), (_, { block, head }) => say_(`block ${block} head ${head}`), 'guess')
    : asked.kind === 'token' ? part('chips', { ...chipsOf(), next: null }, (_, at) => say_(`“${label(at)}” (position ${at})`), 'guess') : null;
  return h('form', { onsubmit: sent }, h('p', null, html('b', asked.question)), clicked,
    h('div', { class: 'way' }, clicked ? null : [field, h('button', { type: 'submit', class: 'act' }, 'That is my guess')],
      seen < asked.hints.length ? button('A hint', () => { hints.set(step, seen + 1); draw(); }, { class: 'act' }) : null, button('Show me', () => say_(null), { class: 'act' })),
    h('ul', { role: 'status' }, asked.hints.slice(0, seen).map((hint, i) => html('li', hint, { key: i }))));
}

// Every head, small and without a name, to be clicked.
function unnamed() {
  const whole_ = grid(), roles = whole_.roles.map((blocks) => blocks.map(() => ({ kind: 'mixed', label: ' ', says: 'What is it for?', write: 0 })));
  return { ...whole_, roles, largest_write: 1, block: null, head: null };
}

// ---- what stands on every page ----

function strip() {
  if (!state.edits.length) return null;
  const chips = state.edits.map((text) => ({ text, says: edit_said(text), state: state.off ? 'off' : run.refusals.length ? 'refused' : 'made', note: '' }));
  return part('changes', { chips, effect: run.was ? effect() : null, off: state.off, notes: run.refusals.map((why) => [why]), ask: null }, (event, which) => {
    if (event === 'remove') return go({ edits: state.edits.filter((_, i) => i !== which) });
    return go(which === 'switch' ? { off: !state.off } : which === 'undo' ? { edits: state.edits.slice(0, -1) } : { edits: [] });
  });
}

// "block 4 head 3 off"; other edits as they are written.
function edit_said(text) {
  const [, block, heads] = /^z\.(\d+)\.([\d+]+)=zero$/.exec(text) ?? [];
  return block === undefined ? text : `block ${block} head${heads.includes('+') ? 's' : ''} ${heads.replaceAll('+', ', ')} off`;
}

// What the changes did to the selected position's prediction, at temperature 1.
function effect() {
  const [was, now] = [run.was, run.now].map(({ logits }) => distribution(logits, 1)), token = was.order[0], top = now.order[0];
  const kl = Math.max(0, was.p.reduce((total, p, id) => total + (p ? p * Math.log2(p / now.p[id]) : 0), 0));
  return {
    after: label(), position: position(), token: shownOf(token), before: was.p[token], before_text: probable(was.p[token]), now: now.p[token], now_text: probable(now.p[token]),
    top: shownOf(top), top_now: now.p[top], top_text: probable(now.p[top]), kl, kl_text: gv.significant(kl, 2), nothing: run.now.logits.every((logit, id) => logit === run.was.logits[id]),
  };
}

function chipsOf() {
  const { order, p } = distribution(run.now.logits, 1), [top] = order;
  return {
    tokens: run.ids.map((id) => ({ id, shown: shownOf(id) })), groups: sharing(run.ids.map(rawOf)), selected: position(), highlight: {}, weights: null, shares: null, coloured: state.page === 'tokens',
    next: position() === run.ids.length - 1 ? { shown: shownOf(top), id: top, probability: p[top] } : null, appends: decoded(rawOf(top)).text !== undefined && run.ids.length < config.context_length,
  };
}

const chips = () => part('chips', chipsOf(), (event, value) => (event === 'append' ? append(value) : go({ token: value })));

const main = document.querySelector('main');

function draw() {
  const root = gv.mount(main, mode()), { paper, ink } = gv.palette(mode());
  Object.assign(document.body.style, { background: paper, color: ink });
  const shownPages = Object.entries(PAGES).map(([page, title]) => h('a', { key: page, href: `#${new URLSearchParams({ page })}`, 'aria-current': page === state.page ? 'page' : undefined,
    onclick: (event) => { event.preventDefault(); go({ page }); } }, title));
  const hint = !state.special && Object.keys(special).find((text) => state.text.includes(text));
  gv.render(root,
    h('header', null, h('h1', null, 'A real GPT, in this one file'),
      h('p', null, `${NAME}: ${config.n_layers} blocks of ${config.n_heads} heads, ${config.emb_dim} wide, ${gv.fixed(given.parameters / 1e6, 1)} million numbers. Type any text: this browser runs all of it, and sends nothing anywhere. `,
      state.step === null && steps.length ? button(given.guide.title, () => turn(0), { class: 'act' }) : null)),
    guideBar(),
    part('prompt', { text: state.text, page: 'handout', back: false }, (_, text) => go({ text, token: null, key: null })),
    hint ? h('p', { class: 'how' }, code(hint), ' is read as plain text here. It is also the name of one special token. ', button('Read it as the special token', () => go({ special: true }), { class: 'act' })) : null,
    run.refused ? h('p', { class: 'notice', role: 'status' }, run.refused) : [
      run.notice ? h('p', { key: 'notice', class: 'notice', role: 'status' }, run.notice) : null,
      ...(waits() ? [] : [chips(), strip()]), h('nav', { key: 'nav', 'aria-label': 'What to look at' }, shownPages),
      waits() ? h('p', { key: 'waits', class: 'notice' }, 'The picture waits for your answer.')
        : h('section', { key: state.page, 'aria-label': PAGES[state.page], data: { page: state.page } }, PAGE[state.page]())],
    h('footer', null, 'Made by gptviz. The same numbers in Python: ', code(`gptviz.load(${JSON.stringify(NAME)}).trace(text)["attn", ${state.block}]`), '; in this page\'s console: ', code(`await gptviz.trace(text)`), '.'));
}

dark.addEventListener('change', () => run && draw());
addEventListener('hashchange', () => {
  if (location.hash === written) return;
  state = fromAddress();
  work();
});
loaded.then(work).then(() => document.getElementById('unpacking')?.remove());
