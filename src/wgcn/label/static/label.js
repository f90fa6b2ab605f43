// The labelling page. Texts, words and names are only ever set as text, never as markup.
"use strict";

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const VIEWS = ["label", "list", "classes", "review", "words", "export"];
const PAGE = 50;
const EMPTY = "(This text is empty.)";
const POLL_BUSY = 250, POLL_IDLE = 1200, POLL_HIDDEN = 5000, NOTE = 3000, LONGEST_PRESS = 10000; // milliseconds

const who = sessionStorage.getItem("who") || crypto.getRandomValues(new Uint32Array(2)).join("-");
sessionStorage.setItem("who", who);

let state = { seq: 0, fits: -1, classes: [], doubts: [], estimates: [], status: "preparing" };
let current = null; // the text that is shown
let seen = []; // texts that were shown before it
let begin = 0; // of the page of the list
let listed = new Map(); // by text, the rows of the list
let finding = null; // while a class is sought: for which text, in which view, and the class that is picked
let why = null;
let deciding = false; // on the text that is shown, or a row: a second key must not be taken for it too
let adding = false; // a class
let pressed = null; // while a button is held down, a promise of its release
let request = 0, lists = 0, reviews = 0; // of the text and of the lists, so that a late answer changes nothing
let note = "", noted = 0; // what to say instead of the status, and until when

// Small helpers

function make(name, given = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

// Put new children into an element; what had the focus has it again, if there is something alike.
function redraw(box, children) {
  const active = document.activeElement, inside = active !== box && box.contains(active);
  const alike = () => [...box.querySelectorAll("button")].filter((each) => each.textContent === active.textContent);
  const at = inside ? alike().indexOf(active) : -1;
  box.replaceChildren(...children);
  if (inside) (alike()[at] ?? alike()[0])?.focus({ preventScroll: true });
}

function draw(name, given = {}, text = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(given)) element.setAttribute(key, value);
  if (text != null) element.textContent = text;
  return element;
}

const percent = (share) => `${(100 * share).toFixed(share > 0.995 && share < 1 ? 1 : 0)} %`;
const count = (n) => n.toLocaleString("en");
const place = (number) => state.classes.findIndex((each) => each.id === number);
const named = (number) => state.classes[place(number)]?.name ?? "?";
const colour = (number) => (place(number) < 0 ? "" : `k${place(number) % 10}`);
const keyOf = (i) => (i < 9 ? String(i + 1) : i === 9 ? "0" : "");
const keyless = () => state.classes.length > 10; // whether some classes have no key of their own
const words = (text) => text.split(",").map((word) => word.trim()).filter(Boolean);

const name = (number) => make("bdi", {}, named(number)); // in a sentence, whatever direction its script has

function alertOf(message) {
  $("alert").textContent = message;
}

async function ask(path, body) {
  const given = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, given);
  } catch {
    $("status").dataset.lost = "yes";
    throw new Error("The server does not answer. Is 'wgcn label' still running? Nothing that was labelled is lost.");
  }
  const answer = await response.json();
  await pressed; // a button that is drawn anew while it is held down is never clicked
  if (!response.ok) throw new Error(answer.error?.message ?? `The server answers ${response.status}.`);
  return answer;
}

function onPress(event) {
  if (!event.target.closest("button, a")) return;
  const own = pressed = new Promise((resolve) => {
    for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, () => setTimeout(resolve), { once: true });
    setTimeout(resolve, LONGEST_PRESS);
  }).then(() => { if (pressed === own) pressed = null; });
}

// Run an action of the user, and say what went wrong.
function doing(action) {
  return async (...given) => {
    try {
      alertOf("");
      return await action(...given);
    } catch (error) {
      alertOf(error.message);
      return undefined;
    }
  };
}

// The same for a decision on a text: the second click of a double click would be one on the text that follows.
const once = (action) => doing((event) => (event.detail > 1 ? undefined : action()));

