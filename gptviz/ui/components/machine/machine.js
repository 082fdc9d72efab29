// Draws a place of the machine (layout.js) as SVG, and falls into the next one: what was clicked grows until it
// is the picture. The wheel with Ctrl, two fingers, Enter and Escape do the same; Play follows one token.

const FALL = 330, INTO = 1.7, OUT = 0.75, SETTLE = 160;       // ms, how far one zooms until it falls, ms
const LOST = 6000;                                            // ms without an answer until all is as it was
const STEP = 4500;                                            // ms a sentence, at speed 1
const SPEEDS = [0.5, 1, 2];
const THREAD = 8;                                             // px: so near to a thread the pointer is on it

// ---- what came, ready to be drawn ----

const numbers = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);

function decoded(value) {
  if (Array.isArray(value)) return value.map(decoded);
  if (value === null || typeof value !== 'object') return value;
  if (typeof value.of === 'string') return { of: numbers(value.of), ...(value.was ? { was: numbers(value.was) } : {}) };
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, decoded(part)]));
}

const tables = {};      // what it is painted as, and the mode: 256 colours, and that of what is masked
function colorsOf(paint, mode) {
  const palette = gv.palette(mode), own = ['query', 'key', 'value', 'output'].includes(paint);
  const scale = own ? [[0, palette.quiet], [0.5, palette.paper], [1, palette[paint]]] : palette[paint];
  return (tables[`${paint} ${mode}`] ??= [...gv.colorTable(scale), gv.channels(palette.masked)]);
}

// Numbers as so many pixels: red, green, blue and alpha of each.
function painted({ values, limit, paint }, mode) {
  const colors = colorsOf(paint, mode), pixels = new Uint8ClampedArray(4 * values.length).fill(255);
  values.forEach((value, i) => {
    const share = paint === 'attention' ? value / limit : (value / limit + 1) / 2;
    pixels.set(colors[Number.isNaN(value) ? 256 : Math.round(255 * Math.max(0, Math.min(1, share)))], 4 * i);
  });
  return pixels;
}

// As a BMP, which is written at once: a browser takes a quarter of a millisecond to write a PNG, and a head has seventy.
function bmpOf({ cols, rows }, pixels) {
  const file = new Uint8Array(66 + pixels.length), head = new DataView(file.buffer);
  file.set([0x42, 0x4d]);
  Object.entries({ 2: file.length, 10: 66, 14: 40, 18: cols, 22: -rows, 26: 1 + (32 << 16), 30: 3, 34: pixels.length, 54: 0xff, 58: 0xff00, 62: 0xff0000 }).forEach(([at, number]) => head.setInt32(at, number, true));
  file.set(pixels, 66);
  return `data:image/bmp;base64,${btoa(String.fromCharCode(...file))}`;
}

// As a PNG, which every program reads that a saved picture is opened with.
function pngOf({ cols, rows }, pixels) {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [cols, rows];
  canvas.getContext('2d').putImageData(new ImageData(pixels, cols, rows), 0, 0);
  return canvas.toDataURL();
}

// ---- one place, as SVG ----

const round = (x) => Math.round(100 * x) / 100;

// What beats.js reads of a shape.
const moving = ({ name, ...more }) => ` data-beat="${name}"${name === 'thread' ? ' pathLength="1"' : ''}${Object.entries(more).map(([key, value]) => ` data-${key}="${Math.round(1000 * value) / 1000}"`).join('')}`;

