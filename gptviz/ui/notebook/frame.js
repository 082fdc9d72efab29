// Draws the parts of a picture below each other, in a document of its own, and answers clicks as the app does where
// the numbers are here. `gv`, `gvDraw` and `gvComponents` stand before this file (ui/components/code.py).

const given = JSON.parse(document.getElementById('given').textContent), { mode, parts } = given;
const main = document.querySelector('main'), colors = gv.palette(mode);

// In a frame that takes the height of what is in it, nothing can be as high as the window.
if (window.frameElement) Object.defineProperty(window, 'innerHeight', { value: 900 });
// VS Code scrolls a notebook by the wheel's events of its own document.
window.addEventListener('wheel', (event) => {
  if (!event.defaultPrevented && !event.ctrlKey) window.frameElement?.dispatchEvent(new WheelEvent('wheel', event));
});
if (gvComponents.heads) gvComponents.heads[1] += '.grid { --most: 4.4rem !important; }';

// ---- components ----

// What a click has chosen, by the names that the components' data have for it.
const CHOSEN = {
  position: (position) => ({ selected: position, position, query: position, key: null }),
  pick: ({ query, key = null, row, position }) => ({
    ...(query === undefined ? {} : { selected: query, query }), key, ...(row === undefined ? {} : { row }), ...(position === undefined ? {} : { position }) }),
  head: (head) => head,
  at: () => ({}),
  step: (chosen) => ({ chosen }),
  window: (selected) => ({ selected }),
};

function answer(event, value) {
  const chosen = CHOSEN[event]?.(value);
  if (!chosen) return;
  for (const part of parts.filter(({ draw }) => draw)) {
    const data = { ...part.data }, other = part.others?.[event === 'head' ? `${value.block}.${value.head}` : value];
    for (const [name, is] of Object.entries(chosen)) if (name in data) data[name] = is;
    if (other) Object.assign(data, other.data);
    if (other) part.title = other.title;
    if (JSON.stringify(data) === JSON.stringify(part.data)) continue;
    part.data = data;
    drawComponent(part);
  }
}

function drawComponent(part) {
  titled(part);
  const { saved } = part.data;                // whose title is the picture's, where a part has none of its own
  gvDraw(part.place, part.draw, { ...part.data, saved: { ...saved, title: part.title || saved.title } }, answer);
}

function titled({ box, title }) {
  const heading = box.querySelector('h2') ?? box.insertBefore(document.createElement('h2'), box.firstChild);
  heading.textContent = title ?? '';
  heading.hidden = !title;
}

// ---- figures ----

async function drawFigure({ place, figure, key, alt, saved, box }, number) {
  place.className = `st-key-${key}`;          // by which the chart component finds it
  place.setAttribute('role', 'img');
  place.setAttribute('aria-label', alt);
  const plot = place.appendChild(document.createElement('div')), pinned = document.createElement('p');
  await window.Plotly.newPlot(plot, figure.data, figure.layout, { displaylogo: false, displayModeBar: false, responsive: true });
  plot.on('plotly_click', ({ points }) => {
    const lines = [...plot.querySelectorAll('.hovertext text, .hovertext .line')].filter((node) => !node.querySelector('.line'));
    pinned.textContent = lines.map(({ textContent }) => textContent.trim()).filter(Boolean).join(', ');
    Object.assign(pinned.dataset, { x: points[0].x, y: points[0].y });
  });
  Object.assign(pinned, { className: 'pinned', ariaLive: 'polite' });
  pinned.dataset.testid = 'pinned';
  box.append(pinned, document.createElement('div'));
  gvDraw(box.lastChild, 'chart', { key, paper: colors.paper, mode, saved });
  box.dataset.drawn = number;
}

async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
}

// ---- all of it ----

async function draw() {
  parts.forEach((part, number) => {
    part.box = main.appendChild(document.createElement('section'));
    part.box.className = 'part';
    part.place = part.box.appendChild(document.createElement('div'));
    if (part.note) part.box.appendChild(document.createElement('p')).textContent = part.note;
    Object.assign(part.box.dataset, { testid: 'picture-part', number, draw: part.draw ?? 'figure' });
    if (part.text) part.place.appendChild(document.createElement(part.heading ? 'h2' : 'p')).textContent = part.text;
    if (part.html) part.place.innerHTML = part.html;
    if (part.text || part.html) part.box.dataset.drawn = number;
    if (!part.draw) return;
    drawComponent(part);
    part.box.dataset.drawn = number;
  });
  if (given.plotly) {
    document.head.appendChild(document.createElement('script')).textContent = await unpacked(given.plotly);
    await Promise.all(parts.map((part, number) => (part.figure ? drawFigure(part, number) : null)));
  }
  main.dataset.drawn = parts.length;
}

// The frame is as high as what is in it: a notebook's frame of the same origin, which a sandbox may forbid.
new ResizeObserver(() => {
  if (window.frameElement) window.frameElement.style.height = `${main.offsetHeight + 2}px`;
}).observe(main);
draw();
