// What every component stands on: elements (by Preact), colours, digits. Python makes one ES module of this
// file and saving.js, which the component's own file finds imported (see code.py); `gv` is all that they have in common.
//
// A component says what it looks like as a pure function of its data:
//
//   export default gv.component(({ data, send }) =>
//     gv.h('button', { class: 'chip', onclick: () => send('position', 3) }, data.shown));
//
// `h` only describes; Preact changes what is different on the screen, so that elements, the keyboard's focus
// and what was scrolled stay where they are. What is drawn on a canvas, or rendered apart, goes into an
// element that is described without children, in the second function of `gv.component`.

const gv = (() => {
  // ---- elements ----

  // A description: `props` are attributes and handlers, and `data`, an object; a `key` finds an element again.
  // `markup` is SVG as a text, in place of children: elements that somebody else made cannot be children.
  function h(tag, props, ...children) {
    const { data, markup, ...attributes } = props ?? {};
    if (markup !== undefined) attributes.dangerouslySetInnerHTML = { __html: markup };
    for (const [name, value] of Object.entries(data ?? {})) attributes[`data-${name.replace(/[A-Z]/g, '-$&').toLowerCase()}`] = value;
    return preact.h(tag, attributes, children);
  }

  const render = (parent, ...described) => preact.render(described, parent);

  // Whether the reader wants no motion.
  const still = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

  // ---- mounting ----

  const mounted = new WeakMap();    // parentElement -> what gv.component keeps of it

  // The one element that a component draws in, made once, with the palette of the mode as CSS variables.
  function mount(parentElement, mode) {
    let root = [...parentElement.children].find((child) => child.classList.contains('gv'));
    if (!root) {
      root = document.createElement('div');
      root.addEventListener('keydown', walk);
      parentElement.appendChild(root);
    }
    if (mode && root.dataset.mode !== mode) {
      root.dataset.mode = mode;
      for (const [name, color] of Object.entries(palette(mode))) if (typeof color === 'string') root.style.setProperty(`--${name}`, color);
      palette(mode).positions.forEach((color, i) => root.style.setProperty(`--position-${i}`, color));
    }
    root.className = `gv ${mode ?? ''}`;
    return root;
  }

  // A component out of `look(view) -> description(s)`, and what is to happen once they are on the screen. A
  // view has data, root, send(event, value), redraw(), and `state`: an object that outlives runs.
  // `state.end`, if there is one, is called when the component leaves the page.
  function component(look, after) {
    return ({ data, parentElement, setTriggerValue }) => {
      const root = mount(parentElement, data.mode);
      const state = mounted.get(parentElement) ?? {};
      mounted.set(parentElement, state);
      const view = { data, root, state, send: setTriggerValue };
      view.redraw = () => {
        render(root, look(view));
        after?.(view);
        oneStop(root);
      };
      view.redraw();
      return () => state.end?.();
    };
  }

  // A component with its stylesheet, in its shadow: the browser reads one once, for all drawings.
  const styled = (run, css) => (given) => {
    given.parentElement.getRootNode().adoptedStyleSheets = [gvStyles, css].map(sheet);
    return run(given);
  };

  const sheets = new Map();   // a stylesheet's text -> the browser's own

  function sheet(css) {
    if (!sheets.has(css)) {
      sheets.set(css, new CSSStyleSheet());
      sheets.get(css).replaceSync(css);
    }
    return sheets.get(css);
  }

  // How a button is called whose text is a sign; one with a word goes by that.
  const spoken = (text, name) => (/\w/.test(text) ? undefined : name);

  // ---- by keyboard ----

  // A group is one tab stop: an element with `data: { walk: a selector of its parts }`. Arrow keys walk among them,
  // up and down as they stand on the screen; Enter and the space bar click.

  const partsOf = (group) => [...group.querySelectorAll(group.dataset.walk)].filter((part) => !part.disabled);

  // Where the tab stops: at the part that has the keyboard, else what is chosen, else the first.
  function oneStop(root) {
    for (const group of root.querySelectorAll('[data-walk]')) {
      const parts = partsOf(group), here = root.getRootNode().activeElement;
      const stop = parts.find((part) => part.contains(here)) ?? parts.find((part) => part.ariaPressed === 'true') ?? parts[0];
      for (const part of parts) part.tabIndex = part === stop ? 0 : -1;
    }
  }

  function walk(event) {
    const group = event.target.closest('[data-walk]'), here = group && event.target.closest(group.dataset.walk);
    if (!here || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    const parts = partsOf(group), at = parts.indexOf(here), up = event.key === 'ArrowUp';
    const to = { ArrowRight: () => parts[at + 1], ArrowLeft: () => parts[at - 1], Home: () => parts[0], End: () => parts.at(-1) }[event.key];
    const next = to ? to() : up || event.key === 'ArrowDown' ? nextLine(here, parts, up) : null;
    const clicks = event.target === here && !here.matches('button, a') && ['Enter', ' '].includes(event.key);
    if (!next && !clicks) return;
    event.preventDefault();
    if (clicks) return here.dispatchEvent(new MouseEvent('click', { bubbles: true, composed: true }));    // SVG has no click()
    here.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  // Of the nearest line of parts above or below, the one that stands nearest.
  function nextLine(here, parts, up) {
    const box = here.getBoundingClientRect(), middle = ({ left, right }) => (left + right) / 2;
    const lines = parts.map((part) => ({ part, box: part.getBoundingClientRect() })).map(({ part, box: own }) => (
      { part, down: (own.top - box.top) * (up ? -1 : 1), aside: Math.abs(middle(own) - middle(box)) })).filter(({ down }) => down > box.height / 2);
    const nearest = Math.min(...lines.map(({ down }) => down)) + box.height / 2;
    return lines.filter(({ down }) => down < nearest).sort((a, b) => a.aside - b.aside)[0]?.part;
  }

  // Scroll `inside` (and nothing else: the page stays where it is) until `node` is in its window.
  function reveal(inside, node) {
    const [frame, box] = [inside.getBoundingClientRect(), node.getBoundingClientRect()];
    if (box.top < frame.top || box.bottom > frame.bottom)
      inside.scrollTop += box.top - frame.top - (frame.height - box.height) / 2;
    if (box.left < frame.left || box.right > frame.right)
      inside.scrollLeft += box.left - frame.left - (frame.width - box.width) / 2;
  }

  // The tokens of a text one after the other, `drawOne(position)` each; those that share a character stand
  // together under it. `groups` are [start, stop, the character] (ui/components/kernel.py).
  function grouped(count, groups, drawOne) {
    const starts = new Map(groups.map((group) => [group[0], group])), out = [];
    for (let i = 0; i < count; i++) {
      const [start, stop, text] = starts.get(i) ?? [i, i + 1, null];
      if (text === null) out.push(drawOne(i));
      else out.push(h('span', { key: `group-${i}`, class: 'group', data: { testid: 'group', start, stop, text } },
        h('span', { class: 'whole' }, text), h('span', { class: 'pieces' },
          Array.from({ length: Math.min(stop, count) - start }, (_, k) => drawOne(start + k)))));
      i = stop - 1;
    }
    return out;
  }

  // `child`, a sentence that changes under the pointer, in the room that the longest of `sentences` (pieces for
  // `prose` each) need: so that what stands below stays where it is.
  function reserving(sentences, child) {
    const length = (pieces) => pieces.join('').length;
    const longest = [...sentences].sort((a, b) => length(b) - length(a)).slice(0, 3);
    return h('div', { class: 'reserving' }, longest.map((pieces) =>
      h('p', { class: 'longest', 'aria-hidden': true, data: { unsaved: '' } }, prose(pieces))), child);
  }

  // A strip of colours, [[0, "#..."], ..., [1, "#..."]], as SVG, so that a saved picture has it.
  const gradient = (id, scale) => h('svg', { xmlns: 'http://www.w3.org/2000/svg', viewBox: '0 0 112 11', preserveAspectRatio: 'none' },
    h('linearGradient', { id }, scale.map(([offset, color]) => h('stop', { offset, 'stop-color': color }))),
    h('rect', { width: 112, height: 11, fill: `url(#${id})` }));

  // Pieces of text and code in turn, [text, code, text, ...]: a token may hold any character.
  const prose = (pieces) => pieces.map((text, i) => h(i % 2 ? 'code' : 'span', null, text));

  // ---- colours: figures/theme.py's, by mode ----

  function palette(mode) {
    return gvPalettes[mode];
  }

  const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

  // Red, green and blue of a scale [[0, "#..."], ..., [1, "#..."]] at x; outside of 0 to 1 its ends.
  function colorAt(scale, x) {
    const at = Math.max(0, Math.min(1, x));
    const k = Math.max(1, scale.findIndex(([stop]) => stop >= at));
    const [[x0, c0], [x1, c1]] = [scale[k - 1], scale[k]];
    const part = (at - x0) / (x1 - x0), [a, b] = [channels(c0), channels(c1)];
    return a.map((value, i) => Math.round(value + (b[i] - value) * part));
  }

  const colorTable = (scale) => Array.from({ length: 256 }, (_, i) => colorAt(scale, i / 255));

  // WCAG's relative luminance of red, green, blue from 0 to 255.
  function luminance(rgb) {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  // Black or white, whichever can be read better: at least 4.58 to 1 on any colour.
  const textOn = (rgb) => (luminance(rgb) > 0.1791 ? '#000000' : '#ffffff');

  // ---- digits: gptviz/digits.py's rules; tests/js holds both to one table ----

  const RAISED = { '-': '⁻', 0: '⁰', 1: '¹', 2: '²', 3: '³', 4: '⁴', 5: '⁵', 6: '⁶', 7: '⁷', 8: '⁸', 9: '⁹' };
  const minus = (text) => text.replace('-', '−');
  const infinite = (value) => (Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '−inf');

  // Exact halves go to the even digit, as in Python; JavaScript's own rounding takes them away from zero.
  function halfEven(rounded, exact) {
    const [mantissa, power = ''] = rounded.split(/(?=e)/), rest = exact.split('e')[0].slice(mantissa.length);
    const odd = '13579'.includes(mantissa.at(-1));
    const tie = /^\.?50*$/.test(rest) && odd;
    return tie ? exact.split('e')[0].slice(0, mantissa.length) + power : rounded;
  }

  // So many decimals: fixed(-0.25, 2) is "−0.25". Zero has no sign.
  function fixed(value, decimals) {
    if (!Number.isFinite(value)) return infinite(value);
    const text = Math.abs(value) >= 1e21 ? BigInt(value) + (decimals ? '.' + '0'.repeat(decimals) : '')
      : halfEven(value.toFixed(decimals), value.toFixed(100));
    return minus(Number(text) ? text : text.replace('-', ''));
  }

  // So many digits that mean something: 34.2, 0.0117, 1230; below 0.0001 as 3.1 × 10⁻⁶,
  // from 10⁹ on as 6.0 × 10¹⁶.
  function significant(value, digits = 3) {
    if (value === 0 || !Number.isFinite(value)) return fixed(value, 0);
    const [mantissa, power] = halfEven(value.toExponential(digits - 1), value.toExponential(100)).split('e');
    const exponent = Number(power);
    if (exponent < -4 || exponent > 8) return `${minus(mantissa)} × 10${[...String(exponent)].map((c) => RAISED[c]).join('')}`;
    return fixed(Number(`${mantissa}e${power}`), Math.max(0, digits - 1 - exponent));
  }

  // An attention weight: two decimals, and two digits that mean something where it is small.
  const weight = (value) => (Math.abs(value) >= 0.0995 || value === 0 ? fixed(value, 2) : significant(value, 2));

  // A probability with the digits that mean something, and never 0 or 1 by rounding (figures/next_token.py).
  function probability(p) {
    if (p === 0 || p === 1) return p.toFixed(0);
    if (p < 0.99) return significant(p);
    return p.toFixed(Math.max(3, Math.min(15, Math.floor(-Math.log10(Math.max(1 - p, 1e-15)))) + 1));
  }

  // Any other number of the model: two decimals, none from 1,000 on.
  const number = (value) => fixed(value, Math.abs(value) >= 1000 ? 0 : 2);

  // Calls `redraw` whenever this element has another width, until the observer that it gives is disconnected.
  function atOtherWidth(element, redraw) {
    let wide = element.clientWidth;
    const watch = new ResizeObserver(() => {
      if (Math.abs(element.clientWidth - wide) <= 1) return;
      wide = element.clientWidth;
      redraw();
    });
    watch.observe(element);
    return watch;
  }

  return {
    h, render, mount, component, styled, spoken, reveal, grouped, reserving, gradient, prose,
    palette, channels, colorAt, colorTable, textOn,
    fixed, significant, weight, probability, number, still, atOtherWidth,
  };
})();