// With `steps`, what is made later appears later.
function svgOf({ width, height, shapes }, mode, steps = false, write = bmpOf) {
  const palette = gv.palette(mode), signed = (value) => colorsOf('signed', mode)[Math.round(127.5 * (Math.max(-1, Math.min(1, value)) + 1))];
  const color = (name) => (typeof name === 'number' ? `rgb(${signed(name).join(',')})` : palette[name] ?? 'none');      // a number: its colour from -1 to 1
  const drawn = shapes.map((shape) => {
    const { s, x, y, w, h, step } = shape;
    const wait = (steps && step ? ` class="step" style="--step: ${step}"` : '') + (shape.beat ? moving(shape.beat) : '')
      + Object.entries(shape.data ?? {}).map(([name, value]) => ` data-${name}="${value}"`).join('');
    const paint = `fill="${color(shape.fill)}"` + (shape.stroke ? ` stroke="${color(shape.stroke)}" stroke-width="${shape.width ?? 1}"` : '')
      + (shape.dash ? ` stroke-dasharray="${shape.dash}"` : '') + (shape.opacity === undefined ? '' : ` opacity="${round(shape.opacity)}"`);
    const box = `x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}"`;
    if (s === 'rect') return `<rect${wait} ${box} ${paint}${shape.r ? ` rx="${round(shape.r)}"` : ''}/>`;
    if (s === 'path') return `<path${wait} d="${shape.d.replace(/\d+\.\d+/g, (n) => String(round(Number(n))))}" ${paint}${shape.arrow ? ` marker-end="url(#to-${shape.stroke})"` : ''}/>`;
    if (s === 'image') return `<g${wait}><image ${box} preserveAspectRatio="none" style="image-rendering: pixelated" href="${write(shape, painted(shape, mode))}"/></g>`;
    return gv.svgText(round(x), round(y), shape.text, { anchor: shape.anchor, color: shape.on === undefined ? color(shape.color) : gv.textOn(signed(shape.on)), size: round(shape.size), weight: shape.weight, more: wait });
  });
  const arrows = [...new Set(shapes.filter(({ arrow }) => arrow).map(({ stroke }) => stroke))].map((stroke) =>
    `<marker id="to-${stroke}" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="5" markerHeight="5" orient="auto"><path d="M0 0L8 4L0 8z" fill="${color(stroke)}"/></marker>`);
  return [`<defs>${arrows.join('')}</defs>${drawn.join('')}`, Math.ceil(width), height];
}

function picture({ data, state }) {
  const [inside, width, height] = svgOf(state.now.layout, data.mode, false, pngOf);
  return gv.svgFile(width, height, gv.palette(data.mode).paper, [inside]);
}

// ---- where one is, and where one goes ----

// The part of a picture that leads to one of these places, the innermost.
function partOf(layout, path) {
  const ats = path.map(([at]) => at), doors = layout.doors.filter(({ at }) => at !== undefined && ats.includes(at));
  return doors.sort((a, b) => ats.indexOf(b.at) - ats.indexOf(a.at))[0] ?? null;
}

// Ask for another place; the way there begins at once: what was clicked grows, or what is left grows small.
function fall(view, at, part) {
  const { state, send, data: { known, path } } = view, { layout } = state.now;
  if (at === view.data.at) return;
  if (known && !known.includes(at)) return tell(view, `Not in this file: t.show("overview", at="${at}") draws it.`);
  state.asked = { at, part, since: performance.now() };
  const out = path.some(([outer]) => outer === at), half = { x: layout.width / 4, y: layout.height / 4, w: layout.width / 2, h: layout.height / 2 };
  if ((part || out) && !gv.still()) move(state.stage.querySelector('.layer.now'), 'none', part ? zoomed(layout, part) : shrunk(layout, half), 0.15, FALL);
  clearTimeout(state.lost);
  state.lost = setTimeout(() => { state.asked = null; state.stage.querySelector('.layer.now').getAnimations().forEach((one) => one.cancel()); }, LOST);
  send('at', at);
}

// The transform that lets a part of a picture fill it.
function zoomed({ width, height }, { x, y, w, h }) {
  const scale = Math.min(width / Math.max(w, 1), height / Math.max(h, 1), 14);
  return `translate(${width / 2}px, ${height / 2}px) scale(${scale}) translate(${-(x + w / 2)}px, ${-(y + h / 2)}px)`;
}

// And the one that puts a whole picture of this size into a part of another.
function shrunk({ width, height }, { x, y, w, h }) {
  const scale = Math.min(w / width, h / height);
  return `translate(${x + (w - scale * width) / 2}px, ${y + (h - scale * height) / 2}px) scale(${scale})`;
}

function move(node, from, to, opacity, duration, back = false) {
  const frames = [{ transform: from, opacity: 1 }, { transform: to, opacity }];
  return node.animate(back ? frames.reverse() : frames, { duration, easing: 'cubic-bezier(0.3, 0, 0.2, 1)', fill: back ? 'none' : 'forwards' });
}

