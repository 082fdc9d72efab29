// The kernel's pure parts, by node's own test runner; tests/ui/components/test_javascript.py runs it with the
// page's own palettes and Python's own digits: node --test tests/js, GPTVIZ_KERNEL=<a JSON file>.
const { test } = require('node:test');
const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');

const { kernel, palettes, digits } = JSON.parse(readFileSync(process.env.GPTVIZ_KERNEL, 'utf-8'));
const gv = new Function('gvPalettes', `${kernel}; return gv;`)(palettes);
const special = { nan: NaN, inf: Infinity, '-inf': -Infinity };

test('digits are those of gptviz/digits.py', () => {
  assert.ok(digits.length > 1000);
  for (const [rule, value, digits_, expected] of digits)
    assert.equal(gv[rule](special[value] ?? value, digits_ ?? undefined), expected, `${rule}(${value}, ${digits_})`);
});

test('a scale goes through its stops, and stays at its ends', () => {
  for (const { attention, signed } of Object.values(palettes))
    for (const scale of [attention, signed]) {
      for (const [stop, color] of scale) assert.deepEqual(gv.colorAt(scale, stop), gv.channels(color));
      assert.deepEqual(gv.colorAt(scale, -1), gv.channels(scale[0][1]));
      assert.deepEqual(gv.colorAt(scale, 7), gv.channels(scale.at(-1)[1]));
      assert.deepEqual(gv.colorTable(scale)[255], gv.channels(scale.at(-1)[1]));
    }
});

test('text on every colour of the attention scale can be read', () => {
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  for (const { attention } of Object.values(palettes))
    for (const color of gv.colorTable(attention)) {
      const pair = [luminance(color), luminance(gv.channels(gv.textOn(color)))].sort((a, b) => b - a);
      assert.ok((pair[0] + 0.05) / (pair[1] + 0.05) >= 4.5, `${color}`);
    }
});
