// A GPTModel and its tokenizer in JavaScript: what gptviz/model.py computes, with every site of engine/sites.py.
// It is a worker's script. Arrays are float32, sums are kept in double precision.
//
// Shapes as in Python: T tokens, D emb_dim, H heads, V vocabulary; (T, D) lies row by row.

// ---- text to ids ----

const toBytes = new TextEncoder();
const binary = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');    // a character a byte

class Tokenizer {
  // `tokens`: each token's bytes in base64, by id, null where there is none; `special`: name -> id;
  // `words`: those that are tokens in every text; `cut`: the regex.
  constructor({ tokens, special, words, cut }) {
    this.bytes = tokens.map((token) => (token === null ? null : atob(token)));
    this.ranks = new Map(this.bytes.map((token, id) => [token, id]));
    this.special = special;
    this.words = new Set(words);
    this.pieces = new RegExp(cut, 'gu');
  }

  // The text in turn with the added tokens in it: text, token, text, ..., text. One that is not wanted stays text.
  split(text, special) {
    const names = special || this.words.size ? Object.keys(this.special).sort((one, other) => other.length - one.length) : [];
    if (!names.length) return [text];
    const parts = [''];
    text.split(new RegExp(`(${names.map((name) => name.replace(/[^\w]/g, '\\$&')).join('|')})`)).forEach((part, i) => {
      if (i % 2 && (special || this.words.has(part))) parts.push(part, '');
      else parts[parts.length - 1] += part;
    });
    return parts;
  }

  // The pieces that the regex cuts, with the ids of each: [{ raw, ids, special, word }]. Half a surrogate pair is U+FFFD.
  read(text, special = false) {
    const parts = this.split(text.replace(/\p{Cs}/gu, '\uFFFD'), special);
    return parts.flatMap((part, i) => (i % 2 ? [{ raw: binary(toBytes.encode(part)), ids: [this.special[part]], special: true, word: this.words.has(part) }]
      : (part.match(this.pieces) ?? []).map((piece) => {
        const raw = binary(toBytes.encode(piece));
        return { raw, ids: this.merged(raw), special: false, word: false };
      })));
  }

  // Byte pair encoding of one piece: the pair of the lowest rank joins, the leftmost of equals, until none can.
  merged(raw) {
    const known = this.ranks.get(raw), n = raw.length;
    if (known !== undefined) return [known];
    const NONE = 2 ** 31 - 1, stop = Int32Array.from(raw, (_, i) => i + 1);     // where the part that begins at i ends
    const rank = new Int32Array(n).fill(NONE), before = Int32Array.from(raw, (_, i) => i - 1);
    const ask = (i) => { rank[i] = stop[i] < n ? this.ranks.get(raw.slice(i, stop[stop[i]])) ?? NONE : NONE; };
    for (let i = 0; i < n; i++) ask(i);
    for (;;) {
      let at = 0;
      for (let i = 1; i < n; i++) if (rank[i] < rank[at]) at = i;
      if (rank[at] === NONE) break;
      const gone = stop[at];
      stop[at] = stop[gone];
      rank[gone] = NONE;
      if (stop[at] < n) before[stop[at]] = at;
      ask(at);
      if (at > 0) ask(before[at]);
    }
    const ids = [];
    for (let i = 0; i < n; i = stop[i]) ids.push(this.ranks.get(raw.slice(i, stop[i])));
    return ids;
  }
}

// ---- edits, in their text form (gptviz/engine/edit_values.py) ----

const HEADED = ['q', 'k', 'v', 'attn', 'z'];
const OUTSIDE = ['tok_emb', 'pos_emb', 'embed', 'final'];
const SITES = [...OUTSIDE, 'resid_pre', ...HEADED, 'attn_out', 'resid_mid', 'mlp_pre', 'mlp_act', 'mlp_out', 'resid_post'];
const LOOKS = ['uniform', 'first', 'previous', 'hide'];     // each says where a head looks: for attn alone

