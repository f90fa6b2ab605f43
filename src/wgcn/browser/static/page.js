// The page of `wgcn export --html`. Texts and labels are only ever put into the page as text.

const SHOWN_CLASSES = 5, SHOWN_ROWS = 1000, TERMS_FOR = 10, TERMS_AGAINST = 5, NAMED = 3, LEVELS = 4;
const SMALLEST = 5e-4; // what is smaller is 0.000 and left out
const PAUSE = 150, SLICE = 30; // milliseconds: after a key, and of work until the page may answer
const element = (id) => document.getElementById(id);
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);
const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
const labelText = (label) => (Array.isArray(label) ? label.join(", ") || "no class" : String(label ?? "no label"));

let model, explanation, chosen, allClasses, rows = [], run = 0, timer;

function make(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Undo base64 and gzip. */
async function unpack(text) {
  let bytes;
  if (Uint8Array.fromBase64) bytes = Uint8Array.fromBase64(text);
  else {
    const binary = atob(text);
    bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  }
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

const later = () => new Promise((done) => setTimeout(done));

function abstention() {
  return element("abstain").value ? { abstain: Number(element("abstain").value) } : {};
}

async function update() {
  const text = element("text").value, mine = ++run;
  element("one").hidden = element("many").hidden = true;
  if (!text.trim()) {
    element("status").textContent = `Ready: ${count(model.classes.length, "label")}. Type or paste a text.`;
  } else if (element("lines").checked) await labelLines(text.split(/\r\n|\r|\n/).filter((line) => line.trim()), mine);
  else labelOne(text);
}

function labelOne(text) {
  const answer = model.classify(text, abstention());
  explanation = model.explain(text);
  chosen = explanation.place();
  allClasses = model.classes.length <= SHOWN_CLASSES;
  element("answer").textContent = labelText(answer.label);
  element("status").textContent = `Label: ${labelText(answer.label)}, ${percent(explanation.probabilities[chosen])}.`;
  const notes = [];
  if (!explanation.terms.length) notes.push("No word of the text is known: these are the class shares in training.");
  if (answer.outOfScope !== undefined) {
    notes.push(`The text is stranger than ${percent(answer.outOfScope)} of the texts held out of training.`);
  }
  element("note").textContent = notes.join(" ");
  element("note").hidden = !notes.length;
  showOne();
  element("one").hidden = false;
}

function showOne() {
  const { probabilities, classes } = explanation;
  const order = [...classes.keys()].sort((a, b) => probabilities[b] - probabilities[a] || a - b);
  const shown = allClasses ? order : order.filter((place, rank) => rank < SHOWN_CLASSES || place === chosen);
  element("classes").replaceChildren(...shown.map(classRow));
  element("more").hidden = shown.length === order.length;
  element("explained").textContent = String(classes[chosen]);
  showText();
  showTerms();
  const unknown = explanation.unknown.slice(0, 20).join(", "), more = explanation.unknown.length - 20;
  element("unknown").textContent = unknown && `Not seen in training: ${unknown}${more > 0 ? ` and ${more} more` : ""}.`;
}

function classRow(place) {
  const share = explanation.probabilities[place], fill = make("span");
  fill.style.width = `${100 * share}%`;
  const bar = make("span", { className: "bar", ariaHidden: "true" }, fill);
  const name = make("span", { className: "name", textContent: String(explanation.classes[place]) });
  const number = make("span", { className: "share", textContent: percent(share) });
  const button = make("button", { type: "button", ariaPressed: String(place === chosen) }, name, bar, number);
  button.dataset.place = place;
  button.addEventListener("click", () => {
    chosen = place;
    showOne();
    element("classes").querySelector(`[data-place="${place}"]`)?.focus();
  });
  return make("li", {}, button);
}

/** The text in pieces, each with its part in the score of the class; where tokens overlap, it is of both. */
function pieces() {
  const { text, spans, classes } = explanation, shares = explanation.shares(classes[chosen]);
  const cuts = [...new Set([0, text.length, ...spans.flat()])].sort((a, b) => a - b);
  const places = new Map(cuts.map((cut, place) => [cut, place])), parts = new Float64Array(cuts.length);
  spans.forEach(([begin, end], token) => {
    const share = shares[token] / (end - begin);
    for (let i = places.get(begin); cuts[i] < end; i++) parts[i] += share * (cuts[i + 1] - cuts[i]);
  });
  return cuts.slice(0, -1).map((cut, i) => [text.slice(cut, cuts[i + 1]), parts[i]]);
}

function showText() {
  const found = pieces(), largest = found.reduce((most, [, part]) => Math.max(most, Math.abs(part)), 0) || 1;
  const shown = document.createDocumentFragment();
  let plain = ""; // what is not marked, up to the next mark
  for (const [piece, part] of found) {
    const level = Math.round((part / largest) * LEVELS);
    if (!level) {
      plain += piece;
      continue;
    }
    const className = `${level > 0 ? "f" : "a"}${Math.abs(level)}`;
    shown.append(plain, make("mark", { className, title: signed(part), textContent: piece }));
    plain = "";
  }
  shown.append(plain);
  element("marked").replaceChildren(shown);
}

function showTerms() {
  const { terms, contributions, own, neighbours, spelling, classes } = explanation, n = classes.length;
  const part = (matrix, i) => matrix[i * n + chosen];
  const order = [...terms.keys()].sort((a, b) => part(contributions, b) - part(contributions, a) || a - b);
  const kept = order.filter((i) => part(contributions, i) >= SMALLEST).slice(0, TERMS_FOR);
  kept.push(...order.reverse().filter((i) => part(contributions, i) <= -SMALLEST).slice(0, TERMS_AGAINST));
  const lines = kept.map((i) => {
    const near = (neighbours?.[i] ?? []).map((each) => [each.word, each.contributions[chosen]]);
    const total = part(contributions, i), named = near.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, NAMED);
    if (own && spelling) named.push(["its spelling", part(spelling, i)]);
    if (own) named.push(["others", named.reduce((rest, [, value]) => rest - value, total - part(own, i))]);
    const written = named.filter(([, value]) => Math.abs(value) >= SMALLEST);
    const shown = written.map(([word, value]) => `${word} ${signed(value)}`).join(", ");
    return [terms[i], signed(total), own ? signed(part(own, i)) : "", shown];
  });
  lines.push(["bias", signed(explanation.bias[chosen]), "", ""]);
  lines.push(["all terms and bias", signed(explanation.scores[chosen]), "", ""]);
  element("terms").replaceChildren(...lines.map((cells) => tableRow(cells, [1, 2])));
}

function tableRow(cells, numbers) {
  const className = (i) => (numbers.includes(i) ? "number" : "");
  return make("tr", {}, ...cells.map((textContent, i) => make("td", { textContent, className: className(i) })));
}

async function labelLines(lines, mine) {
  const options = abstention();
  rows = [];
  let start = performance.now();
  for (const text of lines) {
    const { label, probabilities, nWords, nUnknown } = model.classify(text, options);
    rows.push([text, label, Math.max(...probabilities), nWords ? nUnknown / nWords : 1]);
    if (performance.now() - start > SLICE) {
      element("status").textContent = `${rows.length.toLocaleString("en")} of ${count(lines.length, "text")} …`;
      await later();
      if (mine !== run) return; // the text has changed
      start = performance.now();
    }
  }
  const shown = rows.slice(0, SHOWN_ROWS);
  element("rows").replaceChildren(
    ...shown.map(([text, label, share]) => tableRow([text, labelText(label), percent(share)], [2])),
  );
  const isCut = rows.length > shown.length;
  element("shown").textContent = isCut ? `The first ${count(shown.length, "text")} are shown.` : "";
  element("status").textContent = `${count(rows.length, "text")}, one per line.`;
  element("many").hidden = false;
}

function asCsv() {
  const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  // A separator that no label has in it, so that the labels of a text can be told apart again.
  const separator = [";", "|", "/", "\n"].find((mark) => !model.classes.some((name) => String(name).includes(mark)));
  const lines = rows.map(([text, label, share, unknown]) => {
    const shown = label === null ? "" : Array.isArray(label) ? label.join(separator) : String(label);
    return [text, shown, share.toFixed(6), unknown.toFixed(6)].map(quoted).join(",");
  });
  return ["text,label,confidence,unknown_words", ...lines, ""].join("\n");
}

function download() {
  const url = URL.createObjectURL(new Blob([asCsv()], { type: "text/csv" }));
  make("a", { href: url, download: "labels.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

async function start() {
  const data = element("model"), begin = performance.now();
  model = TextModel.fromBuffer(await unpack(data.textContent));
  data.remove();
  document.documentElement.dataset.loaded = Math.round(performance.now() - begin);
  element("abstention").hidden = !model.canAbstain;
  element("text").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, PAUSE);
  });
  element("text").addEventListener("paste", (event) => {
    const pasted = event.clipboardData?.getData("text/plain") ?? "", isEmpty = !element("text").value.trim();
    if (isEmpty) element("lines").checked = pasted.split(/\r\n|\r|\n/).filter((line) => line.trim()).length > 1;
  });
  element("lines").addEventListener("change", update);
  element("abstain").addEventListener("change", update);
  element("clear").addEventListener("click", () => {
    element("text").value = "";
    element("lines").checked = false;
    update();
    element("text").focus();
  });
  element("more").addEventListener("click", () => {
    allClasses = true;
    showOne();
    element("classes").querySelector("button").focus();
  });
  element("download").addEventListener("click", download);
  await update();
}

start().catch((error) => {
  element("status").textContent = `The model cannot be loaded: ${error.message}`;
});
