// The hand-out's pages: the app's components with what the model gives for the text, and what is said of it. `run` and
// `state` (page.js) say what is on the screen; `gv` and `gvDraw` are ui/components' (code.py).

const h = gv.h;
const V = config.vocab_size.toLocaleString('en');

// ---- pieces ----

const code = (text) => h('code', null, text);
const place = (at) => [code(label(at)), ` (position ${at})`];
const button = (text, onclick, more = {}) => h('button', { type: 'button', class: 'act', onclick, ...more }, text);
const say = (...pieces) => h('p', { class: 'says', 'aria-live': 'polite' }, pieces);
const how = (...pieces) => h('p', { class: 'how' }, pieces);
const mean = (values) => values.reduce((total, value) => total + value, 0) / values.length;

function variance(values) {
  const middle = mean(values);
  return mean(values.map((value) => (value - middle) ** 2));
}

// A position's row of a site that has rows, and a head's weights, (T, T).
const row = (site, at) => run.now.sites[site].data.subarray(at * config.emb_dim, (at + 1) * config.emb_dim);

function weightsOf({ sites }, block, head) {
  const { shape: [, T], data } = sites[`attn.${block}`];
  return data.subarray(head * T * T, (head + 1) * T * T);
}

// "0.988", and where something is changed and this with it "1.02 → 0.988".
function both(f, digits = gv.significant) {
  const now = digits(f(run.now)), was = run.was && digits(f(run.was));
  return run.was && was !== now ? `${was} → ${now}` : now;
}

// What a saved picture is called, and what stands above it, as Scene.saved says it in the app.
function saved(title, ...which) {
  const brief = (text) => (text.length <= 80 ? text : `${text.slice(0, 40)} … ${text.slice(-37)}`);
  const words = ['gptviz', state.page, ...which, `token${position()}`, ...(run.was ? ['changed'] : [])];
  const lines = [
    `Selected: ${label()} (position ${position()})`, `Text: ${brief(state.text.replace(/\s+/g, ' '))}`,
    ...(run.was ? [`Changed: ${brief(state.edits.join(', '))}`] : []), `Model: ${NAME}`];
  return { saved: { stem: words.map((word) => String(word).replace(/[^\w.]+/g, '-')).join('-'), title, lines } };
}

// A component in an element of its own.
function part(name, data, send, key = name) {
  const into = (element) => {
    if (element) into.end = gvDraw(element, name, { mode: mode(), ...data }, send);
    else into.end?.();
  };
  return h('div', { key, class: 'part', ref: into, data: { part: key } });
}

// Matrices over tokens, of `panel`s; a click on a cell selects its token.
function matrix(name, panels, arrays, more) {
  const sent = Object.fromEntries(Object.entries(arrays).map(([array, values]) => [array, encoded(values, values.length / run.ids.length)]));
  const data = { name, panels, arrays: sent, tokens: run.ids.map(shownOf), first: 0, positions: null, query: position(), key: null, largest: 520 };
  return part('matrix', { ...data, ...more }, (_, { query, key }) => go(
    key === undefined ? { token: query } : { token: query ?? position(), key: key ?? state.key }), name);
}

const PANEL = {
  row_axis: 'query', column_axis: 'dim', scale: 'signed', digits: 'number', masked: false, divisor: 1, title: '', note: '',
  color: '', idle: '', label: '', says: '', says_masked: '', says_nothing: '' };
const panel = (name, more) => ({ ...PANEL, name, array: name, rows: run.ids.length, columns: config.emb_dim, ...more });

// All tokens' numbers at one place: a row a token, a column a dimension.
const dimensions = (name, limit, more) => panel(name, {
  low: -limit, high: limit, label: `${more.title}: rows are tokens, columns are dimensions`, ...more });

function encoded(values, columns) {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let text = '';
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return { base64: btoa(text), triangle: false, columns };
}

// From which size on a number has the last colour: all but one in a hundred are smaller.
function limitOf(...arrays) {
  const all = Float32Array.from(arrays.flatMap((array) => [...array]), Math.abs).sort();
  return all[Math.floor(0.99 * (all.length - 1))] || 1;
}

// ---- Tokens ----