// What "z.4.3=zero" says, for a model and a text of so many tokens. Throws a sentence.
function parseEdit(text, { n_layers, n_heads }, count) {
  const refuse = (why) => { throw new Error(`“${text}” cannot be made here: ${why}`); };
  const found = /^([^.@=]*)(?:\.([^.@=]*)(?:\.([^.@=]*))?)?(?:@([^@=]*))?=([^=]*)$/.exec(String(text).trim());
  if (!found) refuse('an edit is written site[.block[.head+head]][@position+position]=value, such as z.4.3=zero');
  const [, site, block, heads, positions, value] = found;
  const whole = (what, written, low, high) => {
    if (!/^-?\d{1,9}$/.test(written) || Number(written) < low || Number(written) >= high)
      refuse(`there is no ${what} ${written}; ${what}s go from ${low} to ${high - 1}`);
    return Number(written);
  };
  const some = (what, written, low, high) => (written === undefined ? null : new Set(written.split(/[+ ]/).map((one) => whole(what, one, low, high))));
  if (!SITES.includes(site)) refuse(`there is no site “${site}”; the sites are ${SITES.join(', ')}`);
  if (block === undefined && !OUTSIDE.includes(site)) refuse(`${site} is in every block: name one, such as ${site}.0, or all, ${site}.*`);
  if (block !== undefined && OUTSIDE.includes(site)) refuse(`${site} is in no block: leave “.${block}” out`);
  if (heads !== undefined && !HEADED.includes(site)) refuse(`${site} is not split by heads; these are: ${HEADED.join(', ')}`);
  const [, name, number] = /^(zero|mean|uniform|first|previous|hide(?=\d)|x(?=[-\d]))(\d+|-?\d+\.\d+|-\d+)?$/.exec(value) ?? [];
  if (!name || (number !== undefined) !== ['hide', 'x'].includes(name))
    refuse('its value must be zero, mean, x0.5 (a factor), uniform, first, previous or hide5 (a position); gptviz has more values, but this file does not');
  if (LOOKS.includes(name) && site !== 'attn') refuse(`“${value}” says where a head looks: use it with attn`);
  const at = some('position', positions, -count, count);
  return {
    site, name: name === 'mean' && site === 'attn' ? 'uniform' : name, 
    number: name === 'hide' ? whole('position', number, 0, count) : Number(number),
    block: block === undefined || block === '*' ? block ?? null : whole('block', block, 0, n_layers),
    heads: some('head', heads, 0, n_heads), positions: at && new Set([...at].map((p) => (p < 0 ? p + count : p))),
  };
}

// A site's numbers with the edit made: a new array.
function edited(data, shape, { name, number, heads, positions }) {
  const out = data.slice(), [rows, width] = shape.slice(-2), every = shape.length === 3 ? shape[0] : 1;
  for (let h = 0; h < every; h++) {
    if (heads && !heads.has(h)) continue;
    const mean = new Float64Array(width);
    if (name === 'mean') for (let i = 0; i < rows * width; i++) mean[i % width] += data[h * rows * width + i] / rows;
    for (let row = 0; row < rows; row++) {
      if (positions && !positions.has(row)) continue;
      const own = out.subarray((h * rows + row) * width, (h * rows + row + 1) * width);
      if (name === 'mean') own.set(mean);
      else if (name === 'hide') hide(own, row, number);
      else if (name === 'x') own.forEach((value, i) => { own[i] = number * value; });
      else {
        own.fill(0);
        if (name === 'uniform') own.fill(1 / (row + 1), 0, row + 1);
        else if (name !== 'zero') own[name === 'first' ? 0 : Math.max(0, row - 1)] = 1;
      }
    }
  }
  return out;
}

// A row of weights that does not look at an earlier token: what is left is scaled up to 1.
function hide(weights, row, position) {
  if (row <= position) return;
  weights[position] = 0;
  const rest = weights.reduce((sum, weight) => sum + weight, 0);
  if (rest > 0) weights.forEach((weight, i) => { weights[i] = weight / rest; });
  else weights[row] = 1;
}

// ---- the pass ----

