// Frames the element that a step speaks of, as soon as it is drawn, and keeps it in sight, whatever is drawn above
// it later, until the reader acts; while the mouse moves nothing does.
const FRAMED = 'gv-looked-at', ACTS = ['pointerdown', 'wheel', 'keydown', 'touchstart'], REST = 400;   // ms
const ROOM = 14;                   // px: of the frame around it

// The element with this key; or of a component, which may stand in a shadow, the part with this test id.
function lookedAt(look) {
  const [key, cell] = look.split(' > ');
  const found = document.querySelector(`.st-key-${CSS.escape(key)}`);
  if (!found || !cell) return found;
  const inside = [found, ...[...found.querySelectorAll('*')].map((node) => node.shadowRoot).filter(Boolean)];
  return inside.map((root) => root.querySelector(`[data-testid="${CSS.escape(cell)}"]`)).find(Boolean) ?? found;
}

function frame(node, on) {
  node?.classList.toggle(FRAMED, on);
  if (node?.getRootNode() !== document) node?.style.setProperty('outline', on ? '3px solid var(--accent)' : '');
}

function isInSight(node) {
  const { top, bottom } = node.getBoundingClientRect();
  const bar = document.querySelector('.st-key-gv_guide')?.getBoundingClientRect().bottom ?? 0;
  return top >= Math.max(0, bar) && (bottom <= innerHeight || top < bar + 40);
}

// Scroll no further than until it is in sight, so that the sentence above it still is. What the bar's edge would cut
// is covered whole.
function bringIntoSight(node) {
  const bar = (document.querySelector('.st-key-gv_guide')?.offsetHeight ?? 0) + ROOM, { top, bottom } = node.getBoundingClientRect();
  const high = bottom - top > innerHeight - bar - 2 * ROOM || top < bar;
  let by = high ? top - bar - ROOM : bottom + ROOM - innerHeight;
  for (const other of document.querySelectorAll('[data-testid="stMainBlockContainer"] [data-testid="stElementContainer"]')) {
    const box = other.getBoundingClientRect();
    if (!other.closest('.st-key-gv_guide') && box.top - by < bar && box.bottom - by > bar && box.bottom <= top) by = Math.min(box.bottom - bar + 6, top - bar - ROOM);
  }
  document.querySelector('[data-testid="stMain"]').scrollBy({ top: by, behavior: gv.still() ? 'auto' : 'smooth' });
}

export default gv.component(
  () => gv.h('div', { class: 'eye' }),
  ({ data, state }) => {
    state.end?.();
    let framed = null, moved = -REST;
    // on a phone what the step says would be scrolled away: its reader comes down by hand
    const phone = matchMedia('(max-width: 640px)').matches;
    if (state.look !== data.look) Object.assign(state, { look: data.look, acted: phone });
    const find = () => {
      const found = lookedAt(data.look), rests = performance.now() - moved >= REST;
      if (found !== framed) {
        frame(framed, false);
        frame(found, true);
        framed = found;
      }
      if (state.acted || !found || found.getBoundingClientRect().height < 20 || isInSight(found)) return;
      if (!rests) return void setTimeout(find, REST);
      bringIntoSight(found);
    };
    const drawn = () => requestAnimationFrame(find);
    const watches = [new MutationObserver(drawn), new ResizeObserver(drawn)];
    watches[0].observe(document.body, { childList: true, subtree: true });
    for (const node of document.querySelectorAll('[data-testid="stMainBlockContainer"]')) watches[1].observe(node);
    const ended = new AbortController(), options = { capture: true, passive: true, signal: ended.signal };
    for (const act of ACTS) addEventListener(act, () => { state.acted = true; }, options);
    addEventListener('pointermove', () => { moved = performance.now(); }, options);
    find();
    state.end = () => {
      for (const watch of watches) watch.disconnect();
      ended.abort();
      frame(framed, false);
    };
  },
);
