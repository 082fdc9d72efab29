// RoPE as clocks. Key, query and the angle between them are one stiff body a dial: it turns as the two tokens walk.

const PACE = 0.5;      // tokens a second
const BETWEEN = 40;    // ms between two pictures: a hand's end moves by less than a pixel or two
const SIZE = 100;      // of a dial's drawing, from its middle to the drawing's edge
const RADIUS = 90;
const ARC = 40;

const degrees = (radians) => (180 * radians) / Math.PI;
const point = (radius, angle) => `${radius * Math.cos(angle)} ${-radius * Math.sin(angle)}`;   // counterclockwise from the right

function arc(angle) {
  if (angle === 0) return '';
  if (angle >= 2 * Math.PI) return `M ${point(ARC, 0)} A ${ARC} ${ARC} 0 1 0 ${point(ARC, Math.PI)} A ${ARC} ${ARC} 0 1 0 ${point(ARC, 0)}`;
  return `M ${point(ARC, 0)} A ${ARC} ${ARC} 0 ${angle > Math.PI ? 1 : 0} 0 ${point(ARC, angle)}`;
}

const hand = (color, radius) => `<path d="M 0 0 H ${radius - 14}" fill="none" stroke="${color}" stroke-width="5"/>`
  + `<path d="M ${radius} 0 l -18 -8 v 16 z" fill="${color}"/>`;

// A saved picture has no stylesheet: colours stand in the drawing itself.
function drawing({ mode, distance }, { speed }) {
  const colors = gv.palette(mode), between = distance * speed;
  return `<circle r="${RADIUS}" fill="none" stroke="${colors.quiet}" stroke-width="1.5"/>`
    + `<path d="M ${RADIUS - 8} 0 H ${RADIUS + 8}" stroke="${colors.quiet}" stroke-width="1.5"/>`
    + `<g class="turning"><path d="${arc(between)}" fill="none" stroke="${colors.accent}" stroke-width="7"/>${hand(colors.key, RADIUS)}`
    + `<g transform="rotate(${-degrees(between)})">${hand(colors.query, RADIUS)}</g></g>`;
}

const walks = ({ distance, last }) => last > distance;

// Where the two are, on the screen; between two positions the hands are between their angles. At the last they rest.
function paint({ data, root, state }) {
  const at = Math.floor(state.place), from = Math.min(state.place, data.last) - data.distance;
  root.querySelectorAll('.turning').forEach((node, i) => node.setAttribute('transform', `rotate(${-degrees(from * data.pairs[i].speed)})`));
  root.querySelector('.dials').dataset.at = at;
  root.querySelector('.query b').textContent = at;
  root.querySelector('.key b').textContent = at - data.distance;
  const slider = root.querySelector('input');
  if (slider && state.playing) slider.value = String(at);
}

function stop(view) {
  const { state } = view;
  if (!state.playing) return;
  Object.assign(state, { playing: false, place: Math.floor(state.place) });
  cancelAnimationFrame(state.frame);
  view.redraw();
}

function play(view) {
  const { state } = view;
  Object.assign(state, { playing: true, turned: undefined });
  const frame = (now) => {
    const { data, root } = state.view;
    if (!state.playing || !root.isConnected) return;
    state.frame = requestAnimationFrame(frame);
    state.turned ??= now;
    if (now - state.turned < BETWEEN) return;
    state.place += (PACE * Math.min(now - state.turned, 4 * BETWEEN)) / 1000;    // a tab that was hidden goes on where it was
    state.turned = now;
    if (state.place >= data.last + 1) state.place = data.distance;
    paint(state.view);
  };
  state.frame = requestAnimationFrame(frame);
}

function toHand(view, at) {
  stop(view);
  view.state.place = at;
  paint(view);
}

function tools(view) {
  const { data, send, state } = view;
  return gv.h('div', { class: 'tools', data: { unsaved: '' } },
    gv.h('button', { type: 'button', class: 'play', data: { testid: 'dials-play' },
      onclick: () => { if (state.playing) stop(view); else { play(view); view.redraw(); } } }, state.playing ? 'Stop' : 'Walk on'),
    gv.h('label', null, 'Position of the query', gv.h('input', { type: 'range', min: data.distance, max: data.last, step: 1,
      value: String(Math.floor(state.place)), 'aria-label': 'Position of the query', data: { testid: 'dials-at' },
      oninput: (event) => toHand(view, Number(event.target.value)), onchange: (event) => send('at', Number(event.target.value)) })));
}

export default gv.component((view) => {
  const { data, root, state } = view, given = `${data.at} ${data.distance} ${data.last}`;
  state.view = view;
  if (state.given !== given) {       // another pair of places: the hands go there, and on if they went before
    Object.assign(state, { given, place: data.at, playing: Boolean(state.playing) && walks(data) });
  }
  return [
    gv.h('div', { class: 'dials', data: { testid: 'dials', playing: state.playing ? '' : undefined }, onclick: () => stop(view) },
      gv.h('p', { class: 'places' }, gv.h('span', { class: 'query' }, 'query at position ', gv.h('b', null)),
        gv.h('span', { class: 'key' }, 'key at position ', gv.h('b', null))),
      gv.h('div', { class: 'row' }, data.pairs.map((pair) => gv.h('figure', { key: pair.pair },
        gv.h('figcaption', null, gv.h('b', null, pair.name), gv.h('span', null, pair.round)),
        gv.h('svg', { xmlns: 'http://www.w3.org/2000/svg', viewBox: `${-SIZE} ${-SIZE} ${2 * SIZE} ${2 * SIZE}`, role: 'img', 'aria-label': pair.alt,
          markup: drawing(data, pair) }),
        gv.h('span', { class: 'between' }, pair.between))))),
    walks(data) ? tools(view) : null,
    gv.saveButtons(() => gv.svgOfElements(root.querySelector('.dials')), data.saved),
  ];
}, (view) => {
  const { data, state } = view;
  paint(view);
  if (!state.begun) {
    state.begun = true;
    state.end = () => { state.playing = false; cancelAnimationFrame(state.frame); };
    if (data.moves && walks(data) && !gv.still()) {
      play(view);
      view.redraw();
    }
  }
});