// The new place comes out of its part of the old one, or the old one goes back into its part of the new.
function arrive(view) {
  const { state } = view, { now: place, before, asked } = state;
  state.asked = null;
  tell(view, '');
  clearTimeout(state.lost);
  const [node, old] = ['now', 'before'].map((name) => state.stage.querySelector(`.layer.${name}`));
  const gone = () => { state.before = null; state.view.redraw(); };
  if (gv.still()) return gone();
  const part = asked?.at === place.data.at && asked.part;
  const down = part || partOf(before.layout, place.data.path), up = partOf(place.layout, before.data.path);
  const left = asked?.at === place.data.at ? Math.max(FALL / 3, FALL - (performance.now() - asked.since)) : FALL;
  if (place.data.path.length > before.data.path.length && down) {
    if (part) old.animate({ opacity: 0 }, { duration: left, fill: 'forwards' });      // it grows since it was clicked
    else move(old, 'none', zoomed(before.layout, down), 0, left);
    move(node, 'none', shrunk(place.layout, down), 0, left, true);
  } else if (place.data.path.length < before.data.path.length && up) {
    move(node, 'none', zoomed(place.layout, up), 0.15, left, true);
    old.animate({ transform: shrunk(before.layout, up), opacity: 0 }, { duration: left, fill: 'forwards' });      // from where it is on its way
  } else node.animate([{ opacity: 0 }, { opacity: 1 }], { duration: left });
  clearTimeout(state.gone);
  state.gone = setTimeout(gone, left + 30);
}

// ---- the wheel and two fingers ----

function zoom(view, by, x, y) {
  const { state } = view;
  const z = (state.zoom = Math.max(0.5, Math.min(3, (state.zoom ?? 1) * by)));
  const node = state.stage.querySelector('.layer.now');
  node.style.transformOrigin = `${x}px ${y}px`;
  node.style.transform = `scale(${z})`;
  clearTimeout(state.settle);
  const rest = () => { state.zoom = 1; node.style.transform = node.style.transformOrigin = ''; };
  if (z > INTO) {
    const door = state.now.layout.doors.filter((one) => one.at !== undefined && x >= one.x && x <= one.x + one.w && y >= one.y && y <= one.y + one.h).at(-1);
    rest();
    if (door) fall(view, door.at, door);
  } else if (z < OUT) {
    rest();
    rise(view);
  } else state.settle = setTimeout(rest, SETTLE);
}

function rise(view) {
  const { path } = view.data;
  if (path.length > 1 && !view.state.asked) fall(view, path.at(-2)[0]);
}

function gestures(view) {
  const { state } = view;
  const place = ({ clientX, clientY }) => {
    const box = state.stage.getBoundingClientRect();
    return [clientX - box.left, clientY - box.top];
  };
  const apart = ([one, other]) => {
    const [[x0, y0], [x1, y1]] = [place(one), place(other)];
    return [Math.hypot(x1 - x0, y1 - y0), (x0 + x1) / 2, (y0 + y1) / 2];
  };
  return {
    onwheel: (event) => {
      if (!event.ctrlKey && !event.metaKey) return;      // else the page scrolls
      event.preventDefault();
      if (!state.asked) zoom(state.view, Math.exp(-event.deltaY / 250), ...place(event));
    },
    ontouchstart: ({ touches }) => { if (touches.length === 2) [state.apart] = apart(touches); },
    ontouchmove: (event) => {
      if (event.touches.length !== 2) return;
      event.preventDefault();
      const [distance, x, y] = apart(event.touches);
      if (!state.asked) zoom(state.view, distance / state.apart, x, y);
      state.apart = distance;
    },
  };
}

// ---- play ----

function play(view, step) {
  const { state, data } = view;
  clearTimeout(state.tick);
  state.step = step;
  if (step === undefined || step >= data.way.length) {
    Object.assign(state, { playing: false, step: undefined });
    return view.redraw();
  }
  if (data.way[step].at !== data.at) fall(view, data.way[step].at, partOf(state.now.layout, [[data.way[step].at]]));
  else view.redraw();
  if (state.playing) state.tick = setTimeout(() => play(state.view, step + 1), STEP / (state.speed ?? 1));
}

