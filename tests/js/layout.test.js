// Where everything of the one picture stands (components/machine/layout.js, paths.js), for every shape of model and screen.
const { test } = require('node:test');
const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');

const { kernel, layout: source, paths: onIt, palettes } = JSON.parse(readFileSync(process.env.GPTVIZ_KERNEL, 'utf-8'));
const { layout, threadNear } = new Function('gvPalettes', 'preact', `${kernel}\n${source}\n${onIt}; return { layout, threadNear };`)(palettes, {});

const many = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const of = (count, changed) => ({ of: Float32Array.from(many(count, (i) => 5 + 4 * Math.sin(3 * i))), ...(changed ? { was: new Float32Array(count) } : {}) });
const number = (value, changed) => (changed ? { now: value, was: value / 2 } : value);

// A level of each kind as a model of L blocks and H heads gives it for a text of T tokens, at the last of them.
function levels(L, H, T, changed) {
  const rows = many(Math.min(T, 24), (i) => T - Math.min(T, 24) + i), W = rows.length, d = 8;
  const base = { names: { norm: 'LayerNorm', activation: 'GELU' }, tokens: many(T, (i) => (i % 3 ? `·token${i}` : '東')), position: T - 1, sides: [['block.0', 'block 0']] };
  const bars = many(10, (i) => ({ at: `logit.${i}`, shown: '·word', value: number(0.5 / (i + 1), changed), text: '50 %', said: 3 }));
  const line = (more) => ({ op: '×', label: 'a rather long label for a line of numbers', number: number(12.5, changed), said: 'long', ...more });
  const triangle = (W * (W + 1)) / 2;
  return {
    machine: { ...base, at: '', level: { rows, stream: of((2 * L + 1) * W, changed), writes: of(2 * L * W), next: bars,
      reads: many(L, (b) => ({ block: b, head: H - 1, key: rows[0], weight: number(0.5, changed), brought: number(2, changed) })) } },
    block: { ...base, at: 'block.0', level: { cosines: [0.5, number(-0.5, changed)],
      wires: ['pre', 'norm1', 'attn', 'mid', 'norm2', 'mlp', 'post'].map((name) => ({ name, values: of(d, changed), of: d, number: number(3, changed), limit: 1 })) } },
    attention: { ...base, at: 'block.0.attention', level: { rows, weights: of(H * triangle, changed),
      heads: many(H, (h) => ({ at: `block.0.head.${h}`, looks: '·x', key: 0, weight: 1, wrote: number(h, changed) })) } },
    head: { ...base, at: 'block.0.head.0', level: { rows, q: of(d, changed), k: of(W * d, changed), v: of(W * d, changed), z: of(d, changed), scores: of(W, changed), scaled: of(W, changed), row: of(W, changed),
      weights: of(triangle, changed), outside: T > 24 ? 0.2 : 0 } },
    cell: { ...base, at: 'block.0.head.0.cell.0.0', level: { lines: [line({ values: of(d, changed), of: d, limit: 1, paint: 'query' }), line({}), line({ number: null })] } },
    feed_forward: { ...base, at: 'block.0.feed_forward', level: { bars: bars.slice(0, 8), lines: [line({ values: of(4 * 96, changed), of: 4 * 96, limit: number(1, changed), paint: 'signed', into: 'block.0.unit.' })] } },
  };
}

const SCREENS = [[358, 16], [960, 16], [1240, 26], [1700, 16]];

for (const [L, H, T] of [[1, 1, 1], [6, 8, 22], [12, 12, 225], [48, 25, 1024]])
  test(`${L} blocks, ${H} heads, ${T} tokens: all is on the picture, and what can be opened is there`, () => {
    for (const changed of [false, true]) for (const [kind, data] of Object.entries(levels(L, H, T, changed))) for (const [width, em] of SCREENS) {
      const found = layout({ ...data, kind }, { width, em, tall: 28 * em }), where = `${kind} ${width} ${em} ${changed}`;
      assert.equal(found.width, width);
      assert.ok(found.height > 0 && found.height < 120 * em, `${where}: ${found.height} high`);
      for (const one of [...found.shapes, ...found.doors]) {
        const { s = 'door', x = 0, y = 0, w = 0, h = 0 } = one;
        assert.ok([x, y, w, h].every(Number.isFinite), `${where}: ${JSON.stringify(one)}`);
        const right = s === 'text' ? x : x + w, bottom = s === 'text' ? y : y + h;
        if (one.fill !== 'paper') assert.ok(x >= -4 && y >= -4 && right <= width + 4 && bottom <= found.height + 4, `${where} ${found.height}: ${JSON.stringify({ ...one, values: 0 })}`);
        assert.ok(s !== 'path' || !/NaN|undefined/.test(one.d), where);
        assert.ok(s !== 'text' || typeof one.text === 'string', where);
      }
      for (const door of found.doors) assert.ok(door.says && door.w > 0 && door.h > 0 && (door.at === undefined) !== (door.position === undefined), where);
    }
  });

