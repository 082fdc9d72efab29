// Under a Plotly chart: buttons that save the layers that Plotly drew, as they are on the screen, in one SVG; and
// for who has no pointer, a stop of the keyboard from which arrow keys walk from number to number.

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

// ---- by keyboard: what a pointer would find, read aloud; Enter clicks ----

const SHOWN = 60;               // ms that Plotly takes at most to show what is pointed at

// What can be pointed at: a list a curve or a row of a map, each of { x, y } in pixels of the plot, and its part of it.
function placesOf({ _fullData, _fullLayout, calcdata }) {
  const lists = _fullData.flatMap((trace, i) => {
    if (trace.visible !== true || trace.hoverinfo === 'skip') return [];
    const { xaxis, yaxis, id } = _fullLayout._plots[`${trace.xaxis}${trace.yaxis}`], [first] = calcdata[i];
    const at = (x, y) => ({ x: x + xaxis._offset, y: y + yaxis._offset, inside: x > -1 && y > -1 && x < xaxis._length + 1 && y < yaxis._length + 1, subplot: id });
    const middle = (axis, edges, k) => axis.c2p((edges[k] + edges[k + 1]) / 2);
    if (trace.type === 'heatmap') return first.z.map((row, r) => Array.from(row, (_, c) => at(middle(xaxis, first.x, c), middle(yaxis, first.y, r)))).sort(([a], [b]) => a.y - b.y);
    return [calcdata[i].map((point) => (trace.type === 'bar' ? at(...point.ct) : at(xaxis.c2p(point.x), yaxis.c2p(point.y))))];
  });
  return lists.map((list) => list.filter(({ inside }) => inside)).filter((list) => list.length);
}

// The place that a key leads to, from number `n` of list `row`.
function led(lists, { row, n }, key) {
  const here = lists[row][n], other = lists[row + { ArrowDown: 1, ArrowUp: -1 }[key]], last = lists[row].length - 1;
  if (other) return { row: lists.indexOf(other), n: other.reduce((best, { x }, i) => (Math.abs(x - here.x) < Math.abs(other[best].x - here.x) ? i : best), 0) };
  const to = { Home: 0, End: last, ArrowRight: n + 1, ArrowLeft: n - 1, ...(lists.length === 1 && { ArrowDown: n + 1, ArrowUp: n - 1 }) }[key] ?? n;
  return { row, n: Math.max(0, Math.min(last, to)) };
}

function keys(view, event) {
  const { data, root, state } = view, plot = plotOf(data), moves = /^(Arrow|Home$|End$)/.test(event.key);
  if (event.altKey || event.ctrlKey || event.metaKey || !plot?.calcdata || !(moves || ['Enter', ' '].includes(event.key))) return;
  const lists = placesOf(plot);
  if (!lists.length) return;
  event.preventDefault();
  const known = state.at && lists[state.at.row]?.[state.at.n];
  if (moves) state.at = known ? led(lists, state.at, event.key) : { row: 0, n: 0 };
  else if (!known) return;
  const { x, y, subplot } = lists[state.at.row][state.at.n], layer = plot.querySelector(`.nsewdrag[data-subplot="${subplot}"]`);
  const box = plot.closest(`.st-key-${data.key}`), seen = x - box.scrollLeft;
  if (seen < 0 || seen > box.clientWidth) box.scrollLeft = x - box.clientWidth / 2;
  const frame = plot.getBoundingClientRect();
  const send = (kind, target) => target.dispatchEvent(new MouseEvent(kind, { bubbles: true, clientX: frame.left + x, clientY: frame.top + y }));
  for (const kind of ['pointerover', 'mousemove']) send(kind, layer);
  setTimeout(() => {
    const lines = [...plot.querySelectorAll('.hovertext text, .hovertext .line')].filter((node) => !node.querySelector('.line'));
    gv.render(root.querySelector('.aloud'), lines.map(({ textContent }) => textContent.trim()).filter(Boolean).join(', '));
    if (moves) return;
    send('mousedown', layer);
    send('mouseup', document);
  }, SHOWN);
}

const plotOf = ({ key }) => document.querySelector(`.st-key-${key} .js-plotly-plot`);

export default gv.component((view) => [
  gv.h('div', { class: 'walk', role: 'application', tabindex: 0, data: { testid: 'chart-keys' }, onkeydown: (event) => keys(view, event),
    onfocus: () => plotOf(view.data)?.scrollIntoView({ block: 'nearest' }),
    onblur: () => plotOf(view.data)?.querySelectorAll('.nsewdrag').forEach((layer) => layer.dispatchEvent(new MouseEvent('mouseout'))),
    'aria-label': `${view.data.saved.title}. Arrow keys walk from number to number, Enter is a click.` }, '← ↑ ↓ → walk through the picture, Enter is a click'),
  gv.h('p', { class: 'aloud', 'aria-live': 'polite', data: { testid: 'chart-aloud' } }),
  gv.saveButtons(() => {
    const plot = plotOf(view.data);
    return plot?.querySelector('.main-svg') ? svgOfPlot(plot, view.data.paper) : null;   // a moment after the page opened
  }, view.data.saved)], ({ data, state }) => {      // a box that scrolls sideways, on a phone, is a stop of the keyboard as well
  const box = document.querySelector(`.st-key-${data.key}`);
  state.observer?.disconnect();
  state.observer = new ResizeObserver(() => {
    if (getComputedStyle(box).overflowX === 'auto' && box.scrollWidth > box.clientWidth) box.setAttribute('tabindex', 0);
    else box.removeAttribute('tabindex');
  });
  if (box) state.observer.observe(box);
  state.end = () => state.observer.disconnect();
});
