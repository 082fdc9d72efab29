// Attention between two lines of the text: the tokens that look on the left, those that are looked at on the
// right, a line a weight. What is pointed at keeps its lines, a click holds it, Escape lets go. Lines are on a
// canvas as large as the window onto them, and only those in sight are drawn. data: see __init__.py.

const SAID = 4;                  // tokens that the sentence names
const [LOWEST, HIGHEST] = [18, 30];   // pixels a row

function prepare({ data, state }) {
  if (state.data === data) return;
  const text = JSON.stringify([data.first, data.tokens]), place = JSON.stringify([data.block, data.head, data.heads.length]);
  if (state.text !== text) Object.assign(state, { held: new Set(), over: null });
  if (state.place !== place) state.on = new Set([data.head]);
  Object.assign(state, { data, text, place, kept: new Map(), mass: data.mass,
    weights: triangles(data.weights, data.heads.length, data.tokens.length) });
}

// The keys that each row of a head is drawn with; worked out when they are first drawn.
function rowsOf({ data, state }, head) {
  const name = `${head} ${state.mass}`;
  if (!state.kept.has(name))
    state.kept.set(name, data.tokens.map((_, query) => kept(state.weights[head], query, state.mass / 100)));
  return state.kept.get(name);
}

const focusOf = ({ state }) => (state.held.size ? state.held : state.over === null ? new Set() : new Set([state.over]));
const colorOf = ({ data }, head) => gv.palette(data.mode).heads[data.heads[head] % gv.palette(data.mode).heads.length];
const shownHeads = ({ state }) => [...state.on].sort((a, b) => a - b);

// Every line that is to be seen: { query, key, weight, color, strength }, the strongest last.
function linesOf(view) {
  const { data, state } = view, focus = focusOf(view), on = shownHeads(view), colors = gv.palette(data.mode), found = [];
  for (const head of on)
    rowsOf(view, head).forEach((keys, query) => {
      const rest = !focus.size, own = rest ? query === data.query - data.first : focus.has(query);
      for (const key of keys) {
        if (!rest && !own && !focus.has(key)) continue;
        const color = on.length > 1 ? colorOf(view, head) : own ? colors.query : rest ? colors.output : colors.key;
        found.push({ query, key, color, weight: weightOf(state.weights[head], query, key), strength: rest && !own ? 0.55 : 1 });
      }
    });
  return found.sort((a, b) => a.strength * a.weight - b.strength * b.weight);
}

const alphaOf = ({ weight, strength }) => strength * (0.1 + 0.9 * Math.min(1, weight));
const widthOf = ({ weight }) => 0.8 + 3.2 * Math.min(1, weight);

function drawLines(view) {
  const { root, state } = view, frame = root.querySelector('.frame'), canvas = frame.querySelector('canvas');
  const [width, height] = [canvas.clientWidth, frame.clientHeight], scale = window.devicePixelRatio || 1;
  if (!width) return;
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext('2d'), at = (i) => (i + 0.5) * state.row - frame.scrollTop;
  pen.scale(scale, scale);
  pen.lineCap = 'round';
  let drawn = 0;
  for (const line of state.lines) {
    const [from, to] = [at(line.query), at(line.key)];
    if (Math.max(from, to) < 0 || Math.min(from, to) > height) continue;
    Object.assign(pen, { strokeStyle: line.color, globalAlpha: alphaOf(line), lineWidth: widthOf(line) });
    pen.beginPath();
    pen.moveTo(0, from);
    pen.bezierCurveTo(width * 0.45, from, width * 0.55, to, width, to);
    pen.stroke();
    drawn += 1;
  }
  root.querySelector('.arcs').dataset.drawn = drawn;
}

// ---- what a person does ----

function point(view, position) {
  if (view.state.over === position) return;
  view.state.over = position;
  if (!view.state.held.size) view.redraw();
}

function hold(view, side, position, beside) {
  const { state, data } = view;
  state.held = held(state.held, position, beside || state.several);
  if (!state.held.size) state.over = null;
  view.redraw();
  if (state.held.has(position)) view.send('pick', { [side]: position + data.first });
}

function letGo(view) {
  Object.assign(view.state, { held: new Set(), over: null });
  view.redraw();
}

function setHeads(view, head, alone) {
  const { state, data } = view;
  state.on = switched(state.on, head, alone, data.heads.length);
  view.redraw();
  if (state.on.size === 1 && alone) view.send('head', data.heads[head]);
}