function tokensPage() {
  const count = run.ids.length, letters = given.tokenizer.cut === '[^]', cut = [];
  let at = 0, chosen = null;
  for (const { raw, ids, special: looked, word } of run.pieces) {
    const own = ids.slice(0, count - at).map((id, i) => card(id, at + i));
    if (position() >= at && position() < at + own.length) chosen = mergesOf({ raw, ids, special: looked, word }, position() - at, position());
    at += ids.length;
    const title = looked ? `“${shown(raw)}”, ${kindOf(word)}` : `The regex cut the piece “${shown(raw)}”`;
    if (own.length) cut.push({ shown: shown(raw), special: looked, title, groups: sharing(own.map(({ id }) => rawOf(id))), tokens: own });
  }
  const cards = { pieces: cut, selected: position(), colours: gv.palette(mode()).positions.length };
  return [
    say('Your text is cut into tokens, and each token is replaced by a number, its id. You see ', h('b', null, many(count, 'token')), '; ',
      place(position()), ` has id ${run.ids[position()]}.`),
    part('token_cards', { ...saved('The tokens of a text, with their ids and bytes'), ...cards }, (_, token) => go({ token })),
    h('h2', null, 'How ', code(label()), ' was built'),
    part('merges', { ...saved(`How ${label()} was built from its bytes`, 'merges'), ...chosen }),
    how('A card shows a token\'s position, text, id and bytes; · stands for a space, ⏎ for a line break. ',
      `The vocabulary of ${NAME} has ${V} tokens. `, letters ? 'Its tokenizer splits a text into single characters.'
        : 'First, a fixed rule splits the text into pieces, often words (underlined). Then neighbours inside a piece merge, pair by pair, the'
        + ' lowest rank first, until no pair makes a token. A pair\'s rank is the id of the token that it makes. Frequent pairs were learned'
        + ' first, so they have low ranks.')];
}

function card(id, at) {
  const raw = rawOf(id), hex = hexOf(raw);
  const title = `“${shown(raw)}” (position ${at}) is token ${id}, ${many(raw.length, 'byte')}: ${hex}`;
  return { position: at, id, shown: shown(raw), hex, title };
}

// ---- Embeddings ----

// Site, name in a sum, name where a change puts something else in the sum's place, name in a sentence, note.
const VECTORS = [
  ['tok_emb', 'token', 'token', 'token vector', 'which token it is'], ['pos_emb', '+ position', 'position', 'position vector', 'where it is'],
  ['embed', '= sum', 'input', 'input of block 0', 'the input of block 0']];

function embeddingsPage() {
  const at = position(), rows = VECTORS.map(([site]) => row(site, at));
  const arrays = Object.fromEntries(VECTORS.map(([site]) => [site, run.now.sites[site].data])), limit = limitOf(...Object.values(arrays));
  const farthest = rows[2].reduce((best, value, i) => (Math.abs(value) > Math.abs(rows[2][best]) ? i : best), 0), dim = state.dim ?? farthest;
  const differs = ([one, other, sum]) => sum.some((value, i) => Math.abs(one[i] + other[i] - value) > 1e-4);      // a change put something else there
  const replaced = differs(rows), isSum = !differs(Object.values(arrays)), titles = VECTORS.map(([, plus, alone]) => (isSum ? plus : alone));
  const [one, other, input] = rows.map((values) => values[dim]), sum = replaced ? one + other : input, decimals = decimalsOf(one, other, sum);
  const [token, spot, together, total] = [one, other, sum, input].map((value) => gv.fixed(value, decimals));
  const added = `${token} + ${spot.startsWith('−') ? `(${spot})` : spot}`;
  const shows = VECTORS.map(([site, , , vector, note], i) => dimensions(site, limit, {
    title: titles[i], note, says: `Dimension {dim} of the ${vector} of {query} is {value}` }));
  return [
    say(h('b', null, 'Token plus position.'), ` One list of ${many(config.emb_dim, 'number')} says `, h('em', null, 'which'), ' token this is, ',
      code(label()), '; another says ', h('em', null, 'where'), ` it is, position ${at}. `,
      replaced ? 'The model would start from their sum, but your change puts something else in its place. ' : 'The model starts from their sum. ',
      `In dimension ${dim}, ${added} `, replaced ? `would be ${together}; block 0 gets ` : '= ',
      h('b', null, total), '.'),
    strips(rows, limit, dim, titles, [token, spot, total], `The three vectors of ${label()} (position ${at}): token, position, and input of block 0. `
      + `Dimension ${dim}: ${token}, ${spot}, ${total}.`),
    matrix('embeddings', shows, arrays, { small: true, across: 3, ...saved('Token embedding, position embedding and the input of block 0') }),
    how('Above: the three vectors of the selected token. Click to choose a dimension. Below: each row is a token, each column a dimension. ',
      `Blue: below zero. Orange: above zero. Full colour: ${gv.significant(limit)} or further from zero.`)];
}

