// The rows of one piece, from its bytes to its tokens. What a row says was worked out in Python; here it is
// only drawn, and walked through: slider, buttons, arrow keys, or a click on a row.
const walks = new WeakMap(); // parentElement -> { signature, step, timer }

export default function (component) {
  const { data, parentElement } = component;
  const signature = JSON.stringify([data.stages, data.tokens.map((t) => [t.id, t.position])]);
  let walk = walks.get(parentElement);
  if (!walk || walk.signature !== signature) {
    clearInterval(walk?.timer);
    walk = { signature, step: data.stages.length - 1, timer: null };
    walks.set(parentElement, walk);
  }
  const last = data.stages.length - 1;

  const root = make('div', 'merges', '', { testid: 'merges', steps: last });
  root.style.setProperty('--output', data.output);
  const says = make('p', 'says', '', { testid: 'merge-says' });
  says.setAttribute('aria-live', 'polite');
  const back = button('◀', 'One merge back', () => go(walk.step - 1));
  const on = button('▶', 'One merge on', () => go(walk.step + 1));
  const play = button('Play', 'Show the merges one after the other', toggle);
  const slider = make('input', '', '', { testid: 'merge-slider' });
  Object.assign(slider, { type: 'range', min: 0, max: last, step: 1 });
  slider.setAttribute('aria-label', 'Merges applied');
  slider.oninput = () => { stop(); go(Number(slider.value)); };
  const controls = make('div', 'controls', '', { unsaved: '' });
  controls.append(back, slider, on, play);
  const rows = make('div', 'rows');
  rows.append(...data.stages.map(row));
  const head = make('div', 'head');
  head.append(...(last > 0 ? [controls] : []), says);
  root.append(head, rows);
  parentElement.querySelector('.merges')?.remove();
  parentElement.prepend(root);
  saveButtons(parentElement, () => svgOfElements(root), 'gptviz-merges');
  draw();
  return () => clearInterval(walk.timer);

  function go(step) {
    walk.step = Math.max(0, Math.min(last, step));
    draw();
    const now = rows.children[walk.step];
    if (now.offsetTop + now.offsetHeight > rows.scrollTop + rows.clientHeight)
      rows.scrollTop = now.offsetTop + now.offsetHeight - rows.clientHeight;
    if (now.offsetTop < rows.scrollTop) rows.scrollTop = now.offsetTop;
  }

  function toggle() {
    if (walk.timer) return stop();
    go(walk.step >= last ? 0 : walk.step + 1);
    walk.timer = setInterval(() => { go(walk.step + 1); if (walk.step >= last) stop(); }, 1100);
    play.textContent = 'Stop';
  }

  function stop() {
    clearInterval(walk.timer);
    walk.timer = null;
    play.textContent = 'Play';
  }

  function draw() {
    // Sentences come as pieces of text and code in turn: a token may hold any character, so no markup is parsed.
    says.replaceChildren(...data.stages[walk.step].says.map((text, i) => make(i % 2 ? 'code' : 'span', '', text)));
    slider.value = walk.step;
    back.disabled = walk.step === 0;
    on.disabled = walk.step === last;
    root.dataset.step = walk.step;
    [...rows.children].forEach((stage, i) => {
      stage.classList.toggle('later', i > walk.step);
      stage.classList.toggle('now', i === walk.step && last > 0);
    });
  }

  function row(stage, index) {
    const line = make('div', 'stage', '', { testid: 'stage', stage: index });
    line.append(make('div', 'label', index ? 'merge ' + index : 'bytes'));
    const width = data.width, lane = make('div', 'lane');
    let at = 0;
    stage.parts.forEach((part, i) => {
      const isNew = index > 0 && at === stage.joined;
      const token = index === last ? data.tokens[i] : null;
      const side = part.mine ? ' mine' : ' other';
      const small = part.shown.length * 10 > part.bytes * width - 8 ? ' small' : '';
      const box = make('div', 'part' + side + small + (isNew ? ' new' : ''), part.shown, { testid: 'part', bytes: part.hex });
      place(box, at, part.bytes);
      box.title = part.title;
      if (token) box.style.setProperty('--chip', token.color);
      lane.append(box);
      if (index === 0) {
        const hex = make('div', 'hex', part.hex);
        place(hex, at, part.bytes);
        lane.append(hex);
      }
      if (token) {
        const id = make('div', 'id' + side, String(token.id), { testid: 'merge-id', id: token.id, position: token.position });
        place(id, at, part.bytes);
        lane.append(id);
      }
      at += part.bytes;
      if (i < stage.ranks.length && index < last) {
        const rank = stage.ranks[i], chosen = i === stage.chosen;
        const badge = make('span', 'rank' + (chosen ? ' chosen' : rank === null ? ' none' : ''), rank === null ? '–' : String(rank),
          { testid: 'rank', rank: rank === null ? 'none' : rank, chosen });
        badge.style.left = at * width + 'px';
        badge.title = stage.titles[i];
        lane.append(badge);
      }
    });
    lane.style.width = at * width + 4 + 'px';
    line.append(lane);
    line.onclick = () => { stop(); go(index); };
    return line;

    function place(box, start, bytes) {
      box.style.left = start * width + 'px';
      box.style.width = bytes * width - 4 + 'px';
    }
  }
}

function make(tag, className, text = '', hooks = {}) {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  for (const [name, value] of Object.entries(hooks)) element.dataset[name] = value;
  return element;
}

function button(text, label, click) {
  const element = make('button', '', text, { testid: 'merge-' + (text === '◀' ? 'back' : text === '▶' ? 'on' : 'play') });
  element.title = label;
  element.setAttribute('aria-label', label);
  element.onclick = click;
  return element;
}
