// Draws the parts of a picture below each other, in a document of its own, and answers clicks as the app does where
// the numbers are here. `gv`, `gvDraw` and `gvComponents` stand before this file (ui/components/code.py, chart.js).

const given = JSON.parse(document.getElementById('given').textContent), { parts } = given;
const main = document.querySelector('main');
let mode = given.mode ?? modeAround();
document.documentElement.dataset.mode = mode;

// In a frame that takes the height of what is in it, nothing can be as high as the window.
if (frameAround()) Object.defineProperty(window, 'innerHeight', { value: 900 });
// VS Code scrolls a notebook by the wheel's events of its own document.
window.addEventListener('wheel', (event) => {
  if (!event.defaultPrevented && !event.ctrlKey) frameAround()?.dispatchEvent(new WheelEvent('wheel', event));
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

// Of a long text a row of a map may be several tokens, `together` (pictures.py): what is chosen is told in tokens.
const PLACES = ['query', 'key'];
const inTokens = (value, together) => (value === null || typeof value !== 'object' ? value
  : Object.fromEntries(Object.entries(value).map(([name, is]) => [name, PLACES.includes(name) && is !== null ? is * together : is])));

function answer(from, event, sent) {
  const value = inTokens(sent, from.data.together ?? 1), chosen = CHOSEN[event]?.(value);
  if (!chosen) return;
  for (const part of parts.filter(({ draw }) => draw)) {
    const data = { ...part.data }, other = part.others?.[event === 'head' ? `${value.block}.${value.head}` : value];
    const tokens = inTokens(Object.fromEntries(PLACES.filter((name) => name in data).map((name) => [name, data[name]])), data.together ?? 1);
    for (const [name, is] of Object.entries({ ...tokens, ...chosen })) if (name in data) data[name] = is;
    if (other) Object.assign(data, other.data);
    for (const name of PLACES) if (data.together > 1 && Number.isInteger(data[name])) data[name] = Math.floor(data[name] / data.together);
    if (other) part.title = other.title;
    if (JSON.stringify(data) === JSON.stringify(part.data)) continue;
    part.data = data;
    drawComponent(part);
  }
}

function drawComponent(part) {
  titled(part);
  const { saved } = part.data;                // whose title is the picture's, where a part has none of its own
  const look = mode === 'dark' ? part.dark?.data : {};    // what is other of it on dark paper
  gvDraw(part.place, part.draw, { ...part.data, ...look, mode, saved: { ...saved, title: part.title || saved.title } }, (event, value) => answer(part, event, value));
}

function titled({ box, title }) {
  const heading = box.querySelector('h2') ?? box.insertBefore(document.createElement('h2'), box.firstChild);
  heading.textContent = title ?? '';
  heading.hidden = !title;
}

function drawChart(part) {
  const drawn = mode === 'dark' && part.dark ? part.dark.svg : part.svg;
  const [width, height] = ['width', 'height'].map((side) => Number(new RegExp(` ${side}="([\\d.]+)"`).exec(drawn)[1]));
  titled(part);
  gvDraw(part.place, 'still', { svg: drawn, width, height, hover: part.hover, alt: part.alt, saved: part.saved, mode });
}

function drawPart(part, number) {
  if (part.svg) drawChart(part);
  else if (part.draw) drawComponent(part);
  else if (part.html) part.place.innerHTML = mode === 'dark' && part.dark ? part.dark.html : part.html;
  part.box.dataset.drawn = number;
}

// ---- light or dark ----

// The mode of what the frame stands on: by the colour of the paper around it, whichever notebook that is. A file by
// itself, and a frame that may not look around, go by what the reader's system says.
function modeAround() {
  const asked = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  let node = frameAround()?.parentElement;
  if (!node) return asked;
  const root = node.ownerDocument.documentElement;
  for (; node; node = node.parentElement) {
    const [red, green, blue, alpha] = seen(getComputedStyle(node).backgroundColor);
    if (alpha > 127) return gv.textOn([red, green, blue]) === '#000000' ? 'light' : 'dark';
  }
  return getComputedStyle(root).colorScheme.includes('dark') ? asked : 'light';
}

function frameAround() {
  try {
    return window.frameElement;
  } catch {
    return null;                              // of another origin
  }
}

// Red, green, blue and alpha, 0 to 255, of a colour in any of CSS's forms.
function seen(color) {
  const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d');
  pen.fillStyle = color;
  pen.fillRect(0, 0, 1, 1);
  return pen.getImageData(0, 0, 1, 1).data;
}

function followMode() {
  const look = () => {
    const now = modeAround();
    if (now === mode) return;
    mode = now;
    document.documentElement.dataset.mode = mode;
    parts.forEach(drawPart);
  };
  const soon = () => [0, 300, 1500].forEach((ms) => setTimeout(look, ms));      // a theme's stylesheet comes after its name
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', soon);
  const around = frameAround()?.ownerDocument;
  if (!around) return;
  const watch = new MutationObserver(soon);
  for (const node of [around.documentElement, around.body]) watch.observe(node, { attributes: true, attributeFilter: ['class', 'style', 'data-jp-theme-light', 'data-jp-theme-name', 'data-theme', 'data-vscode-theme-kind', 'theme'] });
}

// ---- all of it ----

function draw() {
  parts.forEach((part, number) => {
    part.box = main.appendChild(document.createElement('section'));
    part.box.className = 'part';
    part.place = part.box.appendChild(document.createElement('div'));
    if (part.note) part.box.appendChild(document.createElement('p')).textContent = part.note;
    Object.assign(part.box.dataset, { testid: 'picture-part', number, draw: part.draw ?? (part.svg ? 'chart' : 'text') });
    if (part.text) part.place.appendChild(document.createElement(part.heading ? 'h2' : 'p')).textContent = part.text;
    drawPart(part, number);
  });
  main.dataset.drawn = parts.length;
  const still = frameAround()?.parentElement?.querySelector('.gptviz-still');
  if (still) still.hidden = true;              // what stands here where no frame may
  if (!given.mode) followMode();
}

// The frame is as high as what is in it: a notebook's frame of the same origin, which a sandbox may forbid.
new ResizeObserver(() => {
  const frame = frameAround();
  if (frame) frame.style.height = `${main.offsetHeight + 2}px`;
}).observe(main);
draw();
