// The guess in four beats: what moves when. layout.js names what moves, and the browser's own animations move it, all by
// one clock; without them the picture is as it is in the end. It moves by itself once, and again for another text.

const BEATS = ['Cut', 'Look back', 'Think', 'Guess'], BORDERS = [1300, 2800, 4700, 6200];      // ms, the end of each
const TOTAL = BORDERS.at(-1), QUICK = TOTAL / 2000;                                            // two seconds for another text
const fades = () => [{ opacity: 0, offset: 0 }];
const widens = () => [{ transform: 'scaleX(0)' }, { transform: 'none' }];
const comes = ({ dx, dy }) => [{ transform: `translate(${dx}px, ${dy}px)` }, { transform: 'none' }];

// of what layout.js calls so: from when to when, and how
const MOVES = {
  token: [500, 1200, comes],
  frame: [1100, 1300, fades],
  dim: [1300, 1600, fades],
  thread: [1600, 2600, () => [{ strokeDasharray: '1 1', strokeDashoffset: -1 }, { strokeDasharray: '1 1', strokeDashoffset: 0 }]],
  read: [2500, 2800, fades],
  ribbon: [2800, 4700, widens],
  back: [4700, 4800, fades],
  name: [4700, 4900, fades],
  bar: [4900, 5500, widens],
  winner: [5500, 6200, comes],
};

function movement(node) {
  const { beat, from = 0, to = 1 } = node.dataset, [begin, end, frames] = MOVES[beat], long = end - begin;
  const easing = beat === 'ribbon' ? 'linear' : 'cubic-bezier(0.3, 0, 0.2, 1)';
  if (frames === widens) Object.assign(node.style, { transformBox: 'fill-box', transformOrigin: 'left' });
  const how = { delay: begin + from * long, duration: (to - from) * long, fill: 'both', easing };
  return [node.animate(frames(node.dataset), how), ...(beat === 'winner' ? [node.animate(fades(), { ...how, duration: 1 })] : [])];
}

let told = null;      // the text whose guess was shown last, since the app was loaded

// Called when the picture is on the screen: a text that is new here is played.
function seen(view) {
  const { data, state } = view, text = data.tokens.join('\n'), { guess } = state;
  if (guess?.moves && (!data.guess || !guess.moves[0].effect.target.isConnected)) finish(view);
  if (!data.guess || told === text) return;
  const rate = told === null ? 1 : QUICK;
  told = text;
  if (gv.still()) finish(view);
  else start(view, rate);
}

function start(view, rate) {
  const { state } = view, played = (state.guess?.played ?? 0) + 1;
  finish(view);
  const moves = [...state.stage.querySelectorAll('.layer.now [data-beat]')].flatMap(movement);
  if (!moves.length) return;
  moves.forEach((one) => { one.playbackRate = rate; });
  state.guess = { moves, rate, played, beat: 0, time: 0 };
  run(view);
}

// From the time at which it stands to the next beat, and on.
function run(view) {
  const { state } = view, { guess } = state, left = BORDERS[guess.beat] - guess.time;
  guess.how = 'playing';
  guess.moves.forEach((one) => { one.currentTime = guess.time; one.play(); });
  guess.since = performance.now();
  clearTimeout(guess.tick);
  guess.tick = setTimeout(() => next(state.view), left / guess.rate);
  state.view.redraw();
}

function next({ state }) {
  const { guess } = state;
  if (guess.beat + 1 === BEATS.length) return finish(state.view, true);
  Object.assign(guess, { time: BORDERS[guess.beat], beat: guess.beat + 1, since: performance.now() });
  guess.tick = setTimeout(() => next(state.view), (BORDERS[guess.beat] - guess.time) / guess.rate);
  state.view.redraw();
}

// It stands at a time of a beat.
function hold({ state }, beat, time) {
  const { guess } = state;
  clearTimeout(guess.tick);
  Object.assign(guess, { how: 'paused', beat, time });
  guess.moves.forEach((one) => { one.pause(); one.currentTime = time; });
  state.view.redraw();
}

// All is as it is in the end.
function finish({ state }, redraws = false) {
  const { guess } = state;
  clearTimeout(guess?.tick);
  guess?.moves?.forEach((one) => one.cancel());
  state.guess = { played: guess?.played ?? 0 };
  if (redraws) state.view.redraw();
}

function pause({ state }) {
  const { guess } = state;
  hold(state.view, guess.beat, Math.min(BORDERS[guess.beat] - 1, guess.time + (performance.now() - guess.since) * guess.rate));
}

// The end of a beat, to be looked at.
function showBeat({ state }, beat) {
  if (beat + 1 === BEATS.length) return finish(state.view, true);
  if (!state.guess?.moves) start(state.view, 1);
  hold(state.view, beat, BORDERS[beat] - 1);
}

function goOn({ state }) {
  if (gv.still()) return finish(state.view, true);
  if (!state.guess?.moves) return start(state.view, 1);
  run(state.view);
}

// The line that always stands there.
function beatsLine({ state, send }) {
  const { how = 'rest', beat, played = 0 } = state.guess ?? {};
  const [sign, said, act] = { rest: ['↻', 'again', goOn], paused: ['▶', 'go on', goOn], playing: ['❚❚', 'pause', pause] }[how];
  return gv.h('div', { class: 'beats', role: 'group', 'aria-label': 'The guess in four beats', data: { testid: 'beats', how, beat, played } },
    BEATS.map((name, i) => [i ? gv.h('span', { class: 'dot', 'aria-hidden': true }, '·') : null,
      gv.h('button', { type: 'button', 'aria-current': i === beat ? 'step' : undefined, onclick: () => showBeat(state.view, i), data: { testid: 'beat', beat: i } }, `${i + 1} ${name}`)]),
    gv.h('button', { type: 'button', class: 'how', onclick: () => act(state.view), data: { testid: 'beats-how' } }, `${sign} ${said}`),
    gv.h('button', { type: 'button', class: 'inside', title: 'The whole machine, down to every number', onclick: () => send('at', 'machine'), data: { testid: 'look-inside' } }, 'Look inside'));
}