// What changed

async function decide(kind, given = {}) {
  const answer = await ask("/api/decide", { who, kind, ...given });
  take({ ...answer, fits: state.fits, status: state.status === "ready" ? "fitting" : state.status });
  return answer;
}

function take(answer) {
  const before = state;
  state = { ...state, ...answer };
  if (answer.classes) show();
  else showStatus();
  return before;
}

async function poll() {
  let wait = document.hidden ? POLL_HIDDEN : POLL_IDLE;
  try {
    const answer = await ask(`/api/state?seq=${state.seq}&fits=${state.fits}`);
    if ($("status").dataset.lost) { delete $("status").dataset.lost; alertOf(""); }
    const before = take(answer);
    if (answer.fits !== before.fits) await afterFit();
    else if (answer.seq !== before.seq && view() === "review") await review();
    if (answer.status === "fitting" || answer.status === "preparing") wait = POLL_BUSY;
  } catch (error) {
    $("status").dataset.lost = "yes";
    alertOf(error.message);
  }
  setTimeout(poll, wait);
}

async function afterFit() {
  if (current) {
    const fresh = await ask(`/api/text/${current.text}`);
    if (current && fresh.text === current.text) { current = fresh; showCard(); await explain(); }
  } else if (state.classes.length) await next();
  if (view() === "list") await list();
  if (view() === "review") await review();
}

// Everything beside the text

function show() {
  document.title = `${state.project} – wgcn label`;
  $("project").textContent = state.project;
  const skipped = state.skipped ? `, ${count(state.skipped)} skipped` : "";
  $("progress").textContent = `${count(state.labelled)} of ${count(state.texts)} texts labelled${skipped}`;
  const started = state.classes.length >= 2, form = $("add"), above = started ? $("actions") : $("start");
  $("start").hidden = started;
  if (form.previousElementSibling !== above && !form.contains(document.activeElement)) above.after(form);
  showChoices();
  showShares();
  showChart();
  showFilter();
  $("n-doubts").hidden = !state.doubts.length;
  $("n-doubts").textContent = state.doubts.length;
  $("command").textContent = state.command;
  showStatus();
  if (view() === "classes") classCards();
  if ($("find").open) showFound();
}

function showStatus() {
  const busy = state.status === "fitting" || state.status === "preparing";
  const known = state.fitted?.quick_seconds;
  let text = {
    preparing: "Reading the texts …",
    fitting: "The model is learning …",
    failed: state.trouble,
    ready: known ? `The model knows ${count(state.fitted.n_labels)} labels (${known.toFixed(1)} s).`
      : "Ready. The model needs labels or seed words of two classes.",
  }[state.status];
  if (Date.now() < noted) text = note;
  if ($("status").textContent !== text) $("status").textContent = text;
  $("status").className = busy ? "busy" : state.status === "failed" ? "failed" : "";
}

function showChoices() {
  const focused = document.activeElement?.closest?.(".choice")?.dataset.id;
  $("choices").replaceChildren(...state.classes.map((each, i) => {
    const chosen = current?.label === each.id;
    const guessed = current?.guess === each.id && current?.label == null;
    return make("button", {
      type: "button", class: `choice ${colour(each.id)}${guessed ? " guessed" : ""}`, "aria-pressed": String(chosen),
      "data-id": each.id, onclick: once(() => label(each.id)), disabled: !current,
      "aria-keyshortcuts": keyOf(i) || null,
    }, keyOf(i) ? make("kbd", { "aria-hidden": "true" }, keyOf(i)) : null, make("span", {}, each.name));
  }));
  if (focused) $("choices").querySelector(`[data-id="${focused}"]`)?.focus();
  $("find-button").hidden = !keyless();
}

function wordButtons(list) {
  return list.map((word) => make("button", { type: "button", class: "link", onclick: () => walk(word) }, word));
}

