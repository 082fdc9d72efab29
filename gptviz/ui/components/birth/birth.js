// A recorded training: one head's attention, its score and the loss. A frame is a recorded step, and nothing is drawn
// between two; so it plays, and stands still where no motion is wanted.

const LASTS = 8000, FRAME = 200, FIRST = 900;      // ms: the whole film, a frame at most, and the first one
const NARROW = 42, LINE = 1.45;       // in em: what is narrow, a line of text
const MAP = 26;                       // in em: a side of the map, at most

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const last = ({ data }) => data.steps.length - 1;

// ---- the map: rows look, columns are looked at ----

function map({ data, state, colors, em }, left, top, side) {
  const count = data.tokens.length, cell = side / count, from = state.at * (count * (count + 1)) / 2, out = [];
  const box = (row, column, more) => gv.h('rect', { x: left + column * cell, y: top + row * cell, width: cell, height: cell, ...more });
  for (let row = 0, i = 0; row < count; row++)
    for (let column = 0; column <= row; column++, i++) out.push(box(row, column, { fill: state.shades[state.weights[from + i]] }));
  for (let row = data.period; row < count; row++)
    out.push(box(row, row - data.period + 1, { fill: 'none', stroke: colors.ink, 'stroke-width': 1, 'stroke-opacity': 0.75 }));
  const size = Math.min(0.8 * em, 0.95 * cell), letters = [];
  data.tokens.forEach((shown, i) => {
    const style = { 'font-size': size, fill: colors.ink, 'font-family': 'var(--st-code-font)', 'text-anchor': 'middle' };
    letters.push(gv.h('text', { x: left - 0.75 * em, y: top + (i + 0.5) * cell + 0.35 * size, ...style }, shown),
      gv.h('text', { x: left + (i + 0.5) * cell, y: top - 0.4 * em, ...style }, shown));
  });
  return [
    gv.h('path', { d: `M${left} ${top}${data.tokens.map(() => `h${cell}v${cell}`).join('')}H${left}Z`, fill: 'none', stroke: colors.grid, 'stroke-width': 2 }),
    gv.h('g', { 'shape-rendering': 'crispEdges' }, out), letters, key({ colors, em }, left + side, top + 0.6 * em, cell)];
}

// What is seen, in the corner that the causal mask leaves empty.
function key({ colors, em }, right, top, cell) {
  const said = (line, words, fill = colors.ink) => gv.h('text', { x: right, y: top + line * LINE * em, 'text-anchor': 'end', 'font-size': 0.9 * em, fill }, words);
  const wide = 6 * em, y = top + 1.9 * LINE * em;
  return [
    said(1, 'a row: where that letter looks'),
    gv.h('linearGradient', { id: 'birth-scale' }, colors.attention.map(([offset, color]) => gv.h('stop', { offset, 'stop-color': color }))),
    gv.h('rect', { x: right - wide - 1.6 * em, y: y - 0.55 * em, width: wide, height: 0.8 * em, fill: 'url(#birth-scale)', stroke: colors.grid }),
    said(2, '1'), gv.h('text', { x: right - wide - 2 * em, y: top + 2 * LINE * em, 'text-anchor': 'end', 'font-size': 0.9 * em, fill: colors.ink }, 'attention 0'),
    gv.h('rect', { x: right - cell, y: top + 3 * LINE * em - 0.75 * em, width: cell, height: cell, fill: 'none', stroke: colors.ink }),
    gv.h('text', { x: right - cell - 0.5 * em, y: top + 3 * LINE * em, 'text-anchor': 'end', 'font-size': 0.9 * em, fill: colors.ink }, 'what came next last time')];
}

// ---- a curve: what was measured until this step, and faintly the rest ----

function curve({ data, state, colors, em }, box, { title, values, low, high, color, ticks, levels = [] }) {
  const { left, top, width, height } = box, end = data.steps.at(-1);
  const x = (step) => left + (step / end) * width, y = (value) => top + (1 - (value - low) / (high - low)) * height;
  const path = (to) => `M${data.steps.slice(0, to + 1).map((step, i) => `${x(step).toFixed(1)} ${y(values[i]).toFixed(1)}`).join('L')}`;
  const small = { 'font-size': 0.85 * em, fill: colors.quiet }, now = x(data.steps[state.at]);
  return [
    gv.h('text', { x: left, y: top - 0.7 * em, 'font-size': em, 'font-weight': 650, fill: color }, title),
    ticks.map((value) => [
      gv.h('line', { x1: left, x2: left + width, y1: y(value), y2: y(value), stroke: colors.grid }),
      gv.h('text', { x: left - 0.5 * em, y: y(value) + 0.3 * em, 'text-anchor': 'end', ...small }, `${value}`)]),
    levels.map(([name, value, below]) => [
      gv.h('line', { x1: left, x2: left + width, y1: y(value), y2: y(value), stroke: colors.quiet, 'stroke-dasharray': '6 4' }),
      gv.h('text', { x: left + width, y: y(value) + (below ? 1.05 : -0.35) * em, 'text-anchor': 'end', ...small }, name)]),
    gv.h('line', { x1: x(data.after), x2: x(data.after), y1: top, y2: top + height, stroke: colors.quiet, 'stroke-width': 1.5 }),
    gv.h('path', { d: path(last({ data })), fill: 'none', stroke: color, 'stroke-width': 2, 'stroke-opacity': 0.25 }),
    gv.h('path', { d: path(state.at), fill: 'none', stroke: color, 'stroke-width': 3, 'stroke-linejoin': 'round' }),
    gv.h('line', { x1: now, x2: now, y1: top, y2: top + height, stroke: colors.ink, 'stroke-dasharray': '2 3' }),
    gv.h('circle', { cx: now, cy: y(values[state.at]), r: 0.35 * em, fill: color })];
}

