// What a page of Streamlit is still waiting for, so that a test awaits a state instead of seconds.
//
// It runs before Streamlit's own client and listens in on three things:
// - the websocket: a rerun that was asked for, a run that began, a run that ended (BackMsg.rerun_script,
//   ForwardMsg.new_session and script_finished; protobuf's fields by number);
// - short timers: a slider sends its value 200 ms after the last key, Plotly draws a moment later;
// - the document: no placeholder, nothing stale, every chart drawn, no expander on its way: what is in one
//   that still opens moves, and a click may find nothing where it was; nothing that scrolls smoothly.
// gptvizBusy() gives the reasons why the page is not at rest, an empty list when it is.
(() => {
  const RERUN_SCRIPT = 11, NEW_SESSION = 4, SCRIPT_FINISHED = 6; // streamlit.proto
  const EARLY_FOR_RERUN = 2; // the run ended because the next one begins
  const LONG = 1000; // ms: longer timers are time-outs and toasts, not work
  const runs = { asked: 0, waiting: false, running: false };

  function* fields(bytes) { // (number, value) of a protobuf message's top level; value for varints only
    let at = 0;
    const varint = () => {
      let value = 0, factor = 1, byte;
      do {
        byte = bytes[at++];
        value += (byte & 127) * factor;
        factor *= 128;
      } while (byte & 128);
      return value;
    };
    while (at < bytes.length) {
      const tag = varint(), kind = tag % 8, number = Math.floor(tag / 8);
      let value;
      if (kind === 0) value = varint();
      else if (kind === 1) at += 8;
      else if (kind === 2) { const length = varint(); at += length; }
      else if (kind === 5) at += 4;
      else throw new Error(`a websocket message has a field of kind ${kind}`);
      yield [number, value];
    }
  }

  const bytesOf = (data) => (data instanceof Uint8Array ? data : new Uint8Array(data));

  const Socket = window.WebSocket;
  window.WebSocket = class extends Socket {
    constructor(...given) {
      super(...given);
      this.addEventListener('message', ({ data }) => {
        for (const [number, value] of fields(bytesOf(data))) {
          if (number === NEW_SESSION) Object.assign(runs, { waiting: false, running: true });
          if (number === SCRIPT_FINISHED) runs.running = value === EARLY_FOR_RERUN;
        }
      });
    }

    send(data) {
      for (const [number] of fields(bytesOf(data))) {
        if (number === RERUN_SCRIPT) {
          runs.asked += 1;
          runs.waiting = true;
        }
      }
      return super.send(data);
    }
  };

  const timers = new Map();
  const { setTimeout: set, clearTimeout: clear } = window;
  window.setTimeout = (act, delay = 0, ...given) => {
    const id = set((...passed) => {
      timers.delete(id);
      return typeof act === 'function' ? act(...passed) : window.eval(act);
    }, delay, ...given);
    if (delay < LONG) timers.set(id, delay);
    return id;
  };
  window.clearTimeout = (id) => {
    timers.delete(id);
    clear(id);
  };

  // a guide brings what its step speaks of into sight: on the way there a button may lie half below its bar
  const SCROLLS_ON = 100; // ms after one event of a scroll, within which the next one comes
  let scrolled = -SCROLLS_ON;
  addEventListener('scroll', () => { scrolled = performance.now(); }, { capture: true, passive: true });

  // the dear ones last: who only asks whether there is any goes no further than the first
  function* reasons() {
    const app = document.querySelector('[data-testid=stApp]');
    if (!runs.asked) yield 'no run was asked for yet';
    if (runs.waiting) yield 'a run was asked for and has not begun';
    if (runs.running) yield 'a run is under way';
    if (app?.dataset.testConnectionState !== 'CONNECTED') yield 'there is no connection';
    if (app?.dataset.testScriptState !== 'notRunning') yield 'what came has not been drawn';
    if (performance.now() - scrolled < SCROLLS_ON) yield 'something scrolls';
    if (timers.size) yield `timers: ${[...timers.values()]} ms`;
    if (document.querySelector('[data-testid=stSkeleton], [data-stale=true]')) yield 'something is stale';
    for (const chart of document.querySelectorAll('[data-testid=stPlotlyChart]')) {
      if (!chart.querySelector('.main-svg')) yield 'a chart is not drawn';
    }
    if (document.fonts.status !== 'loaded') yield 'fonts are on their way';
    if ([...document.querySelectorAll('details')].some((one) => one.getAnimations().length)) {
      yield 'an expander is on its way';
    }
  }
  window.gptvizBusy = () => [...reasons()];

  // Resolves once the page has been at rest over three frames: React and the components draw in them.
  // While it is not, it looks 25 times a second: frames that nobody needs take the server's core.
  window.gptvizRest = () => new Promise((done) => {
    let calm = 0;
    const frame = () => {
      calm = reasons().next().done ? calm + 1 : 0;
      if (calm === 3) done(true);
      else if (calm) requestAnimationFrame(frame);
      else set(frame, 40);
    };
    requestAnimationFrame(frame);
  });
})();