function showShares() {
  redraw($("shares"), state.classes.map((each) => {
    const bar = make("div");
    bar.style.width = `${100 * (each.share ?? 0)}%`;
    const share = each.share == null ? "" : ` · ${percent(each.share)} of texts`;
    return make("li", { class: colour(each.id) },
      make("div", { class: "head" }, make("span", { class: `tag ${colour(each.id)}` }, each.name),
        make("span", { class: "quiet" }, `${count(each.labels)} ${each.labels === 1 ? "label" : "labels"}${share}`)),
      make("div", { class: "bar", "aria-hidden": "true" }, bar),
      each.words.length ? make("p", { class: "words" }, ...wordButtons(each.words.slice(0, 8))) : null);
  }));
}

function showChart() {
  const points = state.estimates.slice(-200), last = points[points.length - 1];
  $("chart").toggleAttribute("hidden", !last);
  $("chart").replaceChildren();
  if (!last) {
    $("accuracy").textContent = "Not known yet: it needs a few labels of each class.";
    return;
  }
  $("accuracy").textContent = `${percent(last.accuracy)} (95 % interval ${percent(last.low)} to ${percent(last.high)}) `
    + `with ${count(last.labels)} labels`;
  const most = Math.max(...points.map((point) => point.labels), 10);
  const x = (n) => 34 + 256 * (n / most), y = (share) => 125 - 112 * share;
  const chart = $("chart");
  for (const share of [0, 0.5, 1]) {
    chart.append(draw("line", { class: "axis", x1: 34, x2: 290, y1: y(share), y2: y(share) }));
    chart.append(draw("text", { class: "small", x: 30, y: y(share) + 3, "text-anchor": "end" }, percent(share)));
  }
  const path = (end) => points.map((point) => `${x(point.labels)},${y(point[end])}`);
  chart.append(draw("polygon", { class: "band", points: [...path("high"), ...path("low").reverse()].join(" ") }));
  chart.append(draw("polyline", { class: "line", points: path("accuracy").join(" ") }));
  chart.append(draw("line", { class: "line", x1: x(last.labels), x2: x(last.labels), y1: y(last.low), y2: y(last.high) }));
  chart.append(draw("circle", { class: "dot", cx: x(last.labels), cy: y(last.accuracy), r: 3.5 }));
  chart.append(draw("text", { class: "small", x: 34, y: 143 }, "0"));
  chart.append(draw("text", { class: "small", x: 290, y: 143, "text-anchor": "end" }, `${count(most)} labels`));
}

function showFilter() {
  const chosen = $("class-filter").value;
  $("class-filter").replaceChildren(make("option", { value: "" }, "any"),
    ...state.classes.map((each) => make("option", { value: each.id }, each.name)));
  $("class-filter").value = chosen;
  if ($("class-filter").selectedIndex < 0) $("class-filter").value = "";
}

// One text

async function open(text, back = false) {
  const wanted = ++request;
  const answer = await ask(`/api/text/${text}`);
  if (wanted === request) put(answer, back);
}

async function next() {
  const wanted = ++request;
  const avoided = [...seen.slice(-3), ...(current ? [current.text] : [])].join(",");
  const answer = await ask(`/api/next?who=${encodeURIComponent(who)}&not=${avoided}`);
  if (wanted === request) put(answer.text == null ? null : answer);
}

function put(answer, back = false) {
  if (current && !back && current.text !== answer?.text) seen.push(current.text);
  seen = seen.slice(-100);
  current = answer;
  why = null;
  deciding = false;
  showCard();
  $("text").scrollTop = 0;
  explain(); // the text is there already
}

