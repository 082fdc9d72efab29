// Which lines the arcs draw, and what a token's attention adds up to (components/arcs/lines.js).
const { test } = require('node:test');
const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');

const { lines } = JSON.parse(readFileSync(process.env.GPTVIZ_KERNEL, 'utf-8'));
const { weightOf, triangles, kept, totals, largest, held, switched } =
  new Function(`${lines}; return { weightOf, triangles, kept, totals, largest, held, switched };`)();

const HEAD = Float32Array.from([1, 0.25, 0.75, 0.5, 0.125, 0.375]);     // rows of 1, 2 and 3 weights

test('a triangle is read row by row, and what is masked is 0', () => {
  assert.deepEqual([weightOf(HEAD, 1, 0), weightOf(HEAD, 2, 2), weightOf(HEAD, 0, 2)], [0.25, 0.375, 0]);
  const two = Float32Array.from([...HEAD, ...HEAD.map((weight) => weight / 2)]);
  const [first, second] = triangles(Buffer.from(two.buffer).toString('base64'), 2, 3);
  assert.deepEqual([...first], [...HEAD]);
  assert.equal(weightOf(second, 1, 1), 0.375);
});

test('a row is drawn from its largest weight down until the mass is reached, and no further', () => {
  assert.deepEqual(kept(HEAD, 2, 0.5), [0]);
  assert.deepEqual(kept(HEAD, 2, 0.51), [0, 2]);
  assert.deepEqual(kept(HEAD.map((weight) => weight / 4), 2, 0.51), [0, 2]);        // a share of what a changed row adds up to
  assert.deepEqual(kept(HEAD, 2, 1), [0, 2, 1]);
  assert.deepEqual(kept(Float32Array.from([NaN, NaN, 1]), 0, 0.9), []);       // the first token is hidden
  assert.deepEqual(kept(Float32Array.from([NaN, NaN, 1]), 1, 0.9), [1]);
});

test('sums are over the tokens, means over the heads, both ways', () => {
  const { out, into } = totals([HEAD, HEAD], new Set([1, 2]), 3);
  assert.deepEqual([...out], [0.75, 0.875, 0.375]);
  assert.deepEqual([...into], [0, 0.75, 0.5]);
  const whole = totals([HEAD], new Set([0, 1, 2]), 3);
  assert.equal(whole.out.reduce((a, b) => a + b), 3);          // each row sums to 1
  assert.deepEqual([...whole.into], [1, 1, 1]);
  assert.deepEqual(largest(out, 2), [[1, 0.875], [0, 0.75]]);
});

test('a click holds and lets go; beside others it adds and takes away', () => {
  assert.deepEqual([...held(new Set(), 3, false)], [3]);
  assert.deepEqual([...held(new Set([3]), 3, false)], []);
  assert.deepEqual([...held(new Set([3, 5]), 5, false)], [5]);
  assert.deepEqual([...held(new Set([3]), 5, true)], [3, 5]);
  assert.deepEqual([...held(new Set([3, 5]), 3, true)], [5]);
});

test('heads are switched, but never all off; a double click leaves one alone and then brings all back', () => {
  assert.deepEqual([...switched(new Set([0]), 2, false, 3)], [0, 2]);
  assert.deepEqual([...switched(new Set([0]), 0, false, 3)], [0]);
  assert.deepEqual([...switched(new Set([0, 1, 2]), 1, true, 3)], [1]);
  assert.deepEqual([...switched(new Set([1]), 1, true, 3)], [0, 1, 2]);
});
