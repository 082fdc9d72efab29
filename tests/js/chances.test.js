// The softmax that moves the bars while a slider is held (components/candidates/chances.js) is that of Python.
const { test } = require('node:test');
const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');

const { chances: source, distributions } = JSON.parse(readFileSync(process.env.GPTVIZ_KERNEL, 'utf-8'));
const { unpacked, chances, bitsOf, left } = new Function(`${source}; return { unpacked, chances, bitsOf, left };`)();

const close = (one, other) => assert.ok(Math.abs(one - other) <= 1e-12 + 1e-9 * Math.abs(other), `${one}, in Python ${other}`);

test('under any settings each probability is what Python has, and so is what is cut', () => {
  assert.ok(distributions.length > 100);
  for (const { logits, settings, p, size, kept, bits } of distributions) {
    const found = chances(unpacked(logits), settings);
    assert.deepEqual([found.size, found.kept], [size, kept], JSON.stringify(settings));
    p.forEach((one, i) => close(found.p[i], one));
    close(bitsOf(found), bits);
  }
});

test('the rest is all that has no row', () => {
  close(left(Float64Array.of(0.5, 0.25, 0.125, 0.125), [1, 3]), 0.375);
  assert.equal(left(Float64Array.of(0.5, 0.5), [1, 2]), 0);
});
