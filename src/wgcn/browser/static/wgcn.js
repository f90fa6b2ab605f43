// A wgcn text classifier in plain JavaScript: the twin of Python's wgcn.TextModel, over the table of `wgcn export`.
//
// Texts become tokens, tokens n-grams, n-grams weights, and scores are sums of table rows: what is single precision in
// Python is rounded by Math.fround here, in the same order, so that scores have the same bits.

const VERSION = 2;
// Classes of characters: see wgcn/browser/characters.py.
const START = 1, INSIDE = 2, APOSTROPHE = 3, PART_IN_WORDS = 3, EMOJI = 4, FLAG = 8, SUFFIX = 16, UNSPACED = 32;
const CASED = 64, IGNORABLE = 128;
const SIGMA = 0x3a3, SMALL_SIGMA = 0x3c3, FINAL_SIGMA = 0x3c2, JOINER = 0x200d;
const CHANGES = 1; // in a table of folded code units: more than a look-up is needed
const LONG = 100, LEAD_COUNT = 3; // known terms of a long text; what an occurrence in its lead counts
const SHORTEST = 2, LONGEST = 5, LONGEST_WORD = 64, BUCKET_SHIFT = 14; // of subwords
const FIRST = 0x811c9dc5, FACTOR = 0x01000193; // of the hash FNV-1a
const REMEMBERED = 20000; // rows of words that training did not see
const OUT_OF_SCOPE = 0.99; // a text that is stranger than this share of held-out texts counts as out of scope
const SIGN_WEIGHTS = [0.5, 0.5, 1, 1], LEAST_SIGN = -1, TAIL = 0.05, MIN_IN_TAIL = 20;
const ARRAYS = {
  f8: Float64Array, f4: Float32Array, f2: Uint16Array, u1: Uint8Array, u4: Uint32Array, i4: Int32Array,
};
const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
const { fround } = Math;

let halves; // the value of every number in half precision

function halfPrecision() {
  if (!halves) {
    halves = new Float32Array(65536);
    for (let bits = 0; bits < 65536; bits++) {
      const exponent = (bits >> 10) & 31, fraction = bits & 1023;
      const size = exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24;
      halves[bits] = bits & 0x8000 ? -size : size;
    }
  }
  return halves;
}

function codeAt(units, at, end) {
  const unit = units[at];
  if ((unit & 0xfc00) === 0xd800 && at + 1 < end && (units[at + 1] & 0xfc00) === 0xdc00) {
    return ((unit - 0xd800) << 10) + units[at + 1] - 0xdc00 + 0x10000;
  }
  return unit;
}

const widthOf = (code) => (code > 0xffff ? 2 : 1);

function asText(units, begin, end) {
  let text = "";
  for (let at = begin; at < end; at += 8192) {
    text += String.fromCharCode.apply(null, units.subarray(at, Math.min(at + 8192, end)));
  }
  return text;
}

function powerOfTwo(least) {
  let size = 2;
  while (size < least) size *= 2;
  return size;
}

