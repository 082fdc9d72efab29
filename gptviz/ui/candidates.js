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
    add.dataset.id = row.id;
    add.setAttribute('aria-label', data.action + ' ' + row.token);
    add.title = data.action + ' ' + row.token;
    line.appendChild(add);
  }
  return line;
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function standalone(data) {                     // the same rows as one SVG with nothing outside it
  const c = data.colors;
  const [right, left] = ['end', 'start'];
  const at = { rank: [54, right], token: [70, left], logit: [280, right], scaled: [350, right], filter: [366, left],
    p: [936, right] };
  const [x0, x1, step, top] = [440, 810, 28, 44];
  const rows = [...data.rows, ...(data.rest ? [data.rest] : [])];
  const h = top + step * rows.length + 14;
  const text = (column, y, words, color, weight = 400) => words === '' ? '' :
    `<text x="${at[column][0]}" y="${y}" text-anchor="${at[column][1]}" fill="${color}" ` +
    `font-weight="${weight}">${escaped(words)}</text>`;
  const parts = [`<rect width="960" height="${h}" fill="${c.paper}"/>`];
  for (const name of Object.keys(at)) parts.push(text(name, 26, data.heads[name] || '', c.quiet));
  parts.push(`<text x="${x0}" y="26" fill="${c.quiet}">0</text>`,
    `<text x="${x1}" y="26" fill="${c.quiet}" text-anchor="end">${data.scale}</text>`);
  rows.forEach((row, i) => {
    const y = top + step * i, base = y + 18, span = x1 - x0;
    const split = row.rest ? span * (1 - row.probability) : 0;
    const ink = row.out ? c.quiet : row.first ? c.accent : c.ink;
    parts.push(text('rank', base, row.rank_text, c.quiet),
      text('token', base, row.token + (row.came ? '  (came next)' : ''), ink, row.first ? 700 : 600),
      text('logit', base, row.logit_text, c.ink), text('scaled', base, row.scaled_text, c.ink),
      text('filter', base, row.filter_text, c.quiet), text('p', base, row.p_text, ink),
      `<rect x="${x0 + split}" y="${y + 4}" height="18" fill="${row.rest ? c.quiet : c.bar}" ` +
      `width="${span * Math.min(1, row.probability / (row.rest ? 1 : data.scale))}"/>`);
    if (row.rest) parts.push(`<rect x="${x0}" y="${y + 4}" width="${split}" height="18" fill="${c.bar}" ` +
      `fill-opacity="0.3"/>`);
    else if (row.moved) parts.push(`<rect x="${x0}" y="${y + 2}" height="22" fill="none" stroke="${c.quiet}" ` +
      `width="${span * Math.min(1, row.model_probability / data.scale)}" stroke-dasharray="4 3"/>`);
  });
  return { w: 960, h, text: `<svg xmlns="http://www.w3.org/2000/svg" width="960" height="${h}" ` +
    `viewBox="0 0 960 ${h}" font-family="Source Sans, Source Sans 3, sans-serif" font-size="15" ` +
    `xml:space="preserve">${parts.join('')}</svg>` };
}

async function save(data, format) {
  const { w, h, text } = standalone(data);
  let blob = new Blob([text], { type: 'image/svg+xml' });
  if (format === 'PNG') {
    const picture = new Image();
    picture.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
    await picture.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [2 * w, 2 * h];
    const context = canvas.getContext('2d');
    context.scale(2, 2);
    context.drawImage(picture, 0, 0, w, h);
    blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
  }
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = 'gptviz-next-token.' + format.toLowerCase();
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
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
    const saves = make('span', 'saves');
    for (const format of ['PNG', 'SVG']) {
      const button = make('button', 'save', format);
      button.title = 'Save this picture as ' + format;
      button.setAttribute('aria-label', button.title);
      button.dataset.testid = 'save-' + format.toLowerCase();
      saves.appendChild(button);
    }
    foot.append(sentence, saves);
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
  for (const button of sheet.querySelectorAll('.save')) button.onclick = () => save(data, button.textContent);
}
