// Every head as a thumbnail: one button a head, all showing parts of one picture. A click opens the head;
// arrow keys walk. data: see sheet.py.

function draw(root, data) {
  const { blocks, heads } = data;
  const sheet = document.createElement('div');
  sheet.dataset.testid = 'sheet';
  const grid = document.createElement('div');
  grid.className = 'grid';
  grid.setAttribute('role', 'group');
  grid.setAttribute('aria-label', 'All heads: rows are blocks, columns are heads. Arrow keys walk, Enter opens.');
  grid.style.gridTemplateColumns = `max-content repeat(${heads}, minmax(0, 1fr))`;
  const cell = (className, text) => {
    const element = document.createElement('span');
    element.className = className;
    element.textContent = text;
    grid.appendChild(element);
  };
  cell('corner', '');
  for (let h = 0; h < heads; h++) cell('column', heads > 8 ? h : `head ${h}`);
  for (let b = 0; b < blocks; b++) {
    cell('row', blocks > 8 ? b : `block ${b}`);
    for (let h = 0; h < heads; h++) grid.appendChild(thumbnail(data, b, h));
  }
  const says = document.createElement('div');
  says.className = 'says';
  says.dataset.testid = 'sheet-says';
  says.setAttribute('aria-live', 'polite');
  sheet.append(grid, says);
  saveButtons(sheet, () => toSvg(root.gptviz.data), 'gptviz-all-heads');
  root.querySelector('[data-testid=sheet]')?.remove();
  root.appendChild(sheet);
}

function thumbnail(data, b, h) {
  const head = data.roles[b][h];
  const button = document.createElement('button');
  button.className = 'head';
  button.dataset.testid = `head-${b}-${h}`;
  button.dataset.block = b;
  button.dataset.head = h;
  button.dataset.kind = head.kind;
  button.dataset.write = head.write;
  button.setAttribute('aria-label', head.says);
  const picture = document.createElement('span');
  picture.className = 'picture';
  picture.style.backgroundSize = `${100 * data.heads}% ${100 * data.blocks}%`;
  const along = (i, n) => (n > 1 ? (100 * i) / (n - 1) : 0);
  picture.style.backgroundPosition = `${along(h, data.heads)}% ${along(b, data.blocks)}%`;
  const write = document.createElement('span');
  write.className = 'write';
  write.style.width = `${100 * head.write / data.largest_write}%`;
  const does = document.createElement('span');
  does.className = 'does';
  does.textContent = head.label;
  button.append(picture, write, does);
  return button;
}

function tell(root, button) {
  const { data } = root.gptviz;
  const [block, head] = button ? [button.dataset.block, button.dataset.head] : [data.block, data.head];
  const says = root.querySelector('.says');
  const name = document.createElement('b');
  name.textContent = `Block ${block}, head ${head}. `;
  says.replaceChildren(name, data.roles[block][head].says);
}

function mark(root) {
  const { data } = root.gptviz;
  for (const button of root.querySelectorAll('.head')) {
    const chosen = Number(button.dataset.block) === data.block && Number(button.dataset.head) === data.head;
    button.setAttribute('aria-pressed', chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
}

function toSvg(data) {
  const size = 84, left = 64, top = 26, line = 20;
  const [width, height] = [left + data.heads * (size + 8), top + data.blocks * (size + line + 8)];
  const color = data.colors.ink;
  const parts = [
    `<defs><image id="sheet" width="${data.heads * data.side}" height="${data.blocks * data.side}"`
    + ` style="image-rendering: pixelated" href="${data.picture}"/></defs>`];
  for (let h = 0; h < data.heads; h++)
    parts.push(svgText(left + h * (size + 8) + size / 2, 17, `head ${h}`, { anchor: 'middle', color }));
  for (let b = 0; b < data.blocks; b++) {
    const y = top + b * (size + line + 8);
    parts.push(svgText(left - 8, y + size / 2, `block ${b}`, { anchor: 'end', color }));
    for (let h = 0; h < data.heads; h++) {
      const x = left + h * (size + 8);
      parts.push(`<svg x="${x}" y="${y}" width="${size}" height="${size}"`
        + ` viewBox="${h * data.side} ${b * data.side} ${data.side} ${data.side}"><use href="#sheet"/></svg>`);
      parts.push(svgText(x + size / 2, y + size + 13, data.roles[b][h].label, { anchor: 'middle', color, size: 11 }));
    }
  }
  return svgFile(width, height, data.colors.paper, parts);
}

export default function (component) {
  const { data, parentElement: root, setTriggerValue } = component;
  const before = root.gptviz;
  root.gptviz = { data };
  if (!before || before.data.stamp !== data.stamp) draw(root, data);   // else keep the buttons, and the focus
  const sheet = root.querySelector('[data-testid=sheet]');
  sheet.style.setProperty('--picture', `url(${data.picture})`);
  sheet.style.setProperty('--output', data.colors.output);
  const size = () => {
    const wide = sheet.querySelector('.picture').clientWidth;
    sheet.className = `sheet ${wide < 48 ? 'small' : ''} ${data.side > wide ? 'fine' : ''}`;
  };
  before?.observer.disconnect();
  root.gptviz.observer = new ResizeObserver(size);
  root.gptviz.observer.observe(sheet);
  mark(root);
  tell(root, null);
  const grid = sheet.querySelector('.grid');
  grid.onclick = (event) => {
    const button = event.target.closest('.head');
    if (!button) return;
    const [block, head] = [Number(button.dataset.block), Number(button.dataset.head)];
    root.gptviz.data = { ...data, block, head };   // ring it now; the server's answer says the same
    mark(root);
    setTriggerValue('head', { block, head });
  };
  grid.onmouseover = (event) => tell(root, event.target.closest('.head'));
  grid.onmouseleave = () => tell(root, null);
  grid.onfocusin = (event) => tell(root, event.target.closest('.head'));
  grid.onkeydown = (event) => {
    const from = event.target.closest('.head');
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!from || !step) return;
    event.preventDefault();
    const [b, h] = [Number(from.dataset.block) + step[0], Number(from.dataset.head) + step[1]];
    grid.querySelector(`[data-block="${b}"][data-head="${h}"]`)?.focus();
  };
}