function player(view) {
  const { data, state } = view, at = state.step;
  const minutes = Math.max(1, Math.round((data.way.length * STEP) / 60000));
  const button = (name, sign, onclick, more) => gv.h('button', { type: 'button', onclick, title: name, 'aria-label': gv.spoken(sign, name), data: { testid: `play-${name.toLowerCase()}` }, ...more }, sign);
  const start = () => { state.playing = true; play(state.view, at ?? 0); };
  const pause = () => { state.playing = false; clearTimeout(state.tick); view.redraw(); };
  return gv.h('div', { class: 'player', role: 'group', 'aria-label': 'The path of one token, step by step' },
    data.known ? null : button('Guess', '‹ the guess', () => { state.playing = false; clearTimeout(state.tick); state.step = undefined; view.send('at', 'guess'); }),
    at === undefined ? null : button('Back', '‹', () => play(state.view, Math.max(0, at - 1)), { disabled: at === 0 }),
    state.playing ? button('Pause', '❚❚', pause) : button('Play', at === undefined ? `▶ Watch what happens to “${data.tokens[data.position]}” (${minutes} min)` : '▶', start),
    at === undefined ? null : [button('Next', '›', () => play(state.view, at + 1)),
      button('Speed', `speed ${state.speed ?? 1}×`, () => { state.speed = SPEEDS[(SPEEDS.indexOf(state.speed ?? 1) + 1) % SPEEDS.length]; view.redraw(); }),
      button('End', '×', () => { state.playing = false; play(state.view, undefined); }),
      gv.h('span', { class: 'told', 'aria-live': 'polite', data: { testid: 'play-says', step: at } }, data.way[at].says)]);
}

// How many blocks are made when the way has come to this step; -1 before the embedding, Infinity after all.
function madeAt(way, step, blocks) {
  const seen = way.slice(0, step).map(({ at }) => at);
  if (seen.some((at) => /^logit|^out_head/.test(at))) return Infinity;
  if (seen.includes('final_norm')) return blocks;
  return Math.max(-1, ...seen.map((at) => (at === 'embedding' ? 0 : Number(/^block\.(\d+)/.exec(at)?.[1] ?? -2) + 1)));
}

// ---- all of it ----

function doorOf(view, door, width, height) {
  const { data, state } = view, { x, y, w, h, at, position, says, kind, value } = door;
  const share = (part, whole) => `${(100 * part) / whole}%`;
  const follow = () => (data.known ? tell(state.view, `Not in this file: t.show("overview", position=${position}) draws it.`) : view.send('position', position));
  const open = (event) => (data.paths ? readFrom(state.view, door, event) : at === undefined ? follow() : fall(state.view, at, door));
  const { block, head, thread, pressed = position === undefined ? undefined : position === data.position } = door;
  const say = () => { tell(state.view, says); lift(state, thread); };
  return gv.h('button', {
    type: 'button', class: `door ${kind}`, 'aria-label': says, title: says, 'aria-pressed': pressed,
    data: { testid: 'place-door', at, position, kind, value, block, head, thread }, onclick: open,
    style: { left: share(x, width), top: share(y, height), width: share(w, width), height: share(h, height) },
    onmouseenter: say, onfocus: say, onblur: () => lift(state),
  });
}

function tell({ root }, said) {
  const says = root.querySelector('.tells');
  if (says) says.textContent = said;
}

// A thread runs over the doors of its columns: it says whose it is, and stands out, until the pointer is beside it.
function onThread(view, door, near) {
  const { state } = view, own = door?.dataset.thread, says = own ? undefined : near?.says;
  lift(state, own ?? near?.data.thread);
  if (door) door.title = says ?? door.ariaLabel;
  if (says) tell(view, says);
  else if (state.told) tell(view, door?.ariaLabel ?? '');
  state.told = says;
}

// One thread before the others; without one all are as they are drawn.
function lift({ stage }, thread) {
  for (const node of stage.querySelectorAll('.layer.now svg [data-thread]')) node.style.opacity = thread === undefined ? '' : node.dataset.thread === thread ? 1 : 0.2;
}

