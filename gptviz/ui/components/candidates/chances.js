// Softmax of a whole vocabulary under any settings, as gptviz/engine/sampling.py's `distribution` has it, and the
// rows of figures/candidates.py with these numbers.

// Logits as Python's `packed` sent them, the largest first.
const unpacked = (base64) => new Float32Array(Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0)).buffer);

const changesNothing = ({ temperature, top_k, top_p }) => temperature === 1 && top_k === null && (top_p === null || top_p === 1);

// p: the probability of each rank. The first `size` pass top-k, the first `kept` of them top-p, too.
function chances(logits, { temperature, top_k, top_p }) {
  const size = Math.min(top_k ?? logits.length, logits.length);
  const p = Float64Array.from(logits, (logit, i) => (temperature ? Math.exp((logit - logits[0]) / temperature) : i ? 0 : 1));
  let kept = size;
  share(p, size);
  if (top_p !== null && top_p !== 1) {
    let before = 0;
    for (kept = 0; kept < size && before < top_p; kept++) before += p[kept];
    share(p, kept);
  }
  return { p, size, kept };
}

// The first `kept` grow until they sum to 1, the others get 0.
function share(p, kept) {
  p.fill(0, kept);
  const sum = p.reduce((total, one) => total + one, 0);
  p.forEach((one, i) => { p[i] = one / sum; });
}

const bitsOf = ({ p }) => -p.reduce((total, one) => (one ? total + one * Math.log2(one) : total), 0);

// What the ranks without a row share; adding up loses fewer digits than 1 minus the others.
function left(p, ranks) {
  const has = new Set(ranks);
  return p.reduce((total, one, i) => (has.has(i + 1) ? total : total + one), 0);
}

// The rows under `settings`; `logits` are those of the model, `was` of the unchanged one or null.
function under(settings, { rows, rest }, logits, was) {
  const now = chances(logits, settings), old = was && chances(was, settings);
  const own = changesNothing(settings) ? null : chances(logits, { temperature: 1, top_k: null, top_p: null });
  const ghostOf = (row) => (old ? old.p[row.was_rank - 1] : own ? own.p[row.rank - 1] : null);
  const scaled = (row) => (settings.temperature ? gv.fixed(logits[row.rank - 1] / settings.temperature, 2) : '');
  const moved = rows.map((row) => {
    const p = now.p[row.rank - 1], ghost = ghostOf(row), out = row.rank > now.kept;
    const filter = !out ? 'kept' : row.rank > now.size ? 'top-k' : 'top-p';
    return {
      ...row, probability: p, p_text: gv.probability(p), ghost, ghost_text: old ? gv.probability(ghost) : '',
      scaled_text: scaled(row), out, filter, filter_text: out ? `✕ ${filter}` : '✓' };
  });
  return { rows: moved, rest: rest && others(rest, rows, now, old), bits: bitsOf(now) };
}

function others(rest, rows, now, old) {
  const ranks = rows.map(({ rank }) => rank), p = left(now.p, ranks);
  const kept = now.kept - ranks.filter((rank) => rank <= now.kept).length, all = now.p.length - ranks.length;
  const ghost = old ? left(old.p, rows.map((row) => row.was_rank)) : rest.ghost;
  return {
    ...rest, probability: p, p_text: gv.probability(p), ghost, ghost_text: old ? gv.probability(ghost) : '', out: !kept,
    filter_text: kept === all ? '✓' : kept ? `${kept.toLocaleString('en')} ✓` : '✕' };
}
