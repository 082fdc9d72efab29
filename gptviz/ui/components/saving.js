// The one place that saves pictures: buttons, files, and the SVG of what is on the screen. A picture is
// [text of a standalone SVG, width, height]; its PNG is three times as large. Joins kernel.js's `gv`.

Object.assign(gv, (() => {
  const PNG_SCALE = 3;
  const PNG_LARGEST = 16384;      // pixels a side: some browsers give no larger canvas
  const PICTURE_MARGIN = 12;      // paper around what was on the screen, so that rings are whole
  const TITLE = { size: 15, weight: 650, line: 22 }, LINE = { size: 12, weight: 400, line: 17 };

  const AGAIN = 100;              // ms: where nothing is drawn yet, a click is kept until it is

  // Two buttons, described. `makePicture()` gives a picture, or null where there is none yet; `saved` is what
  // ui/components/saved.py's Saved says: { stem: the file's name, title, lines: words above the picture }.
  function saveButtons(makePicture, saved) {
    const save = (format, button) => {
      const picture = makePicture();
      if (picture) savePicture(explained(picture, saved), format, saved.stem);
      else if (button.isConnected) setTimeout(save, AGAIN, format, button);
    };
    return gv.h('div', { class: 'save' }, ['PNG', 'SVG'].map((format) => gv.h('button', {
      type: 'button', title: `Save this picture as ${format}`, 'aria-label': `Save this picture as ${format}`,
      data: { testid: `save-${format.toLowerCase()}` }, onclick: ({ currentTarget }) => save(format, currentTarget) }, format)));
  }

  // The picture with its title and lines above it, on paper as wide as the widest of them.
  function explained(picture, { title, lines }) {
    const words = [...(title ? [[title, TITLE]] : []), ...(lines ?? []).map((line) => [line, LINE])];
    if (!words.length) return picture;
    const [text, width, height] = picture, { ink, quiet, paper } = colorsOf(text);
    const room = words.map(([line, { size, weight }]) => {
      pen().font = `${weight} ${size}px "Source Sans", sans-serif`;
      return pen().measureText(line).width;
    });
    let y = PICTURE_MARGIN;
    const parts = words.map(([line, { size, weight, line: height }], i) => svgText(
      PICTURE_MARGIN, (y += height) - 6, line, { color: i || !title ? quiet : ink, size, weight }));
    const all = Math.ceil(Math.max(width, ...room.map((wide) => wide + 2 * PICTURE_MARGIN)));
    return svgFile(all, Math.ceil(y + height), paper, [...parts, text.replace('<svg ', `<svg y="${y}" `)]);
  }

  // The palette of the mode whose paper the picture is on.
  function colorsOf(text) {
    const paper = /<rect [^>]*fill="([^"]*)"/.exec(text)?.[1] ?? '';
    const rgb = paper.startsWith('rgb') ? paper.match(/\d+/g).map(Number) : gv.channels(paper || '#ffffff');
    const dark = rgb[0] + rgb[1] + rgb[2] < 384;
    return { ...gv.palette(dark ? 'dark' : 'light'), paper: paper || '#ffffff' };
  }

  async function savePicture([text, width, height], format, name) {
    text = text.replace(/[^\t\n\r\x20-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD');    // not allowed in XML
    if (format === 'SVG') return saveFile(new Blob([text], { type: 'image/svg+xml' }), `${name}.svg`);
    const picture = new Image();
    picture.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text.replace('>', '>' + await fontFaces(text)));
    await picture.decode();
    const scale = Math.min(PNG_SCALE, PNG_LARGEST / Math.max(width, height));
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [Math.round(scale * width), Math.round(scale * height)];
    canvas.getContext('2d').drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((png) => saveFile(png, `${name}.png`), 'image/png');
  }

  function saveFile(blob, name) {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // An image sees no font of the page that it is in: those that the text names, from our own server, as data.
  async function fontFaces(text) {
    const sheets = [...document.styleSheets].filter(({ href }) => href?.startsWith(location.origin));
    const faces = sheets.flatMap((sheet) => [...sheet.cssRules].filter((rule) => rule instanceof CSSFontFaceRule
      && rule.style.fontStyle === 'normal' && text.includes(rule.style.fontFamily.replaceAll('"', ''))));
    const styles = await Promise.all(faces.map(async ({ style, parentStyleSheet }) => {
      const font = await fetch(new URL(/url\("?([^")]+)/.exec(style.src)[1], parentStyleSheet.href));
      const reader = new FileReader();
      reader.readAsDataURL(await font.blob());
      await new Promise((done) => { reader.onload = done; });
      return `@font-face{font-family:${style.fontFamily};font-weight:${style.fontWeight};src:url(${reader.result})}`;
    }));
    return `<style>${styles.join('')}</style>`;
  }

  // ---- pieces of SVG ----

  const escapeXml = (text) => text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);

  function svgText(x, y, text, { anchor = 'start', color, size = 12, turn = 0, weight = 400, more = '' }) {
    const turned = turn ? ` transform="rotate(${turn} ${x} ${y})"` : '';
    return `<text x="${x}" y="${y}" text-anchor="${anchor}" ${svgPaint('fill', color)} font-size="${size}"`
      + ` font-weight="${weight}" xml:space="preserve"${turned}${more}>${escapeXml(text)}</text>`;
  }

  function svgFile(width, height, paper, parts) {
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`
      + ` font-family="'Source Sans', 'Source Sans 3', sans-serif"><rect width="100%" height="100%" fill="${paper}"/>`
      + parts.join('') + '</svg>', width, height];
  }

  // What marks a head of a changed model, over its picture in a square [x, y, side]: a tint, the stronger the
  // more its pattern moved, and stripes where it is itself changed. A picture needs `hatching` once.
  const tint = (moved) => Math.min(0.75, 0.85 * Math.sqrt(moved));   // a pattern of which a tenth moved is to be seen
  const hatching = (color, period) => `<defs><pattern id="hatched" width="${period}" height="${period}" patternUnits="userSpaceOnUse"`
    + ` patternTransform="rotate(45)"><rect width="${period / 3}" height="${period}" fill="${color}"/></pattern></defs>`;

  function headMarks([x, y, side], { changed, moved }, color) {
    const square = (paint) => `<rect x="${x}" y="${y}" width="${side}" height="${side}" ${paint}/>`;
    return (moved ? square(`fill="${color}" opacity="${tint(moved)}"`) : '') + (changed ? square('fill="url(#hatched)"') : '');
  }

  // A colour as attributes that programs without CSS know; '' where there is nothing to see.
  function svgPaint(attribute, color) {
    const [, rgb, alpha] = /^rgba\((.*), ([\d.]+)\)$/.exec(color) ?? [];
    if (alpha === undefined) return `${attribute}="${color}"`;
    return Number(alpha) ? `${attribute}="rgb(${rgb})" ${attribute}-opacity="${alpha}"` : '';
  }

  // ---- what is on the screen, as SVG ----

  // Boxes, texts and images of `root` at their places. What is invisible or marked data-unsaved is left out,
  // and what scrolls is there as a whole. Text stays text, a line of it each, as wide as on the screen.
  function svgOfElements(root) {
    root.classList.add('saving');
    const scrolled = [root, ...root.querySelectorAll('*')].filter((node) => /auto|scroll/.test(getComputedStyle(node).overflow))
      .map((node) => [node, node.scrollLeft, node.scrollTop]);
    for (const [node] of scrolled) Object.assign(node.style, { overflow: 'visible', maxHeight: 'none' });
    try {
      const { left, top } = root.getBoundingClientRect();
      const at = ({ x, y, width, height }) =>
        ({ x: round(x - left + PICTURE_MARGIN), y: round(y - top + PICTURE_MARGIN), width: round(width), height: round(height) });
      const paper = getComputedStyle(root).getPropertyValue('--st-background-color');
      return svgFile(root.scrollWidth + 2 * PICTURE_MARGIN, root.scrollHeight + 2 * PICTURE_MARGIN, paper, [svgOfElement(root, at)]);
    } finally {
      root.classList.remove('saving');
      for (const [node, ...place] of scrolled) {
        Object.assign(node.style, { overflow: '', maxHeight: '' });
        [node.scrollLeft, node.scrollTop] = place;
      }
    }
  }

  const round = (number) => Math.round(100 * number) / 100;
  const placed = ({ x, y, width, height }) => `x="${x}" y="${y}" width="${width}" height="${height}"`;

  function svgOfElement(node, at, edge = Infinity) {
    const style = getComputedStyle(node);
    if (style.display === 'none' || style.visibility === 'hidden' || style.opacity === '0') return '';
    const frame = at(node.getBoundingClientRect());
    const boxes = [...node.getClientRects()].map((rect) => svgOfBox(at(rect), style)).join('');
    let inside = '';
    if (node.tagName === 'IMG' || node.tagName === 'CANVAS') {
      const fit = style.objectFit === 'contain' ? 'xMidYMid' : 'none';
      inside = `<image ${placed(frame)} preserveAspectRatio="${fit}" style="image-rendering: ${style.imageRendering}"`
        + ` href="${node.src ?? node.toDataURL()}"/>`;
    } else if (node.tagName === 'svg') {
      const copy = node.cloneNode(true);
      for (const [name, value] of Object.entries(frame)) copy.setAttribute(name, value);
      inside = new XMLSerializer().serializeToString(copy);
    } else {
      const cut = style.textOverflow === 'ellipsis' && node.scrollWidth > node.clientWidth;
      if (cut) edge = Math.min(edge, node.getBoundingClientRect().right - parseFloat(style.paddingRight));
      for (const child of node.childNodes)
        if (child.nodeType === Node.ELEMENT_NODE) inside += svgOfElement(child, at, edge);
        else if (child.nodeType === Node.TEXT_NODE) inside += svgOfText(child, style, edge, at);
    }
    return style.opacity === '1' ? boxes + inside : `<g opacity="${style.opacity}">${boxes}${inside}</g>`;
  }

  // Background, borders, a ring of shadow, an outline. Corners are as the first one is.
  function svgOfBox(box, style) {
    const radius = parseFloat(style.borderTopLeftRadius) || 0;
    const rect = (grow, paint) => `<rect ${placed({ x: round(box.x - grow), y: round(box.y - grow),
      width: round(Math.max(0, box.width + 2 * grow)), height: round(Math.max(0, box.height + 2 * grow)) })}`
      + ` rx="${Math.max(0, radius + grow)}" ${paint}/>`;
    const stroke = (color, width, kind) => kind === 'none' || !width || !svgPaint('stroke', color) ? ''
      : `fill="none" ${svgPaint('stroke', color)} stroke-width="${width}"${kind === 'dashed' ? ` stroke-dasharray="${2 * width}"` : ''}`;
    const parts = [];
    const [, ringColor, ring] = /^(.*\)) 0px 0px 0px ([\d.]+)px$/.exec(style.boxShadow) ?? [];
    if (ring) parts.push(rect(ring / 2, stroke(ringColor, Number(ring), 'solid')));
    const fill = svgPaint('fill', style.backgroundColor);
    if (fill) parts.push(rect(0, fill));
    const { x, y, width: w, height: h } = box;
    const sides = Object.entries({ Top: [x, y, x + w, y], Right: [x + w, y, x + w, y + h], Bottom: [x, y + h, x + w, y + h],
      Left: [x, y, x, y + h] }).map(([side, line]) => ({ side, line, width: parseFloat(style[`border${side}Width`]),
      paint: stroke(style[`border${side}Color`], parseFloat(style[`border${side}Width`]), style[`border${side}Style`]) }));
    if (sides.every(({ paint }) => paint === sides[0].paint)) {
      if (sides[0].paint) parts.push(rect(-sides[0].width / 2, sides[0].paint));
    } else for (const { side, line: [x1, y1, x2, y2], width, paint } of sides) {
      const [dx, dy] = { Top: [0, 1], Bottom: [0, -1], Left: [1, 0], Right: [-1, 0] }[side].map((step) => (step * width) / 2);
      if (paint) parts.push(`<path d="M${round(x1 + dx)} ${round(y1 + dy)}L${round(x2 + dx)} ${round(y2 + dy)}" ${paint}/>`);
    }
    const [outline, offset] = [parseFloat(style.outlineWidth), parseFloat(style.outlineOffset)];
    const outlined = stroke(style.outlineColor, outline, style.outlineStyle);
    if (outlined) parts.push(rect(offset + outline / 2, outlined));
    return parts.join('');
  }

  let measuring;
  const pen = () => (measuring ??= document.createElement('canvas').getContext('2d'));

  function svgOfText(node, style, edge, at) {
    const lines = [], range = document.createRange();
    pen().font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const ellipsis = edge < Infinity ? pen().measureText('…').width : 0;
    let index = 0;
    for (const character of node.data) {
      range.setStart(node, index);
      range.setEnd(node, (index += character.length));
      const rect = [...range.getClientRects()].at(-1);
      let line = lines.at(-1);
      if (!rect || line?.cut || rect.left >= edge || (!rect.width && character.trim() === '')) continue;   // spaces that a line's end swallowed
      if (!line || Math.abs(rect.top - line.top) > rect.height / 2)
        lines.push((line = { text: '', left: rect.left, right: rect.left, top: rect.top }));
      line.cut = rect.right > edge - ellipsis;
      line.text += line.cut ? '…' : character;
      line.left = Math.min(line.left, rect.left);
      line.right = line.cut ? line.right + ellipsis : Math.max(line.right, rect.right);
    }
    const anchor = { center: 'middle', right: 'end', end: 'end' }[style.textAlign] ?? 'start';
    const family = style.fontFamily.startsWith('"Source Sans"') ? '' : ` font-family="${style.fontFamily.replaceAll('"', "'")}"`;
    return lines.map((line) => {
      const { x, y, width } = at({ x: line.left, y: line.top, width: line.right - line.left, height: 0 });
      const baseline = round(y + pen().measureText(line.text).fontBoundingBoxAscent);
      return svgText(round(x + { start: 0, middle: 0.5, end: 1 }[anchor] * width), baseline, line.text, {
        anchor, color: style.color, size: parseFloat(style.fontSize), weight: style.fontWeight,
        more: `${family} textLength="${width}" lengthAdjust="spacingAndGlyphs"`
          + (style.textDecorationLine === 'none' ? '' : ` text-decoration="${style.textDecorationLine}"`) });
    }).join('');
  }

  return { saveButtons, savePicture, saveFile, explained, escapeXml, svgText, svgFile, svgPaint, svgOfElements, tint, hatching, headMarks };
})());