// Up and down along a line of text, left and right between the two; Escape lets go of what is held.
function keys(view, event) {
  if (event.key === 'Escape') return letGo(view);
  const token = event.target.closest('.token');
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key], to = { ArrowRight: 'key', ArrowLeft: 'query' }[event.key];
  if (!token || (!by && !to)) return;
  event.preventDefault();
  const next = event.currentTarget.querySelector(`[data-side="${to ?? token.dataset.side}"][data-position="${Number(token.dataset.position) + (by ?? 0)}"]`);
  next?.focus({ preventScroll: true });
  if (next) gv.reveal(event.currentTarget, next);
}

// ---- what there is ----

function token(view, side, position, sums) {
  const { data, state } = view, focus = focusOf(view), value = sums ? sums[side === 'key' ? 'out' : 'into'][position] : 0;
  const tint = { key: 'query', query: 'key' }[side], place = position + data.first;
  const lit = focus.has(position), chosen = place === (side === 'query' ? data.query : data.key);
  return gv.h('button', {
    key: position, type: 'button', tabindex: side === 'query' && position === Math.max(0, data.query - data.first) ? 0 : -1,
    class: ['token', side, lit && 'lit', chosen && 'chosen'].filter(Boolean).join(' '),
    style: { '--part': `${Math.round(70 * Math.min(1, value))}%`, '--tint': `var(--${tint})` },
    'aria-pressed': state.held.has(position), 'aria-label': `${data.tokens[position]}, position ${place}, ${data.words[side]}`,
    data: { testid: 'arc-token', side, position, value: sums ? value : undefined },
    onmouseenter: () => point(view, position), onfocus: () => point(view, position),
    onclick: (event) => hold(view, side, position, event.ctrlKey || event.metaKey || event.shiftKey),
  }, gv.h('span', { class: 'text' }, data.tokens[position]),
  value >= LEAST && gv.h('small', null, gv.weight(value)));
}

function headButtons(view) {
  const { data, state } = view;
  if (data.heads.length < 2) return null;
  return gv.h('div', { class: 'heads', role: 'group', 'aria-label': data.words.heads }, data.heads.map((number, head) => gv.h('button', {
    type: 'button', class: 'head', style: { '--own': colorOf(view, head) }, 'aria-pressed': state.on.has(head),
    title: `Head ${number}. ${data.words.heads}`, 'aria-label': `Head ${number}`, data: { testid: 'arc-head', head: number },
    onclick: (event) => setHeads(view, head, event.shiftKey), ondblclick: () => setHeads(view, head, true),
  }, String(number))));
}

function tools(view) {
  const { data, state } = view;
  return gv.h('div', { class: 'bar', data: { unsaved: '' } },
    headButtons(view),
    gv.h('label', { class: 'mass' }, data.words.mass, gv.h('input', {
      type: 'range', min: 0, max: data.masses.length - 1, step: 1, value: String(data.masses.indexOf(state.mass)), data: { testid: 'arc-mass' },
      oninput: (event) => { state.mass = data.masses[Number(event.target.value)]; view.redraw(); },
      onchange: () => view.send('mass', state.mass) }), gv.h('b', null, `${state.mass} %`)),
    gv.h('button', { type: 'button', class: 'several', 'aria-pressed': Boolean(state.several), title: data.words.several_help, data: { testid: 'arc-several' },
      onclick: () => { state.several = !state.several; view.redraw(); } }, data.words.several));
}

// Pieces of text and code in turn, as gv.prose wants them.
function sentence(view, sums) {
  const { data } = view, focus = [...focusOf(view)].sort((a, b) => a - b), on = shownHeads(view).map((head) => data.heads[head]);
  if (!focus.length) return [data.words.rest];
  const pieces = [], again = (i) => data.tokens.indexOf(data.tokens[i]) !== data.tokens.lastIndexOf(data.tokens[i]);
  const say = (text) => { if (pieces.length % 2) pieces[pieces.length - 1] += text; else pieces.push(text); };
  const list = (values) => largest(values, SAID).forEach(([i, value], n) => {
    say(n ? ', ' : ' ');
    pieces.push(data.tokens[i]);
    say(`${again(i) ? ` (${i + data.first})` : ''} ${gv.weight(value)}`);
  });
  say(on.length > 1 ? `${data.words.mean} ${on.join(', ')}: ` : '');
  focus.slice(0, SAID).forEach((p, n) => { say(n ? ' + ' : ''); pieces.push(data.tokens[p]); });
  say(focus.length > SAID ? ` + ${focus.length - SAID}` : focus.length > 1 ? '' : ` (position ${focus[0] + data.first})`);
  say(` ${focus.length > 1 ? data.words.look : data.words.looks}`);
  list(sums.out);
  if (largest(sums.into, 1).length) {
    say(`; ${focus.length > 1 ? data.words.looked_at_together : data.words.looked_at}`);
    list(sums.into);
  }
  say('.');
  return pieces;
}

