// Where everything stands, as a pure function: layout(data, { width, em, tall }) gives { width, height, shapes, doors }.
//
// Shapes are rect, text, path and image (a row or a block of numbers as colours); colours go by their names in the
// palette. A door leads to the place `at`, or selects the token at `position`; it lies over what it is about.

const now = (value) => value?.now ?? value;       // of a number that may have an unchanged one beside it
const was = (value) => value?.was;
const long = (text) => [...text].reduce((sum, c) => sum + (c.codePointAt(0) > 0x2e80 ? 1 : /[ilj·.,'’|! ]/.test(c) ? 0.3 : /[mwMW—]/.test(c) ? 0.85 : 0.53), 0);

function cut(text, room, size) {
  if (long(text) * size <= room) return text;
  const letters = [...text];
  while (letters.length && (long(letters.join('')) + 0.8) * size > room) letters.pop();
  return `${letters.join('')}…`;
}

// A drawing that grows: each function adds a shape.
function drawing(em) {
  const shapes = [], doors = [];
  const d = { shapes, doors, step: 0 };      // of a sum: shapes that follow appear at this step
  const put = (s, shape) => { shapes.push({ s, step: d.step, ...shape }); };
  const text = (x, y, said, { size = 0.85, room = Infinity, ...more } = {}) =>
    put('text', { x, y, text: cut(said, room, size * em), size: size * em, color: 'ink', ...more });
  return Object.assign(d, {
    text,
    rect: (x, y, w, h, more) => put('rect', { x, y, w: Math.max(0, w), h: Math.max(0, h), ...more }),
    path: (d, more) => put('path', { d, fill: 'none', ...more }),
    image: (x, y, w, h, more) => put('image', { x, y, w, h, ...more }),
    door: (x, y, w, h, to) => doors.push({ x, y, w: Math.max(0, w), h: Math.max(0, h), ...to }),
    // a number, and smaller below it the unchanged model's
    number: (x, y, value, more = {}) => {
      const say = more.say ?? gv.significant;
      text(x, y, (more.before ?? '') + say(now(value)), more);
      if (was(value) !== undefined) text(x, y + 0.95 * em, `unchanged ${say(was(value))}`, { ...more, size: 0.74, color: 'ghost' });
    },
  });
}

// A row of numbers, and below it the unchanged ones.
function strip(d, x, y, w, h, { values, limit, paint = 'signed', label, of, rows = 1, into }) {
  const two = values.was !== undefined, high = two ? 0.58 * h : h;
  const cells = { cols: values.of.length / rows, rows, limit: now(limit), paint, label, count: of ?? values.of.length };
  d.image(x, y, w, high, { ...cells, values: values.of, into });
  if (two) {
    d.image(x, y + high + 2, w, h - high - 2, { ...cells, values: values.was, label: `unchanged, ${label}` });
    d.rect(x, y + high + 2, w, h - high - 2, { stroke: 'ghost', dash: '4 3' });
  }
}

// ---- the machine ----

// The blocks that have room, of so many: around the one in hand, at first and last; `fold` stands for those between.
function columns(count, room, here) {
  if (count <= room) return Array.from({ length: count }, (_, block) => ({ block }));
  const most = Math.max(2, room - 2), start = Math.max(0, Math.min(here - (most >> 1), count - most));
  return betweenOf(count, new Set([0, count - 1, ...Array.from({ length: most }, (_, i) => start + i)]));
}

// The blocks that have room, and among them these, the first before others.
function columnsWith(count, room, wanted) {
  if (count <= room) return columns(count, room, 0);
  const kept = new Set(wanted);
  for (const block of [0, count - 1, ...Array.from({ length: count }, (_, i) => i)]) {
    if (kept.has(block)) continue;
    kept.add(block);
    if (betweenOf(count, kept).length > room) kept.delete(block);
  }
  return betweenOf(count, kept);
}

// A column for each of these blocks, and one for those between two of them.
function betweenOf(count, kept) {
  const out = [];
  for (let block = 0; block < count; block++) {
    if (kept.has(block)) out.push({ block });
    else if (out.at(-1)?.fold) out.at(-1).fold[1] = block;
    else out.push({ fold: [block, block] });
  }
  return out;
}

// With `paths`, threads to a reader are on it (paths.js). With `guess` as the beats show it (beats.js): three threads at most, the row of the word that comes next, and `beat` on
// what moves: its name, and what it moves by (`dx`, `dy`) or its share of the way (`from`, `to`).
const GUESS_HEIGHT = 420;

// Whose thread it is, with the numbers of what is drawn.
function readSays({ block, head, key, weight, brought }, tokens, position) {
  const brings = (length) => `brings a vector of norm ${gv.significant(length)}`;
  const old = was(brought) === undefined ? '' : `; unchanged ${gv.weight(was(weight) ?? now(weight))}, and a norm of ${gv.significant(was(brought))}`;
  return `Head ${block}·${head}: “${tokens[position]}” looks back at “${tokens[key]}” (position ${key}), attention weight ${gv.weight(now(weight))}; it ${brings(now(brought))}${old}.`;
}

// The thread that is nearest to a point, among those within `reach` of it.
function threadNear(shapes, x, y, reach) {
  let [found, least] = [undefined, reach];
  for (const shape of shapes) {
    if (!shape.curve) continue;
    for (let i = 0; i <= 60; i++) {
      const t = i / 60, parts = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3];
      const [px, py] = [0, 1].map((axis) => parts.reduce((sum, part, k) => sum + part * shape.curve[k][axis], 0));
      const far = Math.hypot(px - x, py - y);
      if (far < least) [found, least] = [shape, far];
    }
  }
  return found;
}

function machine({ level, names, tokens, position, made = Infinity, block = 0, guess = false, paths }, width, em, tall) {
  const d = drawing(em), rows = level.rows, count = rows.length, blocks = level.writes.of.length / count / 2;
  const narrow = width < 34 * em;
  const label = Math.min(8 * em, 0.17 * width), bars = narrow ? 0.24 * width : Math.min(13 * em, 0.2 * width);
  const top = 2.3 * em, more = guess && rows.at(-1) === position && position === tokens.length - 1, band = paths && bandOf(paths, em, tall);
  const room = (tall - top - (band?.height ?? 1.6 * em)) / (count + Number(more));
  const row = guess ? Math.min(2 * em, room) : Math.max(0.8 * em, Math.min(1.45 * em, room)), bottom = top + (count + Number(more)) * row;
  const left = label + 2.2 * em, right = width - bars - 2.4 * em;
  const fit = (least) => Math.max(3, Math.floor((right - left) / (least * em)));
  const shown = paths ? columnsWith(blocks, fit(PATH_ROOM), keptOf(paths)) : columns(blocks, fit(1.35), block);
  const each = (right - left) / shown.length, y = (i) => top + (i + 0.5) * row;
  const sizes = level.stream.of, largest = sizes.reduce((most, size) => Math.max(most, size), 1e-9);
  const half = (size) => 0.44 * row * Math.sqrt(size / largest);
  const wrote = level.writes.of, selected = rows.indexOf(position);

  // the stream of every token, as wide as it is long, in the colour of what was written last
  const place = (i) => left + i * each, steps = [];
  shown.forEach((column, i) => {
    const [first, last] = column.fold ?? [column.block, column.block];
    steps.push({ s: 2 * first, x: place(i) });
    if (column.fold) steps.push({ s: 2 * last + 2, x: place(i + 1), fold: true });
    else steps.push({ s: 2 * first + 1, x: place(i) + each / 2, write: 2 * first }, { s: 2 * first + 2, x: place(i + 1), write: 2 * first + 1 });
  });
  const wedge = (i, a, b, of = sizes) => {
    const [h0, h1] = [half(of[a.s * count + i]), half(of[b.s * count + i])];
    return `M${a.x} ${y(i) - h0}L${b.x} ${y(i) - h1}V${y(i) + h1}L${a.x} ${y(i) + h0}z`;
  };
  const all = level.reads.filter((read) => rows.includes(read.key));
  // largest first: of each token the largest, so that threads do not lie upon each other
  const reads = guess ? all.filter(({ key }, i) => all.findIndex((read) => read.key === key) === i).slice(0, 3) : all;
  const readAt = new Set([...reads.map(({ key }) => key), ...(paths?.threads ?? []).map((thread) => thread.position)].map((at) => rows.indexOf(at)));
  for (let i = 0; i < count; i++) {
    const quiet = i === selected ? 1 : readAt.has(i) ? 0.5 : guess ? 0.18 : 0.28;
    const in0 = { s: 0, x: label + 0.4 * em }, end = right + 1.8 * em;
    const grows = (a, b) => guess && { beat: i === selected ? { name: 'ribbon', from: (a - in0.x) / (end - in0.x), to: (b - in0.x) / (end - in0.x) } : { name: 'dim' } };
    d.path(wedge(i, in0, { s: 0, x: left }), { fill: 'quiet', opacity: 0.55 * quiet, ...grows(in0.x, left) });
    for (let k = 1; k < steps.length; k++) {
      const [a, b] = [steps[k - 1], steps[k]];
      if (b.x <= a.x) continue;
      d.path(wedge(i, a, b), { fill: 'quiet', opacity: 0.55 * quiet, ...grows(a.x, b.x) });
      if (b.write === undefined) continue;
      const share = Math.min(1, wrote[b.write * count + i] / (sizes[b.s * count + i] || 1));
      d.path(wedge(i, a, b), { fill: b.write % 2 ? 'feed_forward' : 'output', opacity: quiet * share, ...grows(a.x, b.x) });
    }
    d.path(wedge(i, steps.at(-1), { s: steps.at(-1).s, x: end }), { fill: 'quiet', opacity: 0.55 * quiet, ...grows(right, end) });
    if (i === selected && level.stream.was) for (let k = 1; k < steps.length; k++)
      if (steps[k].x > steps[k - 1].x) d.path(wedge(i, steps[k - 1], steps[k], level.stream.was), { stroke: 'ghost', dash: '3 2', ...grows(steps[k - 1].x, steps[k].x) });
    const chosen = i === selected;
    if (chosen) d.rect(0, y(i) - row / 2, label, row, { fill: 'panel', stroke: 'accent', r: 4, ...(guess && { beat: { name: 'frame' } }) });
    d.text(label - 0.35 * em, y(i) + 0.3 * em, tokens[rows[i]], { room: label - 0.6 * em, anchor: 'end', weight: chosen ? 700 : 400, size: Math.min(0.85, 0.8 * row / em), ...(guess && { beat: { name: 'token' } }) });
    d.door(0, y(i) - row / 2, label, row, { position: rows[i], says: `Follow “${tokens[rows[i]]}” (position ${rows[i]}).`, kind: 'token' });
  }
  if (count < tokens.length) d.text(label - 0.35 * em, bottom + 1.1 * em, `${rows[0]}–${rows.at(-1)} of ${tokens.length}`, { anchor: 'end', color: 'quiet', size: 0.72 });

  if (guess) asOneText(d.shapes.filter(({ beat }) => beat?.name === 'token'), width, em);

  // the columns, each a door
  const head = (x, w, said, to, says) => {
    d.text(x + w / 2, 1.15 * em, said, { anchor: 'middle', color: 'ink', size: 0.8, room: w + 0.4 * em });
    d.door(x, 0, w, bottom + 0.2 * em, { at: to, says, kind: 'column' });
  };
  head(label + 0.1 * em, 2.1 * em, 'in', 'embedding', 'The embedding: the vector that each token starts as.');
  shown.forEach((column, i) => {
    const x = place(i), [first, last] = column.fold ?? [];
    d.path(`M${x} ${top - 0.5 * em}V${bottom}`, { stroke: 'grid' });
    if (column.fold) {
      d.rect(x + 0.15 * each, top, 0.7 * each, count * row, { fill: 'paper', opacity: 0.75 });
      head(x, each, `+${last - first + 1}`, `block.${(first + last) >> 1}`, `Blocks ${first} to ${last} are folded. Click for the middle one.`);
    } else head(x, each, each > 4.2 * em ? `block ${column.block}` : String(column.block), `block.${column.block}`, `Block ${column.block}.`);
  });
  d.path(`M${right} ${top - 0.5 * em}V${bottom}`, { stroke: 'grid' });
  head(right, 2.2 * em, 'norm', 'final_norm', `The last ${names.norm}.`);

  // what the selected row reads, from where, and by which head; the sentence speaks of the largest, where it is drawn
  const most = Math.max(...reads.map(({ brought }) => now(brought)), 1e-9), ofBlock = (read) => shown.findIndex((column) => column.block === read.block);
  const spoken = guess || paths ? undefined : reads.find((read) => read === level.reads[0] && ofBlock(read) >= 0 && selected >= 0);
  for (const read of reads) {
    const i = ofBlock(read), from = rows.indexOf(read.key);
    if (i < 0 || selected < 0) continue;
    // heads of one block that read from one token lie side by side
    const beside = reads.slice(0, reads.indexOf(read)).filter(({ block, key }) => block === read.block && key === read.key).length;
    const x0 = place(i) + (0.06 + 0.13 * beside) * each, x1 = x0 + 0.44 * each, share = now(read.brought) / most;
    const dim = spoken && read !== spoken ? 0.4 : 1, at = `block.${read.block}.head.${read.head}`, thread = `${at}.${read.key}`, says = readSays(read, tokens, position);
    const curve = [[x0, y(from)], [x0 + 0.3 * each, y(from)], [x1 - 0.3 * each, y(selected)], [x1, y(selected)]];
    d.path(`M${curve[0].join(' ')}C${curve.slice(1).map((point) => point.join(' ')).join(' ')}`, { stroke: 'output', width: 1 + 4.5 * share, opacity: dim * (0.25 + 0.7 * share),
      ...(!paths && { curve, says, data: { thread, ...(read === spoken && { spoken: '' }) } }), ...(guess && { beat: { name: 'thread' } }) });
    const r = Math.min(0.32 * row, 0.24 * each);
    d.rect(x0 - r, y(from) - r, 2 * r, 2 * r, { fill: 'output', r, opacity: dim * (0.35 + 0.65 * share), ...(!paths && { data: { thread } }), ...(guess && { beat: { name: 'read' } }) });
    d.door(x0 - r - 3, y(from) - r - 3, 2 * r + 6, 2 * r + 6, { at, kind: 'read', value: now(read.brought), thread, says });
  }

  // the distribution after the selected token
  const x = right + 2.4 * em, wide = bars - 0.3 * em;
  d.text(x, 1.15 * em, narrow ? 'next' : 'what comes next', { size: 0.8, room: wide });
  d.door(x, 0, wide, 1.7 * em, { at: 'out_head', says: 'The output head: a logit for every token, and softmax.', kind: 'column' });
  if (!narrow && level.next.some(({ value }) => was(value) !== undefined)) {   // what the outlines are
    d.rect(x + wide - 4.9 * em, 0.58 * em, 0.8 * em, 0.54 * em, { stroke: 'ghost', width: 2, r: 3 });
    d.text(x + wide, 1.15 * em, 'unchanged', { anchor: 'end', size: 0.8, color: 'ghost' });
  }
  const step = Math.max(1.62 * em, Math.min(2.1 * em, (tall - top) / level.next.length));
  const first = d.shapes.length;
  barsOf(d, level.next, x, top, wide, step, em, 'logit');
  if (paths) return withPaths(d, { paths, tokens, em, width, on: { shown, each, place, y, row, rows, selected, label, right, bars, top, bottom, band, below: top + level.next.length * step } });
  if (guess) {
    for (const shape of d.shapes.slice(first)) shape.beat = { name: shape.s === 'text' ? 'name' : shape.fill === 'probability' ? 'bar' : 'back' };
    if (more) d.text(label - 0.35 * em, y(count) + 0.3 * em, level.next[0].shown, { room: label - 0.6 * em, anchor: 'end', weight: 700, color: 'accent', size: Math.min(0.85, 0.8 * row / em),
      beat: { name: 'winner', dx: x + 4 * em - label, dy: top + 0.85 * em - y(count) } });
    return { ...d, height: GUESS_HEIGHT };
  }
  const height = Math.max(bottom + 1.6 * em, top + level.next.length * step);
  if (made <= blocks) {          // while it is played: what is not made yet is not shown
    const next = shown.findIndex(({ block: b, fold }) => (fold ? fold[1] : b) >= made);
    const from = made < 0 ? label + 0.1 * em : next < 0 ? right : place(next);
    d.rect(from, 0, width, height, { fill: 'paper' });
    d.doors = d.doors.filter((door) => door.x + door.w / 2 < from);
  }
  return { ...d, height };
}

// From where each token comes when the text falls apart: of lines in the middle that read as the text did.
function asOneText(labels, width, em) {
  const lines = [[]], wide = (text) => (long(text) + 0.12) * 0.85 * em;
  let x = 0;
  for (const label of labels) {
    if (x + wide(label.text) > 0.8 * width && lines.at(-1).length) {
      lines.push([]);
      x = 0;
    }
    lines.at(-1).push({ label, end: (x += wide(label.text)) });
  }
  lines.forEach((line, i) => line.forEach(({ label, end }) => {
    label.beat.dx = (width - line.at(-1).end) / 2 + end - label.x;
    label.beat.dy = (GUESS_HEIGHT - 1.7 * em * lines.length) / 2 + 1.7 * em * i - label.y;
  }));
}

// Names with a bar each from 0 to the largest there can be, and two numbers; `measure` is what the second is.
function barsOf(d, bars, x, y, w, step, em, measure) {
  const tight = measure === 'logit';
  const whole = tight ? 1 : Math.max(1e-9, ...bars.map(({ value }) => Math.max(now(value), was(value) ?? 0)));
  bars.forEach(({ at, shown, value, text, said }, i) => {
    const top = y + i * step, number = text ?? gv.significant(now(value));
    d.text(x, top + 0.85 * em, shown, { room: w - (long(number) + 0.8) * 0.8 * em, size: 0.82, weight: i ? 400 : 700 });
    d.text(x + w, top + 0.85 * em, number, { anchor: 'end', size: 0.8 });
    d.rect(x, top + 1.15 * em, w, 0.4 * em, { fill: 'panel', r: 3 });
    d.rect(x, top + 1.15 * em, (w * now(value)) / whole, 0.4 * em, { fill: tight ? 'probability' : 'feed_forward', r: 3 });
    if (was(value) !== undefined) d.rect(x, top + 1.08 * em, (w * was(value)) / whole, 0.54 * em, { stroke: 'ghost', width: 2, r: 3 });
    const old = was(value) === undefined ? '' : `, unchanged ${gv.significant(was(value))}`;
    d.door(x - 3, top, w + 6, step - 2, { at, kind: 'bar', value: now(value), says: `${shown}: ${gv.significant(now(value))}${old}; ${measure} ${gv.significant(now(said))}.` });
  });
}

// ---- a block ----

function block({ level, names, at, sides }, width, em) {
  const d = drawing(em), narrow = width < 40 * em, wires = Object.fromEntries(level.wires.map((wire) => [wire.name, wire]));
  const pad = 0.3 * em, gap = Math.max(0.5 * em, 0.02 * width), w = (width - 2 * pad - 3 * gap) / 4, ys = 6.2 * em, yb = 10 * em, hb = 7.4 * em;
  const x = (i) => pad + i * (w + gap), sizes = [wires.pre, wires.mid, wires.post].map(({ number }) => now(number));
  const half = (size) => 0.15 * em + 0.75 * em * Math.sqrt(size / Math.max(...sizes, 1e-9));
  const plus = [x(1) + 0.4 * w, x(3) + 0.4 * w];
  const ends = [[0, plus[0], sizes[0]], [plus[0], plus[1], sizes[1]], [plus[1], width, sizes[2]]];
  for (const [x0, x1, size] of ends) d.path(`M${x0} ${ys - half(size)}H${x1}V${ys + half(size)}H${x0}z`, { fill: 'quiet', opacity: 0.4 });
  const boxes = [['norm1', names.norm, `${at}.norm1`], ['attn', 'attention', `${at}.attention`], ['norm2', names.norm, `${at}.norm2`], ['mlp', 'feed-forward', `${at}.feed_forward`]];
  boxes.forEach(([name, title, to], i) => {
    const paint = { attn: 'output', mlp: 'feed_forward' }[name] ?? 'quiet', wire = wires[name];
    d.step = i + 1 + (i > 1);
    d.rect(x(i), yb, w, hb, { fill: 'panel', stroke: paint, r: 8 });
    d.text(x(i) + w / 2, yb + 1.5 * em, title, { anchor: 'middle', weight: 650, room: w - 6, size: narrow ? 0.7 : 0.95 });
    strip(d, x(i) + 0.06 * w, yb + 2.2 * em, 0.88 * w, 1.6 * em, { ...wire, label: title });
    d.number(x(i) + w / 2, yb + 4.9 * em, wire.number, { anchor: 'middle', room: w - 4, before: w > 7 * em ? 'norm ' : '' });
    d.door(x(i), yb, w, hb, { at: to, kind: 'box', value: now(wire.number), says: `Open ${title}${name === 'norm2' ? ' before the feed-forward' : ''}: its output has norm ${gv.significant(now(wire.number))}.` });
    const middle = x(i) + 0.2 * w;
    if (i % 2 === 0) d.path(`M${middle} ${ys}V${yb}`, { stroke: 'quiet', width: 2, arrow: true });
    else {
      d.path(`M${x(i) - gap} ${yb + hb / 2}H${x(i)}`, { stroke: 'quiet', width: 2, arrow: true });
      const at = plus[(i - 1) / 2], cosine = level.cosines[(i - 1) / 2];
      d.path(`M${at} ${yb}V${ys + 1.05 * em}`, { stroke: paint, width: 3, arrow: true });
      d.rect(at - 0.8 * em, ys - 0.8 * em, 1.6 * em, 1.6 * em, { fill: 'paper', stroke: paint, width: 2, r: 0.8 * em });
      d.text(at, ys + 0.32 * em, '+', { anchor: 'middle', weight: 700, size: 1.1, color: paint });
      d.number(at - 0.6 * em, yb - 1.3 * em, cosine, { anchor: 'end', before: width > 40 * em ? 'cosine with the stream ' : 'cos ', say: (c) => gv.fixed(c, 2), size: 0.78, color: 'quiet' });
    }
  });
  const spots = [['pre', 0, narrow ? 'in' : 'into the block'], ['mid', plus[0] + 1.2 * em, narrow ? 'mid' : 'after attention'], ['post', plus[1] + 1.2 * em, narrow ? 'out' : 'out of the block']];
  const room = Math.min(w, width - plus[1] - 1.4 * em);
  spots.forEach(([name, left, said], i) => {
    d.step = 3 * i;
    d.text(left, 1.9 * em, said, { size: 0.8, color: 'quiet', room });
    strip(d, left, 2.3 * em, room, 1.1 * em, { ...wires[name], label: said });
    d.number(left, 4.4 * em, wires[name].number, { room });
  });
  sides.forEach(([to, name], i) => {
    const last = i === sides.length - 1 && !(to.endsWith('.0') || i === 0 && sides.length > 1);
    d.text(last ? width : 0, 0.8 * em, last ? `${name} ›` : `‹ ${name}`, { anchor: last ? 'end' : 'start', color: 'accent', size: 0.8 });
    d.door(last ? width - 5 * em : 0, 0, 5 * em, 1.1 * em, { at: to, says: `To ${name}.`, kind: 'side' });
  });
  return { ...d, height: yb + hb + 0.4 * em };
}

// ---- its heads ----

// What the mask leaves of W rows, as one square of numbers; nothing above the diagonal.
function square(values, count, first = 0) {
  const out = new Float32Array(count * count).fill(NaN);
  for (let i = 0, k = first; i < count; i++) for (let j = 0; j <= i; j++) out[i * count + j] = values[k++];
  return out;
}

// A square of weights; the unchanged one lies small in the corner that the mask leaves empty.
function weights(d, x, y, side, { of, was }, count, more, first = 0) {
  const paint = { cols: count, rows: count, limit: 1, paint: 'attention', count: count * count, weights: true, label: 'weights' };
  d.image(x, y, side, side, { ...paint, ...more, values: square(of, count, first) });
  d.rect(x, y, side, side, { stroke: 'grid' });
  if (!was) return;
  const small = 0.44 * side;
  d.image(x + side - small, y, small, small, { ...paint, values: square(was, count, first), unchanged: true });
  d.rect(x + side - small, y, small, small, { stroke: 'ghost', dash: '4 3' });
}

function attention({ level, tokens, position }, width, em, tall) {
  const d = drawing(em), count = level.heads.length, rows = level.rows.length, triangle = (rows * (rows + 1)) / 2;
  // in as many lines as leave each matrix the largest
  const sized = [1, 2, 3, 4, 5, 6, 7].map((down) => [Math.ceil(count / down), down]).map(([across, down]) => (
    { across, side: Math.min(width / across - 0.8 * em, Math.max(5 * em, tall / down - 5.4 * em)) }));
  const { across, side } = sized.reduce((best, one) => (one.side > best.side + 1 ? one : best));
  const w = Math.min(width / across, side + 3 * em), high = side + 5.4 * em, most = Math.max(...level.heads.map(({ wrote }) => now(wrote)), 1e-9);
  const here = level.rows.indexOf(position);
  level.heads.forEach(({ at, looks, key, weight, wrote }, h) => {
    const [x, y] = [(h % across) * w + 0.3 * em, Math.floor(h / across) * high], room = w - 0.6 * em;
    d.text(x, y + 1.1 * em, `head ${h}`, { weight: 650, size: 0.85 });
    weights(d, x, y + 1.5 * em, side, level.weights, rows, { label: `head ${h}` }, h * triangle);
    if (here >= 0) d.rect(x - 1, y + 1.5 * em + (here * side) / rows - 1, side + 2, side / rows + 2, { stroke: 'accent', width: 1.5 });
    const below = y + 1.5 * em + side;
    d.text(x, below + 1.1 * em, `${looks} ${gv.weight(now(weight))}`, { room, size: 0.8 });
    d.rect(x, below + 1.5 * em, side, 0.35 * em, { fill: 'panel', r: 2 });
    d.rect(x, below + 1.5 * em, (side * now(wrote)) / most, 0.35 * em, { fill: 'output', r: 2 });
    d.number(x, below + 2.8 * em, wrote, { before: 'adds ', size: 0.75, color: 'quiet', room });
    const old = was(weight) === undefined ? '' : ` (unchanged ${gv.weight(was(weight))})`;
    d.door(x - 0.2 * em, y, w - 0.2 * em, high - 0.3 * em, { at, kind: 'head', value: now(wrote),
      says: `Head ${h} gives ${gv.weight(now(weight))}${old} of its attention to “${tokens[key]}” (position ${key}) and contributes a vector of norm ${gv.significant(now(wrote))}.` });
  });
  return { ...d, height: Math.ceil(count / across) * high };
}

// ---- a head ----

function head({ level, at, tokens, position }, width, em, tall) {
  const d = drawing(em), rows = level.rows, count = rows.length, size = level.q.of.length, narrow = width < 48 * em;
  const matrix = (narrow ? Math.min(width, 22 * em) : Math.min(0.33 * width, 24 * em)) - 4, table = narrow ? width : width - matrix - 2 * em;
  const top = 4.6 * em, step = Math.max(1.05 * em, Math.min(1.5 * em, (tall - top - 3 * em) / count)), line = (i) => top + i * step;
  const both = Boolean(level.scores.was);      // the unchanged model's scores are others: they stand to the left of each
  const parts = narrow ? (both ? { token: 0.17, keys: 0.14, score: 0.27, weight: 0.24, values: 0.18 } : { token: 0.2, keys: 0.2, score: 0.16, weight: 0.24, values: 0.2 })
    : both ? { token: 0.12, keys: 0.13, score: 0.17, divided: 0.14, weight: 0.16, values: 0.13, weighted: 0.15 }
    : { token: 0.13, keys: 0.18, score: 0.1, divided: 0.1, weight: 0.18, values: 0.15, weighted: 0.16 };
  const x = {}, w = {};
  Object.entries(parts).reduce((left, [name, share]) => { Object.assign(x, { [name]: left }); w[name] = share * table - 0.5 * em; return left + share * table; }, 0);
  const last = narrow ? 'values' : 'weighted';
  const limit = (values) => values.of.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
  const part = (values, i, size) => {
    const [of, was] = ['of', 'was'].map((name) => values[name]?.subarray(i * size, (i + 1) * size));
    return was?.some((value, k) => Math.abs(value - of[k]) > 1e-6 + 1e-5 * Math.abs(of[k])) ? { of, was } : { of };
  };
  const most = limit({ of: level.v.of.map((value, i) => value * level.row.of[Math.floor(i / size)]) });
  d.text(0, 1 * em, `query of ${tokens[position]}`, { color: 'query', weight: 650, room: x.keys + w.keys, size: 0.85 });
  strip(d, x.keys, 1.4 * em, w.keys, 1.1 * em, { values: level.q, limit: limit(level.q), paint: 'query', label: 'query' });
  const titles = { keys: ['keys', 'key'], score: ['q · k', 'ink'], divided: [`÷ √${size}`, 'ink'], weight: ['weight', 'ink'], values: ['values', 'value'], weighted: ['× weight', 'output'] };
  for (const name in parts) if (titles[name]) {
    const two = both && ['score', 'divided'].includes(name);
    d.text(two ? x[name] + w[name] : x[name], top - 0.6 * em, titles[name][0], { anchor: two ? 'end' : 'start', color: titles[name][1], size: 0.8, weight: 650, room: w[name] });
    if (two) d.text(x[name], top - 1.6 * em, 'unchanged', { color: 'ghost', size: 0.74, room: w[name] });
  }
  for (let i = 0; i < count; i++) {
    const y = line(i), masked = rows[i] > position, weight = level.row.of[i], old = level.row.was?.[i], color = masked ? 'quiet' : 'ink';
    const order = Object.keys(parts);      // while it is played, column after column
    const said = (name, text, old) => {
      d.step = order.indexOf(name);
      d.text(x[name] + w[name], y + 0.78 * step, text, { anchor: 'end', size: 0.8, color, room: w[name] + 0.4 * em });
      if (old) d.text(x[name] + 0.5 * w[name], y + 0.78 * step, old, { anchor: 'end', size: 0.74, color: 'ghost', room: 0.5 * w[name] });
    };
    const [score, scaled] = [level.scores, level.scaled].map((values) => {
      const { of, was } = part(values, i, 1);
      return [gv.number(of[0]), was && gv.number(was[0])];
    });
    const row = (name, values, most, paint, label) => { d.step = order.indexOf(name); strip(d, x[name], y + 0.12 * step, w[name], 0.76 * step, { values, limit: most, paint, label: `${label} position ${rows[i]}` }); };
    d.step = 0;
    d.text(x.keys - 0.4 * em, y + 0.78 * step, tokens[rows[i]], { anchor: 'end', room: w.token, size: 0.82, color, weight: rows[i] === position ? 700 : 400 });
    row('keys', part(level.k, i, size), limit(level.k), 'key', 'key of');
    said('score', ...score);
    if (!narrow) said('divided', ...scaled);
    if (masked) d.text(x.weight, y + 0.78 * step, 'masked', { size: 0.78, color: 'quiet' });
    else {
      const room = w.weight - 2.9 * em;
      d.step = order.indexOf('weight');
      d.rect(x.weight, y + 0.2 * step, room, 0.6 * step, { fill: 'panel' });
      d.rect(x.weight, y + 0.2 * step, Math.max(1, room * Math.min(1, weight)), 0.6 * step, { fill: 'output' });
      if (old !== undefined) d.rect(x.weight, y + 0.12 * step, room * Math.min(1, old), 0.76 * step, { stroke: 'ghost', width: 2 });
      said('weight', gv.weight(weight));
      row('values', part(level.v, i, size), limit(level.v), 'value', 'value of');
      const value = part(level.v, i, size), times = (values, weight) => values.map((one) => one * weight);
      const before = value.was || old !== undefined ? { was: times(value.was ?? value.of, old ?? weight) } : {};
      if (!narrow) row('weighted', { of: times(value.of, weight), ...before }, most, 'output', 'weighted value of');
    }
    d.door(0, y, table, step, { at: `${at}.cell.${position}.${rows[i]}`, kind: 'cell', value: weight,
      says: masked ? `“${tokens[rows[i]]}” (position ${rows[i]}) comes later: masked.`
        : `“${tokens[rows[i]]}” (position ${rows[i]}): ${[['score', ...score], ['divided', ...scaled], ['weight', gv.weight(weight), old === undefined ? old : gv.weight(old)]]
          .map(([name, is, old]) => `${name} ${is}${old === undefined ? '' : ` (unchanged ${old})`}`).join(', ')}.` });
  }
  d.step = Object.keys(parts).length;
  let y = line(count) + 0.5 * em;
  if (now(level.outside) > 0) {
    d.text(x.weight, y + 0.7 * em, `${gv.weight(now(level.outside))} goes to tokens outside of this window`, { size: 0.78, color: 'quiet', room: table - x.weight });
    y += 1.2 * em;
  }
  d.text(x[last] - 0.5 * em, y + 0.95 * em, narrow ? 'sum' : 'their sum: the head’s output', { anchor: 'end', color: 'output', weight: 650, size: 0.85 });
  strip(d, x[last], y, w[last], 1.3 * em, { values: level.z, limit: limit(level.z), paint: 'output', label: 'the head’s output' });
  const bottom = y + 2 * em, [mx, my] = narrow ? [0, bottom + 1.6 * em] : [width - matrix - 2, 2 * em], cell = matrix / count;
  d.step = 0;
  d.text(mx, my - 0.5 * em, 'all tokens: who looks (rows) at whom (columns)', { size: 0.8, color: 'quiet', room: matrix });
  weights(d, mx, my, matrix, level.weights, count, { cells: at });
  const here = rows.indexOf(position);
  if (here >= 0) d.rect(mx - 1, my + here * cell - 1, matrix + 2, cell + 2, { stroke: 'accent', width: 2 });
  return { ...d, height: Math.max(bottom, my + matrix + 0.5 * em) };
}

// ---- sums and products, line by line ----

function lines({ level, names }, width, em) {
  const d = drawing(em), narrow = width < 40 * em, bars = !level.bars || narrow ? 0 : level.lines.length < 3 ? 0.5 * width : Math.min(20 * em, 0.32 * width);
  const table = width - (bars ? bars + 2 * em : 0), sign = 2 * em, right = 7.5 * em, w = table - sign - right - em;
  let y = 0;
  level.lines.forEach((line, i) => {
    d.step = i;
    const old = was(line.number) !== undefined;
    const rows = line.into && line.values ? folded(line.values.of.length, narrow ? 2 : 5) : 1, high = rows > 1 ? Math.max(3, rows * 0.4) * em : 1.35 * em;
    d.text(sign / 2, y + (line.values ? 1.3 * em + high / 2 + 0.3 * em : 1.05 * em), line.op, { anchor: 'middle', size: 1.25, weight: 650, color: 'accent' });
    d.text(sign, y + 1 * em, line.label, { size: 0.82, room: w });
    if (line.values) strip(d, sign, y + 1.35 * em, w, high, { ...line, rows, label: line.label });
    if (line.number !== null && line.number !== undefined) {
      const level = line.values ? y + 1.35 * em + Math.min(high, 1.35 * em) : y + 1.05 * em;
      const say = line.whole ? (count) => count.toLocaleString('en') : gv.significant;
      d.number(table - right + 0.2 * em, level - 0.3 * em, line.number, { weight: 700, size: 0.95, room: right, say });
      if (line.values) d.text(table - right + 0.2 * em, y + 1 * em, line.said, { size: 0.75, color: 'quiet', room: right });
    }
    y += (line.values ? 1.35 * em + high + 0.75 * em : 1.7 * em) + (old ? 0.7 * em : 0);
  });
  if (level.bars) {
    const [x, top] = bars ? [width - bars, 0] : [0, y + 0.6 * em];
    barsOf(d, level.bars, x, top, bars || width, 2.15 * em, em, level.bars[0]?.at.startsWith('logit') ? 'logit' : `after ${names.activation}`);
    y = Math.max(y, top + level.bars.length * 2.15 * em);
  }
  return { ...d, height: y };
}

// In how many rows a long row is drawn: the most up to 16 that divide it and leave it wide.
function folded(count, wide) {
  const most = Math.max(1, Math.min(16, Math.floor(Math.sqrt(count / wide))));
  for (let rows = most; rows > 1; rows--) if (count % rows === 0) return rows;
  return 1;
}

const LAYOUTS = { machine, block, attention, head };

// `data.kind` names the kind of place; all that have no layout of their own are lines.
function layout(data, { width, em, tall = 30 * em }) {
  const { shapes, doors, height } = (LAYOUTS[data.kind] ?? lines)(data, width, em, tall);
  return { width, height: Math.ceil(height), shapes, doors };
}
