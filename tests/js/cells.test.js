// What a matrix shows, without a browser: its window, its numbers, their pixels (components/matrix/cells.js).
const { test } = require('node:test');
const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');

const { kernel, cells, palettes } = JSON.parse(readFileSync(process.env.GPTVIZ_KERNEL, 'utf-8'));
const gv = new Function('gvPalettes', `${kernel}; return gv;`)(palettes);
const { windowAround, zoomed, panned, revealing, shows, partOf, decode, products, sumsOf, pooled, coloured, colorsOf, saying, plain, HIDDEN, FEWEST } =
  new Function('gv', `${cells}; return { windowAround, zoomed, panned, revealing, shows, partOf, decode, products, sumsOf, pooled,
    coloured, colorsOf, saying, plain, HIDDEN, FEWEST };`)(gv);

const within = ({ query, key, n }, count) => {
  for (const start of [query, key]) assert.ok(Number.isInteger(start) && start >= 0 && start + n <= count, `${[query, key, n]} of ${count}`);
  assert.ok(Number.isInteger(n) && n >= Math.min(FEWEST, count) && n <= count);
};

test('a window is whole cells and inside, wherever it is asked to go', () => {
  for (const count of [1, 3, 4, 7, 225, 1024])
    for (const n of [0, 1, 5.4, 30, 5000])
      for (const at of [{ query: 0, key: 0 }, { query: count - 1, key: 0 }, { query: count - 1, key: null }]) {
        const shown = windowAround(at, n, count);
        within(shown, count);
        assert.ok(shows(shown, at));
        for (const factor of [0.001, 0.6, 1, 1.6, 1000]) {
          within(zoomed(shown, factor, at, count), count);
          assert.ok(shows(zoomed(shown, factor, at, count), at), 'what is zoomed at stays in sight');
        }
        within(panned(shown, -9, 1e6, count), count);
      }
});

test('zooming keeps the cell under the pointer where it is', () => {
  const before = { query: 100, key: 60, n: 40 }, at = { query: 110, key: 90 };
  const after = zoomed(before, 2, at, 225);
  assert.equal(after.n, 20);
  for (const axis of ['query', 'key']) {
    const place = (shown) => (at[axis] + 0.5 - shown[axis]) / shown.n;
    assert.ok(Math.abs(place(after) - place(before)) <= 0.5 / after.n);
  }
  assert.deepEqual(zoomed(before, 0.0001, at, 225), { query: 0, key: 0, n: 225 });
});

test('a cell out of sight moves the window by no more than it needs', () => {
  const shown = { query: 10, key: 10, n: 5 };
  assert.deepEqual(revealing(shown, { query: 15, key: 12 }, 30), { query: 11, key: 10, n: 5 });
  assert.deepEqual(revealing(shown, { query: 12, key: 4 }, 30), { query: 10, key: 4, n: 5 });
  assert.deepEqual(partOf({ row_axis: 'key', column_axis: 'dim', rows: 30, columns: 64 }, { query: 3, key: 7, n: 5 }),
    { row: 7, column: 0, rows: 5, columns: 64 });
});

test('numbers arrive as they were sent, and products are sums of products', () => {
  const base64 = Buffer.from(new Float32Array([1, 2, 3, 4, 5, 6]).buffer).toString('base64');
  assert.deepEqual([...decode({ base64, triangle: true, columns: 3 })], [1, 0, 0, 2, 3, 0, 4, 5, 6]);
  assert.deepEqual([...products([1, 2, 3, 4], [5, 6, 7, 8, 9, 10], 2)], [17, 23, 29, 39, 53, 67]);
});

test('an output adds up from nothing, beat by beat, its values by their weights', () => {
  const weights = [1, 0, 0, 0.5, 0.5, 0, 0.25, 0.5, 0.25], values = [4, 8, 16, -4, 0, 2];
  const sums = sumsOf(weights, values, 2, 2, [[1], [0, 2]]);
  assert.deepEqual(sums.map((sum) => [...sum]), [[0, 0], [8, -2], [9, 0.5]]);
  assert.deepEqual(sumsOf(weights, values, 2, 0, [[0]]).map((sum) => [...sum]), [[0, 0], [4, 8]]);
});

test('however small it is drawn, the strongest weight is there, and only what is masked all over is masked', () => {
  const n = 225, weights = new Float32Array(n * n).fill(0.001), arrays = { w: weights };
  const panel = { array: 'w', rows: n, columns: n, divisor: 1, masked: true, low: 0, high: 1, scale: 'attention' };
  weights[200 * n + 31] = 0.9;
  weights[10 * n + 100] = 7;                            // behind the mask: never seen
  const all = { row: 0, column: 0, rows: n, columns: n };
  for (const pixels of [225, 96, 48, 7]) {
    const out = pooled(arrays, panel, all, pixels, pixels);
    const at = (i) => Math.floor(((i + 1) * pixels - 1) / n);
    assert.equal(out[at(200) * pixels + at(31)], Math.fround(0.9));
    assert.equal(out.filter((value) => value > 0.5 && value !== HIDDEN).length, 1);
    assert.equal(out[pixels - 1], HIDDEN);
    for (let i = 0; i < pixels; i++) assert.notEqual(out[i * pixels + i], HIDDEN);
  }
  weights[0] = NaN;
  const one = pooled(arrays, panel, { row: 0, column: 0, rows: 2, columns: 2 }, 2, 2);
  assert.ok(Number.isNaN(one[0]) && one[1] === HIDDEN && one[3] === Math.fround(0.001));
  const colors = colorsOf(palettes.light), bytes = coloured(one, panel, colors);
  assert.deepEqual([...bytes.subarray(0, 3)], gv.channels(palettes.light.panel));
  assert.deepEqual([...bytes.subarray(4, 7)], gv.channels(palettes.light.masked));
});

test('a negative number can be the strongest', () => {
  const panel = { array: 'x', rows: 1, columns: 3, divisor: 2, masked: false };
  assert.deepEqual([...pooled({ x: [1, -6, 3] }, panel, { row: 0, column: 0, rows: 1, columns: 3 }, 1, 1)], [-3]);
});

test('a sentence keeps tokens apart from words, whatever is in them', () => {
  const panel = { array: 'w', rows: 2, columns: 2, divisor: 1, masked: true, row_axis: 'query', column_axis: 'key',
    digits: 'weight', says: '{query} attends {value} to {key}', says_masked: '{query} cannot see {key}', says_nothing: 'nothing' };
  const view = { data: { tokens: ['·`', '{key}'], first: 7 }, state: { arrays: { w: [1, 0, 0.25, NaN] } } };
  const say = (query, key) => saying(view, panel, { query, key, dim: null });
  assert.deepEqual(say(1, 0), { pieces: ['', '{key}', ' (position 8) attends 0.25 to ', '·`', ' (position 7)'], value: 0.25 });
  assert.equal(plain(say(0, 1).pieces), '“·`” (position 7) cannot see “{key}” (position 8)');
  assert.equal(say(0, 1).value, null);
  assert.deepEqual(say(1, 1), { pieces: ['nothing'], value: null });
  assert.deepEqual(saying(view, panel, { query: 0, key: null, dim: null }), { pieces: [''], value: null });
});
