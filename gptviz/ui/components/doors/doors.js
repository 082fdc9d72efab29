// The Overview's five small pictures. Each is a link to its page: a plain click stays in this session,
// a click with Ctrl or the middle button opens a tab, with the same prompt.

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

const pictures = {
  tokens: ({ tokens }) => tokens.map((token) => {
    const row = element('div', 'token');
    const chip = element('span', 'chip' + (token.chosen ? ' chosen' : ''), token.shown);
    chip.style.background = token.color;
    row.append(chip, element('span', 'id', token.id));
    row.dataset.testid = 'door-token';
    row.dataset.position = token.position;
    row.dataset.id = token.id;
    return row;
  }),
  strips: ({ strips }) => strips.map((strip) => {
    const row = element('div', 'strip');
    const image = element('img');
    image.src = strip.image;
    image.alt = strip.alt;
    image.title = strip.alt;
    row.append(element('span', '', strip.label), image);
    return row;
  }),
  image: ({ image, alt }) => {
    const node = element('img', 'sheet');
    node.src = image;
    node.alt = alt;
    node.title = alt;
    return [node];
  },
  svg: ({ svg, alt }) => {
    const box = element('div', 'lines');
    box.append(document.importNode(new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement, true));
    box.title = alt;
    box.firstChild.setAttribute('role', 'img');
    box.firstChild.setAttribute('aria-label', alt);
    return [box];
  },
  bars: ({ bars }) => bars.map((bar) => {
    const row = element('div', 'bar');
    row.title = bar.title;
    row.dataset.testid = 'door-bar';
    row.dataset.id = bar.id;
    row.dataset.probability = bar.probability;
    const track = element('div', 'track');
    const fill = element('div', 'fill');
    fill.style.width = `${100 * bar.probability / bars[0].probability}%`;
    track.append(fill);
    row.append(element('span', 'name', bar.shown), element('span', 'value', bar.percent), track);
    return row;
  }),
};

// Between a door and the one before it; an element, since a picture of the page knows no ::before.
function arrow() {
  const node = element('span', 'then', '›');
  node.setAttribute('aria-hidden', 'true');
  return node;
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let grid = parentElement.querySelector('.doors');
  if (!grid) {
    grid = element('nav', 'doors');
    grid.setAttribute('aria-label', 'From the text to the next token, in five steps');
    grid.dataset.testid = 'doors';
    parentElement.append(grid);
  }
  grid.replaceChildren(...data.doors.map((door, step) => {
    const link = element('a', 'door');
    link.href = door.href;
    link.dataset.testid = 'door';
    link.dataset.page = door.page;
    const head = element('span', 'head');
    head.append(element('span', 'step', step + 1), element('span', 'title', door.title), element('span', 'go', '→'));
    const picture = element('div', 'picture');
    picture.append(...pictures[door.picture.draw](door.picture));
    const caption = element('span', 'caption');    // text and code in turn: a token may hold any character
    caption.append(...door.caption.map((text, i) => element(i % 2 ? 'code' : 'span', '', text)));
    link.append(head, picture, caption);
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      setTriggerValue('page', door.page);
    };
    if (step) link.append(arrow());
    return link;
  }));
  saveButtons(parentElement, () => svgOfElements(grid), 'gptviz-overview');
}
