// One token's numbers as bricks on one axis, from stop to stop of a norm. Columns, sentences and what of the axis
// is in sight come from Python (figures/norms.py); between two stops everything is part of the way from the one to the other.

// The stop at which it rests, behind the division and before what was learned changes it again: the last but one.
const shownOf = (stops) => stops.length - 2;
const MOVE = 600, REST = 700;      // ms: of a beat, and before the next one begins
const PLOT = 12.5, LINE = 1.35, BELOW = 4.3, NARROW = 45;      // in em: the bricks' room, a line above it, the axis below it; what is narrow

const mix = (a, b, share) => a + (b - a) * share;
const eased = (share) => share * share * (3 - 2 * share);
const clamped = (x) => Math.max(0, Math.min(1, x));
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;

const read = (stop) => ({ ...stop, values: new Float32Array(bytes(stop.values.base64)), bins: new Uint16Array(bytes(stop.bins)), slots: new Uint16Array(bytes(stop.slots)) });

// ---- where everything is at a moment ----

const length = ([low, high]) => high - low;
const zooms = (a, b) => a.axis[0] !== b.axis[0] || a.axis[1] !== b.axis[1];
const lasts = (a, b) => (zooms(a, b) ? 2 * MOVE : MOVE);

// The axis part of the way between two; 0 is inside of both, and each end moves by the same factor in the same time.
const between = (a, b, share) => a.map((end, i) => Math.sign(end) * Math.exp(mix(Math.log(Math.abs(end)), Math.log(Math.abs(b[i])), share)));

// At rest it is a stop. Where the axis is zoomed too, the numbers move while the wider one is in sight: so both are seen.
function momentOf({ stops, at, move }) {
  if (!move) return { a: stops[at], b: stops[at], share: 0, axis: stops[at].axis };
  const [a, b] = [stops[move.from], stops[move.to]], two = zooms(a, b), wide = length(a.axis) > length(b.axis);
  const part = (late) => eased(clamped(move.time / MOVE - (two && late ? 1 : 0)));
  return { a, b, share: part(!wide), axis: two ? between(a.axis, b.axis, part(wide)) : a.axis };
}

// Of numbers that are part of the way: their mean, and the middle and half the width of the band: mean and standard
// deviation, or of a norm that does not centre them 0 and the root of the mean square.
function momentsOf(values, centred) {
  const mean = values.reduce((sum, v) => sum + v, 0) / values.length, middle = centred ? mean : 0;
  return [mean, middle, Math.sqrt(values.reduce((sum, v) => sum + (v - middle) ** 2, 0) / values.length)];
}

// Round numbers of an axis, about `count` of them.
function ticksOf([low, high], count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= rough), out = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) out.push(i * step);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), plain = decimals <= 4 && Math.abs(high) < 1e6 && Math.abs(low) < 1e6;
  return out.map((value) => [value, plain ? gv.fixed(value, decimals) : gv.significant(value, 2)]);
}

// ---- the picture ----

