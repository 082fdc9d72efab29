// Asks for a run when the colours of the page change: Streamlit turns its own page at once, and runs nothing.
// And a page that is turned to begins at its top, with the list of pages out of the way on a phone: Streamlit
// leaves both as the page before had them. While the first page rests, what draws charts is fetched.
const REST = 1500;              // ms after the first drawing

// charts come from a file of 4.7 MB, which Streamlit fetches when the first chart is to be drawn
function fetchAhead(file) {
  const app = document.querySelector('script[type=module][src*="/index."]');
  if (!app || !file || navigator.connection?.saveData) return;
  const link = document.createElement('link');
  link.rel = 'modulepreload';
  link.href = new URL(file, app.src);
  document.head.append(link);
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
      setTimeout(() => requestIdleCallback(() => fetchAhead(data.charts)), REST);
    }
    main.dataset.gptvizPage = data.page;
  });
