// Tokens as the app shows them: what gptviz/tokenizer's show_token and characters, and ui/components/merges, do in Python.
// A token's bytes are a text of one character each.

const given = JSON.parse(document.getElementById('given').textContent), { config, name: NAME } = given;
const { tokens, special, words } = given.tokenizer, specials = new Map(Object.entries(special).map(([text, id]) => [id, text]));
const utf8 = (bytes, stream = false) => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)), { stream });
const rawOf = (id) => (tokens[id] ? atob(tokens[id]) : String.fromCharCode(...new TextEncoder().encode(specials.get(id) ?? `<id ${id}>`)));
const shownOf = (id) => shown(rawOf(id));
const needsTheSwitch = (id) => specials.has(id) && !words.includes(specials.get(id));
const kindOf = (word) => (word ? 'an added word' : 'a special token');
const SHOWN = { ' ': '·', '\n': '⏎', '\t': '⇥' };

function escaped(character) {
  const code = character.codePointAt(0), digits = (n) => code.toString(16).padStart(n, '0');
  return code < 0x80 ? `\\x${digits(2)}` : code <= 0xffff ? `\\u${digits(4)}` : `\\U${digits(8)}`;
}

// The text of bytes, or undefined where they are none (`broken`) or only the beginning of one.
function decoded(bytes) {
  for (const stream of [false, true])
    try {
      const text = utf8(bytes, stream);
      return stream ? { open: true } : { text };
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
  return {};
}

function shown(raw) {
  let out = '', marks = true;         // marks that have no letter before them to stand on are written as escapes
  for (let i = 0; i < raw.length;) {
    const n = [1, 2, 3, 4].find((size) => i + size <= raw.length && [...decoded(raw.slice(i, i + size)).text ?? ''].length === 1);
    if (!n) out += `\\x${raw.charCodeAt(i).toString(16).padStart(2, '0')}`;
    const character = n ? utf8(raw.slice(i, i + n)) : '';
    marks &&= /^[\p{Mn}\p{Me}]$/u.test(character);
    if (n) out += SHOWN[character] ?? (marks || /[\p{C}\p{Z}]/u.test(character) ? escaped(character) : character);
    i += n ?? 1;
  }
  return out;
}

// [first token, the one after the last, the character] of tokens that share a character.
function sharing(raws) {
  const out = [];
  for (let start = 0, stop; start < raws.length; start = stop) {
    let raw = '', found = { open: true };
    for (stop = start; stop < raws.length && found.open; stop++) found = decoded(raw += raws[stop]);
    if (found.open) stop = start + 1;
    else if (found.text !== undefined && stop - start > 1) out.push([start, stop, shown(raw)]);
  }
  return out;
}

// ---- how a token came about ----

const WIDEST = 24;             // bytes of a piece that fit on a screen; of a longer one only the chosen token's own
const COLUMN = 46;             // pixels a byte

let ranks = null;              // a token's bytes -> its rank

// The merges of a piece, as [{ parts, ranks of neighbours, chosen: the pair that merges next, joined: where the last did }].
function merging(raw) {
  ranks ??= new Map(tokens.map((token, id) => [token && atob(token), id]));
  const stages = [];
  for (let parts = [...raw], joined = null, chosen = 0; chosen !== null;) {
    const found = parts.slice(1).map((part, i) => ranks.get(parts[i] + part) ?? null), possible = found.filter((rank) => rank !== null);
    chosen = possible.length ? found.indexOf(Math.min(...possible)) : null;
    stages.push({ parts, ranks: found, chosen, joined });
    if (chosen === null) break;
    joined = parts.slice(0, chosen).join('').length;
    parts = [...parts.slice(0, chosen), parts[chosen] + parts[chosen + 1], ...parts.slice(chosen + 2)];
  }
  return stages;
}

const hexOf = (raw) => Array.from(raw, (c) => c.charCodeAt(0).toString(16).padStart(2, '0')).join(' ');
const many = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`;

// What the component `merges` draws of a piece { raw, ids, special }, whose token number `part` stands at `position`.
function mergesOf({ raw, ids, special: looked, word }, part, position) {
  if (raw.length > WIDEST) [raw, ids, part] = [rawOf(ids[part]), [ids[part]], 0];
  const raws = ids.map(rawOf), from = raws.slice(0, part).join('').length, to = from + raws[part].length, worked = looked ? [] : merging(raw);
  const stages = worked.at(-1)?.parts.length === ids.length ? worked : [{ parts: [raw], ranks: [], chosen: null, joined: null }];
  const drawn = stages.map((stage) => {
    let at = 0;
    const parts = stage.parts.map((text) => {
      const mine = at >= from && at < to;
      at += text.length;
      return { shown: shown(text), bytes: text.length, hex: hexOf(text), title: `“${shown(text)}”: ${many(text.length, 'byte')}, ${hexOf(text)}`, mine };
    });
    const titles = stage.ranks.map((rank, i) => {
      const both = shown(stage.parts[i] + stage.parts[i + 1]), better = i === stage.chosen ? 'the lowest rank here: they merge next' : 'a lower rank goes first';
      return rank === null ? `“${both}” is no token: these two cannot merge.` : `“${both}” is the token of rank ${rank}; ${better}.`;
    });
    return { ...stage, parts, titles, says: mergeSaid(stage, stages.length - 1, raw, ids, looked && kindOf(word)) };
  });
  return { stages: drawn, tokens: ids.map((id, i) => ({ id, position: position - part + i })), width: COLUMN, colours: gv.palette('light').positions.length };
}

// A stage in a sentence: text and code in turn.
function mergeSaid({ parts, ranks: pairs, chosen }, last, raw, ids, looked) {
  const done = `After ${many(last, 'merge')}`, count = parts.length, possible = pairs.filter((rank) => rank !== null).length;
  if (looked) return ['', shown(raw), ` is ${looked}: it is looked up, and neither cut nor merged.`];
  if (last === 0 && count > 1) return [`None of these ${count} bytes makes a token with its neighbour: each stays alone.`];
  if (last === 0 && raw.length > 1) return ['', shown(raw), ' is in the vocabulary as a whole: it is looked up, not merged.'];
  if (last === 0) return ['', shown(raw), ` is a single byte, ${hexOf(raw)}: nothing to merge.`];
  if (chosen === null && count > 1) return [`${done} no neighbours make a token any more: ${count} tokens are left.`];
  if (chosen === null) return [`${done} all bytes are one token: `, shown(raw), ', id ', String(ids[0]), '.'];
  const why = possible > 1 ? `the lowest of ${possible}` : 'the only pair that makes a token';
  return ['Next, ', shown(parts[chosen]), ' and ', shown(parts[chosen + 1]), ` merge: rank ${pairs[chosen]} is ${why}.`];
}