test('every block is a column or folded into one that says so; every head, key and unit can be opened', () => {
  for (const [L, H] of [[1, 1], [12, 12], [48, 25]]) for (const [width, em] of SCREENS) {
    const { machine, attention, head } = levels(L, H, 30, false);
    const columns = layout({ ...machine, kind: 'machine' }, { width, em }).doors.filter(({ kind, at }) => kind === 'column' && at.startsWith('block'));
    const said = columns.flatMap(({ at, says }) => {
      const [, first, last] = /Blocks (\d+) to (\d+) are folded/.exec(says) ?? [];
      return first === undefined ? [Number(at.split('.')[1])] : many(last - first + 1, (i) => Number(first) + i);
    });
    assert.deepEqual(said, many(L, (b) => b));
    assert.deepEqual(layout({ ...attention, kind: 'attention' }, { width, em }).doors.map(({ at }) => at), many(H, (h) => `block.0.head.${h}`));
    assert.equal(layout({ ...head, kind: 'head' }, { width, em }).doors.length, 24);
  }
});

test('beside the changed weights of each head, and beside its rows, stand the unchanged ones', () => {
  for (const changed of [false, true]) {
    const { attention, head } = levels(6, 8, 22, changed), screen = { width: 960, em: 16 };
    const images = (data, kind) => layout({ ...data, kind }, screen).shapes.filter(({ s }) => s === 'image');
    assert.equal(images(attention, 'attention').filter(({ unchanged }) => unchanged).length, changed ? 8 : 0);
    const rows = images(head, 'head').filter(({ label }) => label.startsWith('unchanged, key of'));
    assert.equal(rows.length, changed ? 22 : 0);
    for (const { values } of rows) assert.deepEqual([...values], [...head.level.k.was.slice(0, 8)]);
  }
});

test('each head has its own weights, and in them the row of the chosen token is outlined', () => {
  for (const [kind, of] of Object.entries(levels(1, 3, 10, false)).filter(([kind]) => ['attention', 'head'].includes(kind))) {
    of.level.row?.of.fill(0, 5);       // later keys are masked
    const { shapes } = layout({ ...of, kind, position: 4 }, { width: 960, em: 16 }), matrices = shapes.filter(({ weights }) => weights);
    const marks = shapes.filter(({ s, stroke, x }) => s === 'rect' && stroke === 'accent' && x >= matrices[0].x - 1);
    assert.deepEqual(matrices.map(({ values }) => values[0]), marks.map((_, i) => of.level.weights.of[i * 55]));
    matrices.forEach(({ y, h }, i) => assert.ok(Math.abs(marks[i].y + marks[i].h / 2 - y - 0.45 * h) < 1e-6, kind));
    const parts = shapes.filter(({ label }) => label?.startsWith('weighted')), largest = parts.flatMap(({ values }) => [...values]).map(Math.abs);
    assert.deepEqual(parts.map(({ limit }) => Math.fround(limit)), parts.map(() => Math.max(...largest)));
  }
});

test('scores stand divided and not beside those of the unchanged model, where they are others', () => {
  const scores = { of: Float32Array.of(8, -2, 3), was: Float32Array.of(8, -4.5, 16) }, half = (values) => values.map((one) => one / 2);
  const { head } = levels(1, 1, 3, true), written = { score: ['8.00', '−2.00', '3.00', '−4.50', '16.00'], divided: ['4.00', '−1.00', '1.50', '−2.25', '8.00'] };
  Object.assign(head.level, { scores, scaled: { of: half(scores.of), was: half(scores.was) } });
  for (const [width, em] of SCREENS) {
    const { shapes, doors } = layout({ ...head, kind: 'head' }, { width, em }), texts = shapes.filter(({ s }) => s === 'text');
    const ghosts = texts.filter(({ color, text }) => color === 'ghost' && text !== 'unchanged').map(({ text }) => text);
    const columns = width < 48 * em ? ['score'] : ['score', 'divided'];
    assert.deepEqual(ghosts.sort(), columns.flatMap((name) => written[name].slice(3)).sort());
    for (const name of columns) for (const number of written[name].slice(0, 3)) assert.ok(texts.some(({ text, color }) => text === number && color !== 'ghost'), number);
    assert.ok(doors[1].says.includes('score −2.00 (unchanged −4.50), divided −1.00 (unchanged −2.25)') && doors[0].says.includes('score 8.00, divided 4.00'), doors[1].says);
  }
});

