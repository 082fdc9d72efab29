// The next token's candidates as rows with bars. Every text of a row was written in Python, or while a slider is
// held in chances.js.

const COLUMNS = ['rank', 'token', 'logit', 'scaled', 'filter', 'bar', 'before', 'p', 'act'];
const NUMBERS = ['rank', 'logit', 'scaled', 'before', 'p'];
const SLIDE = 600, STEP = 120;   // ms: to another model; to the slider's next place

const width = (share) => ({ width: `${100 * Math.min(1, share)}%` });
const all = ({ rows, rest }) => (rest ? [...rows, rest] : rows);

// A column without a heading is not drawn; `heads.before` is there where a changed model is compared.
const columns = ({ heads, action }) => COLUMNS.filter((name) => (name === 'act' ? action : name === 'bar' || name in heads));

const swatch = (kind) => gv.h('i', { class: `swatch ${kind}`, 'aria-hidden': true });

function head(data) {
  const { heads } = data, marks = heads.before ? { before: swatch('ghost'), p: swatch('fill') } : {};
  const [was, now] = (heads.p ?? '').split(' → ');   // outlined, and filled
  const cell = {
    bar: () => [gv.h('span', null, '0'), gv.h('span', null, '1')],
    p: () => (data.outlined ? [swatch('ghost'), `${was} → `, swatch('fill'), now] : [marks.p, heads.p]),
  };
  return gv.h('div', { class: 'line head' }, columns(data).map((name) => gv.h('span', { class: name + (NUMBERS.includes(name) ? ' num' : '') },
    cell[name]?.() ?? [marks[name], heads[name]])));
}

function bar(row) {
  return [
    gv.h('i', { key: 'fill', class: 'fill', style: width(row.probability) }),
    row.ghost === null ? null : gv.h('i', { key: 'ghost', class: 'ghost', style: width(row.ghost) })];
}

function line(view, row, index) {
  const { seen: data, send } = view, mine = () => tell(view, index);
  const kinds = ['first', 'came', 'out', 'rest'].filter((kind) => row[kind]);
  const act = `${data.action} “${row.token}”`;
  const lock = (event) => {
    if (event.target.closest('.add')) return;
    view.state.locked = row.key;
    mine();
  };
  const cell = {
    rank: () => gv.h('span', { class: 'rank num' }, row.rank_text),
    token: () => gv.h('span', { class: 'token' }, row.token, row.came ? gv.h('span', { class: 'tag' }, 'came next') : null,
      row.was_first ? gv.h('span', { class: 'tag' }, 'was first') : null),
    logit: () => gv.h('span', { class: 'logit num' }, row.logit_text),
    scaled: () => gv.h('span', { class: 'scaled num' }, row.scaled_text),
    filter: () => gv.h('span', { class: 'filter' }, row.filter_text),
    bar: () => gv.h('span', { class: 'bar', data: { bar: row.key } }, bar(row)),
    before: () => gv.h('span', { class: 'before num' }, row.ghost_text),
    p: () => gv.h('span', { class: 'p num' }, row.p_text),
    act: () => (row.whole ? gv.h('button', {
      type: 'button', class: 'add', title: act, 'aria-label': act, onclick: () => send('append', row.id),
      data: { testid: 'append', unsaved: '', id: row.id },
    }, '+', gv.h('span', null, ` ${data.action}`)) : null),
  };
  return gv.h('div', {
    class: ['line row', ...kinds].join(' '), role: 'listitem', onmouseenter: mine, onfocusin: mine, onclick: lock,
    onmouseleave: () => tell(view, resting(view)),
    data: {
      testid: row.rest ? 'rest' : 'candidate', id: row.id, rank: row.rank, logit: row.logit, scaled: row.scaled,
      filter: row.filter, probability: row.probability, modelProbability: row.model_probability, came: row.came,
      ghost: row.ghost, wasFirst: row.was_first,
    },
  },
  columns(data).map((name) => cell[name]()));
}

const said = (row) => (row.rest ? [row.sentence] : ['', row.token, ` ${row.sentence}`]);
const resting = ({ seen, state }) => Math.max(0, all(seen).findIndex((row) => row.key === state.locked));

function tell({ seen, root }, index) {
  const row = all(seen)[index];
  root.querySelectorAll('.row').forEach((node, i) => node.classList.toggle('shown', i === index));
  if (row) gv.render(root.querySelector('.sentence'), gv.prose(seen.held ? [seen.held] : said(row)));
}

// ---- while a slider is held ----

// Streamlit's sliders report when they are let go. Until then their handles are read here, as a hand or a key moves
// them; what the server draws in the end says the same, since it is the same softmax of the same logits.

const handlesOf = ({ live }) => Object.entries(live?.sliders ?? {}).flatMap(([name, key]) => {
  const handle = document.querySelector(`.st-key-${key} input[type=range]`);
  return handle ? [[name, handle]] : [];
});

// The data with what the handles say now, where that is not what Python drew. A handle that was never moved may stand
// beside its number, at the nearest step, as its text does not: so the text says whether it was.
function followed(data, state) {
  const { live } = data, handles = handlesOf(data);
  const moved = handles.filter(([name, { ariaValueText }]) => Math.abs(Number(ariaValueText) - (live.settings[name] ?? 1)) > 0.006);
  if (!moved.length) return data;
  const at = Object.fromEntries(moved.map(([name, handle]) => [name, Number(handle.value)]));
  if (state.sent !== live.logits) Object.assign(state, { sent: live.logits, logits: unpacked(live.logits) });
  if (state.sentWas !== live.was) Object.assign(state, { sentWas: live.was, was: live.was ? unpacked(live.was) : null });
  const { bits, ...rows } = under({ ...live.settings, ...at }, data, state.logits, state.was ?? null);
  const set = moved.map(([name, { ariaValueText }]) => `${{ temperature: 'temperature', top_p: 'top-p' }[name]} ${ariaValueText}`);
  const held = `At ${set.join(' and ')}: entropy ${gv.fixed(bits, 2)} bits. Let go of the slider, and the page follows.`;
  const heads = data.heads.scaled && 'temperature' in at ? { ...data.heads, scaled: `÷ ${at.temperature}` } : data.heads;
  return { ...data, ...rows, heads, held };
}

