// Asks for a run when the colours of the page change: Streamlit turns its own page at once, and runs nothing.
// And a page that is turned to begins at its top, with the list of pages out of the way on a phone: Streamlit
// leaves both as the page before had them. While the first page rests, what draws charts is made ready.
const FETCHED = 1500;           // ms after the first drawing
const REST = 2000;              // ms in which nobody acts and nothing moves
const LOOKS = 1000;             // ms from one look whether all rests to the next
const HANDS = ['pointermove', 'pointerdown', 'keydown', 'wheel', 'scroll'];

// charts come from a file of 4.7 MB, which Streamlit fetches when the first chart is to be drawn
function prepareCharts(file) {
  const app = document.querySelector('script[type=module][src*="/index."]');
  if (!app || !file || navigator.connection?.saveData) return;
  const link = document.createElement('link');
  link.rel = 'modulepreload';
  link.href = new URL(file, app.src);
  document.head.append(link);
  // nothing else is drawn while it is evaluated, a second on a slow machine: not under a hand, not in a motion
  onceAllRests(() => import(link.href).catch(() => link.remove()));       // Streamlit asks for it again, and says what fails
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
      setTimeout(() => requestIdleCallback(() => prepareCharts(data.charts)), FETCHED);
    }
    main.dataset.gptvizPage = data.page;
  });
