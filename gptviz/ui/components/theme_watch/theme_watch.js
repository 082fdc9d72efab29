// Asks for a run when the colours of the page change: Streamlit turns its own page at once, and runs nothing.
// And a page that is turned to begins at its top: Streamlit leaves it where the one before was scrolled to.
export default gv.component(
  ({ send }) => gv.h('div', { class: 'watch', ontransitionend: () => send('changed', true) }),
  ({ data }) => {
    const main = document.querySelector('[data-testid=stMain]');
    if (!main || main.dataset.gptvizPage === data.page) return;
    if (main.dataset.gptvizPage) main.scrollTop = 0;
    main.dataset.gptvizPage = data.page;
  });
