// Every head as a thumbnail: one button a head, all showing parts of one picture. A click opens the head;
// arrow keys walk. data: see __init__.py.

function thumbnail(view, block, head) {
  const { data, state } = view, { kind, says, label, write, changed, moved } = data.roles[block][head];
  const chosen = block === state.block && head === state.head;
  const along = (i, n) => (n > 1 ? (100 * i) / (n - 1) : 0);
  const say = () => tell(view, block, head);
  return gv.h('button', {
    key: `${block}-${head}`, type: 'button', class: 'head', 'aria-pressed': chosen,
    'aria-label': `Block ${block}, head ${head}. ${says}`, data: { testid: `head-${block}-${head}`, block, head, kind, write, changed: changed || undefined, moved },
    onmouseenter: say, onfocus: say,
    onclick: () => {
      Object.assign(state, { block, head });      // ring it now; the server's answer says the same
      view.redraw();
      view.send('head', { block, head });
    },
  },
  gv.h('span', { class: 'picture', style: {
    'background-size': `${100 * data.heads}% ${100 * data.blocks}%`,
    'background-position': `${along(head, data.heads)}% ${along(block, data.blocks)}%` } },
  moved ? gv.h('span', { class: 'tint', style: { opacity: gv.tint(moved) } }) : null,
  changed ? gv.h('span', { class: 'hatched' }) : null),
  gv.h('span', { class: 'write', style: { width: `${(100 * write) / data.largest_write}%` } }),
  gv.h('span', { class: 'does' }, label));
}

function tell({ data, root }, block, head) {
  const says = root.querySelector('.says');
  Object.assign(says.dataset, { block, head });
  if (block === null) gv.render(says);
  else gv.render(says, gv.h('b', null, `Block ${block}, head ${head}. `), data.roles[block][head].says);
}

function grid(view) {
  const { data } = view, { blocks, heads } = data, across = [...Array(heads).keys()];
  return gv.h('div', {
    class: 'grid', role: 'group', style: { '--blocks': blocks, '--heads': heads },
    'aria-label': 'All heads: rows are blocks, columns are heads. Arrow keys walk, Enter opens.',
    data: { walk: '.head' },
    onmouseleave: () => tell(view, view.state.block, view.state.head),
  },
  gv.h('span', { class: 'corner' }), across.map((head) => gv.h('span', { class: 'column' }, gv.h('span', { class: 'word' }, 'head '), String(head))),
  data.roles.map((row, block) => [gv.h('span', { class: 'row' }, blocks > 8 ? String(block) : `block ${block}`),
    across.map((head) => thumbnail(view, block, head))]));
}

// Every head larger than on the screen, each with its word.
function pictureOf({ data }) {
  const { ink, paper, accent, quiet, positive: moves } = gv.palette(data.mode);
  const size = 84, left = 64, top = 26, line = 20, [wide, high] = [size + 8, size + line + 8];
  const parts = [`<defs><image id="heads" width="${data.heads * data.side}" height="${data.blocks * data.side}"`
    + ` style="image-rendering: pixelated" href="${data.picture}"/></defs>`];
  parts.push(gv.hatching(accent, 9));
  for (let h = 0; h < data.heads; h++)
    parts.push(gv.svgText(left + h * wide + size / 2, 17, `head ${h}`, { anchor: 'middle', color: ink }));
  for (let b = 0; b < data.blocks; b++) {
    const y = top + b * high;
    parts.push(gv.svgText(left - 8, y + size / 2, `block ${b}`, { anchor: 'end', color: ink }));
    for (let h = 0; h < data.heads; h++) {
      const x = left + h * wide;
      parts.push(`<svg x="${x}" y="${y}" width="${size}" height="${size}"`
        + ` viewBox="${h * data.side} ${b * data.side} ${data.side} ${data.side}"><use href="#heads"/></svg>`);
      parts.push(gv.headMarks([x, y, size], data.roles[b][h], moves));
      if (b === data.block && h === data.head)
        parts.push(`<rect x="${x - 2}" y="${y - 2}" width="${size + 4}" height="${size + 4}" rx="4" fill="none" stroke="${accent}" stroke-width="2.5"/>`);
      parts.push(gv.svgText(x + size / 2, y + size + 13, data.roles[b][h].label, { anchor: 'middle', color: ink, size: 11 }));
    }
  }
  const [width, height] = [left + data.heads * wide, top + data.blocks * high];
  const stops = gv.palette(data.mode).attention.map(([stop, color]) => `<stop offset="${stop}" stop-color="${color}"/>`).join('');
  parts.push(`<linearGradient id="heads-scale">${stops}</linearGradient>`
    + gv.svgText(left, height + 12, 'Rows are queries, columns are keys. Weight 0', { color: quiet, size: 11 })
    + `<rect x="${left + 222}" y="${height + 3}" width="70" height="10" fill="url(#heads-scale)" stroke="${quiet}" stroke-width="0.5"/>`
    + gv.svgText(left + 298, height + 12, '1', { color: quiet, size: 11 }));
  return gv.svgFile(Math.max(width, left + 320), height + 24, paper, parts);
}

export default gv.component((view) => {
  const { data, state } = view;
  if (state.data !== data) Object.assign(state, { data, block: data.block, head: data.head });
  const sentences = data.roles.flatMap((row, b) => row.map(({ says }, h) => [`Block ${b}, head ${h}. ${says}`]));
  return gv.h('div', { class: 'heads', style: { '--picture': `url(${data.picture})`, '--side': data.side }, data: { testid: 'heads', side: data.side } },
    grid(view),
    gv.h('div', { class: 'foot' },
      gv.reserving(sentences, gv.h('p', { class: 'says', 'aria-live': 'polite', data: { testid: 'heads-says' } })),
      gv.saveButtons(() => pictureOf(view), data.saved)));
}, (view) => tell(view, view.state.block, view.state.head));