// Draw again whenever a handle moves. The whole page is watched: a slider may come after the bars, and Streamlit may
// put another one in its place without drawing the bars again.
function watch(view) {
  const { state, data } = view;
  state.view = view;
  for (const node of data.live ? document.querySelectorAll(`.st-key-${data.live.stale}`) : []) node.style.opacity = view.seen.held ? 0.35 : '';
  if (state.end || !data.live) return;
  const observer = new MutationObserver((changes) => {
    const handles = handlesOf(state.view.data).map(([, handle]) => handle);
    if (!changes.some(({ target }) => handles.includes(target))) return;
    cancelAnimationFrame(state.frame);
    state.frame = requestAnimationFrame(() => state.view.redraw());
  });
  observer.observe(document.body, { subtree: true, attributes: true, attributeFilter: ['value', 'aria-valuetext'] });
  state.end = () => {
    observer.disconnect();
    cancelAnimationFrame(state.frame);
    state.end = null;
  };
}

// ---- motion: from the values that were drawn last to those that come ----

// What was drawn last on this page of the browser. A change of the model may draw the component anew, in another
// element: so that it is kept here.
let last = null;

const bars = (root) => [...root.querySelectorAll('[data-bar]')];

// Where each bar stands on the screen, also on its way.
const standing = (root) => new Map(bars(root).map((node) => [
  node.dataset.bar, node.querySelector('.fill').getBoundingClientRect().width / node.getBoundingClientRect().width]));

// Where each bar starts from, or null: bars slide only between drawings that are about the same text.
function startsOf({ data, root, state }) {
  if (data.outlined) return outlinesOf({ data, root, state });
  const about = data.live?.about ?? null;
  if (state.about === undefined) return about !== null && last?.about === about ? last.values : null;
  if (state.about !== about) return null;
  return state.moving.some(({ playState }) => playState === 'running') ? standing(root) : state.values;
}

// Bars with `outlined` start from their outlines whenever it is another: it names what happened to them.
function outlinesOf({ data, root, state }) {
  const before = state.values ? state.outlined : last?.outlined;
  if (before !== data.outlined) return new Map(all(data).map(({ key, ghost }) => [key, ghost]));
  return state.moving?.some(({ playState }) => playState === 'running') ? standing(root) : null;
}

function slide(view) {
  const { data, root, state, seen, starts } = view, compared = Boolean(seen.heads.before);
  const began = compared && (state.values ? state : last)?.compared === false;   // what the outlines show stood here
  const values = new Map(all(seen).map((row) => [row.key, row.probability]));
  for (const one of state.moving ?? []) one.cancel();
  state.moving = starts && !gv.still() ? all(seen).flatMap((row, i) => {
    const from = starts.get(row.key) ?? (began ? row.ghost : undefined), to = row.probability;
    if (from === undefined || Math.abs(from - to) < 1e-4) return [];
    return [bars(root)[i].querySelector('.fill').animate([width(from), width(to)],
      { duration: seen.held || !(data.live || data.outlined) ? STEP : SLIDE, easing: seen.held ? 'linear' : 'ease-in-out' })];
  }) : [];
  if (state.moving.length && !state.hurry) {
    state.hurry = () => {
      state.hurry = null;
      for (const one of state.moving) one.finish();
    };
    document.addEventListener('pointerdown', state.hurry, { capture: true, once: true });
  }
  Object.assign(state, { about: data.live?.about ?? null, values, compared, outlined: data.outlined });
  last = { about: state.about, values, compared, outlined: data.outlined };
}

export default gv.component((view) => {
  const { data, root, state } = view;
  view.starts = startsOf(view);
  const seen = view.seen = followed(data, state);
  const lines = seen.rows.flatMap((row, i) => [
    i && !data.outlined && row.rank > seen.rows[i - 1].rank + 1 ? gv.h('div', { key: `gap-${i}`, class: 'gap' }) : null, line(view, row, i)]);
  if (seen.rest) lines.push(gv.h('div', { key: 'gap', class: 'gap' }), line(view, seen.rest, seen.rows.length));
  const kinds = ['candidates', seen.heads.before ? 'compared' : '', data.outlined ? 'outlined' : '', seen.heads.filter ? 'filtered' : ''];
  return gv.h('div', {
    class: kinds.filter(Boolean).join(' '), style: { '--columns': columns(seen).map((name) => `var(--${name}-column)`).join(' ') },
    data: { testid: 'candidates', held: seen.held ? '' : undefined, outlined: data.outlined ?? undefined },
  },
  head(seen),
  gv.h('div', { class: 'rows', role: 'list', 'aria-label': 'The candidates; arrow keys walk', data: { walk: '.row' } }, lines),
  gv.h('div', { class: 'foot' },
    gv.reserving(all(data).map(said),
      gv.h('p', { class: 'sentence', 'aria-live': 'polite', data: { testid: 'sentence' } })),
    gv.saveButtons(() => gv.svgOfElements(root.querySelector('.candidates')), data.saved)));
}, (view) => {
  slide(view);
  watch(view);
  tell(view, resting(view));
});