// x (T, I) times the rows of W (O, I), plus the bias: (T, O). Four tokens by four rows of W at a time, so that a number
// that was loaded is used four times; at the end the last of them is done again.
function linear(x, T, W, bias, O) {
  const I = W.length / O, out = new Float32Array(T * O), wide = Float64Array.from(x);
  for (let t = 0; t < T; t += 4) {
    const t1 = Math.min(t + 1, T - 1), t2 = Math.min(t + 2, T - 1), t3 = Math.min(t + 3, T - 1);
    const a0 = t * I, a1 = t1 * I, a2 = t2 * I, a3 = t3 * I;
    for (let o = 0; o < O; o += 4) {
      const o1 = Math.min(o + 1, O - 1), o2 = Math.min(o + 2, O - 1), o3 = Math.min(o + 3, O - 1);
      const b0 = o * I, b1 = o1 * I, b2 = o2 * I, b3 = o3 * I;
      let s00 = bias ? bias[o] : 0, s01 = bias ? bias[o1] : 0, s02 = bias ? bias[o2] : 0, s03 = bias ? bias[o3] : 0;
      let s10 = s00, s11 = s01, s12 = s02, s13 = s03, s20 = s00, s21 = s01, s22 = s02, s23 = s03, s30 = s00, s31 = s01, s32 = s02, s33 = s03;
      for (let i = 0; i < I; i++) {
        const w0 = W[b0 + i], w1 = W[b1 + i], w2 = W[b2 + i], w3 = W[b3 + i];
        let v = wide[a0 + i];
        s00 += v * w0; s01 += v * w1; s02 += v * w2; s03 += v * w3;
        v = wide[a1 + i];
        s10 += v * w0; s11 += v * w1; s12 += v * w2; s13 += v * w3;
        v = wide[a2 + i];
        s20 += v * w0; s21 += v * w1; s22 += v * w2; s23 += v * w3;
        v = wide[a3 + i];
        s30 += v * w0; s31 += v * w1; s32 += v * w2; s33 += v * w3;
      }
      const r0 = t * O, r1 = t1 * O, r2 = t2 * O, r3 = t3 * O;
      out[r0 + o] = s00; out[r0 + o1] = s01; out[r0 + o2] = s02; out[r0 + o3] = s03;
      out[r1 + o] = s10; out[r1 + o1] = s11; out[r1 + o2] = s12; out[r1 + o3] = s13;
      out[r2 + o] = s20; out[r2 + o1] = s21; out[r2 + o2] = s22; out[r2 + o3] = s23;
      out[r3 + o] = s30; out[r3 + o1] = s31; out[r3 + o2] = s32; out[r3 + o3] = s33;
    }
  }
  return out;
}

const sum = (a, b) => a.map((value, i) => value + b[i]);

// (T, D) -> (H, T, D/H), and back.
function split(x, T, H) {
  const d = x.length / T / H, out = new Float32Array(x.length);
  for (let t = 0; t < T; t++) for (let h = 0; h < H; h++) out.set(x.subarray((t * H + h) * d, (t * H + h + 1) * d), (h * T + t) * d);
  return out;
}
const join = (x, T, H) => split(x, H, T);

// Row by row: (x - mean) / √(variance + eps), times scale, plus shift.
function layerNorm(x, scale, shift, eps) {
  const D = scale.length, out = new Float32Array(x.length);
  for (let from = 0; from < x.length; from += D) {
    let mean = 0, variance = 0;
    for (let i = 0; i < D; i++) mean += x[from + i] / D;
    for (let i = 0; i < D; i++) variance += (x[from + i] - mean) ** 2 / D;
    const by = 1 / Math.sqrt(variance + eps);
    for (let i = 0; i < D; i++) out[from + i] = (x[from + i] - mean) * by * scale[i] + (shift ? shift[i] : 0);
  }
  return out;
}