// ---- the picture ----

function drawing(view) {
  const { data, state, root } = view, colors = gv.palette(data.mode), em = parseFloat(getComputedStyle(root).fontSize);
  const width = Math.max(280, Math.round(root.clientWidth)), wide = width >= NARROW * em, drawn = { data, state, colors, em };
  const left = 1.6 * em, top = 2.9 * em, side = Math.min(wide ? 0.5 * width - left : width - left - 2, MAP * em);
  const score = data.scores[state.at], loss = data.losses[state.at], highest = Math.max(...data.losses, ...data.levels.map(([, nats]) => nats));
  const begin = wide ? left + side + 4.6 * em : 2.6 * em, room = width - begin - 0.6 * em, high = wide ? (side - 6.4 * em) / 2 : 7 * em;
  const first = wide ? top + 0.4 * em : top + side + 3 * em, second = first + high + 3.4 * em, base = second + high;
  const x = (step) => begin + (step / data.steps.at(-1)) * room, born = x(data.after);
  const ticks = data.steps.filter((step) => step % 200 === 0 && Math.abs(x(step) - born) > 2.6 * em);
  const said = (at, y, words, more = {}) => gv.h('text', { x: at, y, 'font-size': 0.85 * em, fill: colors.quiet, 'text-anchor': 'middle', ...more }, words);
  return gv.h('svg', { viewBox: `0 0 ${width} ${(wide ? Math.max(base + 3.9 * em, top + side + 0.5 * em) : base + 3.9 * em).toFixed(1)}`, role: 'img', 'aria-label': data.alt, onclick: () => halted(state.view),
    data: { testid: 'birth-picture', step: data.steps[state.at], score, loss } },
  said(left, em, 'the letter that is looked at →', { 'text-anchor': 'start' }),
  map(drawn, left, top, side),
  curve(drawn, { left: begin, top: first, width: room, height: high }, {
    title: `This head's induction score: ${gv.fixed(score, 2)}`, values: data.scores, low: 0, high: 1, color: state.accent, ticks: [0, 0.5, 1] }),
  curve(drawn, { left: begin, top: second, width: room, height: high }, {
    title: `The model's loss: ${gv.fixed(loss, 2)} nats per token`, values: data.losses, low: 0, high: 1.12 * highest, color: colors.ink,
    ticks: [0, 2, 4].filter((value) => value < 1.12 * highest), levels: data.levels.map(([name, nats], i) => [name, nats, i > 0]) }),
  ticks.map((step) => said(x(step), base + 1.2 * em, `${step}`)),
  said(born, base + 1.2 * em, `${data.after}`, { fill: colors.ink, 'font-weight': 650 }),
  said(begin + room / 2, base + 2.6 * em, 'steps of training'));
}

// ---- from frame to frame ----

function halt({ state }) {
  clearTimeout(state.tick);
  state.playing = false;
}

function halted(view) {
  if (!view.state.playing) return;
  halt(view);
  view.redraw();
}

function go(view, to) {
  halt(view);
  view.state.at = to;
  view.redraw();
}

function play(view) {
  const { state } = view;
  if (state.at === last(view)) state.at = 0;
  state.playing = true;
  const frame = Math.min(FRAME, LASTS / last(view));
  const next = () => {
    const { state: now } = state.view;
    now.at += 1;
    now.playing = now.at < last(state.view);
    if (now.playing) now.tick = setTimeout(next, frame);
    state.view.redraw();
  };
  state.tick = setTimeout(next, state.at ? frame : FIRST);
  view.redraw();
}

// Where no motion is wanted a press goes on by one point.
function press(view) {
  const { state } = view;
  if (state.playing) return halted(view);
  if (gv.still()) return go(view, state.at === last(view) ? 0 : state.at + 1);
  return play(view);
}

export default gv.component((view) => {
  const { data, state, root } = view;
  state.view = view;
  if (state.source !== data.weights) {
    halt(view);
    Object.assign(state, { source: data.weights, weights: bytes(data.weights), at: gv.still() ? last(view) : 0 });
  }
  const colors = gv.palette(data.mode);
  state.accent = `rgb(${gv.colorAt(colors.attention, 0.7).join(',')})`;
  state.shades = Array.from({ length: 101 }, (_, i) => `rgb(${gv.colorAt(colors.attention, i / 100).join(',')})`);
  const step = data.steps[state.at], [sign, said] = state.playing ? ['❚❚', 'stop'] : ['▶', 'play'];
  return gv.h('div', { class: 'birth', data: { testid: 'birth', at: state.at, step, playing: Boolean(state.playing), played: state.played ?? 0 } },
    gv.h('div', { class: 'player', role: 'group', 'aria-label': 'The recorded training, step by step', data: { unsaved: '' } },
      gv.h('button', { type: 'button', onclick: () => press(state.view), data: { testid: 'birth-play' } }, `${sign} ${said}`),
      gv.h('input', { type: 'range', min: 0, max: last(view), step: 1, value: state.at, 'aria-label': 'Step of the recorded training',
        'aria-valuetext': `step ${step}`, oninput: (event) => go(state.view, Number(event.target.value)), data: { testid: 'birth-slider' } }),
      gv.h('span', { class: 'step' }, `step ${step} of ${data.steps.at(-1)}`)),
    drawing(view),
    gv.saveButtons(() => gv.svgOfElements(root.querySelector('.birth')), data.saved));
}, (view) => {
  const { state, root } = view;
  if (state.watch) return;
  state.watch = gv.atOtherWidth(root, () => state.view.redraw());
  state.end = () => { state.watch.disconnect(); halt(state.view); };
  state.played = 1;
  if (!gv.still()) play(view);      // by itself, once
});
