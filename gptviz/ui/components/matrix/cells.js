// What a matrix shows: its window onto the tokens, its numbers, and their colours. All pure: tests/js holds it.

// ---- the window: { query, key, n }, the first row, the first column, and how many of each; whole cells ----

const FEWEST = 4;                // cells that the largest zoom leaves
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

const sizeOf = (n, count) => clamp(Math.round(n), Math.min(FEWEST, count), count);

function windowAt(query, key, n, count) {
  const size = sizeOf(n, count), start = (from) => clamp(Math.round(from), 0, count - size);
  return { query: start(query), key: start(key), n: size };
}

// With the cell `at` in its middle, as far as the matrix goes.
function windowAround(at, n, count) {
  const before = Math.floor((sizeOf(n, count) - 1) / 2);
  return windowAt(at.query - before, (at.key ?? at.query) - before, n, count);
}

// Enlarged by `factor` (below 1: made smaller), where the cell `at` stays in its place on the screen.
function zoomed(shown, factor, at, count) {
  const n = sizeOf(shown.n / factor, count);
  const start = (from, fixed) => fixed + 0.5 - ((fixed + 0.5 - from) * n) / shown.n;
  return windowAt(start(shown.query, at.query), start(shown.key, at.key ?? at.query), n, count);
}

const panned = (shown, rows, columns, count) => windowAt(shown.query + rows, shown.key + columns, shown.n, count);

// Moved as little as needed, so that `at` is inside.
function revealing(shown, at, count) {
  const start = (from, i) => (i === null ? from : clamp(from, i - shown.n + 1, i));
  return windowAt(start(shown.query, at.query), start(shown.key, at.key), shown.n, count);
}

const shows = (shown, at) => ['query', 'key'].every((axis) => at[axis] === null || (at[axis] >= shown[axis] && at[axis] < shown[axis] + shown.n));

// The part of a panel that a window shows: dimensions are always all there.
function partOf(panel, shown) {
  const rows = panel.row_axis === 'dim' ? panel.rows : Math.min(shown.n, panel.rows);
  const columns = panel.column_axis === 'dim' ? panel.columns : Math.min(shown.n, panel.columns);
  return { row: shown[panel.row_axis] ?? 0, column: shown[panel.column_axis] ?? 0, rows, columns };
}

// ---- numbers ----

// float32 in base64; of a triangle only what the causal mask leaves of each row was sent.
function decode(array) {
  const bytes = Uint8Array.from(atob(array.base64), (c) => c.charCodeAt(0));
  const packed = new Float32Array(bytes.buffer);
  if (!array.triangle) return packed;
  const n = array.columns, full = new Float32Array(n * n);
  for (let row = 0, from = 0; row < n; from += ++row) full.set(packed.subarray(from, from + row + 1), row * n);
  return full;
}

// Every row of `a` times every row of `b`, vectors of `width` numbers: queries times keys are the scores.
function products(a, b, width) {
  const [rows, columns] = [a.length / width, b.length / width], out = new Float32Array(rows * columns);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) {
      let sum = 0;
      for (let d = 0; d < width; d++) sum += a[i * width + d] * b[j * width + d];
      out[i * columns + j] = sum;
    }
  return out;
}

function decodeAll(arrays) {
  const out = {};
  for (const [name, array] of Object.entries(arrays)) if (!array.of) out[name] = decode(array);
  for (const [name, array] of Object.entries(arrays))
    if (array.of) out[name] = products(...array.of.map((factor) => out[factor]), arrays[array.of[0]].columns);
  return out;
}

// The rows that a query's output adds up: nothing at first, then with the values of each beat's keys, by their weights.
function sumsOf(weights, values, width, query, beats) {
  const sums = [new Float64Array(width)], row = query * (values.length / width);
  for (const keys of beats) {
    const next = sums.at(-1).slice();
    for (const key of keys)
      for (let d = 0; d < width; d++) next[d] += weights[row + key] * values[key * width + d];
    sums.push(next);
  }
  return sums;
}