// What is under the pointer, to the digit; a click on a unit or a cell falls into it.
function pointed(view, event, click) {
  if (view.data.paths) {
    const says = threadUnder(view, event);
    if (says && !event.target.closest('.door')) tell(view, says);
    return;
  }
  const { state } = view, { shapes, width, height } = state.now.layout, box = state.stage.getBoundingClientRect();
  const [px, py] = [(event.clientX - box.left) * (width / box.width), (event.clientY - box.top) * (height / box.height)];
  const shape = shapes.filter(({ s, x, y, w, h }) => s === 'image' && px >= x && px < x + w && py >= y && py < y + h).at(-1);
  if (!shape) return state.guess?.moves ? null : onThread(view, event.target.closest('.door'), threadNear(shapes, px, py, THREAD));
  const [col, row] = [Math.floor(((px - shape.x) / shape.w) * shape.cols), Math.floor(((py - shape.y) / shape.h) * shape.rows)], i = row * shape.cols + col;
  const value = shape.values[i];
  if (shape.weights) {
    const { tokens, level } = view.data, [query, key] = [row, col].map((k) => level.rows[k]);
    tell(view, (shape.unchanged ? 'Unchanged: ' : '') + (Number.isNaN(value) ? `“${tokens[key]}” comes after “${tokens[query]}”: masked.`
      : `“${tokens[query]}” (position ${query}) gives ${gv.weight(value)} of its attention to “${tokens[key]}” (position ${key}).`));
    if (click && shape.cells && !Number.isNaN(value)) fall(view, `${shape.cells}.cell.${query}.${key}`, { x: shape.x + (col * shape.w) / shape.cols, y: shape.y + (row * shape.h) / shape.rows, w: shape.w / shape.cols, h: shape.h / shape.rows });
    return;
  }
  const some = shape.values.length < shape.count ? `, of ${shape.count.toLocaleString('en')}` : '';
  tell(view, `${shape.into ? 'unit' : `${shape.label}: number`} ${i}${some}: ${gv.significant(value)}`);
  if (click && shape.into) fall(view, `${shape.into}${i}`, { x: px - 6, y: py - 6, w: 12, h: 12 });
}

// The old place's elements stay as they are while it goes: nothing of it is laid out or painted again.
function layer(view, place, name) {
  const { data, state } = view, { layout } = place, how = `${data.mode} ${state.playing}`;
  if (name === 'now' && place.how !== how) Object.assign(place, { how, svg: svgOf(layout, data.mode, state.playing) });
  const [inside, width, height] = place.svg;
  const reading = data.known ? 'Enter lights its paths.' : 'Enter makes one the reader, Shift and Enter one more.';
  const help = data.paths ? `The heads. Arrow keys walk. ${reading}` : 'What can be opened here. Arrow keys walk, Enter opens, Escape zooms out.';
  return gv.h('div', { key: place.number, class: `layer ${name}`, 'aria-hidden': name === 'before' },
    gv.h('svg', { viewBox: `0 0 ${width} ${height}`, 'aria-hidden': true, markup: inside }),
    gv.h('div', { class: 'doors', inert: name === 'before', role: 'group', 'aria-label': help, data: { walk: '.door' } },
      layout.doors.map((door) => doorOf(view, door, width, height))));
}

// The layout of what came, made anew where it came anew, or the width or the step is another; whether the place is.
function measure({ data, root, state }) {
  const guess = Boolean(data.guess), own = parseFloat(getComputedStyle(root).fontSize), em = guess ? Math.min(own, 20) : own, width = Math.max(280, Math.round(root.clientWidth));
  const above = em > 20 ? 12 : 24;      // of the screen, in em: the text and its tokens; on a projector less of them
  const tall = guess ? GUESS_HEIGHT : Math.max(14, innerHeight / em - above) * em, key = [width, em, tall, state.step].join(' '), { now: last } = state;
  if (last?.source === data && last.key === key) return false;
  const ready = last?.source === data ? last.data : { ...data, level: decoded(data.level), paths: decoded(data.paths), block: state.block };
  const block = Number(/^block\.(\d+)/.exec(data.at)?.[1] ?? NaN), { writes, rows } = ready.level;
  if (!Number.isNaN(block)) state.block = block;
  const made = writes && state.step !== undefined ? madeAt(data.way, state.step, writes.of.length / rows.length / 2) : Infinity;
  const moved = last && last.data.at !== data.at;
  if (moved) state.before = last;
  const number = (last?.number ?? 0) + Boolean(moved);
  state.now = { source: data, key, number, made, data: ready, layout: layout({ ...ready, made, guess }, { width, em, tall }) };
  return moved;
}

