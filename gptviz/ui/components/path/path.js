// A token's residual stream as a path in a half-plane: across, how far it lies along where it ends; up, how far from that.
// The scale is the same both ways: distances from the corner are norms, and angles to the floor are angles to the end.

const STEP = 250, WHOLE = 6000;      // ms: of one step, and of all steps of a deep model
const NARROW = 30;                   // in em: what is narrow
const HEAD = 13;                     // pixels of an arrow's head

const mix = (a, b, share) => a + (b - a) * share;
const between = ([x0, y0], [x1, y1], share) => [mix(x0, x1, share), mix(y0, y1, share)];
const far = ([x0, y0], [x1, y1]) => Math.hypot(x1 - x0, y1 - y0);
const partOf = (step) => step % 2;

// Every arrow, tail and tip: the embedding's from the corner, then one for each step.
const arrowsOf = ({ stops, tips }) => [[[0, 0], stops[0]], ...tips.map((tip, s) => [stops[s], tip])];

// ---- where it is drawn ----

// A round number of which about `count` fit into `length`.
function round(length, count) {
  const power = 10 ** Math.floor(Math.log10(length / count));
  return [1, 2, 5, 10].map((k) => k * power).find((size) => size >= length / count);
}

function frameOf(view) {
  const { data, root } = view, em = parseFloat(getComputedStyle(root).fontSize);
  const all = [[0, 0], ...data.stops, ...data.tips, ...(data.was ?? [])];
  const xs = all.map(([x]) => x), low = Math.min(...xs), high = Math.max(...xs, 0), top = Math.max(...all.map(([, y]) => y));
  const wide = root.querySelector('.path svg')?.clientWidth || Math.round(root.clientWidth * (root.clientWidth < 640 ? 1 : 0.7)), width = Math.max(260, wide);
  const tall = Math.max(300, Math.min(width < NARROW * em ? 380 : 470, innerHeight - 420)), pad = { left: 1.6 * em, right: 1.2 * em, top: 2.4 * em, bottom: 3.4 * em };
  const room = [width - pad.left - pad.right, tall - pad.top - pad.bottom], scale = Math.min(room[0] / (high - low || 1), room[1] / (top || 1));
  const height = pad.top + pad.bottom + Math.max(5 * em, Math.min(room[1], top * scale)), floor = height - pad.bottom, corner = pad.left - low * scale;
  return { em, width, height, floor, corner, scale, pad, at: ([x, y]) => [corner + x * scale, floor - y * scale] };
}

// Points of an arrow, some pixels apart.
function along([tail, tip]) {
  const parts = Math.max(1, Math.ceil(far(tail, tip) / 6));
  return Array.from({ length: parts + 1 }, (_, i) => between(tail, tip, i / parts));
}

// A place for words beside a point: where they cover the least of what is drawn already. `taken` has boxes and points.
function placed(frame, [x, y], said, size, taken) {
  const wide = 0.26 * size * said.length + 2, high = 0.62 * size;
  const options = [1, 1.7, 2.6, 4].flatMap((away) => [-45, -90, 0, -135, 45, 180, 90, 135].map((angle) => {
    const [dx, dy] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
    const box = [x + dx * (wide + away * 0.7 * size), y + dy * (high + away * 0.7 * size), wide, high];
    return { box, cost: away + 4 * costOf(frame, box, taken) };
  }));
  return options.reduce((best, one) => (one.cost < best.cost ? one : best));
}

function costOf({ width, floor, em }, [x, y, wide, high], { boxes, points }) {
  const outside = x - wide < 0 || x + wide > width || y - high < 0 || y + high > floor + 0.3 * em;
  const over = boxes.filter(([bx, by, bw, bh]) => Math.abs(x - bx) < wide + bw && Math.abs(y - by) < high + bh).length;
  return 100 * outside + 100 * over + points.filter(([px, py]) => Math.abs(x - px) < wide && Math.abs(y - py) < high).length;
}

// ---- the picture ----

