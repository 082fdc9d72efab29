// Says that the reader has come to it, once the page above it is drawn; or that its button was pressed.
const INSIDE = '-100px', REST = 300;   // of the window; ms

const isRunning = () => document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === 'running';

export default gv.component(
  ({ send }) => gv.h('div', { class: 'near' },
    gv.h('button', { class: 'come', data: { testid: 'near' }, onclick: () => send('near', true) }, 'Show the rest of the page')),
  ({ root, state, send }) => {
    state.end?.();
    if (state.came) return;
    const come = () => {
      state.came = !isRunning();
      if (state.came) send('near', true);
      else state.timer = setTimeout(come, REST);
    };
    const watch = new IntersectionObserver((seen) => {
      clearTimeout(state.timer);
      if (seen.at(-1).isIntersecting) state.timer = setTimeout(come, REST);
    }, { rootMargin: INSIDE, scrollMargin: INSIDE });
    watch.observe(root);
    state.end = () => {
      watch.disconnect();
      clearTimeout(state.timer);
    };
  },
);