// With how many decimals the rounded numbers still add up (analysis/embeddings.py).
function decimalsOf(one, other, sum) {
  const readable = (decimals) => decimals > 3 || Math.min(...[one, other, sum].map(Math.abs)) >= 0.01;
  const whole = (value, decimals) => Math.round(value * 10 ** decimals);
  const addsUp = (decimals) => whole(one, decimals) + whole(other, decimals) === whole(sum, decimals);
  return [4, 3, 5, 6, 7].find((decimals) => readable(decimals) && addsUp(decimals)) ?? 4;
}

// Rows of numbers under each other, a cell each; `dim` is framed.
function strips(rows, limit, dim, titles, written, said) {
  const D = config.emb_dim, { signed, accent } = gv.palette(mode());
  const cell = (value, i, y) => h('rect', {
    key: `${y}-${i}`, x: i, y: y * 1.25, width: 1.03, height: 1, fill: `rgb(${gv.colorAt(signed, (value / limit + 1) / 2)})` });
  const choose = ({ currentTarget, clientX }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    go({ dim: Math.min(D - 1, Math.floor(((clientX - left) / width) * D)) });
  };
  return h('div', { class: 'strips', role: 'img', 'aria-label': said, data: { testid: 'strips', dim } },
    h('div', { class: 'names' }, titles.map((title, y) => h('span', { key: y }, title))),
    h('svg', { viewBox: `0 0 ${D} 3.5`, preserveAspectRatio: 'none', onclick: choose },
      rows.map((values, y) => [...values].map((value, i) => cell(value, i, y))),
      h('rect', { key: 'chosen', class: 'frame', x: dim, y: -0.1, width: 1, height: 3.7, stroke: accent })),
    h('div', { class: 'names' }, written.map((number, y) => h('b', { key: y }, number))));
}

// ---- Attention ----

function attentionPage() {
  const { block, head, edits } = state, at = position(), T = run.ids.length, own = weightsOf(run.now, block, head);
  const mine = own.subarray(at * T, at * T + at + 1), most = mine.reduce((best, weight, key) => (weight > mine[best] ? key : best), 0);
  const gives = [' gives its largest weight to ', most === at ? 'itself' : place(most), ': ',
    h('b', null, both((of) => weightsOf(of, block, head)[at * T + most], gv.weight)), '. '];
  const edit = `z.${block}.${head}=zero`, isOff = edits.includes(edit);
  const turned = () => go({ off: false, edits: isOff ? edits.filter((one) => one !== edit) : [...edits, edit] });
  const shows = panel('weights', {
    low: 0, high: 1, scale: 'attention', digits: 'weight', masked: true, column_axis: 'key', columns: T,
    label: 'Attention weights: rows are queries, columns are keys', says: '{query} attends {value} to {key}',
    says_masked: '{query} cannot see {key}, which comes later: the causal mask hides it.' });
  return [
    say('In ', h('b', null, `block ${block}, head ${head}`), ', ', place(at), mine.some((weight) => weight !== 0) ? gives : ' gives nothing. ',
      button(isOff ? 'Switch on again' : 'Switch off', turned, { 'aria-pressed': isOff, data: { testid: 'switch-head' } })),
    h('div', { class: 'two' },
      part('heads', { ...saved('All heads: where each looks', 'heads'), ...grid() }, (_, picked) => go(picked)),
      matrix('head', [shows], { weights: own }, {
        key: state.key !== null && state.key <= at ? state.key : most, largest: Math.max(300, innerHeight - 480),
        ...saved(`Attention of block ${block}, head ${head}`, `block${block}`, `head${head}`) })),
    how('Each row is a token that looks (its query), each column a token that is looked at (its key). A cell shows how much of the row\'s ',
      'attention goes there. Each row sums to 1', edits.some((one) => one.startsWith('attn')) ? ', unless a change scales it' : '',
      '. Cells right of the diagonal are masked: those tokens come later. Each small picture is a head. Click one to see it large. ',
      'If more than half of a head\'s attention goes to one place on average, a word says where: ', h('em', null, 'first'), ' (the first token), ',
      h('em', null, 'before'), ' (the token before) or ', h('em', null, 'itself'), '.', T === 1 ? ' Type a longer text to see heads differ.' : '')];
}

