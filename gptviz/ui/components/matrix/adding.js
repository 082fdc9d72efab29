// The last of attention's steps as a film: each value flows from its row, by its weight, into the output's row, and
// is added there. What is added in which beat, and what is said, comes from Python (`adds` in __init__.py).

const BEAT = 600, REST = 300;    // ms: of a beat, and before the next one
const FLIES = 0.6;               // of a beat: the value is on its way; then it is added
const THINNEST = 12;             // pixels of a row that moves, however many rows there are

const mixed = (a, b, share) => Float64Array.from(a, (value, i) => value + (b[i] - value) * share);
const eased = (share) => share * share * (3 - 2 * share);
const phase = (from, to, x) => eased(clamp((x - from) / (to - from), 0, 1));

// All that moves: of each beat what comes (a row of values, and the same times its weight) and the sum before and after.
function filmOf({ data, state }) {
  const { adds } = data, named = (name) => state.plots.find(({ panel }) => panel.name === name);
  const [values, output] = [named(adds.values), named(adds.output)], width = output.panel.columns;
  const keys = adds.beats.map((beat) => beat.keys), query = data.query - data.first;
  const sums = sumsOf(state.arrays[adds.weights], state.arrays[values.panel.array], width, query, keys);
  const beats = adds.beats.map((beat, i) => {
    const [key] = beat.keys, alone = beat.keys.length === 1, from = state.arrays[values.panel.array];
    return { ...beat, key: alone ? key : null, comes: alone ? from.subarray(key * width, (key + 1) * width) : null,
      adds: sums[i + 1].map((sum, d) => sum - sums[i][d]), before: sums[i], after: sums[i + 1] };
  });
  return { query, values, output, beats };
}

// A row of numbers as a strip of cells, coloured as a panel colours them; they are shares of its largest.
function strip(view, node, shares) {
  node.width = shares.length;
  node.height = 1;
  const bytes = coloured(shares, { low: -1, high: 1, scale: 'signed' }, view.state.colors);
  node.getContext('2d').putImageData(new ImageData(bytes, shares.length, 1), 0, 0);
}

// Where a panel's row stands, in pixels of the component; a row that the window hides is at its edge.
function rowPlace({ root }, { element, box, part: shown, cellY }, row) {
  const [frame, own] = [root.querySelector('.matrix'), element].map((node) => node.getBoundingClientRect());
  const at = clamp(row - shown.row, 0, shown.rows - 1), high = Math.max(THINNEST, cellY);
  return { left: own.left - frame.left + box.left, top: own.top - frame.top + box.top + (at + 0.5) * cellY - high / 2, width: box.width, height: high };
}

const placed = (node, { left, top, width, height }) => Object.assign(node.style, { left: px(left), top: px(top), width: px(width), height: px(height) });

// The picture at `time` (0 to 1) of a beat.
function drawBeat(view, film, beat, time) {
  const { root } = view, [sum, moving] = root.querySelectorAll('.adding canvas');
  const fly = beat.comes ? phase(0, FLIES, time) : 1, add = phase(beat.comes ? FLIES : 0, 1, time);
  const { values, output } = film, share = (row, { panel }) => Float64Array.from(row, (value) => value / panel.high);
  const to = rowPlace(view, output, film.query);
  strip(view, sum, share(mixed(beat.before, beat.after, add), output));
  placed(sum, to);
  moving.hidden = !beat.comes || add === 1;
  if (moving.hidden) return;
  const from = rowPlace(view, values, beat.key), between = (side) => from[side] + (to[side] - from[side]) * fly;
  strip(view, moving, mixed(share(beat.comes, values), share(beat.adds, output), fly));
  placed(moving, { left: between('left'), top: between('top'), width: between('width'), height: between('height') });
  moving.style.opacity = 1 - add;
}

// A beat's words, and its key and weight as if they were pointed at.
function sayBeat(view, film, index) {
  const { root, data } = view, beat = film.beats[index], matrix = root.querySelector('.matrix');
  show(view, { query: film.query, key: beat.key, dim: null }, weightsOf(data));
  gv.render(root.querySelector('.says'), gv.prose(beat.says));
  Object.assign(matrix.dataset, { adding: index });
}

function startAdding(view) {
  const { state, root } = view, film = filmOf(view);
  state.film = film;
  gv.render(root.querySelector('.adding'), gv.h('canvas', { data: { testid: 'adding-sum' } }), gv.h('canvas', { class: 'moving' }));
  state.hurry = (event) => { if (!event.composedPath().includes(root.querySelector('.adder'))) stopAdding(view); };
  document.addEventListener('pointerdown', state.hurry, { capture: true });
  return film;
}

// The end, whenever it comes: the output's own row is there again. What is drawn anew anyway is not drawn here.
function stopAdding(view, anew = false) {
  const { state, root } = view;
  if (!state.film) return;
  cancelAnimationFrame(state.frame);
  clearTimeout(state.tick);
  document.removeEventListener('pointerdown', state.hurry, { capture: true });
  state.film = null;
  gv.render(root.querySelector('.adding'));
  delete root.querySelector('.matrix').dataset.adding;
  if (anew) return;
  show(view, state.selected, null);
  drawAdder(view);
}

// A beat that is over: its sum stands, also for who asks.
function restAt(view, film, index) {
  drawBeat(view, film, film.beats[index], 1);
  view.root.querySelector('[data-testid=adding-sum]').dataset.sum = JSON.stringify([...film.beats[index].after]);
}

function playBeat(view, film, index) {
  const { state } = view, since = performance.now();
  sayBeat(view, film, index);
  const frame = (now) => {
    const time = (now - since) / BEAT;
    if (time < 1) {
      drawBeat(view, film, film.beats[index], Math.max(0, time));
      state.frame = requestAnimationFrame(frame);
      return;
    }
    restAt(view, film, index);
    const more = index + 1 < film.beats.length;
    state.tick = setTimeout(() => (more ? playBeat(view, film, index + 1) : stopAdding(view)), REST);
  };
  drawBeat(view, film, film.beats[index], 0);
  state.frame = requestAnimationFrame(frame);
}

// Who wants no motion sees a sum at each press, and after the last one the end.
function stepAdding(view) {
  const { state, root } = view, film = state.film ?? startAdding(view);
  const shown = root.querySelector('.matrix').dataset.adding, next = shown === undefined ? 0 : Number(shown) + 1;
  if (next === film.beats.length) return stopAdding(view);
  sayBeat(view, film, next);
  restAt(view, film, next);
}

function pressAdder(view) {
  if (gv.still()) return stepAdding(view);
  if (view.state.film) return stopAdding(view);
  playBeat(view, startAdding(view), 0);
  drawAdder(view);
}

function drawAdder(view) {
  const { root, state } = view, place = root.querySelector('.adder');
  if (!place) return;
  const said = state.film && !gv.still() ? '❚❚ stop' : '▶ add up';
  gv.render(place, gv.h('button', { type: 'button', title: 'See the values flow into the sum, by their weights',
    onclick: () => pressAdder(state.view), data: { testid: 'adder' } }, said));
}

// It plays once by itself, when a reader comes to it.
function watchAdder(view) {
  const { root, state } = view, place = root.querySelector('.adder');
  state.view = view;
  drawAdder(view);
  if (!place || state.coming || gv.still()) return;
  state.coming = new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting || !state.view.data.adds) return;
    state.coming.disconnect();
    if (!state.film) pressAdder(state.view);
  }, { threshold: 1 });
  state.coming.observe(place.closest('.panel'));
}
