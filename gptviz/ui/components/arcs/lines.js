// Which lines there are, and what a token's attention adds up to. All pure: tests/js holds it.

// One head's weights as they were sent: row by row what the causal mask leaves. NaN: not to be shown.
const weightOf = (weights, query, key) => (key > query ? 0 : weights[(query * (query + 1)) / 2 + key]);

// float32 in base64, `heads` triangles of `count` rows one after the other.
function triangles(base64, heads, count) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const all = new Float32Array(bytes.buffer), size = (count * (count + 1)) / 2;
  return Array.from({ length: heads }, (_, h) => all.subarray(h * size, (h + 1) * size));
}

// The keys of one row from the largest weight down, until they reach `mass` (0 to 1) of what the row has.
function kept(weights, query, mass) {
  const row = weights.subarray((query * (query + 1)) / 2, ((query + 1) * (query + 2)) / 2);
  const keys = [...row.keys()].filter((k) => row[k] > 0).sort((a, b) => row[b] - row[a]);
  const wanted = mass * keys.reduce((sum, k) => sum + row[k], 0);
  const found = [];
  for (let sum = 0, i = 0; i < keys.length && (sum < wanted || !i); sum += row[keys[i++]]) found.push(keys[i]);
  return found;
}

// What the tokens of `focus` give to each token, and get from each: sums over them, means over the heads.
function totals(heads, focus, count) {
  const out = new Float64Array(count), into = new Float64Array(count);
  for (const weights of heads)
    for (const p of focus) {
      for (let k = 0; k <= p; k++) out[k] += (weightOf(weights, p, k) || 0) / heads.length;
      for (let q = p; q < count; q++) into[q] += (weightOf(weights, q, p) || 0) / heads.length;
    }
  return { out, into };
}

// The largest of them that are worth a number, [position, value] each.
const LEAST = 0.005;
const largest = (values, n) => [...values.keys()].filter((i) => values[i] >= LEAST).sort((a, b) => values[b] - values[a])
  .slice(0, n).map((i) => [i, values[i]]);

// What a click does to the tokens that are held: alone, or beside the others.
function held(before, position, beside) {
  if (!beside) return before.size === 1 && before.has(position) ? new Set() : new Set([position]);
  const after = new Set(before);
  if (!after.delete(position)) after.add(position);
  return after;
}

// Which heads are drawn after a click on one: switched, but never none; a double click leaves it alone, or all.
function switched(on, head, alone, count) {
  if (alone) return on.size === 1 && on.has(head) ? new Set(Array(count).keys()) : new Set([head]);
  const after = new Set(on);
  if (!after.delete(head)) after.add(head);
  return after.size ? after : on;
}