function drawing(view) {
  const { data, state, root } = view, { a, b, share, axis } = momentOf(state), rests = !state.move;
  const colors = gv.palette(data.mode), em = parseFloat(getComputedStyle(root).fontSize), width = Math.max(260, Math.round(root.clientWidth));
  const ghosts = state.stops.some(({ ghost }) => ghost), top = (ghosts ? 3 : 2) * LINE * em + 0.9 * em, base = top + PLOT * em, height = base + (width < NARROW * em ? BELOW + LINE : BELOW) * em;
  const x = (value) => ((value - axis[0]) / length(axis)) * width, size = 0.9 * em;
  const values = a.values.map((v, i) => mix(v, b.values[i], share)), centred = data.centred !== false, [average, mean, deviation] = momentsOf(values, centred);
  const column = mix(a.width, b.width, share) * (width / length(axis)), wide = Math.max(0.75, column * (column > 4 ? 0.9 : 1));
  const tall = Math.min(1.2 * em, (PLOT * em) / Math.max(1, mix(a.tallest, b.tallest, share))), gap = tall > 4 ? 1 : 0;
  const middle = (stop, i) => stop.low + (stop.bins[i] + 0.5) * stop.width;
  const brick = (i) => {
    const left = x(mix(middle(a, i), middle(b, i), share)) - wide / 2, slot = mix(a.slots[i], b.slots[i], share);
    return `M${left.toFixed(2)} ${(base - slot * tall).toFixed(2)}h${wide.toFixed(2)}v${(gap - tall).toFixed(2)}h${(-wide).toFixed(2)}z`;
  };
  const all = Array.from(values, (_, i) => (i === data.dimension ? '' : brick(i))).join('');
  const text = (at, y, said, more = {}) => gv.h('text', { x: at, y, 'font-size': size, fill: colors.ink, 'text-anchor': 'middle', ...more }, said);
  const inside = (at, said, letters = size) => { const half = said.length * letters * 0.26; return Math.max(half, Math.min(width - half, at)); };
  const line = (x0, y0, x1, y1, more) => gv.h('line', { x1: x0, y1: y0, x2: x1, y2: y1, ...more });
  const heads = rests ? [[a.told[0], 650], [a.told[1], 650], ...(a.ghost ? [[a.ghost.told, 400]] : [])] : [];
  const aim = [Math.max(0, x(-1)), Math.min(width, x(1))], aimed = centred ? AIM : AIM_AROUND_0, other = state.stops.find((stop) => zooms(stop, a));
  const zoomed = rests && other ? length(other.axis) / length(a.axis) : 0, below = width < NARROW * em ? 5.1 : 3.8;
  const mark = x(values[data.dimension]), old = a.ghost ? x(a.ghost.mark) : mark, room = 0.47 * 0.85 * em * a.mark.length + em;
  const right = (old < mark || (old === mark && mark < width / 2) ? mark + room < width : Math.min(mark, old) < room), side = right ? Math.max : Math.min;
  const beside = side(mark, Math.abs(old - mark) < room ? old : mark) + (right ? 0.7 : -0.7) * em;
  return gv.h('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': data.alt, data: { testid: 'spread-picture', mean, deviation, low: axis[0], high: axis[1] } },
    gv.h('clipPath', { id: 'plot' }, gv.h('rect', { x: 0, y: 0, width, height: base + 1.2 * em })),
    gv.h('g', { 'clip-path': 'url(#plot)' },
      gv.h('rect', { x: x(mean - deviation), y: top, width: Math.max(1, x(mean + deviation) - x(mean - deviation)), height: base - top, fill: colors.accent, 'fill-opacity': 0.15 }),
      gv.h('path', { d: all, fill: colors.quiet, 'fill-opacity': ghosts ? 0.6 : 0.85 }),
      gv.h('path', { d: brick(data.dimension), fill: colors.positive }),
      ghosts ? ghostOf({ a, b, share, x, base, tall, em, colors }) : null,
      centred ? null : line(x(average), top, x(average), base, { stroke: colors.ink, 'stroke-width': 1.5, 'stroke-dasharray': '4 4' }),
      line(x(mean), top - 0.4 * em, x(mean), base, { stroke: colors.ink, 'stroke-width': 2 }),
      gv.h('path', { d: bracket(x(mean), x(mean + deviation), top - 0.4 * em, 0.3 * em), fill: 'none', stroke: colors.accent, 'stroke-width': 2 }),
      gv.h('path', { d: triangle(mark, base + 1, em), fill: colors.positive })),
    heads.map(([said, weight], i) => text(inside(x(mean), said), (i + 0.9) * LINE * em, said, { 'font-weight': weight, fill: i > 1 ? colors.quiet : colors.ink })),
    line(0, base, width, base, { stroke: colors.quiet, 'stroke-width': 1 }),
    rests ? text(beside, base + 0.85 * em, a.mark, { 'text-anchor': right ? 'start' : 'end', 'font-size': 0.85 * em }) : null,
    ticksOf(axis, Math.max(3, Math.min(9, width / (5.5 * em)))).map(([value, said]) => text(inside(x(value), said), base + 2.1 * em, said, { fill: colors.quiet })),
    gv.h('rect', { x: aim[0], y: base + 2.55 * em, width: Math.max(2, aim[1] - aim[0]), height: 0.3 * em, fill: colors.accent }),
    text(inside(x(0), aimed), base + 3.8 * em, aimed, { fill: colors.accent }),
    zoomed > 1 ? text(width, base + below * em, `axis zoomed in ${gv.significant(zoomed, 2)} times`, { 'text-anchor': 'end', fill: colors.quiet, 'font-style': 'italic' }) : null);
}

const AIM = 'the aim of steps 2 and 3: mean 0, standard deviation 1';
const AIM_AROUND_0 = 'the aim of step 2: root mean square 1';
const bracket = (from, to, y, half) => `M${from} ${y - half}V${y + half}M${from} ${y}H${to}M${to} ${y - half}V${y + half}`;
const triangle = (at, y, em) => `M${at} ${y}l${0.42 * em} ${0.8 * em}h${-0.84 * em}z`;