// What the component `heads` draws: every head's picture in one, and in a sentence where it looks on average.
function grid() {
  const T = run.ids.length, { n_layers, n_heads } = config, side = Math.min(T, 48), colors = gv.palette(mode());
  const canvas = Object.assign(document.createElement('canvas'), { width: n_heads * side, height: n_layers * side });
  const pixels = new ImageData(canvas.width, canvas.height), table = gv.colorTable(colors.attention), masked = gv.channels(colors.masked);
  const from = (i) => Math.floor((i * T) / side), longest = Math.max(...run.now.writes.flat()) || 1;
  const roles = Array.from({ length: n_layers }, (_, block) => Array.from({ length: n_heads }, (__, head) => {
    const own = weightsOf(run.now, block, head);
    for (let y = 0; y < side; y++)
      for (let x = 0; x < side; x++) {
        let most = 0;              // of the weights that a pixel stands for: what is strong stays visible
        for (let i = from(y); i < from(y + 1); i++)
          for (let j = from(x); j < from(x + 1); j++) most = Math.max(most, Math.min(1, own[i * T + j]));
        const at = 4 * ((block * side + y) * canvas.width + head * side + x);
        pixels.data.set([...(x > y ? masked : table[Math.round(255 * most)]), 255], at);
      }
    return thumbnail(own, block, head, longest);
  }));
  canvas.getContext('2d').putImageData(pixels, 0, 0);
  return { picture: canvas.toDataURL(), side, blocks: n_layers, heads: n_heads, roles, largest_write: longest, block: state.block, head: state.head };
}

function thumbnail(own, block, head, longest) {
  const T = run.ids.length, write = run.now.writes[block][head], was = run.was && weightsOf(run.was, block, head);
  const average = (of) => mean(Array.from({ length: T - 1 }, (_, i) => of((i + 1) * T, i + 1)));       // over the queries from 1 on
  const means = T === 1 ? { itself: 1 } : {
    first: average((from) => own[from]), before: average((from, q) => own[from + q - 1]), itself: average((from, q) => own[from + q]) };
  const [word] = Object.entries(means).find(([, share]) => share > 0.5) ?? [''];
  const looks = T === 1 ? 'It has only one token to look at.' : `On average it gives weight ${gv.weight(means.first)} to the first token, `
    + `${gv.weight(means.before)} to the token before and ${gv.weight(means.itself)} to the token itself.`;
  let says = `${looks} Bar: how much it adds to a token, a norm of ${gv.fixed(write, 1)} on average (the largest: ${gv.fixed(longest, 1)}).`;
  if (!was) return { kind: word || 'mixed', label: word, says, write };
  const apart = (from, q) => {                                          // gptviz.analysis.moved.total_variation
    const gained = Array.from(own.subarray(from, from + q + 1), (weight, i) => weight - was[from + i]), sum = (all) => all.reduce((a, b) => a + b, 0);
    return (sum(gained.map(Math.abs)) + Math.abs(sum(gained))) / 2;
  };
  const moved = T === 1 ? 0 : average(apart), mine = new RegExp(`^(q|k|v|attn|z)\\.(${block}|\\*)(\\.(\\d+[+ ])*${head}([+ ]\\d+)*)?[@=]`);
  const changed = state.edits.some((edit) => mine.test(edit));
  says += `${changed ? ' It is changed.' : ''} Its pattern moved by ${gv.significant(moved, 2)}.`;
  return { kind: word || 'mixed', label: word, says, write, changed, moved };
}

// ---- LayerNorm ----

const called = (name) => (name === 'final' ? 'the final norm' : name);