function arrow(tail, tip, color, width, more = {}) {
  const length = far(tail, tip), head = Math.min(HEAD * (0.6 + width / 10), 0.7 * length);
  if (length < 0.5) return gv.h('circle', { cx: tip[0], cy: tip[1], r: width / 2, fill: color, ...more });
  const [ux, uy] = [(tip[0] - tail[0]) / length, (tip[1] - tail[1]) / length], neck = [tip[0] - ux * head * 0.8, tip[1] - uy * head * 0.8];
  const side = (sign) => `${tip[0] - ux * head - sign * uy * head * 0.5} ${tip[1] - uy * head + sign * ux * head * 0.5}`;
  return gv.h('g', more,
    gv.h('path', { class: 'shaft', d: `M${tail[0]} ${tail[1]}L${neck[0]} ${neck[1]}`, stroke: color, 'stroke-width': width, fill: 'none' }),
    gv.h('path', { d: `M${tip[0]} ${tip[1]}L${side(1)}L${side(-1)}z`, fill: color }));
}

// Circles around the corner, a norm each, as far as anything goes.
function rings(frame, data, colors) {
  const reach = Math.max(...[...data.stops, ...data.tips, ...(data.was ?? [])].map(([x, y]) => Math.hypot(x, y)));
  if (!reach) return [];
  const step = round(reach, 5), sizes = Array.from({ length: Math.floor(reach / step + 1e-6) }, (_, i) => (i + 1) * step), { corner, floor, scale, em, width } = frame;
  return sizes.map((size, i) => {
    const r = size * scale, right = corner + r < width - em, place = right ? corner + r : corner - r;
    return [gv.h('circle', { cx: corner, cy: floor, r, fill: 'none', stroke: colors.grid, 'stroke-width': 1.5, 'clip-path': 'url(#above)' }),
      right || corner - r > em ? gv.h('text', { x: place, y: floor + 1.25 * em, 'font-size': 0.9 * em, fill: colors.quiet, 'text-anchor': 'middle' }, `${i + 1 === sizes.length ? 'norm ' : ''}${gv.significant(size, 2)}`) : null];
  });
}

// What has words beside it: the end, the longest, the chosen block, then the others while there is room.
function labels(frame, data, count) {
  const { at, em } = frame, size = 0.95 * em, arrows = arrowsOf(data).map((ends) => ends.map(at)), steps = data.tips.length;
  const taken = { boxes: [], points: arrows.flatMap(along) }, middles = Array.from({ length: steps / 2 }, (_, b) => at(data.stops[2 * b + 1])), out = [];
  const distance = (box, ends) => Math.min(...along(ends).map((point) => far(point, box)));
  const nearest = (box) => arrows.slice(1).map((ends) => distance(box, ends)).reduce((best, one, s, all) => (one < all[best] ? s : best), 0);
  const add = (place, said, more, must, block) => {
    const { box, cost } = placed(frame, place, said, size, taken);
    if (!must && (cost >= 30 || Math.floor(nearest(box) / 2) !== block)) return;      // it would be taken for another block's
    taken.boxes.push(box);
    out.push({ box, said, size, ...more });
  };
  if (count > steps) add(at(data.stops.at(-1)), data.ends, { weight: 650 }, true);
  if (data.longest !== null && count > data.longest + 1) add(between(...arrows[data.longest + 1], 0.5), data.longest_said, { part: partOf(data.longest), weight: 650 }, true);
  const others = middles.map((_, b) => b).filter((b) => b !== data.block);
  for (const b of [data.block, ...others]) {
    const chosen = b === data.block;
    if (count > 2 * b + 1) add(middles[b], chosen ? `block ${b}` : `${b}`, { weight: chosen ? 650 : 400, quiet: !chosen }, chosen, b);
  }
  return out;
}

