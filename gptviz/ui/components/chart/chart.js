// The buttons under a Plotly chart: the layers that Plotly drew, as they are on the screen, in one SVG.

const PASSING = '.hoverlayer, .draglayer, .zoomlayer';   // not part of the picture

function svgOfPlot(plot, paper) {
  const layers = [...plot.querySelectorAll('.main-svg')];
  const { width, height } = layers[0].getBoundingClientRect();
  const parts = layers.flatMap((layer) => [...layer.children]).filter((child) => !child.matches(PASSING)).map((child) => {
    const copy = child.cloneNode(true);
    copy.querySelectorAll(PASSING).forEach((node) => node.remove());
    // Plotly draws lines that no scale changes: in a PNG three times as large they would be a third as thick
    for (const node of [copy, ...copy.querySelectorAll('[style]')]) node.style.removeProperty('vector-effect');
    return new XMLSerializer().serializeToString(copy);
  });
  return gv.svgFile(Math.round(width), Math.round(height), paper, parts);
}

export default gv.component(({ data }) => gv.saveButtons(() => {
  const plot = document.querySelector(`.st-key-${data.key} .js-plotly-plot`);
  return plot?.querySelector('.main-svg') ? svgOfPlot(plot, data.paper) : null;   // a moment after the page opened
}, data.saved));