// How far each query (H, T, d) points to each key at or before it, as softmax gives it: (H, T, T), 0 where masked.
function attention(q, k, H, T) {
  const d = q.length / H / T, out = new Float32Array(H * T * T), row = new Float64Array(T), by = 1 / Math.sqrt(d);
  for (let h = 0; h < H; h++)
    for (let i = 0; i < T; i++) {
      const a = (h * T + i) * d;
      let most = -Infinity, total = 0;
      for (let j = 0; j <= i; j++) {
        let score = 0;
        for (let c = 0, b = (h * T + j) * d; c < d; c++) score += q[a + c] * k[b + c];
        row[j] = score * by;
        most = Math.max(most, row[j]);
      }
      for (let j = 0; j <= i; j++) total += (row[j] = Math.exp(row[j] - most));
      for (let j = 0; j <= i; j++) out[(h * T + i) * T + j] = row[j] / total;
    }
  return out;
}

// Each head's values (H, T, d), weighted: (H, T, d).
function weighted(attn, v, H, T) {
  const d = v.length / H / T, out = new Float32Array(v.length), row = new Float64Array(d);
  for (let h = 0; h < H; h++)
    for (let i = 0; i < T; i++) {
      row.fill(0);
      for (let j = 0; j <= i; j++) {
        const weight = attn[(h * T + i) * T + j];
        for (let c = 0, b = (h * T + j) * d; c < d; c++) row[c] += weight * v[b + c];
      }
      out.set(row, (h * T + i) * d);
    }
  return out;
}

const GELU = {
  gelu_tanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  gelu: (x) => 0.5 * x * erfc(-x / Math.SQRT2),
};

// Numerical Recipes' Chebyshev fit: 1 minus the error function, within 1.2e-7 of it everywhere.
function erfc(x) {
  const t = 1 / (1 + 0.5 * Math.abs(x));
  const series = [0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223];
  const tail = t * Math.exp(-x * x + series.reduce((total, one) => total * t + one));
  return x < 0 ? 2 - tail : tail;
}

class Model {
  // `tensors`: name -> Float32Array, as in GPTModel.state_dict().
  constructor(config, tensors) {
    Object.assign(this, { config, tensors });
    this.head = tensors['out_head.weight'] ?? tensors['tok_emb.weight'];
  }

  linear(name, x, T) {
    const weight = this.tensors[`${name}.weight`];
    return linear(x, T, weight, this.tensors[`${name}.bias`], weight.length / (x.length / T));
  }

  norm(name, x) {
    return layerNorm(x, this.tensors[`${name}.scale`], this.tensors[`${name}.shift`], this.config.norm_eps);
  }

  // One forward pass: { ids, sites: { 'attn.3': { shape, data } }, norms: { 'block 3 · norm1': (T, D) after it } }.
  trace(ids, texts = []) {
    const { emb_dim: D, n_heads: H, n_layers, context_length } = this.config, T = ids.length;
    if (!T) throw new Error('the text has no tokens, so there is nothing to run the model on');
    if (T > context_length) throw new Error(`the text has ${T} tokens: more than ${context_length} do not fit into this model`);
    const edits = texts.map((text) => parseEdit(text, this.config, T)), sites = {}, norms = {};
    const site = (name, block, data, shape) => {
      for (const edit of edits) if (edit.site === name && (edit.block === block || edit.block === '*')) data = edited(data, shape, edit);
      sites[block === null ? name : `${name}.${block}`] = { shape, data };
      return data;
    };
    const rows = (name, data, block = null) => site(name, block, data, [T, data.length / T]);
    const heads = (name, data, block) => site(name, block, data, [H, T, D / H]);
    const table = this.tensors['tok_emb.weight'], tokens = new Float32Array(T * D);
    ids.forEach((id, t) => tokens.set(table.subarray(id * D, (id + 1) * D), t * D));
    const tok = rows('tok_emb', tokens), pos = rows('pos_emb', this.tensors['pos_emb.weight'].slice(0, T * D));
    let x = rows('embed', sum(tok, pos));
    for (let b = 0; b < n_layers; b++) {
      const at = `trf_blocks.${b}`;
      x = rows('resid_pre', x, b);
      const normed = norms[`block ${b} · norm1`] = this.norm(`${at}.norm1`, x);
      const [q, k, v] = [['q', 'query'], ['k', 'key'], ['v', 'value']].map(([name, word]) => heads(name, split(this.linear(`${at}.att.W_${word}`, normed, T), T, H), b));
      const attn = site('attn', b, attention(q, k, H, T), [H, T, T]), z = heads('z', weighted(attn, v, H, T), b);
      x = rows('resid_mid', sum(x, rows('attn_out', this.linear(`${at}.att.out_proj`, join(z, T, H), T), b)), b);
      const again = norms[`block ${b} · norm2`] = this.norm(`${at}.norm2`, x);
      const units = rows('mlp_act', rows('mlp_pre', this.linear(`${at}.ff.layers.0`, again, T), b).map(GELU[this.config.activation]), b);
      x = rows('resid_post', sum(x, rows('mlp_out', this.linear(`${at}.ff.layers.2`, units, T), b)), b);
    }
    norms.final = rows('final', this.norm('final_norm', x));
    return { ids, sites, norms };
  }

