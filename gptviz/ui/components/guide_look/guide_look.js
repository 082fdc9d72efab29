// Frames the element that a step speaks of, as soon as it is drawn, and scrolls to it once if it is out of sight.
const FRAMED = 'gv-looked-at';

export default gv.component(
  () => gv.h('div', { class: 'eye' }),
  ({ data, state }) => {
    state.end?.();
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    let framed = null, seen = state.look === data.look;
    state.look = data.look;
    const find = () => {
      const found = document.querySelector(`.st-key-${CSS.escape(data.look)}`);
      if (found !== framed) {
        framed?.classList.remove(FRAMED);
        found?.classList.add(FRAMED);
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
      framed?.classList.remove(FRAMED);
    };
  },
);
