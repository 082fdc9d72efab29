// Save a standalone SVG as a file, or as a PNG three times as large. Shared by the components that draw
// themselves; `svg` is [text, width, height].

function saveBlob(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function savePicture([text, width, height], format, name) {
  const blob = new Blob([text], { type: 'image/svg+xml' });
  if (format === 'SVG') return saveBlob(blob, `${name}.svg`);
  const picture = new Image();
  picture.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
  await picture.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [3 * width, 3 * height];
  canvas.getContext('2d').drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((png) => saveBlob(png, `${name}.png`), 'image/png');
}

function saveButtons(makeSvg, name) {
  const row = document.createElement('div');
  row.className = 'save';
  for (const format of ['PNG', 'SVG']) {
    const button = document.createElement('button');
    button.textContent = format;
    button.title = `Save this picture as ${format}`;
    button.dataset.testid = `save-${format.toLowerCase()}`;
    button.onclick = () => savePicture(makeSvg(), format, name);
    row.appendChild(button);
  }
  return row;
}

function svgText(x, y, text, { anchor = 'start', color, size = 12, turn = 0, weight = 400 }) {
  const safe = text.replace(/[&<>]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]);
  const turned = turn ? ` transform="rotate(${turn} ${x} ${y})"` : '';
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" fill="${color}" font-size="${size}"`
    + ` font-weight="${weight}" xml:space="preserve"${turned}>${safe}</text>`;
}

function svgFile(width, height, paper, parts) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`
    + ` font-family="Source Sans, Source Sans 3, sans-serif"><rect width="100%" height="100%" fill="${paper}"/>`
    + parts.join('') + '</svg>', width, height];
}