function drawing(view) {
  const { data, state } = view, frame = frameOf(view), { at, em, width, height, floor, corner } = frame, colors = gv.palette(data.mode);
  const paints = [colors.output, colors.feed_forward], arrows = arrowsOf(data).map((ends) => ends.map(at)), drawn = state.time === null ? Infinity : state.time;
  const shareOf = (i) => Math.max(0, Math.min(1, drawn - i)), count = Math.min(arrows.length, Math.floor(drawn));
  const words = (x, y, said, more = {}) => gv.h('text', { x, y, 'font-size': 0.95 * em, fill: colors.quiet, ...more }, said);
  const old = (data.was ?? []).map(at);
  return gv.h('svg', { viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': data.alt, data: { testid: 'path-picture', walk: '.arrow', drawn: count } },
    gv.h('clipPath', { id: 'above' }, gv.h('rect', { x: 0, y: 0, width, height: floor })),
    rings(frame, data, colors),
    gv.h('path', { d: `M0 ${floor}H${width}`, stroke: colors.quiet, 'stroke-width': 1.5 }),
    gv.h('path', { d: `M${corner} ${floor}V${1.6 * em}`, stroke: colors.quiet, 'stroke-width': 1, 'stroke-dasharray': '2 4' }),
    words(Math.max(4, corner - 0.6 * em), 1.1 * em, `↑ ${data.up}`),
    words(width, floor + 2.9 * em, `${data.across} →`, { 'text-anchor': 'end' }),
    words(corner, floor + 1.25 * em, '0', { 'text-anchor': 'middle', 'font-size': 0.9 * em }),
    old.length ? gv.h('g', { fill: 'none', stroke: colors.ghost, 'stroke-width': 2, 'stroke-dasharray': '6 4' },
      gv.h('path', { d: `M${[at([0, 0]), ...old].map((point) => point.join(' ')).join('L')}`, data: { testid: 'path-was' } }),
      gv.h('circle', { cx: old.at(-1)[0], cy: old.at(-1)[1], r: 5, 'stroke-dasharray': 'none' })) : null,
    data.tips.map((tip, s) => (data.jumps[s] && drawn >= s + 2 ? gv.h('path', { d: `M${at(tip).join(' ')}L${at(data.stops[s + 1]).join(' ')}`, stroke: colors.ink, 'stroke-width': 1.5, 'stroke-dasharray': '2 3' }) : null)),
    arrow(...grown(arrows[0], shareOf(0)), colors.quiet, 3),
    data.steps.map((step, s) => {
      const chosen = step.block === data.block, ends = arrows[s + 1], share = shareOf(s + 1);
      if (!share) return null;
      return gv.h('g', { class: 'arrow', role: 'button', 'aria-label': step.says.join(', '), 'aria-pressed': chosen, data: { testid: 'path-arrow', step: s },
        onmouseenter: () => point(view, s), onmouseleave: () => point(view, null), onfocus: () => point(view, s), onblur: () => point(view, null),
        onclick: () => choose(view, step.block) },
        gv.h('path', { class: 'hit', d: `M${ends[0].join(' ')}L${ends[1].join(' ')}`, stroke: colors.ink, 'stroke-opacity': 0, 'stroke-width': 16, 'stroke-linecap': 'round', fill: 'none' }),
        arrow(...grown(ends, share), paints[partOf(s)], chosen ? 6 : 3.5));
    }),
    data.stops.map((stop, s) => (s % 2 === 0 && drawn >= s + 1 ? gv.h('circle', { cx: at(stop)[0], cy: at(stop)[1], r: s + 1 === data.stops.length ? 5 : 2.5, fill: colors.ink }) : null)),
    labels(frame, data, count).map(({ box, said, size, weight, part, quiet }) => gv.h('text', { x: box[0], y: box[1] + 0.35 * size, 'text-anchor': 'middle', 'font-size': size,
      'font-weight': weight, fill: part === undefined ? (quiet ? colors.quiet : colors.ink) : paints[part] }, said)));
}

const grown = ([tail, tip], share) => [tail, between(tail, tip, share)];

// ---- what is said, and chosen ----

function point(view, step) {
  if (view.state.pointed === step) return;
  view.state.pointed = step;
  view.state.view.redraw();
}

function choose(view, block) {
  halt(view.state.view);
  view.send('block', block);
}

// Of the step that is being drawn or pointed at; at rest of the chosen block's longer one.
function told({ data, state }) {
  if (state.time !== null) {
    const i = Math.max(0, Math.min(Math.ceil(state.time) - 1, data.steps.length));
    return i === 0 ? data.begins : data.steps[i - 1];
  }
  return data.steps[state.pointed ?? data.shown[data.block]];
}

function beside(view) {
  const { data, state } = view, colors = gv.palette(data.mode), step = told(view), { part } = step;
  const item = (color, said, dashed) => gv.h('li', null, gv.h('i', { class: dashed ? 'dashed' : '', style: dashed ? `border-color: ${color}` : `background: ${color}` }), gv.h('span', null, said));
  return gv.h('div', { class: 'beside' },
    gv.h('ul', { class: 'legend' }, item(colors.output, 'attention adds'), item(colors.feed_forward, 'feed-forward adds'), item(colors.quiet, 'the embedding begins'),
      data.was ? item(colors.ghost, 'before your change', true) : null, data.jumps.some(Boolean) ? item(colors.ink, 'put there by a change', true) : null),
    gv.h('div', { class: 'step', 'aria-live': state.time === null ? 'polite' : 'off', data: { testid: 'path-says' } },
      gv.h('p', { class: 'said' }, gv.h('b', { style: `color: ${part === null ? colors.quiet : [colors.output, colors.feed_forward][part]}` }, step.says[0]),
        step.says.slice(1).map((line) => gv.h('span', null, line)))),
    gv.h('button', { type: 'button', class: 'again', data: { testid: 'path-play', unsaved: '' }, onclick: (event) => { event.stopPropagation(); again(view); } },
      state.time === null ? '▶ Step by step' : gv.still() ? 'Next step' : 'Stop'));
}

// ---- step by step ----

function halt(view) {
  const { state } = view;
  if (state.time === null) return;
  cancelAnimationFrame(state.frame);
  state.time = null;
  view.redraw();
}

function play(view) {
  const { state } = view, count = view.data.tips.length + 1, pace = Math.min(STEP, WHOLE / count), since = performance.now();
  const frame = (now) => {
    if (state.time === null || !view.root.isConnected) return;
    state.time = (now - since) / pace;
    if (state.time >= count) return halt(state.view);
    state.view.redraw();
    state.frame = requestAnimationFrame(frame);
  };
  state.time = 0;
  view.redraw();
  state.frame = requestAnimationFrame(frame);
}

// Where no motion is wanted, each click draws one more step.
function again({ state }) {
  if (gv.still()) {
    const time = (state.time ?? 0) + 1;
    state.time = time > state.view.data.tips.length ? null : time;
    state.view.redraw();
  } else if (state.time === null) play(state.view);
  else halt(state.view);
}

export default gv.component((view) => {
  const { data, root, state } = view;
  state.view = view;
  state.time ??= null;
  if (state.drawn !== data.begins.says.join() + data.stops.join()) {      // another path: nothing of the former goes on
    cancelAnimationFrame(state.frame);
    Object.assign(state, { drawn: data.begins.says.join() + data.stops.join(), time: null, pointed: null });
  }
  return [
    gv.h('div', { class: 'path', data: { testid: 'path', playing: state.time === null ? undefined : '', played: state.played ? '' : undefined }, onclick: () => halt(view) },
      drawing(view), beside(view)),
    gv.saveButtons(() => gv.svgOfElements(root.querySelector('.path')), data.saved),
  ];
}, (view) => {
  const { root, state } = view;
  if (state.watch) return;
  state.watch = gv.atOtherWidth(root, () => state.view.redraw());
  state.end = () => { state.watch.disconnect(); cancelAnimationFrame(state.frame); state.time = null; };
  state.played = true;
  if (gv.still()) view.redraw();       // once more: now the picture has its width
  else play(view);       // by itself, once
});