function showCard() {
  $("card").hidden = !current;
  $("actions").hidden = !state.texts;
  $("none").hidden = Boolean(current) || !state.texts || state.labelled + state.skipped < state.texts;
  showChoices();
  if (!current) return;
  $("text-title").textContent = `Text ${count(current.text + 1)}`;
  const guess = current.guess == null ? [] : ["Guess: ", name(current.guess), ` (${percent(current.confidence)})`];
  const given = current.label == null ? (current.skipped ? ["Skipped. "] : []) : ["Label: ", name(current.label), ". "];
  $("guess").replaceChildren(...given, ...guess);
  if (!why) { $("text").textContent = current.whole.trim() ? current.whole : EMPTY; $("why").replaceChildren(); }
  $("text-left").hidden = !current.left;
  $("text-left").textContent = current.left ? `${count(current.left)} more characters are not shown.` : "";
}

async function explain() {
  const text = current?.text;
  if (text == null || current.guess == null) return;
  const found = await ask(`/api/why/${text}`).catch(() => null);
  if (!found || current?.text !== text) return;
  why = found;
  if (why.likely?.length) [current.guess, current.confidence] = why.likely[0]; // of a fit that may be newer
  showCard();
  if (current.whole.trim()) $("text").replaceChildren(...why.pieces.map(([piece, level]) => {
    if (!level) return document.createTextNode(piece);
    return make("span", { class: level > 0 ? `l${Math.min(level, 4)}` : `m${Math.min(-level, 4)}` }, piece);
  }));
  const line = (title, list) => (list?.length
    ? make("p", {}, make("span", { class: "quiet" }, ...title, " "), ...wordButtons(list.map(([term]) => term))) : null);
  redraw($("why"), [
    line(["For ", name(why.label), ":"], why.for), line(["Against:"], why.against?.slice(0, 5)),
    why.likely?.length > 2 ? make("p", { class: "quiet" },
      ...why.likely.slice(0, 3).flatMap(([number, chance], i) => [i ? " · " : "", name(number), ` ${percent(chance)}`])) : null,
  ].filter(Boolean));
}

async function decideAndGoOn(kind, given = {}) {
  if (!current || deciding) return;
  deciding = true;
  try {
    await decide(kind, { text: current.text, ...given });
    await next();
  } finally {
    deciding = false;
  }
}

const label = (number) => decideAndGoOn("label", { label: number });

async function undo() {
  const answer = await decide("undo");
  const what = answer.undone;
  [note, noted] = [`Undone: ${what.kind}.`, Date.now() + NOTE];
  showStatus();
  if (what.text != null && view() === "label") await open(what.text);
  if (view() === "list") await list();
  if (view() === "review") await review();
}

const ACTIONS = {
  g: async () => { if (current?.guess != null) await label(current.guess); },
  s: () => decideAndGoOn("skip"),
  u: undo,
  x: async () => { if (current) { await decide("unlabel", { text: current.text }); await open(current.text, true); } },
  p: async () => { if (seen.length) await open(seen.pop(), true); },
  n: next,
  f: find,
};

// A class by the beginning of its name, for the text that is shown or the row that has the focus

const plain = (name) => name.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

function find() {
  const row = document.activeElement?.dataset?.text, where = view();
  const text = where === "list" ? row && Number(row) : current?.text;
  if (text == null) throw new Error("A class is given to a text, and none is chosen. Move to a row of the list first.");
  if (!state.classes.length) throw new Error("There is no class yet. Add one first.");
  finding = { text, where, picked: null };
  $("find-for").textContent = `for text ${count(text + 1)}`;
  $("find-name").value = "";
  showFound();
  $("find").showModal();
}

// The classes of which a word begins with what was typed, those first of which the name does, and then those that have it inside.
function found() {
  const typed = plain($("find-name").value.trim());
  const rank = (name) => (name.startsWith(typed) ? 0 : name.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(typed)) ? 1
    : name.includes(typed) ? 2 : 3);
  return state.classes.map((each) => [rank(plain(each.name)), each]).filter(([rank]) => rank < 3)
    .sort((one, other) => one[0] - other[0]).map(([, each]) => each);
}

