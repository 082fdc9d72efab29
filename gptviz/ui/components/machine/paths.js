// Paths to one reader, on the machine: below the ribbons each block has its heads, in the colour of what moves when the
// reader alone gets their value of the other text. From the strongest, threads climb to the ribbon of the token that they
// write at, run along it, and come down where the reader reads it, or run on to the guess.

const GUESS = -1;                                      // the guess, where a reader's block would stand
const READS = { q: 'query', k: 'key', v: 'value' };
const PATH_ROOM = 0.7;                                 // em of a column, at least; narrower ones are folded

// How high the heads are, and all that stands below the ribbons.
function bandOf({ heads }, em, tall) {
  const cell = Math.max(0.8 * em, Math.min(1.3 * em, (0.4 * tall) / heads));
  return { cell, height: heads * cell + 4.6 * em };
}

// The blocks that must not be folded: of the readers, and of the threads.
const keptOf = ({ readers, threads }) => [...readers.map(([, block]) => block), ...threads.map(({ block }) => block)];

// Threads in lanes, those of a token side by side: { thread, row, width, lane }, as thick as their effects, the widest
// token's together as wide as its ribbon may be.
function lanesOf(threads, rows, row, y) {
  const byRow = new Map();
  for (const thread of threads) {
    const at = rows.indexOf(thread.position);
    if (at >= 0) byRow.set(at, [...(byRow.get(at) ?? []), thread]);
  }
  const sizes = [...byRow.values()].map((some) => some.map(({ effect }) => Math.abs(effect)));
  const sum = Math.max(1e-12, ...sizes.map((some) => some.reduce((a, b) => a + b, 0))), most = Math.max(1e-12, ...sizes.flat());
  const scale = Math.min((0.95 * row) / sum, (0.5 * row) / most), out = [];
  for (const [at, some] of byRow) {
    const ordered = [...some].sort((a, b) => a.block - b.block || a.head - b.head), wide = ordered.map(({ effect }) => scale * Math.abs(effect));
    let top = y(at) - wide.reduce((a, b) => a + b, 0) / 2;
    ordered.forEach((thread, i) => {
      out.push({ thread, row: at, width: Math.max(1, wide[i]), lane: top + wide[i] / 2 });
      top += wide[i];
    });
  }
  return out;
}

