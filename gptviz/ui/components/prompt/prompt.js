// The prompt. Enter runs what is typed; where a finger types, Enter is a line break, as no other key is.
//
// What is typed and not yet run is a draft. It belongs to the text that it was typed over: it stays for as long as
// that is the prompt, and goes when another text comes (an example, the browser's back button). The tab keeps
// it, so that a reload brings it back. On another page it is run, as the person went there with this text in hand.

const DRAFT = 'gptviz-draft';

let draft = remembered();      // {text, over}, or null
let [shown, sent] = [null, null];    // the prompt as the server said it last, and what is on its way there
let page = null;               // where the box was last drawn since the app was loaded

function remembered() {
  try {
    return JSON.parse(sessionStorage.getItem(DRAFT));
  } catch {                    // a browser may forbid it
    return null;
  }
}

function keep(text, over) {
  draft = text === over ? null : { text, over };
  try {
    if (draft) sessionStorage.setItem(DRAFT, JSON.stringify(draft));
    else sessionStorage.removeItem(DRAFT);
  } catch {                    // forbidden, or full: the draft lives until the next reload
  }
}

const byFinger = () => matchMedia('(hover: none) and (pointer: coarse)').matches;

function runs(event) {
  const composing = event.isComposing || event.keyCode === 229;   // Safari: the Enter that ends a composition
  if (event.key !== 'Enter' || composing || event.shiftKey) return false;
  return event.ctrlKey || event.metaKey || !byFinger();
}

function hint() {
  const keys = byFinger() ? 'Run runs it' : 'Enter runs it, Shift+Enter is a line break';
  return draft ? `Not run yet: ${keys}` : keys;
}

// As high as its text, between the CSS's least and most; but as somebody drew it, once that was done.
function fit({ root, state }) {
  const box = root.querySelector('textarea');
  if (state.height !== undefined && box.style.height !== state.height) return;
  box.style.height = 'auto';
  box.style.height = `${box.scrollHeight + box.offsetHeight - box.clientHeight}px`;
  state.height = box.style.height;
}

export default gv.component(({ data, send, redraw }) => {
  const run = () => {
    sent = draft?.text ?? data.text;
    send('run', sent);
  };
  if (shown !== data.text) {   // what was sent has arrived, and somebody may have typed on; or another text came
    keep(draft && [draft.over, sent].includes(data.text) ? draft.text : data.text, data.text);
    [shown, sent] = [data.text, null];
  }
  const turned = page !== null && page !== data.page;
  page = data.page;
  if (turned && !data.back && draft?.text.trim()) queueMicrotask(run);
  return gv.h('div', { class: 'row' },
    gv.h('div', { class: 'typed' },
      gv.h('textarea', {
        'aria-label': 'Prompt', placeholder: 'Type any text …', spellcheck: 'false', value: draft?.text ?? data.text,
        oninput: (event) => { keep(event.target.value, data.text); redraw(); },
        onkeydown: (event) => {
          event.stopPropagation();             // Streamlit has keys of its own, where nobody types
          if (!runs(event)) return;
          event.preventDefault();
          run();
        },
      }),
      gv.h('span', { class: 'hint', data: { testid: 'prompt-hint', draft: draft ? '' : undefined } }, hint())),
    gv.h('button', { class: 'run', type: 'button', title: 'Enter does the same', onclick: run }, 'Run'));
}, (view) => {
  const { root, state } = view, box = root.querySelector('textarea');
  fit(view);
  document.fonts.ready.then(() => fit(view));
  let width = box.clientWidth;
  state.observer?.disconnect();
  state.observer = new ResizeObserver(() => {    // in a narrower box the lines break anew
    if (box.clientWidth !== width) fit(view);
    width = box.clientWidth;
  });
  state.observer.observe(box);
  state.end = () => state.observer.disconnect();
});