function showFound() {
  const classes = found();
  if (!classes.some((each) => each.id === finding.picked)) finding.picked = classes[0]?.id ?? null;
  $("find-list").replaceChildren(...classes.map((each) => make("li", {
    role: "option", id: `find-${each.id}`, class: `tag ${colour(each.id)}`, "aria-selected": String(each.id === finding.picked),
    onclick: () => choose(each.id),
  }, each.name)));
  $("find-list").hidden = !classes.length;
  $("find-name").setAttribute("aria-expanded", String(classes.length > 0));
  if (classes.length) $("find-name").setAttribute("aria-activedescendant", `find-${finding.picked}`);
  else $("find-name").removeAttribute("aria-activedescendant");
  $("find-list").querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  const told = classes.length ? `${count(classes.length)} of ${count(state.classes.length)} classes` : "No class is named so.";
  if ($("find-note").textContent !== told) $("find-note").textContent = told;
}

function onFindKey(event) {
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }, classes = found();
  if (event.isComposing || !(event.key === "Enter" || event.key in steps)) return;
  event.preventDefault();
  if (!classes.length) return;
  const at = classes.findIndex((each) => each.id === finding.picked), to = at + (steps[event.key] ?? 0);
  if (event.key === "Enter") { choose(classes[at].id); return; }
  const last = classes.length - 1, around = Math.abs(to - at) === 1;
  finding.picked = classes[around ? (to + classes.length) % classes.length : Math.min(Math.max(to, 0), last)].id;
  showFound();
}

const choose = doing((number) => {
  const { text, where } = finding;
  $("find").close();
  if (where === "list") return labelRow(text, number);
  return current?.text === text ? label(number) : undefined;
});

async function addClass(event) {
  event.preventDefault();
  const given = words($("add-seeds").value);
  if (adding) return;
  adding = true;
  const answer = await decide("add", { value: $("add-name").value }).finally(() => { adding = false; });
  $("add-name").value = "";
  $("add-name").focus();
  if (given.length) await decide("seeds", { label: answer.decided.label, value: JSON.stringify(given) });
  $("add-seeds").value = "";
  if (!current) await next();
}

// The list

async function list() {
  const [from, to] = ($("confidence").value || "0,1").split(",");
  const asked = new URLSearchParams({
    query: $("query").value, show: $("show").value, label: $("class-filter").value, from, to, sort: $("sort").value,
    begin, limit: PAGE,
  });
  const wanted = ++lists, answer = await ask(`/api/texts?${asked}`);
  if (wanted !== lists) return;
  if (begin >= answer.total && begin > 0) { begin = 0; await list(); return; }
  listed = new Map(answer.rows.map((row) => [row.text, row]));
  const last = Math.min(begin + PAGE, answer.total);
  $("total").textContent = answer.total
    ? `Texts ${count(begin + 1)} to ${count(last)} of ${count(answer.total)}` : "No text is like that.";
  $("page-back").disabled = begin === 0;
  $("page-on").disabled = last >= answer.total;
  const focused = document.activeElement?.dataset?.text;
  $("rows").replaceChildren(...answer.rows.map(listRow));
  if (focused) $("rows").querySelector(`[data-text="${focused}"]`)?.focus();
}

function listRow(row) {
  const label = row.label ?? row.guess;
  const told = row.label != null ? [named(row.label)]
    : row.guess != null ? [name(row.guess), `? ${percent(row.confidence)}`] : row.skipped ? ["skipped"] : [];
  return make("li", {},
    make("button", {
      type: "button", class: "open", "data-text": row.text, onclick: doing(() => { go("label"); return open(row.text); }),
    }, make("span", { class: "number" }, count(row.text + 1)), row.begins || "(empty)"),
    make("span", { class: `tag ${label == null ? "" : colour(label)}` }, ...told));
}

