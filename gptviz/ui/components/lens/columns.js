// Which columns the lens shows, its numbers, and how they are written. All pure: tests/js holds it.

// Pixels of a column where a rem has 16: the narrowest a zoom leaves, one whose token can be made out, what a
// window opens with, the widest.
const NARROWEST = 14, LEGIBLE = 38, OPENED = 50, WIDEST = 150;
const within = (value, low, high) => Math.max(low, Math.min(high, value));

// How many of `count` columns have room at this width; at least one.
const fitting = (room, width, count) => within(Math.floor(room / width), 1, count);

// All of them where each can be made out, else as many as can be read easily.
const openedWith = (room, count, unit) => (room / count >= LEGIBLE * unit ? count : fitting(room, OPENED * unit, count));

// Enlarged by `factor` (below 1: made smaller): never wider than the widest, never narrower than the narrowest.
function zoomedTo(n, factor, room, count, unit) {
  const most = fitting(room, NARROWEST * unit, count), least = Math.min(most, fitting(room, WIDEST * unit, count));
  const next = Math.round(n / factor);
  return within(next === n ? n + (factor > 1 ? -1 : 1) : next, least, most);
}

const startAt = (from, n, count) => within(Math.round(from), 0, Math.max(0, count - n));
const startAround = (at, n, count) => startAt(at - Math.floor((n - 1) / 2), n, count);
const startShowing = (start, at, n, count) => startAt(within(start, at - n + 1, at), n, count);

// ---- numbers ----

function arrayOf(base64, Kind) {
  return new Kind(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)).buffer);
}

// Position -> column of the arrays; undefined where nobody has read.
function columnsOf(known) {
  const columns = new Map();
  for (const [start, stop] of known) for (let position = start; position < stop; position++) columns.set(position, columns.size);
  return columns;
}

function decoded(cells) {
  return {
    columns: columnsOf(cells.known), each: cells.each, shown: cells.shown, pieces: new Set(cells.pieces),
    ids: arrayOf(cells.ids, cells.wide ? Uint32Array : Uint16Array),
    probabilities: arrayOf(cells.probabilities, Float32Array),
    color: arrayOf(cells.color, Float32Array),
    numbers: cells.numbers.map((number) => ({ ...number, values: arrayOf(number.values, Float32Array) })),
    ghosts: cells.ghosts ? { ids: arrayOf(cells.ghosts.ids, Uint32Array), probabilities: arrayOf(cells.ghosts.probabilities, Float32Array) } : null,
  };
}

// A cell: its tokens [{ id, shown, probability }], its colour and its other numbers; null where nobody has read.
// `ghost` is the token that the unchanged model has on top, null where nothing is changed.
function cellAt(read, row, position) {
  const column = read.columns.get(position);
  if (column === undefined) return null;
  const at = row * read.columns.size + column;
  return {
    tops: Array.from({ length: read.each }, (_, i) => {
      const id = read.ids[at * read.each + i];
      return { id, shown: read.shown[id], probability: read.probabilities[at * read.each + i] };
    }),
    id: read.ids[at * read.each], probability: read.probabilities[at * read.each], color: read.color[at],
    numbers: read.numbers.map(({ label, form, values }) => ({ label, form, value: values[at] })),
    ghost: read.ghosts ? { id: read.ghosts.ids[at], shown: read.shown[read.ghosts.ids[at]], probability: read.ghosts.probabilities[at] } : null,
  };
}

// ---- words ----

// A probability as a share of a hundred; what is not certain never reads as if it were.
function percent(p) {
  if (p === 0 || p === 1) return `${100 * p} %`;
  if (p >= 0.9995) return '> 99.9 %';
  return `${gv.significant(100 * p, p >= 0.0995 ? 3 : 2)} %`;
}

const written = ({ form, value }) => (form === 'rank' ? String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',') : `${gv.fixed(value, 2)} bits`);