test('what is not made yet is neither seen nor opened', () => {
  const { machine } = levels(6, 8, 22, false);
  const doors = (made) => layout({ ...machine, kind: 'machine', made }, { width: 960, em: 16 }).doors.filter(({ kind }) => kind !== 'token').map(({ at }) => at);
  assert.deepEqual(doors(-1), []);
  assert.deepEqual(doors(0), ['embedding']);
  assert.deepEqual(doors(2).filter((at) => /^block\.\d$/.test(at)), ['block.0', 'block.1']);
  assert.ok(!doors(6).some((at) => at.startsWith('logit')) && doors(Infinity).includes('logit.9'));
});

// Paths of a model to `readers`: two threads of each token among the last three, the second twice as strong and the other way.
function pathsOn(L, H, T, readers, block = 0) {
  const { machine } = levels(L, H, T, false), reach = Math.max(...readers.map(([, b]) => b), readers.length ? 0 : L);
  const threads = [T - 3, T - 2, T - 1].filter((at) => at >= 0).flatMap((position) => [0, 1].filter((head) => head < H).map((head) => ({ block, head, position, effect: head ? -0.2 : 0.1 })));
  const effects = { of: Float32Array.from(many(L * H, (i) => (Math.floor(i / H) < reach ? Math.sin(i) : NaN))) };
  return { ...machine, tokens: many(T, (i) => `t${i}`), kind: 'machine', paths: { heads: H, effects, written: many(L, () => many(H, () => '12 %')), readers, threads, unit: ' of it', word: '·a − ·b', key: ['one line', 'and one more'] } };
}

const numbersOf = (d) => d.match(/-?\d+(\.\d+)?(e-?\d+)?/g).map(Number);

test('a thread climbs from its head to its token, runs along it and ends at the reader, as thick as its effect', () => {
  for (const readers of [[], [['q', 5, 7]], [['k', 3, 0], ['v', 5, 2]]]) for (const [width, em] of SCREENS) {
    const data = pathsOn(6, 8, 22, readers), { shapes, doors } = layout(data, { width, em, tall: 28 * em });
    const head = (b, h) => doors.find((door) => door.kind === 'head' && door.block === b && door.head === h);
    const token = (position) => shapes.find(({ s, text, x }) => s === 'text' && text === data.tokens[position] && x < 0.3 * width);
    const trunks = shapes.filter(({ data: of }) => ['stream', 'guess'].includes(of?.to));
    assert.deepEqual(trunks.map(({ data: { block, head, position, effect } }) => ({ block, head, position, effect })), data.paths.threads);
    for (const { d, width: thick, data: of } of trunks) {
      const from = head(of.block, of.head), points = numbersOf(d);
      assert.ok(Math.abs(points[0] - from.x - from.w) < 0.01 && points[1] > from.y && points[1] < from.y + from.h);
      const lane = points[5], lanes = trunks.filter(({ data: other }) => other.position === of.position).map(({ d: other }) => numbersOf(other)[5]);
      assert.equal(new Set(lanes).size, 2);
      assert.ok(Math.abs(lane - token(of.position).y) < 1.1 * em, `${lane} ${token(of.position).y}`);
      assert.ok(Math.abs(thick - 10 * Math.abs(of.effect) * trunks[0].width) < 0.01 || thick === 1, `${thick}`);
    }
    const ends = shapes.filter(({ data: of }) => of && of.to !== 'stream');
    assert.equal(ends.length, trunks.length * Math.max(1, readers.length));
    for (const { d, data: of } of ends) {
      const [x, y] = numbersOf(d).slice(-2), [, block, own] = /(\d+)\.(\d+)/.exec(of.to) ?? [];
      const to = of.to === 'guess' ? doors.find(({ kind }) => kind === 'guess') : head(Number(block), Number(own));
      assert.ok(Math.abs(x - to.x) < 0.01 && y > to.y && y < to.y + to.h, `${of.to} ${x} ${y} ${JSON.stringify(to)}`);
    }
    assert.deepEqual(shapes.filter(({ s, stroke, width: wide }) => s === 'rect' && stroke === 'ink' && wide === 2.5).length, Math.max(1, readers.length));
  }
});