async function labelRow(text, number) {
  if (deciding) return;
  deciding = true;
  const row = $("rows").querySelector(`[data-text="${text}"]`);
  const following = row?.closest("li").nextElementSibling?.querySelector(".open");
  try {
    await decide("label", { text, label: number });
    await list();
  } finally {
    deciding = false;
  }
  const target = following && $("rows").querySelector(`[data-text="${following.dataset.text}"]`);
  (target || $("rows").querySelector(".open"))?.focus();
}

// Classes

const cards = new Map(); // by class, its card and what it was made of

// A card stays as long as its class does: what somebody has typed or chosen in it is not sent yet.
function classCards() {
  const box = $("class-cards"), made = state.classes.map((each) => {
    const of = JSON.stringify([each.name, each.seeds, colour(each.id)]);
    if (cards.get(each.id)?.of !== of) cards.set(each.id, { of, card: classCard(each) });
    const { card } = cards.get(each.id), shown = card.querySelector(".words");
    if (shown.dataset.words !== each.words.join()) redraw(shown, wordButtons(each.words));
    shown.dataset.words = each.words.join();
    return card;
  });
  for (const card of [...box.children]) if (!made.includes(card)) card.remove();
  made.forEach((card, i) => { if (box.children[i] !== card) box.insertBefore(card, box.children[i] ?? null); });
  const { problems = [], seed_note: note = "" } = state.fitted ?? {};
  const told = state.classes.length ? [...problems, note].filter(Boolean) : ["There is no class yet."];
  $("class-note").hidden = !told.length;
  $("class-note").textContent = told.join(" ");
}

function classCard(each) {
  const name = make("input", { value: each.name, maxlength: 100 });
  const seeds = make("input", { value: each.seeds.join(", "), maxlength: 2000 });
  const into = make("select", { required: true, onfocus: fill, onpointerdown: fill }, make("option", { value: "" }, "choose a class"));
  // Only when it is used: all of these of 200 classes have 40,000 options.
  function fill() {
    const known = new Set([...into.options].map((option) => option.value));
    for (const other of state.classes) {
      if (other.id !== each.id && !known.has(String(other.id))) into.append(make("option", { value: other.id }, other.name));
    }
    for (const option of [...into.options].slice(1)) {
      if (place(Number(option.value)) < 0) option.remove();
      else option.textContent = named(Number(option.value));
    }
  }
  const after = (action) => doing(async (event) => {
    event.preventDefault();
    await action();
    classCards();
  });
  return make("div", { class: "card" },
    make("h2", { class: `tag ${colour(each.id)}` }, each.name),
    make("p", { class: "words" }),
    make("form", { class: "row", onsubmit: after(() => decide("rename", { label: each.id, value: name.value })) },
      make("label", {}, "Name", name), make("button", {}, "Rename")),
    make("form", {
      class: "row", onsubmit: after(() => decide("seeds", { label: each.id, value: JSON.stringify(words(seeds.value)) })),
    }, make("label", {}, "Seed words", seeds), make("button", {}, "Keep")),
    make("form", { class: "row", onsubmit: after(() => decide("merge", { label: each.id, value: into.value })) },
      make("label", {}, "Merge into", into), make("button", {}, "Merge")));
}

// Review

async function review() {
  const doubts = state.doubts.slice(0, 20), wanted = ++reviews;
  const answer = doubts.length ? await ask(`/api/texts?ids=${doubts.map((doubt) => doubt.text).join(",")}`) : { rows: [] };
  if (wanted !== reviews) return;
  const begins = new Map(answer.rows.map((row) => [row.text, row.begins])), active = document.activeElement;
  const [focused, at] = [active?.dataset.doubt, [...$("doubts").children].indexOf(active?.closest("#doubts li"))];
  const deciding = (kind, doubt, number) => ({
    type: "button", "data-doubt": kind,
    onclick: once(async () => { await decide(kind, { text: doubt.text, label: number }); await review(); }),
  });
  $("doubts").replaceChildren(...doubts.map((doubt) => make("li", {},
    make("button", {
      type: "button", class: "open", "data-doubt": "open", onclick: doing(() => { go("label"); return open(doubt.text); }),
    }, make("span", { class: "number" }, count(doubt.text + 1)), begins.get(doubt.text) ?? ""),
    make("div", { class: "row" },
      make("span", { class: `tag ${colour(doubt.label)}` }, "Label: ", name(doubt.label)),
      make("span", { class: "quiet" }, `${percent(doubt.score)} doubt`),
      make("button", deciding("label", doubt, doubt.suggestion), "Change to ", name(doubt.suggestion)),
      make("button", deciding("keep", doubt, doubt.label), "Keep the label")))));
  if (focused) ($("doubts").children[Math.min(at, doubts.length - 1)]?.querySelector(`[data-doubt="${focused}"]`) ?? $("main")).focus();
  if (!doubts.length) {
    $("doubts").append(make("li", {}, state.estimates.length ? "No label looks wrong."
      : "Nothing to review yet: it needs a few labels of each class."));
  }
}

