// Asks for a run when the colours of the page change: Streamlit turns its own page at once, and runs nothing.
export default gv.component(({ send }) =>
  gv.h('div', { class: 'watch', ontransitionend: () => send('changed', true) }));