test('with paths, every head has its colour and can be made the reader, and no block of a thread is folded', () => {
  for (const [L, H, T] of [[2, 1, 1], [6, 8, 22], [12, 12, 225], [48, 25, 1024]]) for (const [width, em] of SCREENS) {
    const data = pathsOn(L, H, T, [['v', L - 1, H - 1]], Math.max(0, L - 3)), found = layout(data, { width, em, tall: 28 * em });
    const heads = found.doors.filter(({ kind }) => kind === 'head'), open = new Set(heads.map(({ block }) => block));
    assert.ok([Math.max(0, L - 3), L - 1].every((block) => open.has(block)) && (L > 12 || width < 500 || open.size === L), `${L} ${width}: ${[...open]}`);
    assert.equal(heads.length, open.size * H);
    const filled = found.shapes.filter(({ fill }) => typeof fill === 'number').map(({ fill }) => fill);
    assert.deepEqual(filled, heads.filter(({ value }) => value !== undefined).map(({ value }) => value));
    for (const { block, head, value, says } of heads) {
      const wanted = data.paths.effects.of[block * H + head];
      assert.ok(Number.isNaN(wanted) ? value === undefined && (says.includes('the reader (value)') || says.includes('no path leads')) : value === wanted && Math.abs(Number(/: (−?[\d.]+) of it/.exec(says)[1].replace('−', '-')) - wanted) < 0.00051, says);
    }
    for (const one of [...found.shapes, ...found.doors]) {
      const { s = 'door', x = 0, y = 0, w = 0, h = 0 } = one, right = s === 'text' ? x : x + w, bottom = s === 'text' ? y : y + h;
      assert.ok(s !== 'path' || !/NaN|undefined/.test(one.d), JSON.stringify(one));
      assert.ok(one.fill === 'paper' || (x >= -4 && y >= -4 && right <= width + 4 && bottom <= found.height + 4), `${width} ${found.height}: ${JSON.stringify(one)}`);
    }
  }
});

test('threads of one block from one token lie side by side, the pointer finds the nearest, and the sentence’s own is not dimmed', () => {
  const { machine } = levels(6, 8, 22, false), read = (head, key, brought) => ({ block: 5, head, key, weight: 0.5, brought });
  const reads = [read(4, 7, 9), read(3, 7, 8), read(0, 7, 7), read(1, 2, 6)], level = { ...machine.level, reads };
  const screen = { width: 960, em: 16, tall: 400 }, whole = layout({ ...machine, level, kind: 'machine' }, screen).shapes;
  const threads = whole.filter(({ curve }) => curve);
  assert.deepEqual(threads.map(({ data }) => data.thread), ['block.5.head.4.7', 'block.5.head.3.7', 'block.5.head.0.7', 'block.5.head.1.2']);
  assert.equal(new Set(threads.map(({ d }) => d)).size, 4);
  for (const thread of threads) {
    const [[x, y]] = thread.curve;
    assert.equal(threadNear(whole, x + 1, y, 8), thread);
    assert.equal(threadNear(whole, x - 60, y, 8), undefined);
  }
  assert.deepEqual(threads.map(({ data }) => data.spoken), ['', undefined, undefined, undefined]);
  assert.ok(threads[0].opacity > 2 * threads[1].opacity);
  // the sentence's thread is folded away: none is dimmed for it
  const hidden = layout({ ...machine, level: { ...level, reads: [{ ...read(0, 99, 20) }, ...reads] }, kind: 'machine' }, screen).shapes.filter(({ curve }) => curve);
  assert.deepEqual(hidden.map(({ data }) => data.spoken), many(4, () => undefined));
  assert.equal(hidden[0].opacity, threads[0].opacity);
  // the guess has one thread of a token, and speaks of all of them
  const guess = layout({ ...machine, level, kind: 'machine', guess: true }, screen).shapes.filter(({ curve }) => curve);
  assert.deepEqual(guess.map(({ data }) => [data.thread, data.spoken]), [['block.5.head.4.7', undefined], ['block.5.head.1.2', undefined]]);
});
