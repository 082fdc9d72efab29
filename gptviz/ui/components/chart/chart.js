// The buttons under a Plotly chart: the layers that Plotly drew, as they are on the screen, in one SVG.

const PASSING = '.hoverlayer, .draglayer, .zoomlayer';   // not part of the picture

function svgOfPlot(plot, paper) {
  const layers = [...plot.querySelectorAll('.main-svg')];
  const { width, height } = layers[0].getBoundingClientRect();
  const parts = layers.flatMap((layer) => [...layer.children]).filter((child) => !child.matches(PASSING)).map((child) => {
    const copy = child.cloneNode(true);
    copy.querySelectorAll(PASSING).forEach((node) => node.remove());
    return new XMLSerializer().serializeToString(copy);
  });
  return svgFile(Math.round(width), Math.round(height), paper, parts);
}

export default function (component) {
  const { data, parentElement } = component;
  saveButtons(parentElement, () => {
    const plot = document.querySelector(`.st-key-${data.key} .js-plotly-plot`);
    return plot && svgOfPlot(plot, data.paper);            // nothing yet, a moment after the page opened
  }, data.file);
}