function layernormPage() {
  const names = Object.keys(run.now.norms), name = names.includes(state.norm) ? state.norm : 'final', D = config.emb_dim;
  const [, block, which] = /^block (\d+) · norm(\d)$/.exec(name) ?? [null, config.n_layers - 1, 'final'];
  const site = `${{ 1: 'resid_pre', 2: 'resid_mid', final: 'resid_post' }[which]}.${block}`;
  const stages = { before: (of) => of.sites[site].data, after: (of) => of.norms[name] };
  const own = (of, when) => stages[when](of).subarray(position() * D, (position() + 1) * D);
  const panels = Object.keys(stages).map((when) => {
    const limit = limitOf(stages[when](run.now));
    return dimensions(when, limit, {
      title: when, note: `full colour: ${gv.significant(limit)} or further from zero`, says: `Dimension {dim} of {query} ${when} ${called(name)} is {value}` });
  });
  const { verbs, reached, ending } = normSays(own(run.now, 'before'), own(run.now, 'after'), name);
  return [
    say(`LayerNorm ${verbs} the ${D} numbers of `, code(label()), ` ${reached}. ${ending}: in `,
      h('select', { 'aria-label': 'LayerNorm', value: name, onchange: (event) => go({ norm: event.target.value }) },
        names.map((one) => h('option', { value: one }, called(one)))),
      ', the variance ends at ', h('b', null, both((of) => variance(own(of, 'after')))), '.'),
    h('div', { class: 'spreads' }, Object.keys(stages).map((when) => histogram(when, name, own(run.now, when), run.was && own(run.was, when)))),
    matrix('norm', panels, Object.fromEntries(Object.entries(stages).map(([when, data]) => [when, data(run.now)])),
      { small: true, across: 2, ...saved(`Before and after ${name}`, name) }),
    how('Above: each bar counts the dimensions with about this value. Line: the mean. ', run.was ? 'Grey outline: the model before your change. ' : '',
      'Below: each row is a token, each column a dimension. LayerNorm subtracts the mean and divides by √(variance + eps); eps is a tiny ',
      `number, so that nothing is divided by zero. Then it multiplies each dimension by its own scale${config.norm_bias ? ', and adds its own shift' : ''}.`)];
}

// The words of pages/layernorm.py on one token: { verbs, reached, ending }.
function normSays(before, after, name) {
  const middle = mean(before), spread = variance(before), by = Math.sqrt(spread + config.norm_eps);
  const isFlat = spread / by ** 2 < 0.95, verbs = 'slides', how = by < 1 ? 'stretches' : 'squeezes';
  const reached = isFlat ? 'to mean zero; they differ too little for variance one' : `to mean zero and ${how} them to variance one`;
  const learned = config.norm_bias ? 'a scale and a shift' : 'a scale';
  const idle = [...after].every((value, i) => Math.abs(value - (before[i] - middle) / by) < 1e-4);
  if (name === 'final' && run.was && state.edits.some((edit) => /^final[@=]/.test(edit)))
    return { verbs, reached, ending: `Then it applies ${learned}, and your change edits the result` };
  return { verbs, reached, ending: `Then it applies ${learned}${idle ? ', without any effect' : ' that it has learned'}` };
}

// A token's numbers by size, those of the unchanged model as outlines in the same bins.
function histogram(when, name, values, was) {
  const BINS = 40, colors = gv.palette(mode()), all = [...values, ...(was ?? [])];
  const low = Math.min(...all), span = Math.max(...all) - low || 1, place_ = (value) => ((value - low) / span) * BINS;
  const counted = (of) => of.reduce((bins, value) => {
    bins[Math.min(BINS - 1, Math.floor(place_(value)))]++;
    return bins;
  }, Array.from({ length: BINS }, () => 0));
  const now = counted(values), before = was && was.some((value, i) => value !== values[i]) ? counted(was) : [];
  const most = Math.max(...now, ...before), middle = mean(values);
  const said = `${when}: mean ${Math.abs(middle) < 1e-6 ? '0' : gv.significant(middle)}, variance ${gv.significant(variance(values))}`;
  const bar = (height, x, key, paint) => h('rect', { key, x, y: 1 - height / most, width: 0.92, height: height / most, ...paint });
  return h('figure', { key: when },
    h('figcaption', null, said),
    h('svg', { viewBox: `0 0 ${BINS} 1`, preserveAspectRatio: 'none', role: 'img',
      'aria-label': `How the ${many(values.length, 'number')} of ${label()} are spread ${when} ${called(name)}. ${said}.` },
    now.map((height, i) => bar(height, i, i, { fill: when === 'after' ? colors.accent : colors.quiet })),
    before.map((height, i) => bar(height, i, `was-${i}`, { class: 'frame', stroke: colors.ghost })),
    h('line', { class: 'frame', x1: place_(middle), x2: place_(middle), y1: 0, y2: 1, stroke: colors.ink })),
    h('div', { class: 'ends' }, h('span', null, gv.significant(low)), h('span', null, gv.significant(low + span))));
}