  // What the output head makes of a position's row (D,) of `final`: (V,).
  logits(final) {
    return linear(final, 1, this.head, null, this.head.length / final.length);
  }

  // How long, on average over the positions, the row is that each head adds to the stream: [block][head].
  writes({ ids, sites }) {
    const { emb_dim: D, n_heads: H, n_layers } = this.config, d = D / H, T = ids.length;
    return Array.from({ length: n_layers }, (_, b) => {
      const W = this.tensors[`trf_blocks.${b}.att.out_proj.weight`], z = sites[`z.${b}`].data;
      return Array.from({ length: H }, (_, h) => {
        const own = new Float32Array(D * d);
        for (let i = 0; i < D; i++) own.set(W.subarray(i * D + h * d, i * D + (h + 1) * d), i * d);
        const added = linear(z.subarray(h * T * d, (h + 1) * T * d), T, own, null, D);
        let total = 0;
        for (let t = 0; t < T; t++) total += Math.hypot(...added.subarray(t * D, (t + 1) * D));
        return total / T;
      });
    });
  }
}

// ---- the worker ----

// float32 numbers as their four bytes apart (all first bytes, all second ones, ...), which gzip well, in base64.
async function unpacked(base64, tensors) {
  if (typeof DecompressionStream === 'undefined') throw new Error('This browser is too old to unpack the model. Use Chrome 80, Firefox 113, Safari 16.4, or a later version.');
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer()), count = planes.length / 4, bytes = new Uint8Array(4 * count);
  for (let k = 0; k < 4; k++) for (let i = 0; i < count; i++) bytes[4 * i + k] = planes[k * count + i];
  let at = 0;
  return Object.fromEntries(tensors.map(([name, size]) => [name, new Float32Array(bytes.buffer, 4 * (at += size) - 4 * size, size)]));
}

// Each message is { number, ask, args }, and has one answer, { number, answer } or { number, error }.
function answering(given) {
  const model = unpacked(given.weights, given.tensors).then((tensors) => new Model(given.config, tensors));
  const tokenizer = new Tokenizer(given.tokenizer);
  return {
    read: async (text, special) => tokenizer.read(text, special),
    trace: async (text, edits, special) => {
      const found = (await model).trace(tokenizer.read(text, special).flatMap(({ ids }) => ids), edits);
      return { ids: found.ids, sites: found.sites, logits: (await model).logits(found.sites.final.data.slice(-given.config.emb_dim)) };
    },
    run: async (ids, edits) => {
      const found = (await model).trace(ids, edits);
      return { ...found, writes: (await model).writes(found) };
    },
    logits: async (final) => (await model).logits(final),
  };
}

let answers = null;
self.onmessage = async ({ data: { number, ask, args } }) => {
  try {
    if (ask === 'load') answers = answering(args[0]);
    const answer = ask === 'load' ? null : await answers[ask](...args);
    self.postMessage({ number, answer }, [...new Set(Object.values(answer?.sites ?? {}).map(({ data }) => data.buffer))]);
  } catch (error) {
    self.postMessage({ number, error: error.message });
  }
};
