// Asks for a run when the colours of the page change: Streamlit turns its own page at once, and runs nothing.
// And a page that is turned to begins at its top, with the list of pages out of the way on a phone: Streamlit
// leaves both as the page before had them.
export default gv.component(
  ({ send }) => gv.h('div', { class: 'watch', ontransitionend: () => send('changed', true) }),
  ({ data }) => {
    const main = document.querySelector('[data-testid=stMain]');
    if (!main || main.dataset.gptvizPage === data.page) return;
    if (main.dataset.gptvizPage) {
      main.scrollTop = 0;
      const shut = document.querySelector('[data-testid=stSidebarCollapseButton] [aria-expanded=true]');
      if (shut?.getBoundingClientRect().right > main.getBoundingClientRect().left) shut.click();
    }
    main.dataset.gptvizPage = data.page;
  });