// Words

function walk(word) {
  $("word").value = word;
  go("words");
  doing(graph)();
}

async function graph() {
  const word = $("word").value.trim();
  if (!word) { $("word-note").textContent = "Type a word, or select one that is listed for a class or below a text."; return; }
  const found = await ask(`/api/word?word=${encodeURIComponent(word)}`);
  const nodes = found.nodes, picture = $("graph");
  picture.replaceChildren();
  if (!nodes.length) {
    $("word-note").replaceChildren("The texts do not have this word. ", ...(found.near.length ? ["Near it: ", ...wordButtons(found.near)] : []));
    return;
  }
  const [wide, high] = matchMedia("(max-width: 34rem)").matches ? [140, 220] : [235, 185];
  picture.setAttribute("viewBox", [-wide - 65, -high - 45, 2 * wide + 130, 2 * high + 90].join(" "));
  const spots = nodes.map((_, i) => {
    if (!i) return [0, 0];
    const angle = (2 * Math.PI * (i - 1)) / (nodes.length - 1) - Math.PI / 2, far = i % 2 ? 1 : 0.68;
    return [wide * far * Math.cos(angle), high * far * Math.sin(angle)];
  });
  const most = Math.max(...found.edges.map((edge) => edge[2]), 1e-9);
  for (const [i, j, weight] of found.edges) {
    picture.append(draw("line", {
      class: "edge", x1: spots[i][0], y1: spots[i][1], x2: spots[j][0], y2: spots[j][1],
      "stroke-width": 0.5 + 3 * (weight / most), opacity: i ? 0.25 : 0.6,
    }));
  }
  nodes.forEach((node, i) => {
    const [x, y] = spots[i], radius = 6 + Math.min(3 * Math.log2(1 + node.texts), 20);
    const about = `${node.word}, in ${count(node.texts)} texts${node.label == null ? "" : `, speaks for ${named(node.label)}`}`;
    const group = draw("g", {
      class: `node ${i ? "" : "centre"} ${node.label == null ? "" : colour(node.label)}`, tabindex: 0, role: "button",
      "aria-label": about, transform: `translate(${x} ${y})`,
    });
    group.append(draw("title", {}, about), draw("circle", { r: radius }), draw("text", { y: -radius - 4 }, node.word));
    group.addEventListener("click", () => walk(node.word));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); walk(node.word); }
    });
    picture.append(group);
  });
  $("word-note").textContent = nodes.length > 1
    ? `“${nodes[0].word}” is in ${count(nodes[0].texts)} texts. A word speaks for the class of its colour. Choose a word to walk on.`
    : "This word has no neighbours.";
}

// Export