// ---- Next token ----

const SHOWS = 10, probable = gv.probability;

// Logits by temperature: { order, p, scaled, logSum }; temperature 0 gives the largest everything.
function distribution(logits, temperature) {
  const order = [...logits.keys()].sort((a, b) => logits[b] - logits[a]);
  if (!temperature) return { order, scaled: logits, p: Float64Array.from(logits, (_, id) => (id === order[0] ? 1 : 0)) };
  const scaled = Float64Array.from(logits, (logit) => logit / temperature), most = scaled[order[0]];
  const total = scaled.reduce((all, one) => all + Math.exp(one - most), 0);
  return { order, scaled, p: scaled.map((one) => Math.exp(one - most) / total), logSum: most + Math.log(total) };
}

function nextPage() {
  const t = state.temperature, now = distribution(run.now.logits, t), was = run.was && distribution(run.was.logits, t);
  const own = t === 1 ? now : distribution(run.now.logits, 1), ids = now.order.slice(0, SHOWS);
  if (was && !ids.includes(was.order[0])) ids.push(was.order[0]);
  const rows = ids.map((id) => candidate(id, t, now, own, was));
  const heads = { rank: 'rank', token: 'token', logit: 'logit', scaled: `÷ ${t}`, ...(was ? { before: 'unchanged', p: 'changed' } : { p: 'probability' }) };
  const best = now.order[0], old = was ? was.order[0] : best, heat = t === 1 ? '' : ` at temperature ${gv.fixed(t, 2)}`;
  const odds = (id) => both((of) => distribution(of.logits, t).p[id], probable), last = position() === run.ids.length - 1;
  return [
    say('After ', place(position()), ', the ', was ? [h('b', null, 'changed'), ' '] : '', 'model finds ', code(shownOf(best)), ' most likely: probability ',
      h('b', null, old === best ? odds(best) : probable(now.p[best])), heat, '. ',
      old === best ? '' : ['Before your change, ', code(shownOf(old)), ' came first: ', h('b', null, odds(old)), '.']),
    h('label', { class: 'slider' }, `Temperature ${gv.fixed(t, 2)} `, h('input', {
      type: 'range', min: 0, max: 2, step: 0.05, value: t, 'aria-label': 'Temperature',
      oninput: (event) => go({ temperature: Number(event.target.value) }) })),
    part('candidates', { ...saved(`The most probable next tokens, at temperature ${gv.fixed(t, 2)}`), rows, rest: others(ids, now, own, was), heads, action: 'Append' },
      (_, id) => append(id)),
    how(`The model gives each of the ${V} tokens in its vocabulary a score, its logit. Softmax turns the scores into probabilities. Temperature `,
      'divides the logits first: below 1 the first token gains, above 1 it loses, at 0 it gets everything. ',
      was ? 'Grey outline: the model before your change. ' : '', !was && t !== 1 ? 'Dashed outline: the model at temperature 1. ' : '',
      last && run.ids.length < config.context_length ? 'Click + Append beside a token to add it to your text.' : '')];
}

// A row of the component `candidates`: figures/candidates.py's, without filters.
function candidate(id, t, now, own, was) {
  const at = position(), last = at === run.ids.length - 1, rank = now.order.indexOf(id) + 1, wasRank = was && was.order.indexOf(id) + 1;
  const logit = run.now.logits[id], scaled = gv.fixed(now.scaled[id], 2), p = probable(now.p[id]), ghost = was ? was.p[id] : t === 1 ? null : own.p[id];
  let said = `(rank ${rank.toLocaleString('en')}): logit ${gv.fixed(logit, 2)}`;
  if (t) {
    const sum = gv.fixed(now.logSum, 2), power = `e^(${scaled} ${now.logSum >= 0 ? `− ${sum}` : `+ ${sum.slice(1)}`})`;
    said += `${t === 1 ? '' : ` ÷ temperature ${t} = ${scaled}`}. Softmax: ${power} = ${p}, where ${sum} is the logarithm of the sum of e^x over all ${V} tokens.`;
  } else said += `, ${rank === 1 ? 'the largest: temperature 0 gives it everything' : 'not the largest'}. Probability ${p}.`;
  if (t !== 1) said += ` The ${was ? 'changed ' : ''}model itself gives it ${probable(own.p[id])}.`;
  if (was) said += ` Unchanged, it has ${probable(ghost)}, rank ${wasRank.toLocaleString('en')}.`;
  return {
    key: String(id), id, token: shownOf(id), rank, rank_text: rank.toLocaleString('en'), logit, logit_text: gv.fixed(logit, 2),
    scaled: now.scaled[id], scaled_text: t ? scaled : '', filter: 'kept', filter_text: '', probability: now.p[id], p_text: p,
    model_probability: own.p[id], ghost, ghost_text: was ? probable(ghost) : '', first: rank === 1, was_first: wasRank === 1 && rank > 1,
    out: false, rest: false, came: !last && id === run.ids[at + 1], whole: last && appends(id), sentence: said };
}

