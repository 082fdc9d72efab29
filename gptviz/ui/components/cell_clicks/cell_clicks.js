// Asks Plotly what was clicked, in the page's own document; draws nothing.
export default gv.component(() => null, ({ data, state, send }) => {
  const clicked = (event) => {
    const cell = event.points.find((point) => point.data.type === 'heatmap');
    if (cell) send('cell', { row: cell.pointNumber[0], column: cell.pointNumber[1], panel: cell.curveNumber });
  };
  // whenever the pointer comes over it: Streamlit may have put another chart in the place of the first
  const listen = (event) => {
    const plot = event.target.closest?.(`.st-key-${data.key} .js-plotly-plot`);
    if (!plot?.on || plot.gptvizClicked === clicked) return;
    if (plot.gptvizClicked) plot.removeListener('plotly_click', plot.gptvizClicked);
    plot.gptvizClicked = clicked;
    plot.on('plotly_click', clicked);
  };
  state.end?.();
  document.addEventListener('pointerover', listen);
  state.end = () => document.removeEventListener('pointerover', listen);
});
