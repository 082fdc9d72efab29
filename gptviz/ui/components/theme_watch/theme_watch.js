// Asks for a run when the colours of the page change: Streamlit turns its own page at once, and runs nothing.
// And a page that is turned to begins at its top, with the list of pages out of the way on a phone: Streamlit
// leaves both as the page before had them. While the first page rests, what the others need is made ready.
const FETCHED = 1500;           // ms after the first drawing
const REST = 2000;              // ms in which nobody acts and nothing moves
const LOOKS = 1000;             // ms from one look whether all rests to the next
const HANDS = ['pointermove', 'pointerdown', 'keydown', 'wheel', 'scroll'];
const FONTS = ["italic 1em 'Source Sans'", "1em 'Source Code Pro'"];     // Streamlit's, which the first page may not use

const idle = () => new Promise((resolve) => { requestIdleCallback(resolve); });

// Streamlit fetches a widget's code when the first one is to be drawn, and this is so for our components, too:
// some forty small files at the first turn. One after the other, each in an idle moment.
async function prepareParts(ahead) {
  const { pieces } = await import(`./${ahead}`);
  for (const piece of pieces) {
    await idle();
    await piece();
  }
  await Promise.all(FONTS.map((font) => document.fonts.load(font)));
}

// charts come from a file of 4.7 MB, which Streamlit fetches when the first chart is to be drawn
function prepareCharts(file) {
  const app = document.querySelector('script[type=module][src*="/index."]');
  if (!app || !file) return;
  const link = document.createElement('link');
  link.rel = 'modulepreload';
  link.href = new URL(file, app.src);
  document.head.append(link);
  // nothing else is drawn while it is evaluated, a second on a slow machine: not under a hand, not in a motion
  onceAllRests(() => import(link.href).then(drawUnseen).catch(() => link.remove()));       // Streamlit asks for it again, and says what fails
}

function prepare({ ahead, charts }) {
  if (navigator.connection?.saveData) return;
  prepareParts(ahead).catch(() => {});        // what is asked for again when it is drawn, and says then what fails
  prepareCharts(charts);
}

// A browser compiles a function when it is first called, and Plotly's first chart calls some thousand: that is half
// of the first turn to a page with charts. So one of each kind is drawn where nobody sees it, and taken away.
const LABELS = { title: { text: 'a' }, tickvals: [0, 1], ticktext: ['a', 'b'] };
const UNSEEN = {
  layout: { width: 600, height: 300, clickmode: 'event+select', hovermode: 'closest', xaxis: LABELS, yaxis: LABELS,
    annotations: [{ x: 0, y: 1, text: 'a<br><b>b</b>', showarrow: false }], shapes: [{ type: 'rect', x0: 0, x1: 1, y0: 0, y1: 1 }] },
  kinds: [
    [{ type: 'bar', x: [0, 1], y: [1, -1], text: ['a', 'b'], customdata: [0, 1], hovertemplate: '%{x}<extra></extra>' }],
    [{ type: 'heatmap', z: [[0, 1], [1, 0]], text: [['a', 'b'], ['c', 'd']], texttemplate: '%{text}', colorbar: { title: { text: 'a' } } }],
    [{ type: 'scatter', mode: 'lines+markers+text', x: [0, 1], y: [0, 1], text: ['a', 'b'], name: 'a' },
      { type: 'scatter', mode: 'lines', x: [0, 1], y: [1, 0], name: 'b', line: { dash: 'dot' } }],
  ],
};

async function drawUnseen() {
  const plotly = globalThis.Plotly;       // the file leaves it there
  if (!plotly) return;
  for (const kind of UNSEEN.kinds) {
    await idle();
    const box = document.createElement('div');
    box.className = 'gptviz-unseen';
    box.ariaHidden = 'true';
    box.style = 'position: fixed; visibility: hidden; pointer-events: none; width: 600px; height: 300px';
    document.body.append(box);
    try {
      await plotly.newPlot(box, structuredClone(kind), structuredClone(UNSEEN.layout), { displayModeBar: false });
    } finally {
      plotly.purge(box);
      box.remove();
    }
  }
}

// The document, and what components draw, each in its own root.
const roots = () => [document, ...[...document.querySelectorAll('*')].flatMap((node) => node.shadowRoot ?? [])];

const moves = (root) => root.getAnimations().some(({ playState }) => playState === 'running');

// Call it in an idle moment, when nobody has acted, no script has run and nothing has moved for a while.
function onceAllRests(act) {
  let stirred = performance.now();
  const stirs = () => { stirred = performance.now(); }, rests = () => performance.now() - stirred >= REST;
  const drawn = new MutationObserver(stirs);
  const look = () => {
    for (const root of roots()) {
      drawn.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
      if (moves(root)) stirs();
    }
    if (document.querySelector('[data-testid=stApp]').dataset.testScriptState !== 'notRunning') stirs();
    if (rests()) requestIdleCallback(begin);
    else setTimeout(look, LOOKS);
  };
  const begin = () => {
    if (!rests()) return setTimeout(look, LOOKS);
    drawn.disconnect();
    for (const hand of HANDS) removeEventListener(hand, stirs, true);
    return act();
  };
  for (const hand of HANDS) addEventListener(hand, stirs, { capture: true, passive: true });
  look();
}

export default gv.component(
  ({ send }) => gv.h('div', { class: 'watch', ontransitionend: () => send('changed', true) }),
  ({ data }) => {
    const main = document.querySelector('[data-testid=stMain]');
    if (!main || main.dataset.gptvizPage === data.page) return;
    if (main.dataset.gptvizPage) {
      main.scrollTop = 0;
      const shut = document.querySelector('[data-testid=stSidebarCollapseButton] [aria-expanded=true]');
      if (shut?.getBoundingClientRect().right > main.getBoundingClientRect().left) shut.click();
    } else {
      setTimeout(() => requestIdleCallback(() => prepare(data)), FETCHED);
    }
    main.dataset.gptvizPage = data.page;
  });