// The row of all tokens that have none, or null.
function others(ids, now, own, was) {
  const left = config.vocab_size - ids.length, many_ = left.toLocaleString('en');
  const share = (of) => of.p.reduce((total, p, id) => (ids.includes(id) ? total : total + p), 0);
  if (!left) return null;
  const unchanged = was ? ` Unchanged, these tokens share ${probable(share(was))}.` : '';
  return {
    key: 'rest', id: null, token: `${many_} other${left === 1 ? '' : 's'}`, rank: 0, rank_text: '', logit_text: '', scaled_text: '', filter: 'kept', filter_text: '',
    probability: share(now), model_probability: share(own), p_text: probable(share(now)), ghost: was ? share(was) : null,
    ghost_text: was ? probable(share(was)) : '', first: false, was_first: false, out: false, rest: true, came: false, whole: false,
    sentence: `The other ${many_} tokens of the vocabulary share ${probable(share(now))}.${unchanged}` };
}

const PAGES = {
  tokens: ['Tokens', tokensPage], embeddings: ['Embeddings', embeddingsPage], attention: ['Attention', attentionPage],
  layernorm: ['LayerNorm', layernormPage], next_token: ['Next token', nextPage] };

// ---- what stands on every page ----

const appends = (id) => run.ids.length < config.context_length && decoded(rawOf(id)).text !== undefined;

function chipsOf() {
  const { order: [top], p } = distribution(run.now.logits, 1), last = position() === run.ids.length - 1;
  return {
    tokens: run.ids.map((id) => ({ id, shown: shownOf(id) })), groups: sharing(run.ids.map(rawOf)), selected: position(), highlight: {},
    weights: null, shares: null, coloured: state.page === 'tokens', appends: appends(top),
    next: last ? { shown: shownOf(top), id: top, probability: p[top] } : null };
}

const chips = () => part('chips', chipsOf(), (event, value) => (event === 'append' ? append(value) : go({ token: value })));

function strip() {
  const { edits, off } = state, made = off ? 'off' : run.refusals.length ? 'refused' : 'made';
  if (!edits.length) return null;
  const listed = edits.map((text) => ({ text, says: inWords(text), state: made, note: '' }));
  return part('changes', { chips: listed, effect: run.was && effect(), off, notes: run.refusals.map((why) => [why]), ask: null }, (event, which) => {
    if (event === 'remove') return go({ edits: edits.filter((_, i) => i !== which) });
    return go({ switch: { off: !off }, undo: { edits: edits.slice(0, -1) }, clear: { edits: [] } }[which]);
  });
}

// "block 4 head 3 off"; other edits as they are written.
function inWords(text) {
  const [, block, heads] = /^z\.(\d+)\.([\d+ ]+)=zero$/.exec(text) ?? [], some = heads?.split(/[+ ]/);
  return some ? `block ${block} head${some.length > 1 ? 's' : ''} ${some.join(', ')} off` : text;
}

// What the changes did to the selected position's prediction, at temperature 1.
function effect() {
  const [was, now] = [run.was, run.now].map(({ logits }) => distribution(logits, 1)), token = was.order[0], top = now.order[0];
  const kl = Math.max(0, was.p.reduce((total, p, id) => total + (p ? p * Math.log2(p / now.p[id]) : 0), 0));
  return {
    after: label(), position: position(), token: shownOf(token), before: was.p[token], before_text: probable(was.p[token]),
    now: now.p[token], now_text: probable(now.p[token]), top: shownOf(top), top_now: now.p[top], top_text: probable(now.p[top]),
    kl, kl_text: gv.significant(kl, 2), nothing: run.now.logits.every((logit, id) => logit === run.was.logits[id]) };
}