function pictureOf(view) {
  const { data, root, state } = view, colors = gv.palette(data.mode), frame = root.querySelector('.frame').getBoundingClientRect();
  const [left, right] = ['.left', '.right'].map((side) => root.querySelector(side).getBoundingClientRect());
  const [x0, x1] = [left.right - frame.left + 6, right.left - frame.left - 6], y = (i) => (i + 0.5) * state.row + 26;
  const [bend, back] = [x0 + (x1 - x0) * 0.45, x0 + (x1 - x0) * 0.55];
  const parts = state.lines.map((line) => `<path d="M${x0} ${y(line.query)}C${bend} ${y(line.query)} ${back} ${y(line.key)} ${x1} ${y(line.key)}"`
    + ` fill="none" stroke="${line.color}" stroke-opacity="${alphaOf(line).toFixed(3)}" stroke-width="${widthOf(line).toFixed(2)}" stroke-linecap="round"/>`);
  parts.push(gv.svgText(x0 - 8, 16, data.words.query, { anchor: 'end', color: colors.query, weight: 650 }),
    gv.svgText(x1 + 8, 16, data.words.key, { color: colors.key, weight: 650 }));
  data.tokens.forEach((text, i) => parts.push(gv.svgText(x0 - 8, y(i) + 4, text, { anchor: 'end', color: colors.ink, size: 13 }),
    gv.svgText(x1 + 8, y(i) + 4, text, { color: colors.ink, size: 13 })));
  return gv.svgFile(Math.ceil(frame.width), Math.ceil(y(data.tokens.length) + 8), colors.paper, parts);
}

export default gv.component((view) => {
  prepare(view);
  const { data, state } = view, focus = focusOf(view), count = data.tokens.length;
  const unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  state.row = Math.max(LOWEST, Math.min(HIGHEST, Math.floor(data.height / count))) * unit;
  state.lines = linesOf(view);
  const sums = focus.size ? totals(shownHeads(view).map((head) => state.weights[head]), focus, count) : null;
  const column = (name, side) => gv.h('div', { class: `column ${name}` }, data.tokens.map((_, position) => token(view, side, position, sums)));
  const said = sentence(view, sums), longest = [data.words.rest, ' '.repeat(160)];
  return gv.h('div', { class: 'arcs', style: { '--row': `${state.row}px` }, onkeydown: (event) => { if (event.key === 'Escape') letGo(view); },
    data: { testid: `arcs-${data.name}`, lines: state.lines.length, heads: shownHeads(view).map((head) => data.heads[head]).join(','),
      focus: [...focus].sort((a, b) => a - b).map((p) => p + data.first).join(','), held: state.held.size } },
  tools(view),
  gv.h('div', { class: 'names' }, gv.h('span', { class: 'query' }, data.words.query), gv.h('span', { class: 'key' }, data.words.key)),
  gv.h('div', { class: 'frame', onscroll: () => drawLines(view), onmouseleave: () => point(view, null), onkeydown: (event) => keys(view, event) },
    gv.h('div', { class: 'two' }, column('left', 'query'), gv.h('div', { class: 'between' }, gv.h('canvas', null)), column('right', 'key'))),
  gv.h('div', { class: 'foot' },
    gv.reserving([[data.words.rest], longest], gv.h('p', { class: 'says', 'aria-live': 'polite', data: { testid: `arcs-says-${data.name}` } }, gv.prose(said))),
    gv.saveButtons(() => pictureOf(view), { ...data.saved, lines: [...data.saved.lines, ...focus.size ? [said.join('')] : []] })));
}, (view) => {
  const { root, state, data } = view, frame = root.querySelector('.frame');
  const shown = JSON.stringify([data.query, state.text]);
  const chosen = frame.querySelector('.query.chosen');
  if (chosen && state.shown !== shown) gv.reveal(frame, chosen);
  state.shown = shown;
  drawLines(view);
  state.observer?.disconnect();
  state.observer = new ResizeObserver(() => drawLines(view));
  state.observer.observe(frame);
  state.end = () => state.observer.disconnect();
});
