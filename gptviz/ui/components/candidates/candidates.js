const COLUMNS = ['rank', 'token', 'logit', 'scaled', 'filter', 'bar', 'p', 'act'];

function make(tag, name, text) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  return node;
}

function width(share) { return (100 * Math.min(1, share)) + '%'; }

function drawRow(row, data) {
  const line = make('div', 'line row');
  line.classList.toggle('first', row.first);
  line.classList.toggle('came', row.came);
  line.classList.toggle('out', row.out);
  line.classList.toggle('rest', row.rest);
  line.dataset.testid = row.rest ? 'rest' : 'candidate';
  for (const name of ['id', 'rank', 'logit', 'scaled', 'filter', 'probability', 'model_probability', 'came'])
    if (row[name] !== null && row[name] !== undefined) line.dataset[name.replace('_p', 'P')] = row[name];
  const token = make('span', 'token', row.token);
  if (row.came) token.appendChild(make('span', 'tag', 'came next'));
  const bar = make('span', 'bar');
  const fill = make('i', 'fill');
  fill.style.width = width(row.probability / (row.rest ? 1 : data.scale));
  bar.appendChild(fill);
  if (row.rest) {                              // all there is: the rows above, then the others
    const above = make('i', 'above');
    above.style.width = width(1 - row.probability);
    bar.appendChild(above);
  } else if (row.moved) {
    const ghost = make('i', 'ghost');
    ghost.style.width = width(row.model_probability / data.scale);
    bar.appendChild(ghost);
  }
  line.append(make('span', 'rank num', row.rank_text), token, make('span', 'logit num', row.logit_text),
    make('span', 'scaled num', row.scaled_text), make('span', 'filter', row.filter_text), bar,
    make('span', 'p num', row.p_text));
  if (row.whole) {
    const add = make('button', 'add', '+');
    add.appendChild(make('span', '', ' ' + data.action));
    add.dataset.testid = 'append';
    add.dataset.unsaved = '';
    add.dataset.id = row.id;
    add.setAttribute('aria-label', data.action + ' ' + row.token);
    add.title = data.action + ' ' + row.token;
    line.appendChild(add);
  }
  return line;
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let sheet = parentElement.querySelector('.sheet');
  if (!sheet) {
    sheet = make('div', 'sheet');
    sheet.dataset.testid = 'candidates';
    const foot = make('div', 'foot');
    const sentence = make('p', 'sentence');
    sentence.dataset.testid = 'sentence';
    sentence.setAttribute('aria-live', 'polite');
    foot.append(sentence);
    sheet.append(make('div', 'rows'), foot);
    parentElement.appendChild(sheet);
  }
  for (const [name, color] of Object.entries(data.colors)) sheet.style.setProperty('--' + name, color);
  sheet.dataset.scale = data.scale;

  const head = make('div', 'line head');
  for (const name of COLUMNS)
    head.appendChild(make('span', name + (['rank', 'logit', 'scaled', 'p'].includes(name) ? ' num' : ''),
      data.heads[name] || ''));
  head.children[5].replaceChildren(make('span', '', '0'), make('span', '', String(data.scale)));
  const lines = data.rows.map((row) => drawRow(row, data));
  const shown = [head];
  lines.forEach((line, i) => {
    if (i && data.rows[i].rank > data.rows[i - 1].rank + 1) shown.push(make('div', 'gap'));
    shown.push(line);
  });
  const all = data.rest ? [...data.rows, data.rest] : data.rows;
  if (data.rest) {
    lines.push(drawRow(data.rest, data));
    shown.push(make('div', 'gap'), lines.at(-1));
  }
  const old = [...sheet.querySelectorAll('.row .fill')].map((fill) => fill.style.width);
  sheet.querySelector('.rows').replaceChildren(...shown);
  lines.forEach((line, i) => {                  // bars grow from where they were
    const fill = line.querySelector('.fill'), to = fill.style.width;
    if (old[i] === undefined || old[i] === to) return;
    fill.style.width = old[i];
    fill.getBoundingClientRect();
    fill.style.width = to;
  });

  const say = (i) => {
    lines.forEach((line, j) => line.classList.toggle('shown', j === i));
    const token = make('code', '', all[i].rest ? '' : all[i].token);
    sheet.querySelector('.sentence').replaceChildren(token, (all[i].rest ? '' : ' ') + all[i].sentence);
  };
  let locked = all.findIndex((row) => row.key === sheet.dataset.locked);
  const back = () => say(Math.max(0, locked));
  lines.forEach((line, i) => {
    line.onmouseenter = () => say(i);
    line.onfocusin = () => say(i);
    line.onmouseleave = back;
    line.onclick = (event) => {
      const add = event.target.closest('.add');
      if (add) { setTriggerValue('append', Number(add.dataset.id)); return; }
      locked = i;
      sheet.dataset.locked = all[i].key;
      say(i);
    };
  });
  back();
  saveButtons(sheet.querySelector('.foot'), () => svgOfElements(sheet), 'gptviz-next-token');
}