async function exportAll() {
  $("export-button").disabled = true;
  $("exported").textContent = "Writing the labels, and fitting the model from the beginning …";
  try {
    const done = await ask("/api/export", {});
    $("exported").textContent = done.accuracy == null ? "Done." : `Done. Estimated accuracy ${percent(done.accuracy)}.`;
    $("exported-to").replaceChildren(make("dt", {}, "Labels"), make("dd", {}, make("code", {}, done.csv)),
      make("dt", {}, "Model"), make("dd", {}, make("code", {}, done.model)));
    $("exported-to").hidden = false;
    $("command").textContent = done.command;
  } catch (error) {
    $("exported").textContent = "";
    throw error;
  } finally {
    $("export-button").disabled = false;
  }
}

// Views and keys

const view = () => (VIEWS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "label");

function go(name) {
  if (view() === name) return;
  location.hash = name;
  uncover(); // at once, so that keys which follow reach what is shown
}

function uncover() {
  for (const name of VIEWS) $(`view-${name}`).hidden = name !== view();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${view()}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

const turned = doing(async () => {
  $("find").close();
  uncover();
  if (view() === "list") await list();
  if (view() === "classes") classCards();
  if (view() === "review") await review();
  if (view() === "words") await graph();
});

const MOVES = { c: "classes", r: "review", w: "words", e: "export" };

function onKey(event) {
  if (event.repeat && (event.key === "Enter" || event.key.length === 1) && !event.target.closest("input")) {
    event.preventDefault(); // a key that is held down decides on one text, not on all that follow
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !$("keys-on").checked || $("help").open || $("find").open) return;
  if (event.target.closest("input, select, textarea") && !event.target.closest("dialog:not([open])")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const key = event.key;
  const digit = /^[0-9]$/.test(key) ? state.classes[(Number(key) + 9) % 10] : undefined;
  const row = document.activeElement?.dataset?.text;
  let action = null;
  if (digit && view() === "list" && row != null) action = () => labelRow(Number(row), digit.id);
  else if (digit && view() === "label") action = () => label(digit.id);
  else if (key === "u") action = undo;
  else if (ACTIONS[key] && (view() === "label" || (key === "f" && view() === "list"))) action = ACTIONS[key];
  else if (key === "a") action = () => { go("label"); $("add-name").focus(); };
  else if (key === "/") action = () => { go("list"); $("query").focus(); };
  else if (key === "l") action = () => go(view() === "label" ? "list" : "label");
  else if (MOVES[key]) action = () => go(MOVES[key]);
  else if (key === "?") action = () => $("help").showModal();
  if (action) { event.preventDefault(); doing(action)(); }
}

function listen() {
  addEventListener("hashchange", turned);
  document.addEventListener("keydown", onKey);
  document.addEventListener("pointerdown", onPress);
  $("help-button").addEventListener("click", () => $("help").showModal());
  $("keys-on").checked = localStorage.getItem("keys") !== "off";
  $("keys-on").addEventListener("change", () => localStorage.setItem("keys", $("keys-on").checked ? "on" : "off"));
  $("add").addEventListener("submit", doing(addClass));
  for (const button of $("actions").children) {
    const key = button.dataset.key;
    button.addEventListener("click", ("gs".includes(key) ? once : doing)(ACTIONS[key]));
  }
  const fresh = doing(async () => { begin = 0; await list(); });
  for (const id of ["show", "class-filter", "confidence", "sort"]) $(id).addEventListener("change", fresh);
  $("find-name").addEventListener("input", () => { finding.picked = null; showFound(); });
  $("find-name").addEventListener("keydown", onFindKey);
  let timer = 0;
  $("query").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(fresh, 250); });
  $("filters").addEventListener("submit", (event) => { event.preventDefault(); fresh(); });
  $("page-back").addEventListener("click", doing(async () => { begin = Math.max(begin - PAGE, 0); await list(); }));
  $("page-on").addEventListener("click", doing(async () => { begin += PAGE; await list(); }));
  $("word-form").addEventListener("submit", (event) => { event.preventDefault(); doing(graph)(); });
  $("export-button").addEventListener("click", doing(exportAll));
  $("columns").hidden = false; // not before: a form that nobody listens to would be sent by the browser itself
}

listen();
turned().then(poll);