// `on` is where the machine stands: its columns, rows and edges.
function withPaths(d, { paths, tokens, em, width, on }) {
  const { heads, effects, written, readers, threads, unit, word, key } = paths, { shown, each, place, y, row, rows, selected, label, right, bars, top, bottom, below } = on;
  const { cell } = on.band, bandTop = bottom + 1.9 * em, bandEnd = bandTop + heads * cell, blocks = effects.of.length / heads;
  const column = Array.from({ length: blocks }, (_, block) => shown.findIndex((one) => one.block === block));
  const box = (block, head) => ({ x: place(column[block]) + 0.24 * each, y: bandTop + (head + 0.08) * cell, w: 0.5 * each, h: 0.84 * cell });
  const middle = (block, head) => bandTop + (head + 0.5) * cell, share = (value) => gv.fixed(value, 3) + unit;
  const named = ({ position, effect }) => `${share(effect)} by what it writes at “${tokens[position]}” (position ${position})`;
  d.doors.length = 0;      // what opens here is a head

  // the columns go on down to their heads
  for (const x of [...shown.map((_, i) => place(i)), right]) d.path(`M${x} ${bottom}V${bandEnd}`, { stroke: 'grid' });
  for (let head = 0; head < heads; head++) d.text(label - 0.35 * em, middle(0, head) + 0.26 * em, `head ${head}`, { anchor: 'end', color: 'quiet', size: Math.min(0.75, (0.8 * cell) / em), room: label - 0.6 * em });

  const endX = right + 2.4 * em, guessY = Math.max(y(Math.max(0, selected)), below + 1.3 * em);
  lanesOf(threads, rows, row, y).forEach(({ thread, width: thick, lane, row: at }) => {
    const { block, head, position, effect } = thread, from = box(block, head), x0 = from.x + from.w, x1 = place(column[block]) + each, yc = middle(block, head);
    const ends = readers.filter(([, reader]) => reader > block), paint = { stroke: effect > 0 ? 'positive' : 'negative', width: thick, opacity: 0.8 };
    const far = readers.length ? Math.max(x1, ...ends.map(([, reader]) => place(column[reader]))) : right + 1.4 * em;
    const told = (to) => ({ says: `Head ${block}·${head}: ${named(thread)}.`, data: { path: `${block}.${head}.${position}`, block, head, position, effect, row: at, to } });
    const climb = `M${x0} ${yc}C${x1} ${yc} ${x0} ${lane} ${x1} ${lane}H${far}`;
    d.path(readers.length ? climb : `${climb}C${far + 0.5 * em} ${lane} ${far + 0.5 * em} ${guessY} ${endX} ${guessY}`, { ...paint, ...told(readers.length ? 'stream' : 'guess') });
    for (const [read, reader, own] of ends) {
      const xr = place(column[reader]), to = box(reader, own), yr = middle(reader, own);
      d.path(`M${xr} ${lane}C${to.x} ${lane} ${xr} ${yr} ${to.x} ${yr}`, { ...paint, ...told(`${read}${reader}.${own}`) });
    }
  });

  for (let block = 0; block < blocks; block++) if (column[block] >= 0) for (let head = 0; head < heads; head++) {
    const { x, y: up, w, h } = box(block, head), value = effects.of[block * heads + head], was = effects.was?.[block * heads + head], none = Number.isNaN(value);
    const reads = readers.filter(([, b, own]) => b === block && own === head).map(([read]) => read), text = written[block][head];
    d.rect(x, up, w, h, { fill: none ? 'paper' : value, stroke: none ? 'grid' : 'masked', r: 3 });
    if (reads.length) d.rect(x, up, w, h, { stroke: 'ink', width: 2.5, r: 3 });
    const fits = text && !none && long(text) * 0.72 * em < w - 2;
    if (fits) d.text(x + w / 2, up + h / 2 + 0.25 * em, text, { anchor: 'middle', size: Math.min(0.72, (0.8 * h) / em), on: value });
    if (w > 0.75 * em) reads.forEach((read, i) => {      // in the cell, or left of it where a number stands in it
      const at = fits ? x - 0.15 * em - 0.55 * em * (reads.length - 1 - i) : x + ((i + 1) * w) / (reads.length + 1);
      d.text(at, up + h / 2 + 0.28 * em, read, { anchor: fits ? 'end' : 'middle', size: Math.min(0.85, (0.9 * h) / em), weight: 700, color: READS[read] });
    });
    const parts = threads.filter((one) => one.block === block && one.head === head && readers.length);
    const says = [`Block ${block} · head ${head}: `, none ? (reads.length ? '' : 'no path leads from it to this reader') : share(value), was === undefined || Number.isNaN(was) ? '' : `, ${share(was)} unchanged`,
      reads.length ? `${none ? '' : '; '}the reader (${reads.map((read) => READS[read]).join(', ')})` : '', parts.length ? `; ${parts.map(named).join(', ')}` : '', '.'].join('');
    d.door(x, up, w, h, { kind: 'head', block, head, value: none ? undefined : value, says, pressed: reads.length > 0 });
  }

  const high = 1.7 * em, wide = bars - 0.3 * em;
  d.rect(endX, guessY - high / 2, wide, high, { fill: 'panel', stroke: readers.length ? 'grid' : 'ink', width: readers.length ? 1 : 2.5, r: 4 });
  d.text(endX + wide / 2, guessY + 0.3 * em, word, { anchor: 'middle', size: 0.85, weight: 650, room: wide - 6 });
  d.door(endX, guessY - high / 2, wide, high, { kind: 'guess', block: GUESS, head: 0, says: `The model’s guess: the logits ${word}.`, pressed: !readers.length });

  let foot = Math.max(bandEnd, guessY + high / 2) + 1.3 * em;
  for (const line of key) {
    d.text(0.3 * em, foot, line, { size: 0.75, color: 'quiet', room: width - 0.6 * em });
    foot += 1.2 * em;
  }
  return { ...d, height: Math.max(top, foot - 0.5 * em) };
}

// What a head's click says in a file, which has one reader's paths and no model.
function inFile({ block, head, kind, says, pressed }) {
  if (kind === 'guess') return pressed ? says : `${says} Its paths are not in this file: path_into="logits" draws them.`;
  if (block === 0) return `${says} It reads the tokens alone.`;
  return `${says} Whom it reads from is not in this file: path_into="q${block}.${head}" draws it.`;
}

// In a file a click on a head leaves its own threads bright, and a second one all.
function light(view, door) {
  const { root, state } = view, own = `${door.block}.${door.head}.`, threads = [...root.querySelectorAll('[data-path]')];
  const is = (node) => node.dataset.path.startsWith(own);
  state.lit = state.lit === own || !threads.some(is) ? null : own;
  for (const node of threads) node.style.opacity = state.lit && !is(node) ? 0.12 : '';
  tell(view, inFile(door));
}

// A click on a head makes it the reader; with Shift, or while more are asked for, one more.
function readFrom(view, door, event) {
  const { block, head } = door;
  if (view.data.known) return light(view, door);
  if (block === 0) return tell(view, 'Block 0 reads the tokens alone: no head stands before it.');
  view.send('reader', { block, head, also: Number(event.shiftKey || view.data.paths.also) });
}

// What the thread under the pointer says, if there is one.
function threadUnder({ root, state }, { clientX, clientY }) {
  const hit = root.getRootNode().elementsFromPoint(clientX, clientY).find((node) => node.dataset?.path);
  return hit && state.now.layout.shapes.find(({ data }) => data?.path === hit.dataset.path)?.says;
}

function pathsOf(view, aloud, stage, doors) {
  const { data, state } = view;
  return gv.h('div', { class: 'machine paths', role: 'group', 'aria-label': data.says[0], data: { testid: 'machine', kind: 'paths', readers: data.paths.readers.map(([read, block, head]) => `${read}${block}.${head}`).join(',') } },
    aloud, stage,
    gv.reserving(doors.map((door) => [data.known ? inFile(door) : door.says]), gv.h('p', { class: 'tells', data: { testid: 'place-tells' } })),
    gv.h('div', { class: 'foot' }, gv.saveButtons(() => picture(state.view), data.saved)));
}