// The unchanged model's columns as an outline, and an open mark below its chosen dimension.
function ghostOf({ a, b, share, x, base, tall, em, colors }) {
  const [from, to] = [a.ghost, b.ghost];
  const low = mix(a.low, b.low, share), step = mix(a.width, b.width, share);
  const stairs = from.counts.map((count, i) => `V${base - mix(count, to.counts[i], share) * tall}H${x(low + (i + 1) * step)}`);
  return [
    gv.h('path', { d: `M${x(low)} ${base}${stairs.join('')}V${base}`, fill: 'none', stroke: colors.ghost, 'stroke-width': 2 }),
    gv.h('path', { d: triangle(x(mix(from.mark, to.mark, share)), base + 1, em), fill: 'none', stroke: colors.ghost, 'stroke-width': 1.5 })];
}

// ---- from stop to stop ----

function halt({ state }) {
  clearTimeout(state.tick);
  cancelAnimationFrame(state.frame);
  Object.assign(state, { move: null, playing: false });
}

// What is chosen while something moves is there at once; nothing moves where that is not wanted.
function go(view, to) {
  const { state } = view, moves = !state.move && !gv.still() && to !== state.at, { playing } = state;
  halt(view);
  if (!moves) {
    state.at = to;
    return view.redraw();
  }
  Object.assign(state, { playing, move: { from: state.at, to, time: 0 } });
  const since = performance.now(), frame = (now) => {
    state.move.time = now - since;
    if (state.move.time >= lasts(state.stops[state.move.from], state.stops[to])) return arrive(state.view, to);
    state.view.redraw();
    state.frame = requestAnimationFrame(frame);
  };
  view.redraw();
  state.frame = requestAnimationFrame(frame);
}

function arrive(view, to) {
  const { state } = view, more = to < state.until;
  Object.assign(state, { at: to, move: null, playing: state.playing && more });
  if (state.playing) state.tick = setTimeout(() => go(state.view, to + 1), REST);
  view.redraw();
}

// From the stop where it is, or from the first again, to the last, or as far as is wanted.
function play(view, until = view.state.stops.length - 1) {
  const { state } = view;
  if (state.playing) {
    const to = state.move?.to ?? state.at;
    halt(view);
    state.at = to;
    return view.redraw();
  }
  halt(view);
  if (state.at + 1 === state.stops.length) state.at = 0;
  if (gv.still()) return go(view, state.at + 1);
  Object.assign(state, { playing: true, until });
  state.tick = setTimeout(() => go(state.view, state.at + 1), REST);
  return view.redraw();
}

function choose(view, to) {
  view.state.playing = false;
  go(view, to);
}

// ---- all of it ----

export default gv.component((view) => {
  const { data, state, root } = view;
  if (state.source !== data) {
    halt(view);
    Object.assign(state, { source: data, stops: data.stops.map(read) });
    state.at = Math.min(state.at ?? shownOf(state.stops), state.stops.length - 1);      // another model may have a stop less
  }
  state.view = view;
  const at = state.move?.to ?? state.at, [sign, said] = state.playing ? ['❚❚', 'stop'] : ['▶', 'play'];
  return gv.h('div', { class: 'spread', data: { testid: 'spread', at, moves: Boolean(state.move), playing: Boolean(state.playing), played: state.played ?? 0 } },
    gv.h('div', { class: 'player', role: 'group', 'aria-label': data.centred === false ? 'RMSNorm in two steps' : 'LayerNorm in three steps', data: { unsaved: '' } },
      gv.h('button', { type: 'button', class: 'how', onclick: () => play(state.view), data: { testid: 'spread-play' } }, `${sign} ${said}`),
      gv.h('div', { class: 'stops', role: 'group', 'aria-label': 'The stops; arrow keys walk', data: { walk: '.stop' } }, data.stops.map(({ name }, i) => gv.h('button', {
        type: 'button', class: 'stop', 'aria-pressed': i === at, onclick: () => choose(state.view, i), data: { testid: 'spread-stop', stop: i } }, `${i + 1} ${name}`)))),
    gv.reserving(data.stops.map(({ says }) => [says]),
      gv.h('p', { class: 'says', 'aria-live': state.playing ? 'off' : 'polite', data: { testid: 'spread-says' } }, data.stops[at].says)),
    drawing(view),
    gv.saveButtons(() => gv.svgOfElements(root.querySelector('.spread')), data.saved));
}, (view) => {
  const { state, root } = view;
  if (state.watch) return;
  state.watch = gv.atOtherWidth(root, () => state.view.redraw());
  state.end = () => { state.watch.disconnect(); halt(state.view); };
  state.played = 1;
  if (gv.still()) return;
  state.at = 0;
  play(view, shownOf(state.stops));      // by itself, once
});