function firstAtLeast(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Places of tokens in folded text. */
class Tokens {
  constructor() {
    this.units = new Uint16Array(1024); // folded text, as UTF-16
    this.size = 0; // of it
    this.begins = new Int32Array(256);
    this.ends = new Int32Array(256);
    this.length = 0;
  }

  add(begin, end) {
    if (this.length === this.begins.length) {
      this.begins = grown(this.begins);
      this.ends = grown(this.ends);
    }
    this.begins[this.length] = begin;
    this.ends[this.length++] = end;
  }

  text(i) {
    return asText(this.units, this.begins[i], this.ends[i]);
  }
}

function grown(array) {
  const larger = new array.constructor(2 * array.length);
  larger.set(array);
  return larger;
}

/** From a text to its tokens, as wgcn.text.tokenize has it. */
class Tokenizer {
  constructor(name, arrays) {
    if (!["words", "characters", "text_gcn"].includes(name)) throw new Error(`Unknown tokenizer ${name}.`);
    this.name = name;
    this.classes = new Uint8Array(0x110000);
    const begins = arrays["characters.begins"], classes = arrays["characters.classes"];
    for (let run = 0; run < begins.length; run++) this.classes.fill(classes[run], begins[run], begins[run + 1]);
    this.folded = new Uint16Array(0x10000).map((_, unit) => unit);
    this.folded.fill(CHANGES, 0xd800, 0xe000);
    this.folded[SIGMA] = this.folded[CHANGES] = CHANGES;
    this.others = new Map(); // characters that are, or become, two code units
    const from = arrays["fold.from"], to = arrays["fold.to"], long = arrays["fold.long"];
    for (let i = 0; i < from.length; i++) {
      if (from[i] < 0x10000 && to[i] < 0x10000) this.folded[from[i]] = to[i];
      else this.become(from[i], String.fromCodePoint(to[i]));
    }
    for (let i = 0; i < long.length; i += 3) this.become(long[i], String.fromCodePoint(long[i + 1], long[i + 2]));
  }

  become(code, text) {
    this.others.set(code, text);
    if (code < 0x10000) this.folded[code] = CHANGES;
  }

  /** Put the folded text into `tokens`; if `places` is given, where each of its code units was in the text. */
  fold(text, tokens, places) {
    if (tokens.units.length < 2 * text.length) tokens.units = new Uint16Array(powerOfTwo(2 * text.length));
    const units = tokens.units, folded = this.folded;
    let n = 0;
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at), to = folded[unit];
      if (places) places[n] = at;
      if (to !== CHANGES) {
        units[n++] = to;
        continue;
      }
      const code = text.codePointAt(at);
      const changed = code === SIGMA ? String.fromCharCode(this.smallSigma(text, at)) : this.others.get(code);
      const written = changed ?? text.slice(at, at + widthOf(code));
      for (let i = 0; i < written.length; i++) {
        if (places) places[n] = written.length === widthOf(code) ? at + i : at;
        units[n++] = written.charCodeAt(i);
      }
      at += widthOf(code) - 1;
    }
    if (places) places[n] = text.length;
    tokens.size = n;
  }

  /** A capital sigma is final if a cased character is before it and none after it; ignorable ones do not count. */
  smallSigma(text, at) {
    const { classes } = this;
    let before = 0;
    for (let i = at - 1; i >= 0; i--) {
      const pair = i > 0 ? text.codePointAt(i - 1) : 0; // above 0xffff if a character of two units ends here
      before = classes[pair > 0xffff ? pair : text.charCodeAt(i)];
      if (pair > 0xffff) i--;
      if (!(before & IGNORABLE)) break;
    }
    if (!(before & CASED)) return SMALL_SIGMA;
    for (let i = at + 1; i < text.length; ) {
      const code = text.codePointAt(i);
      if (!(classes[code] & IGNORABLE)) return classes[code] & CASED ? SMALL_SIGMA : FINAL_SIGMA;
      i += widthOf(code);
    }
    return FINAL_SIGMA;
  }

  tokenize(text, tokens, places) {
    if (typeof text !== "string") throw new TypeError(`A text must be a string, got ${typeof text}.`);
    tokens.length = 0;
    if (this.name === "text_gcn") {
      this.textGcn(text, tokens, places);
      return;
    }
    this.fold(text, tokens, places);
    if (this.name === "words") this.words(tokens, 0, tokens.size);
    else this.characters(tokens);
  }

  words(tokens, at, end) {
    const { units } = tokens, { classes } = this;
    let begin = -1; // of a word; -1 outside of one
    while (at < end) {
      let code = units[at], width = 1;
      if (code >= 0x80) {
        code = codeAt(units, at, end);
        width = widthOf(code);
        if (classes[code] & (EMOJI | FLAG)) {
          if (begin >= 0) tokens.add(begin, at);
          const last = this.emojiEnd(units, at, end);
          tokens.add(at, last);
          begin = -1;
          at = last;
          continue;
        }
      }
      const kind = classes[code] & PART_IN_WORDS;
      let goesOn = kind === START || (kind === INSIDE && begin >= 0);
      if (kind === APOSTROPHE) { // it goes on only if a letter follows at once
        goesOn = begin >= 0 && at + 1 < end && (classes[codeAt(units, at + 1, end)] & PART_IN_WORDS) === START;
      }
      if (goesOn && begin < 0) begin = at;
      else if (!goesOn && begin >= 0) {
        tokens.add(begin, at);
        begin = -1;
      }
      at += width;
    }
    if (begin >= 0) tokens.add(begin, end);
  }

  emojiEnd(units, at, end) {
    const { classes } = this;
    let code = codeAt(units, at, end);
    at += widthOf(code);
    if (classes[code] & FLAG) {
      return at < end && classes[codeAt(units, at, end)] & FLAG ? at + 2 : at;
    }
    while (at < end) {
      code = codeAt(units, at, end);
      let width = widthOf(code);
      if (code === JOINER && at + 1 < end) { // it joins two emoji
        const following = codeAt(units, at + 1, end);
        if (!(classes[following] & EMOJI)) break;
        width += widthOf(following);
      } else if (!(classes[code] & SUFFIX)) break;
      at += width;
    }
    return at;
  }

  /** Pairs of characters in runs of scripts that write no blanks; the text between runs as `words` has it. */
  characters(tokens) {
    const { units, size } = tokens, { classes } = this;
    const isMark = (code) => (classes[code] & PART_IN_WORDS) === INSIDE;
    let rest = 0, at = 0;
    while (at < size) {
      let code = codeAt(units, at, size);
      if (!(classes[code] & UNSPACED)) {
        at += widthOf(code);
        continue;
      }
      this.words(tokens, rest, at);
      let before = -1, begin = at, n = 0;
      while (at < size) { // a letter with its marks, again and again
        code = codeAt(units, at, size);
        if (!(classes[code] & UNSPACED)) break;
        const first = at;
        do {
          at += widthOf(code);
          code = at < size ? codeAt(units, at, size) : 0;
        } while (at < size && isMark(code));
        if (n++) tokens.add(before, at);
        before = first;
      }
      if (n === 1) tokens.add(begin, at);
      rest = at;
    }
    this.words(tokens, rest, size);
  }

  textGcn(text, tokens, places) {
    const kept = text.replace(/[^A-Za-z0-9(),!?'`]/g, " ");
    const split = kept.replace(/(?='s|'ve|n't|'re|'d|'ll)/g, "\n").toLowerCase();
    if (tokens.units.length < split.length) tokens.units = new Uint16Array(powerOfTwo(split.length));
    let n = 0, place = 0;
    for (let i = 0; i < split.length; i++) {
      tokens.units[n] = split.charCodeAt(i);
      if (places) places[n] = place;
      n++;
      if (split[i] !== "\n") place++;
    }
    if (places) places[n] = text.length;
    tokens.size = n;
    for (const found of split.matchAll(/[,!()?]|[^ \n,!()?]+/g)) tokens.add(found.index, found.index + found[0].length);
  }
}

/** The vocabulary: a table of words, and a tree of n-grams. */
class Vocabulary {
  constructor(arrays, ngramRange, nTerms) {
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(arrays["words.text"]);
    const lengths = arrays["words.lengths"];
    this.nWords = lengths.length;
    this.ngramRange = ngramRange;
    this.units = new Uint16Array(text.length);
    for (let i = 0; i < text.length; i++) this.units[i] = text.charCodeAt(i);
    this.begins = new Uint32Array(this.nWords + 1);
    for (let i = 0; i < this.nWords; i++) this.begins[i + 1] = this.begins[i] + lengths[i];
    this.slots = new Int32Array(powerOfTwo(2 * this.nWords)).fill(-1);
    this.hashes = new Int32Array(this.nWords);
    for (let word = 0; word < this.nWords; word++) {
      this.hashes[word] = hashOf(this.units, this.begins[word], this.begins[word + 1]);
      let slot = this.hashes[word] & (this.slots.length - 1);
      while (this.slots[slot] >= 0) slot = (slot + 1) & (this.slots.length - 1);
      this.slots[slot] = word;
    }
    this.isKept = new Uint8Array(this.nWords).fill(1);
    for (const word of arrays["words.stopped"]) this.isKept[word] = 0;
    this.parents = arrays["tree.parents"];
    this.lasts = arrays["tree.words"];
    this.terms = arrays["tree.terms"]; // the term that each node is, or -1
    this.nodes = new Int32Array(nTerms); // the node that each term is
    for (let node = 0; node < this.terms.length; node++) if (this.terms[node] >= 0) this.nodes[this.terms[node]] = node;
    this.edges = new Int32Array(powerOfTwo(2 * this.lasts.length)).fill(-1);
    for (let i = 0; i < this.lasts.length; i++) {
      let slot = pairHash(this.parents[i], this.lasts[i]) & (this.edges.length - 1);
      while (this.edges[slot] >= 0) slot = (slot + 1) & (this.edges.length - 1);
      this.edges[slot] = i;
    }
  }

  /** The number of the word units[begin:end], or -1. */
  find(units, begin, end) {
    const { slots, hashes, begins } = this, hash = hashOf(units, begin, end);
    for (let slot = hash & (slots.length - 1); slots[slot] >= 0; slot = (slot + 1) & (slots.length - 1)) {
      const word = slots[slot];
      if (hashes[word] !== hash || begins[word + 1] - begins[word] !== end - begin) continue;
      let i = 0;
      while (i < end - begin && this.units[begins[word] + i] === units[begin + i]) i++;
      if (i === end - begin) return word;
    }
    return -1;
  }

  /** The node of a beginning of an n-gram with one more word, or -1. */
  child(node, word) {
    const { edges, parents, lasts } = this;
    let slot = pairHash(node, word) & (edges.length - 1);
    for (; edges[slot] >= 0; slot = (slot + 1) & (edges.length - 1)) {
      if (parents[edges[slot]] === node && lasts[edges[slot]] === word) return this.nWords + edges[slot];
    }
    return -1;
  }

  isNgram(term) {
    return this.nodes[term] >= this.nWords;
  }

  /** The words of a term, with spaces between them. */
  text(term) {
    let node = this.nodes[term], text = "";
    while (node >= this.nWords) {
      text = ` ${this.word(this.lasts[node - this.nWords])}${text}`;
      node = this.parents[node - this.nWords];
    }
    return this.word(node) + text;
  }

  word(word) {
    return asText(this.units, this.begins[word], this.begins[word + 1]);
  }
}

function hashOf(units, begin, end) {
  let hash = FIRST;
  for (let i = begin; i < end; i++) hash = Math.imul(hash ^ units[i], FACTOR);
  return hash ^ (hash >>> 15);
}

function pairHash(node, word) {
  const hash = Math.imul(Math.imul(node, 0x9e3779b1) ^ word, 0x85ebca6b);
  return hash ^ (hash >>> 15);
}

/** What is known of subwords, for words that training did not see: wgcn.scoring.spelling. */
class Spelling {
  constructor(arrays, hidden, idf) {
    this.hashes = arrays["spelling.hashes"];
    this.rows = arrays["spelling.rows"];
    this.hidden = hidden;
    this.idf = fround(idf);
    this.found = new Map(); // rows of words of earlier texts
    this.codes = new Int32Array(LONGEST_WORD + 3);
    this.states = new Int32Array(LONGEST_WORD + 3);
    this.starts = new Uint32Array((1 << (32 - BUCKET_SHIFT)) + 1);
    for (const hash of this.hashes) this.starts[(hash >>> BUCKET_SHIFT) + 1]++;
    for (let bucket = 1; bucket < this.starts.length; bucket++) this.starts[bucket] += this.starts[bucket - 1];
  }

  /** The sum of the rows of the subwords of a word, in single precision. */
  sum(word) {
    const { codes, states, hashes, starts, hidden } = this, sum = new Float32Array(hidden);
    let size = 1;
    for (let at = 0; at < word.length && size <= LONGEST_WORD + 1; at += widthOf(codes[size++])) {
      codes[size] = word.codePointAt(at);
    }
    if (size === 1 || size > LONGEST_WORD + 1 || word.includes(" ")) return sum;
    codes[0] = 60; // <
    codes[size++] = 62; // >
    states.fill(FIRST);
    const half = halfPrecision(), total = new Float64Array(hidden);
    for (let n = 1; n <= LONGEST; n++) {
      for (let i = 0; i + n <= size; i++) states[i] = Math.imul(states[i] ^ codes[i + n - 1], FACTOR);
      for (let i = 0; n >= SHORTEST && i + n <= size; i++) {
        let hash = Math.imul(states[i] ^ (states[i] >>> 16), 0x85ebca6b);
        hash = (hash ^ (hash >>> 13)) >>> 0;
        const bucket = hash >>> BUCKET_SHIFT;
        for (let place = starts[bucket]; place < starts[bucket + 1]; place++) {
          if (hashes[place] !== hash) continue;
          for (let j = 0, at = place * hidden; j < hidden; j++, at++) total[j] += half[this.rows[at]];
        }
      }
    }
    sum.set(total);
    return sum;
  }

  /** The row of a word that training did not see, or null if nothing is known of it. */
  row(word) {
    let row = this.found.get(word);
    if (row === undefined) {
      row = this.sum(word);
      let isKnown = false;
      for (let j = 0; j < row.length; j++) {
        isKnown ||= row[j] !== 0;
        row[j] /= this.idf; // rounded to single precision
      }
      if (!isKnown) row = null;
      if (this.found.size === REMEMBERED) this.found.clear();
      this.found.set(word, row);
    }
    return row;
  }
}

/** Why a text gets its scores; matrices have one row per term and one column per class, row after row. */
export class Explanation {
  constructor(parts) {
    Object.assign(this, parts);
  }

  /** The place of a class; of the one with the highest score if none is given. */
  place(label) {
    if (label === undefined || label === null) return argmax(this.scores);
    const place = this.classes.findIndex((name) => String(name) === String(label));
    if (place < 0) throw new Error(`There is no class ${JSON.stringify(label)}.`);
    return place;
  }

  column(matrix, place) {
    return Float64Array.from(this.terms, (_, i) => matrix[i * this.classes.length + place]);
  }

  /** The n terms that speak most for a class, or against it: [term, part of the score]. */
  top(label, n = 10, against = false) {
    const column = this.column(this.contributions, this.place(label)), sign = against ? -1 : 1;
    const order = [...column.keys()].sort((a, b) => sign * (column[b] - column[a]) || a - b);
    return order.slice(0, n).filter((i) => sign * column[i] > 0).map((i) => [this.terms[i], column[i]]);
  }

  /** For each token its share of the contributions to a class: an n-gram is shared by its words. */
  shares(label) {
    const column = this.column(this.contributions, this.place(label)), parts = new Float64Array(column.length);
    for (const terms of this.holders) for (const i of terms) parts[i]++;
    return Float64Array.from(this.holders, (terms) => {
      let sum = 0;
      for (const i of terms) sum += column[i] / parts[i];
      return sum;
    });
  }
}

function argmax(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

/** Whether a table has the sums that it ends with: see wgcn/browser/export.py. */
function isWhole(buffer) {
  if (buffer.byteLength % 8) return false;
  const words = new Uint32Array(buffer), end = words.length - 2;
  let sum = 0, ofSums = 0;
  for (let i = 0; i < end; i++) {
    sum = (sum + words[i]) >>> 0;
    ofSums = (ofSums + sum) >>> 0;
  }
  return sum === words[end] && ofSums === words[end + 1];
}

/** A trained text classifier. */
export class TextModel {
  /** Read the table that `wgcn export` wrote, bytes or an ArrayBuffer; arrays stay where they are in a buffer. */
  static fromBuffer(given) {
    let buffer = given;
    if (ArrayBuffer.isView(given)) { // a copy, which begins where numbers may
      buffer = new Uint8Array(given.buffer, given.byteOffset, given.byteLength).slice().buffer;
    }
    if (Object.prototype.toString.call(buffer) !== "[object ArrayBuffer]") {
      throw new TypeError("A model is read from an ArrayBuffer or from bytes, such as the content of model.bin.");
    }
    const bytes = new Uint8Array(buffer), view = new DataView(buffer);
    if (bytes.length < 12 || String.fromCharCode(...bytes.subarray(0, 4)) !== "WGCN") {
      throw new Error("This is not a model that `wgcn export` wrote.");
    }
    if (view.getUint32(4, true) !== VERSION) {
      throw new Error(`This script reads models of format ${VERSION}, not ${view.getUint32(4, true)}. Export again.`);
    }
    if (!LITTLE_ENDIAN) throw new Error("This machine stores numbers in an order that models do not have.");
    if (!isWhole(buffer)) throw new Error("The model is damaged or incomplete. Copy the file or export the model again.");
    const start = 12 + view.getUint32(8, true);
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(12, start)));
    const arrays = {};
    for (const [name, [type, shape, offset]] of Object.entries(header.arrays)) {
      arrays[name] = new ARRAYS[type](buffer, start + offset, shape.reduce((size, n) => size * n, 1));
    }
    return new TextModel(header, arrays);
  }

  constructor(header, arrays) {
    this.classes = header.classes;
    this.multilabel = header.multilabel;
    this.header = header;
    this.arrays = arrays;
    this.hidden = header.arrays.table[1][1];
    this.nTerms = header.nTerms;
    this.tokenizer = new Tokenizer(header.tokenizer, arrays);
    this.vocabulary = new Vocabulary(arrays, header.ngramRange, header.nTerms);
    this.spelling = arrays["spelling.hashes"] ? new Spelling(arrays, this.hidden, header.newIdf) : null;
    this.tokens = new Tokens();
    this.counts = new Int32Array(this.nTerms); // of terms in a text; 0 between texts
    this.leading = new Uint8Array(this.nTerms);
    this.ids = new Int32Array(256);
  }

  /** Whether answers can be left out, `abstain` and `outOfScope`. */
  get canAbstain() {
    return !this.multilabel && Boolean(this.arrays["trust.strangeness"]?.length);
  }

  /** The tokens of a text. */
  tokenize(text) {
    this.tokenizer.tokenize(text, this.tokens);
    return Array.from({ length: this.tokens.length }, (_, i) => this.tokens.text(i));
  }

  /** The ids of the n-grams of a text, -1 for those that are no term; its words that are none, each once; how often. */
  encode(text, places) {
    this.tokenizer.tokenize(text, this.tokens, places);
    const { tokens, vocabulary } = this, { isKept, terms } = vocabulary, [shortest, longest] = vocabulary.ngramRange;
    const words = new Int32Array(tokens.length), size = tokens.length * (longest - shortest + 1);
    for (let i = 0; i < words.length; i++) words[i] = vocabulary.find(tokens.units, tokens.begins[i], tokens.ends[i]);
    if (this.ids.length < size) this.ids = new Int32Array(powerOfTwo(size));
    const { ids } = this, fresh = new Map();
    let n = 0, nUnknown = 0;
    for (let begin = 0; begin < words.length; begin++) {
      let node = words[begin], at = begin;
      if (node >= 0 && !isKept[node]) { // it counts as one that is no term
        if (shortest === 1) ids[n++] = -1;
        continue;
      }
      if (shortest === 1) {
        ids[n] = node < 0 ? -1 : terms[node];
        if (ids[n] < 0) nUnknown++;
        if (ids[n] < 0 && this.spelling) ids[n] = this.newWord(tokens.text(begin), fresh);
        n++;
      }
      for (let length = 2; length <= longest; length++) {
        do at++; while (at < words.length && words[at] >= 0 && !isKept[words[at]]);
        if (at >= words.length) break;
        if (node >= 0) node = words[at] >= 0 ? vocabulary.child(node, words[at]) : -1;
        if (length >= shortest) ids[n++] = node < 0 ? -1 : terms[node];
      }
    }
    return [ids.subarray(0, n), [...fresh].filter(([, found]) => found), nUnknown];
  }

  /** An id for a word that training did not see, after those of the terms; -1 if nothing is known of its subwords. */
  newWord(word, fresh) {
    let found = fresh.get(word);
    if (found === undefined) {
      const row = this.spelling.row(word);
      found = row && { id: this.nTerms + fresh.size, row, count: 0 };
      fresh.set(word, found);
    }
    if (!found) return -1;
    found.count++;
    return found.id;
  }

  /** The weighted terms of a text: known ones by their ids, then new words in their order. */
  weighted(text, places) {
    const [ids, fresh, nUnknown] = this.encode(text, places), { counts, leading, nTerms, header } = this;
    let nKnown = 0, n = 0;
    const touched = new Int32Array(ids.length);
    for (const id of ids) {
      if (id < 0 || id >= nTerms) continue;
      if (counts[id]++ === 0) touched[n++] = id;
      if (nKnown++ < header.lead && leading[id] < 255) leading[id]++;
    }
    const known = touched.subarray(0, n).sort(), terms = new Int32Array(n + fresh.length);
    const times = new Int32Array(terms.length), weights = new Float32Array(terms.length);
    terms.set(known);
    const idfs = this.arrays.idf, more = nKnown > LONG ? LEAD_COUNT - 1 : 0;
    for (let i = 0; i < n; i++) {
      const id = known[i];
      weights[i] = fround(this.tf(counts[id] + more * leading[id]) * idfs[id]);
      times[i] = counts[id];
      counts[id] = leading[id] = 0;
    }
    fresh.forEach(([, { id, count }], i) => {
      terms[n + i] = id;
      times[n + i] = count;
      weights[n + i] = fround(this.tf(count) * this.spelling.idf);
    });
    const square = header.norm === "l2";
    let size = 0;
    // New words do not count in the length of a text that has others.
    for (let i = 0; i < (n || weights.length); i++) size += square ? weights[i] * weights[i] : weights[i];
    size = fround(square ? Math.sqrt(size) : size);
    for (let i = 0; i < weights.length; i++) weights[i] /= size;
    return { terms, weights, times, fresh, nKnown: n, nTokens: ids.length, nWords: this.tokens.length, nUnknown };
  }

  tf(n) {
    if (!this.header.sublinear) return n;
    return n <= this.arrays.logs.length ? this.arrays.logs[n - 1] : fround(1 + fround(Math.log(n)));
  }

  scoresOf({ terms, weights, fresh, nKnown }) {
    if (!terms.length) return Float32Array.from(this.arrays.priorScores);
    const { table, bias, classWeights } = this.arrays, { hidden } = this, total = new Float64Array(hidden);
    for (let i = 0; i < terms.length; i++) {
      const weight = weights[i], rows = i < nKnown ? table : fresh[i - nKnown][1].row;
      for (let j = 0, at = i < nKnown ? terms[i] * hidden : 0; j < hidden; j++, at++) total[j] += rows[at] * weight;
    }
    const sums = Float32Array.from(total);
    if (!classWeights) return sums.map((value, j) => value + bias[j]);
    return bias.map((value, j) => {
      let sum = 0;
      for (let k = 0; k < hidden; k++) if (sums[k] > 0) sum += sums[k] * classWeights[k * bias.length + j];
      return fround(sum) + value;
    });
  }

  probabilitiesOf(scores) {
    const { sharpness } = this.header;
    if (this.multilabel) {
      return Float64Array.from(scores, (score) => {
        const positive = 1 / (1 + Math.exp(-Math.abs(score * sharpness)));
        return score >= 0 ? positive : 1 - positive;
      });
    }
    const highest = scores[argmax(scores)] * sharpness;
    const exponentials = Float64Array.from(scores, (score) => Math.exp(score * sharpness - highest));
    const sum = exponentials.reduce((total, value) => total + value, 0);
    return exponentials.map((value) => value / sum);
  }

  labelOf(scores) {
    return this.multilabel ? this.classes.filter((_, i) => scores[i] > 0) : this.classes[argmax(scores)];
  }

  /** The score of each class. */
  scores(text) {
    return this.scoresOf(this.weighted(text));
  }

  /** The probability of each class. */
  probabilities(text) {
    return this.probabilitiesOf(this.scores(text));
  }

  /** The label of a text, or a list of labels; null where it is less likely than `abstain`, or out of scope. */
  predict(text, { abstain } = {}) {
    return abstain === undefined ? this.labelOf(this.scores(text)) : this.classify(text, { abstain }).label;
  }

  /** Label, scores, probabilities and number of words, of those unknown; with `abstain`, also `outOfScope`. */
  classify(text, { abstain } = {}) {
    const terms = this.weighted(text), scores = this.scoresOf(terms), probabilities = this.probabilitiesOf(scores);
    const { nWords, nUnknown } = terms;
    const answer = { label: this.labelOf(scores), scores, probabilities, nWords, nUnknown };
    if (abstain !== undefined) {
      if (this.multilabel) throw new Error("Answers are left out only by models that give one label per text.");
      if (!(abstain > 0 && abstain < 1)) throw new Error(`abstain must be above 0 and below 1, got ${abstain}.`);
      answer.outOfScope = this.strangenessOf(terms, probabilities);
      const best = argmax(probabilities);
      answer.label = probabilities[best] < abstain || answer.outOfScope > OUT_OF_SCOPE ? null : this.classes[best];
    }
    return answer;
  }

  /** How strange a text is: the share of held-out training texts that look less strange. */
  outOfScope(text) {
    const terms = this.weighted(text);
    return this.strangenessOf(terms, this.probabilitiesOf(this.scoresOf(terms)));
  }

  /** See wgcn.trust.scope. */
  strangenessOf({ terms, times, nKnown, nTokens }, probabilities) {
    const { arrays, vocabulary } = this, { logTotal } = this.header, [shortest, longest] = vocabulary.ngramRange;
    if (!arrays["trust.strangeness"]?.length) {
      throw new Error("The model cannot tell what is out of scope: too few texts were held out of training.");
    }
    if (!nKnown) return 1;
    let extra = 0, nSingle = 0, surprise = 0, information = 0;
    for (let n = shortest - 1; n < longest; n++) extra += n;
    const nWords = Math.max((nTokens + extra) / (longest - shortest + 1), 1);
    for (let i = 0; i < nKnown; i++) {
      if (vocabulary.isNgram(terms[i])) information += Math.max(arrays.idf[terms[i]] - 1, 0) * times[i];
      else {
        nSingle += times[i];
        surprise += (logTotal - Math.log1p(arrays.counts[terms[i]])) * times[i];
      }
    }
    const unknown = Math.max(nWords - nSingle, 0);
    let doubt = 0;
    for (const p of probabilities) for (const q of [p, 1 - p]) if (q > 0) doubt -= q * Math.log(Math.max(q, 1e-300));
    const signs = [(unknown * logTotal + surprise) / nWords, unknown / nWords, -information / nWords, doubt];
    let strange = 0;
    signs.forEach((sign, i) => {
      const [median, fixed, perWord] = arrays["trust.scales"].subarray(3 * i, 3 * i + 3);
      const deviation = Math.sqrt(fixed + perWord / Math.max(nWords, 1));
      strange += SIGN_WEIGHTS[i] * Math.max(deviation > 1e-9 ? (sign - median) / deviation : 0, LEAST_SIGN);
    });
    return shareBelow(arrays["trust.strangeness"], strange);
  }

  /** The labels that are credible, the likeliest first: the right one is among them for the share `coverage`. */
  predictSet(text, coverage = 0.9) {
    const nonconformity = this.arrays["trust.nonconformity"] ?? [], weights = this.arrays["trust.weights"] ?? [];
    const n = weights.reduce((sum, weight) => sum + weight, 0);
    let place = 0, below = 0;
    while (place < weights.length && (below += weights[place]) < coverage * (n + 1) - 1e-9) place++;
    if (this.multilabel || !(coverage > 0) || place === weights.length) {
      throw new Error(`The model has no sets of labels with coverage ${coverage}: it may be too high.`);
    }
    const probabilities = this.probabilities(text), order = [...probabilities.keys()];
    order.sort((a, b) => probabilities[b] - probabilities[a] || a - b);
    return order.filter((i) => 1 - probabilities[i] <= nonconformity[place]).map((i) => this.classes[i]);
  }

  /** Why a text gets its scores. */
  explain(text) {
    const places = new Uint32Array(2 * String(text).length + 1), found = this.weighted(text, places);
    const { terms: ids, weights, fresh, nKnown } = found, { classes, vocabulary } = this;
    const scores = this.scoresOf(found), contributions = this.contributionsOf(found);
    const terms = Array.from(ids, (id, i) => (i < nKnown ? vocabulary.text(id) : fresh[i - nKnown][0]));
    const spelling = this.spelling ? this.spellingParts(found, terms, contributions) : null;
    let own = null, neighbours = null;
    if (this.arrays["split.words"] && !this.arrays.classWeights) {
      [own, neighbours] = this.split(found, spelling ? contributions.map((v, i) => v - spelling[i]) : contributions);
    }
    const texts = Array.from({ length: this.tokens.length }, (_, i) => this.tokens.text(i));
    const spans = texts.map((_, i) => {
      const begin = this.tokens.begins[i], end = this.tokens.ends[i];
      return [places[begin], begin < end ? places[end - 1] + 1 : places[begin]];
    });
    return new Explanation({
      text, classes, terms, weights, contributions, scores,
      bias: terms.length ? this.arrays.bias : scores,
      probabilities: this.probabilitiesOf(scores),
      label: this.labelOf(scores),
      tokens: texts,
      spans, // where each token is in the text
      ...this.held(texts, terms, new Set(fresh.map(([word]) => word))),
      own, neighbours, spelling,
    });
  }

  contributionsOf({ terms, weights, fresh, nKnown }) {
    const { table, bias, classWeights } = this.arrays, { hidden } = this;
    const products = new Float64Array(terms.length * hidden), total = new Float64Array(hidden);
    for (let i = 0; i < terms.length; i++) {
      const rows = i < nKnown ? table : fresh[i - nKnown][1].row;
      for (let j = 0, at = i < nKnown ? terms[i] * hidden : 0; j < hidden; j++, at++) {
        total[j] += products[i * hidden + j] = rows[at] * weights[i];
      }
    }
    if (!classWeights) return products;
    const through = new Float64Array(terms.length * bias.length); // the hidden units that are active for this text
    for (let i = 0; i < terms.length; i++) {
      for (let k = 0; k < hidden; k++) {
        if (fround(total[k]) <= 0) continue;
        for (let j = 0; j < bias.length; j++) {
          through[i * bias.length + j] += products[i * hidden + k] * classWeights[k * bias.length + j];
        }
      }
    }
    return through;
  }

  /** The parts of the spellings of terms: of a new word all of it, of an n-gram nothing. */
  spellingParts({ terms, weights, nKnown }, texts, contributions) {
    const n = this.classes.length, parts = new Float64Array(contributions.length);
    for (let i = 0; i < terms.length; i++) {
      if (i >= nKnown) parts.set(contributions.subarray(i * n, (i + 1) * n), i * n);
      else if (terms[i] < this.header.nLearnt && !texts[i].includes(" ")) {
        const sum = this.spelling.sum(texts[i]);
        for (let j = 0; j < n; j++) parts[i * n + j] = weights[i] * (sum[j] / this.arrays.idf[terms[i]]);
      }
    }
    return parts;
  }

  /** The own parts of terms, and their named neighbours in the graph. */
  split({ terms, weights }, contributions) {
    const { arrays, vocabulary } = this, n = this.classes.length, half = halfPrecision();
    const words = arrays["split.words"], rows = arrays["split.own"], strengths = arrays["split.strengths"];
    const near = arrays["split.neighbours"], k = this.header.arrays["split.neighbours"][1][1];
    const own = contributions.slice();
    const neighbours = Array.from(terms, (term, i) => {
      if (term >= this.header.nLearnt) own.fill(0, i * n, (i + 1) * n);
      const place = firstAtLeast(words, term), named = [];
      if (words[place] !== term) return named;
      for (let j = 0; j < n; j++) own[i * n + j] = weights[i] * half[rows[place * n + j]];
      for (let at = place * k; at < (place + 1) * k; at++) {
        const strength = weights[i] * half[strengths[at]];
        if (strength === 0) continue;
        const parts = Float64Array.from(this.classes, (_, j) => strength * half[rows[near[at] * n + j]]);
        named.push({ word: vocabulary.text(words[near[at]]), contributions: parts });
      }
      return named;
    });
    return [own, neighbours];
  }

  /** For each token the terms that hold it, and the words that training did not see. */
  held(tokens, terms, fresh) {
    const placeOf = new Map(terms.map((term, place) => [term, place]));
    const { vocabulary } = this, [shortest, longest] = vocabulary.ngramRange;
    const kept = [...tokens.keys()].filter((i) => {
      const word = vocabulary.find(this.tokens.units, this.tokens.begins[i], this.tokens.ends[i]);
      return word < 0 || vocabulary.isKept[word];
    });
    const holders = tokens.map(() => []);
    for (let n = shortest; n <= longest; n++) {
      for (let start = 0; start + n <= kept.length; start++) {
        const members = kept.slice(start, start + n);
        const place = placeOf.get(members.map((i) => tokens[i]).join(" "));
        if (place !== undefined) for (const i of members) holders[i].push(place);
      }
    }
    const unknown = kept.filter((i) => !holders[i].length || fresh.has(tokens[i])).map((i) => tokens[i]);
    return { holders, unknown: [...new Set(unknown)] };
  }
}

/** The share of held-out texts that are less strange; the tail of the strangest is taken to be exponential. */
function shareBelow(known, strange) {
  const n = known.length, nTail = Math.min(Math.max(Math.trunc(TAIL * n), MIN_IN_TAIL), n);
  const start = known[n - nTail];
  if (strange > start) {
    let mean = 0;
    for (let i = n - nTail; i < n; i++) mean += (known[i] - start) / nTail;
    return 1 - (1 - (n - nTail + 1) / (n + 1)) * Math.exp(-(strange - start) / Math.max(mean, 1e-9));
  }
  if (strange < known[0]) return 0;
  let place = firstAtLeast(known, strange); // of those that are equal, the last counts
  while (place + 1 < n && known[place + 1] === strange) place++;
  if (known[place] === strange) return (place + 1) / (n + 1);
  return (place + (strange - known[place - 1]) / (known[place] - known[place - 1])) / (n + 1);
}
