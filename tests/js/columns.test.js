// Which columns the lens shows, and its numbers, without a browser (components/lens/columns.js).
const { test } = require('node:test');
const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');

const { kernel, columns, palettes } = JSON.parse(readFileSync(process.env.GPTVIZ_KERNEL, 'utf-8'));
const gv = new Function('gvPalettes', `${kernel}; return gv;`)(palettes);
const { openedWith, zoomedTo, startAround, startShowing, decoded, cellAt, percent, written, WIDEST, NARROWEST } =
  new Function('gv', `${columns}; return { openedWith, zoomedTo, startAround, startShowing, decoded, cellAt, percent, written, WIDEST, NARROWEST };`)(gv);

test('a window is whole columns and inside, wherever it is asked to go', () => {
  for (const count of [1, 2, 15, 22, 225, 1024])
    for (const room of [40, 260, 870, 1800]) {
      let n = openedWith(room, count, 1);
      assert.ok(n >= 1 && n <= count && Number.isInteger(n));
      assert.ok(n === count || room / n >= 38, 'what opens can be read');
      assert.equal(openedWith(3 * room, count, 3), n, 'where letters are larger, so are columns');
      for (const factor of [1.5, 1.5, 0.6, 1000, 0.0001]) {
        const next = zoomedTo(n, factor, room, count, 1);
        assert.equal(zoomedTo(n, factor, 3 * room, count, 3), next);
        assert.ok(Number.isInteger(next) && next >= 1 && next <= count);
        assert.ok(next === count || next === 1 || (room / next >= NARROWEST && room / (next + 1) < WIDEST), `${room} / ${next}`);
        for (const at of [0, count >> 1, count - 1]) {
          const start = startAround(at, next, count);
          assert.ok(start >= 0 && start <= at && at < start + next && start + next <= count);
          assert.equal(startShowing(start, at, next, count), start);       // in sight: nothing moves
          const moved = startShowing(0, at, next, count);
          assert.ok(moved <= at && at < moved + next && moved + next <= count);
        }
        n = next;
      }
    }
});

test('a zoom changes something until it can do no more', () => {
  for (const count of [22, 225]) {
    let n = openedWith(870, count, 1);
    for (let steps = 0; zoomedTo(n, 1.5, 870, count, 1) !== n; steps++) { n = zoomedTo(n, 1.5, 870, count, 1); assert.ok(steps < 40); }
    assert.ok(870 / n >= 100);
    for (let steps = 0; zoomedTo(n, 1 / 1.5, 870, count, 1) !== n; steps++) { n = zoomedTo(n, 1 / 1.5, 870, count, 1); assert.ok(steps < 40); }
    assert.equal(n, Math.min(count, Math.floor(870 / NARROWEST)));
  }
});

const base64 = (array) => Buffer.from(array.buffer).toString('base64');

test('cells are those that were sent, and a column that nobody read is none', () => {
  const cells = {
    known: [[0, 1], [3, 5]], each: 2, wide: false, shown: { 7: 'seven', 8: 'eight', 65535: 'last' },
    ids: base64(new Uint16Array([7, 8, 8, 7, 65535, 7, 7, 7, 8, 8, 7, 65535])),
    probabilities: base64(new Float32Array([0.5, 0.25, 0.75, 0.125, 1, 0, 0.5, 0.5, 0.25, 0.25, 0.5, 0.125])),
    color: base64(new Float32Array([0, 0.25, 0.5, 0.75, 1, 0])),
    numbers: [{ label: 'entropy', form: 'bits', values: base64(new Float32Array([1, 2, 3, 4, 5, 6])) }],
  };
  const read = decoded(cells);
  assert.equal(cellAt(read, 0, 1), null);
  assert.equal(cellAt(read, 0, 5), null);
  assert.deepEqual(cellAt(read, 0, 4).tops, [{ id: 65535, shown: 'last', probability: 1 }, { id: 7, shown: 'seven', probability: 0 }]);
  assert.deepEqual(cellAt(read, 1, 3), {
    tops: [{ id: 8, shown: 'eight', probability: 0.25 }, { id: 8, shown: 'eight', probability: 0.25 }],
    id: 8, probability: 0.25, color: 1, numbers: [{ label: 'entropy', form: 'bits', value: 5 }], ghost: null });
  const ghosts = { ids: base64(new Uint32Array([7, 7, 7, 8, 65535, 8])), probabilities: base64(new Float32Array([0, 0, 0, 0, 0.5, 0])) };
  assert.deepEqual(cellAt(decoded({ ...cells, ghosts }), 1, 3).ghost, { id: 65535, shown: 'last', probability: 0.5 });
  const wide = decoded({ ...cells, wide: true, ids: base64(new Uint32Array(12).fill(200000)), shown: { 200000: 'far' } });
  assert.equal(cellAt(wide, 1, 4).tops[1].shown, 'far');
});

test('what is not certain never reads as if it were', () => {
  assert.deepEqual([1, 0.99996, 0.9994, 0.4, 0.051, 0.00012, 3.1e-9, 0].map(percent),
    ['100 %', '> 99.9 %', '99.9 %', '40.0 %', '5.1 %', '0.012 %', '3.1 × 10⁻⁷ %', '0 %']);
  assert.equal(written({ form: 'rank', value: 50257 }), '50,257');
  assert.equal(written({ form: 'rank', value: 1 }), '1');
  assert.equal(written({ form: 'bits', value: 3.456 }), '3.46 bits');
});