// The numbers for those who do not see the picture.
function numbersAloud({ path, table }) {
  // in a box of its own: Firefox would show the caption of a table that is clipped
  return gv.h('div', { class: 'aloud' }, gv.h('table', { data: { testid: 'place-table' } }, gv.h('caption', null, `Numbers of ${path.at(-1)[1]}`), table.map((row, i) =>
    gv.h('tr', null, row.map((cell) => gv.h(i ? 'td' : 'th', i ? null : { scope: 'col' }, cell))))));
}

export default gv.component((view) => {
  const { data, state } = view;
  state.view = view;
  state.moved = measure(view);
  const { layout: here } = state.now, hover = (event) => pointed(state.view, event, false);
  const zooms = data.paths ? {} : (state.gestures ??= gestures(view));
  const aloud = numbersAloud(data), stage = gv.h('div', { class: 'stage', style: { 'aspect-ratio': `${here.width} / ${here.height}` }, ...zooms, onmousemove: hover, onmouseleave: () => onThread(state.view, null),
    onclick: (event) => { if (!event.target.closest('.door.cell, .door.unit')) pointed(state.view, event, true); } },
    state.before ? layer(view, state.before, 'before') : null, layer(view, state.now, 'now'));
  if (data.paths) return pathsOf(view, aloud, stage, here.doors);
  if (data.guess) return gv.h('div', { class: `machine guess ${state.guess?.moves ? 'moves' : ''}`, data: { testid: 'machine', at: data.at, kind: data.kind, guess: '' } },
    beatsLine(view), aloud, stage,
    gv.reserving(data.guess, gv.h('p', { class: 'caption', data: { testid: 'guess-caption' } }, gv.prose(data.guess[state.guess?.beat ?? data.guess.length - 1]))),
    gv.h('div', { class: 'foot' }, gv.saveButtons(() => picture(state.view), data.saved)));
  return gv.h('div', { class: 'machine', data: { testid: 'machine', at: data.at, kind: data.kind }, onkeydown: (event) => { if (event.key === 'Escape') rise(state.view); } },
    player(view),
    gv.h('nav', { class: 'path', 'aria-label': 'Where this is in the machine' }, data.path.map(([at, name], i) => [i ? gv.h('span', { 'aria-hidden': true }, '›') : null,
      i + 1 < data.path.length ? gv.h('button', { type: 'button', onclick: () => fall(state.view, at), data: { testid: 'place-crumb', at } }, name) : gv.h('b', null, name)]),
    data.more ? gv.h('a', { class: 'more', href: data.more.href, data: { testid: 'place-more', page: data.more.page }, onclick: (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      view.send('page', data.more.page);
    } }, `Open the page ${data.more.title} →`) : null),
    aloud,
    gv.h('p', { class: 'said', data: { testid: 'place-says' } }, gv.prose(state.now.made < Infinity ? [data.way[state.step].says] : data.says)),
    stage,
    gv.reserving(here.doors.map(({ says }) => [says]), gv.h('p', { class: 'tells', data: { testid: 'place-tells' } })),
    gv.h('div', { class: 'foot' }, gv.saveButtons(() => picture(state.view), data.saved)));
}, (view) => {
  const { root, state } = view;
  state.stage = root.querySelector('.stage');
  if (state.moved) arrive(view);
  seen(view);
  if (!state.watch) {
    state.watch = gv.atOtherWidth(root, () => state.view.redraw());
    state.end = () => { state.watch.disconnect(); clearTimeout(state.tick); clearTimeout(state.guess?.tick); };
  }
});
