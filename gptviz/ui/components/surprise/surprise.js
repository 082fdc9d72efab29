function gradient({ from, to }) {               // as SVG, so that a saved picture has it
  return '<svg viewBox="0 0 112 11" preserveAspectRatio="none"><linearGradient id="surprise-scale">' +
    `<stop stop-color="${from}"/><stop offset="1" stop-color="${to}"/></linearGradient>` +
    '<rect width="112" height="11" fill="url(#surprise-scale)"/></svg>';
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let root = parentElement.querySelector('.surprise');
  if (!root) {
    root = document.createElement('div');
    root.className = 'surprise';
    root.dataset.testid = 'surprise';
    root.innerHTML = '<div class="strip" role="toolbar" aria-label="How surprising each token was"></div>' +
      '<div class="foot"><p class="sentence" data-testid="surprise-sentence" aria-live="polite"></p>' +
      '<span class="legend"><span class="low"></span><span class="scale"></span><span class="high"></span></span></div>';
    parentElement.appendChild(root);
  }
  for (const [name, color] of Object.entries(data.colors)) root.style.setProperty('--' + name, color);
  root.querySelector('.scale').innerHTML = gradient(data.legend);
  root.querySelector('.low').textContent = data.legend.low;
  root.querySelector('.high').textContent = data.legend.high;

  const strip = root.querySelector('.strip');
  const sentence = root.querySelector('.sentence');
  const tell = (chip) => {
    const token = document.createElement('code');
    token.textContent = chip.token;
    sentence.replaceChildren(token, (chip.token ? ' ' : '') + chip.sentence);
  };
  const chips = data.chips.map((chip, position) => {
    const node = document.createElement('button');
    node.className = 'chip' + (position === data.expected ? ' expected' : '');
    node.textContent = chip.token;
    node.style.setProperty('--chip', chip.color);
    node.dataset.testid = 'surprise-chip';
    node.dataset.position = position;
    if (chip.bits !== null) node.dataset.bits = chip.bits;
    if (chip.rank !== null) node.dataset.rank = chip.rank;
    node.disabled = position === 0;
    node.setAttribute('aria-label', chip.token + ' ' + chip.sentence);
    const bits = document.createElement('small');
    bits.textContent = chip.bits_text;
    node.appendChild(bits);
    const say = () => tell(chip);
    node.onmouseenter = say;
    node.onfocus = say;
    node.onclick = () => setTriggerValue('position', position);
    return node;
  });
  const scrolled = strip.scrollTop;
  strip.replaceChildren(...chips);
  strip.scrollTop = scrolled;
  const rest = () => tell(data.chips[data.expected] ?? { token: '', sentence: data.legend.rest });
  strip.onmouseleave = rest;
  rest();
  saveButtons(parentElement, () => svgOfElements(root), 'gptviz-surprise');
}
