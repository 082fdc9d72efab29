// A guide that travels in the hand-out (guide.py): a bar with the step's text, and its question, asked before the
// picture shows. What was answered is forgotten when the page is closed.

const steps = given.guide?.steps ?? [];
const answers = new Map(), hints = new Map();      // by step: what was said, null where nothing was; how many hints are shown
const SAID = '\ue000';                             // in the sentences after a question: what was said
const html = (tag, markup, more = {}) => h(tag, { markup, ...more });

// Whether the picture waits for an answer.
function waits() {
  const step = steps[state.step];
  return Boolean(step?.ask) && step.page === state.page && !answers.has(state.step);
}

function guideBar() {
  const step = steps[state.step], { title, language, missing } = given.guide ?? {}, said = answers.get(state.step);
  if (!step) return null;
  const { heading, text, page, ask: asked, until, after } = step, told = asked && said !== undefined;
  const done = typeof until === 'string' && state.edits.join(',') === until, last = state.step + 1 === steps.length;
  return h('section', { class: 'guide', 'aria-label': title, lang: language, data: { testid: 'guide', step: state.step } },
    h('div', { class: 'way' }, h('b', null, heading), h('span', { class: 'how' }, `${title}, step ${state.step + 1} of ${steps.length}`),
      h('span', { class: 'turn' }, state.step > 0 && button('Back', () => turn(state.step - 1)),
        !last && button('Next step', () => turn(state.step + 1)), button('Leave', () => go({ step: null })))),
    state.page !== page && h('p', null, button(`This step is on the page ${PAGES[page][0]}: go there`, () => go({ page }))),
    !told && html('div', done && after ? after : text),
    done && h('p', { role: 'status' }, 'Done.'),
    waits() && run.now && ballot(asked, state.step),
    told && h('div', { role: 'status' }, html('p', asked.question, { class: 'how' }), h('p', null, said === null ? '' : `You said ${said}. `, 'This model: ', html('b', asked.truth), '.'),
      html('div', asked.after.replaceAll(SAID, () => gv.escapeXml(said ?? 'nothing')))),
    last && missing > 0 && h('p', { class: 'how' }, `The gptviz app has ${many(missing, 'more step')} of this guide; this file cannot show ${missing === 1 ? 'it' : 'them'}.`));
}

// How a question is answered, with hints; nobody is told the truth before that.
function ballot(asked, step) {
  const seen = hints.get(step) ?? 0, name = `guess-${step}`;
  const answer = (said) => {
    answers.set(step, said);
    draw();
  };
  const sent = (event) => {
    event.preventDefault();
    const said = new FormData(event.target).get(name)?.trim();
    if (said) answer(said.slice(0, 60));
  };
  const hint = () => {
    hints.set(step, seen + 1);
    draw();
  };
  return h('form', { onsubmit: sent }, h('p', null, html('b', asked.question)),
    asked.kind === 'head' ? part('heads', unnamed(), (_, { block, head }) => answer(`block ${block}, head ${head}`), 'guess')
      : asked.kind === 'token' ? part('chips', { ...chipsOf(), next: null }, (_, at) => answer(`“${label(at)}” (position ${at})`), 'guess') : null,
    h('div', { class: 'way' },
      !['head', 'token'].includes(asked.kind) && [field(asked, name), button('That is my guess', undefined, { type: 'submit' })],
      seen < asked.hints.length && button('A hint', hint), button('Show me', () => answer(null))),
    h('ul', { role: 'status' }, asked.hints.slice(0, seen).map((text, i) => html('li', text, { key: i }))));
}

function field({ kind, options, between }, name) {
  const choice = ([value, markup]) => h('label', { key: value }, h('input', { type: 'radio', name, value }), ' ', html('span', markup));
  if (options.length) return h('span', { class: 'options' }, options.map(choice));
  const typed = kind === 'number' ? { type: 'number', step: 'any', min: between?.[0], max: between?.[1] } : { type: 'text', maxlength: 60 };
  return h('input', { name, autocomplete: 'off', 'aria-label': 'Your guess', ...typed });
}

// Every head, small and without a name, to be clicked.
function unnamed() {
  const shown_ = grid(), name = { kind: 'mixed', label: ' ', says: 'What is it for?', write: 0 };
  return { ...shown_, roles: shown_.roles.map((block) => block.map(() => name)), largest_write: 1, block: null, head: null };
}
