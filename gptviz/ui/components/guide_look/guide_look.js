// Frames the element that a step speaks of, as soon as it is drawn, and scrolls to it once if it is out of sight.
const FRAMED = 'gv-looked-at';

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

export default gv.component(
  () => gv.h('div', { class: 'eye' }),
  ({ data, state }) => {
    state.end?.();
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    let framed = null, seen = state.look === data.look;
    state.look = data.look;
    const find = () => {
      const found = lookedAt(data.look);
      if (found !== framed) {
        frame(framed, false);
        frame(found, true);
        framed = found;
      }
      if (!found || seen || found.getBoundingClientRect().height < 20) return;
      seen = true;
      const { top, bottom } = found.getBoundingClientRect();
      if (top < 0 || bottom > innerHeight)
        found.scrollIntoView({ behavior: still ? 'auto' : 'smooth', block: bottom - top > innerHeight ? 'start' : 'center' });
    };
    const watch = new MutationObserver(() => requestAnimationFrame(find));
    watch.observe(document.body, { childList: true, subtree: true });
    find();
    state.end = () => {
      watch.disconnect();
      frame(framed, false);
    };
  },
);