const isMasked = (panel, row, column) => panel.masked && column > row;
const valueOf = (arrays, panel, row, column) => arrays[panel.array][row * panel.columns + column] / panel.divisor;

// ---- pixels ----

const HIDDEN = Infinity;         // in place of a number: the causal mask hides it

// A part of a panel on `wide` by `high` pixels, at most one a cell. A pixel that stands for several cells has
// the strongest of them: what is strong stays visible however small it is drawn.
function pooled(arrays, panel, part, wide, high) {
  const out = new Float32Array(wide * high);
  const start = (i, cells, pixels) => Math.floor((i * cells) / pixels);
  for (let y = 0; y < high; y++)
    for (let x = 0; x < wide; x++) {
      let best = HIDDEN;
      for (let row = start(y, part.rows, high); row < start(y + 1, part.rows, high); row++)
        for (let column = start(x, part.columns, wide); column < start(x + 1, part.columns, wide); column++) {
          if (isMasked(panel, part.row + row, part.column + column)) continue;
          const value = valueOf(arrays, panel, part.row + row, part.column + column);
          if (best === HIDDEN || Number.isNaN(best) || Math.abs(value) > Math.abs(best)) best = value;
        }
      out[y * wide + x] = best;
    }
  return out;
}

// The colours of those numbers, four bytes a pixel.
function coloured(values, panel, colors) {
  const bytes = new Uint8ClampedArray(4 * values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i], x = (value - panel.low) / (panel.high - panel.low || 1);
    const color = value === HIDDEN ? colors.masked : Number.isNaN(value) ? colors.nothing
      : colors.tables[panel.scale][clamp(Math.round(255 * x), 0, 255)];
    [bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]] = [...color, 255];
  }
  return bytes;
}

function colorsOf(palette) {
  const tables = { attention: gv.colorTable(palette.attention), signed: gv.colorTable(palette.signed) };
  return { tables, masked: gv.channels(palette.masked), nothing: gv.channels(palette.panel) };
}

// ---- words ----

// A sentence of a panel about the cell `at`, as [text, token, text, ...], and the cell's number, if it has one.
function saying({ data, state }, panel, at) {
  const row = at[panel.row_axis] ?? null, column = at[panel.column_axis] ?? null;
  if (row === null || column === null) return { pieces: [''], value: null };
  const value = valueOf(state.arrays, panel, row, column), hidden = isMasked(panel, row, column);
  const nothing = !hidden && Number.isNaN(value);
  const digits = gv[panel.digits], named = { value: () => digits(value), product: () => digits(value * panel.divisor), dim: () => at.dim };
  const pieces = [''];
  (hidden ? panel.says_masked : nothing ? panel.says_nothing : panel.says).split(/\{(\w+)\}/).forEach((part, i) => {
    if (i % 2 === 0) pieces[pieces.length - 1] += part;
    else if (part in named) pieces[pieces.length - 1] += named[part]();
    else pieces.push(data.tokens[at[part]], ` (position ${data.positions ? data.positions[at[part]] : at[part] + data.first})`);
  });
  return { pieces, value: hidden || nothing ? null : value };
}

// A row of attention for who hears it: “·sat” (position 2) gives 0.61 to “·cat” (position 1), ... Its largest weights.
const HEARD = 5;
function rowSaid({ data, state }, panel, row) {
  const place = (i) => `“${data.tokens[i]}” (position ${data.positions ? data.positions[i] : i + data.first})`;
  const weights = data.tokens.map((_, key) => (isMasked(panel, row, key) ? 0 : valueOf(state.arrays, panel, row, key)));
  const most = [...weights.keys()].filter((key) => weights[key] >= 0.005).sort((a, b) => weights[b] - weights[a]).slice(0, HEARD);
  return `${place(row)} gives ${most.map((key) => `${gv.weight(weights[key])} to ${place(key)}`).join(', ') || 'nothing'}.`;
}

const plain = (pieces) => pieces.map((piece, i) => (i % 2 ? `“${piece}”` : piece)).join('');
