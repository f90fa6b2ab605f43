// Holds wgcn.js to vectors.json, in Node and in browsers. In Node: node check.mjs vectors.json FOLDER_WITH_PACKAGES

const CLOSE = 1e-6;

/** All differences between what is given and what is expected, as lines. */
function differences(where, given, expected) {
  if (expected === null || given === null || typeof expected !== "object") {
    const isNumber = typeof expected === "number" && typeof given === "number";
    const same = isNumber ? Math.abs(given - expected) <= CLOSE : given === expected;
    return same ? [] : [`${where}: ${JSON.stringify(given)} instead of ${JSON.stringify(expected)}`];
  }
  const list = Array.from(given ?? []);
  if (list.length !== expected.length) return [`${where}: ${JSON.stringify(list)}, not ${JSON.stringify(expected)}`];
  return expected.flatMap((each, i) => differences(`${where}[${i}]`, list[i], each));
}

function checkExplanation(where, why, expected) {
  const found = [];
  for (const [name, value] of Object.entries(expected)) {
    if (name === "spans" && value === null) continue; // Python does not know where they are
    let given = why[name];
    if (name === "neighbours") given &&= given.map((near) => near.map((each) => [each.word, each.contributions]));
    if (name === "top") given = [why.top(null, 3), why.top(null, 3, true)];
    if (name === "shares") given = why.shares();
    found.push(...differences(`${where}.${name}`, given, value));
  }
  return found;
}

/** Check one model; `name` is its name in the vectors. */
export function check(name, model, vectors) {
  const found = [];
  vectors.texts.forEach((text, i) => {
    const expected = vectors.models[name][i], where = `${name}[${i}]`, answer = model.classify(text);
    found.push(...differences(`${where}.tokens`, model.tokenize(text), vectors.tokens[model.header.tokenizer][i]));
    for (const key of ["label", "scores", "probabilities", "nWords", "nUnknown"]) {
      found.push(...differences(`${where}.${key}`, answer[key], expected[key]));
    }
    found.push(...differences(`${where}.predict`, model.predict(text), expected.label));
    if ("set" in expected) {
      const { label, outOfScope } = model.classify(text, { abstain: 0.6 });
      found.push(...differences(`${where}.abstained`, label, expected.abstained));
      found.push(...differences(`${where}.outOfScope`, outOfScope, expected.outOfScope));
      found.push(...differences(`${where}.set`, model.predictSet(text, 0.8), expected.set));
    }
    if (expected.explanation) found.push(...checkExplanation(where, model.explain(text), expected.explanation));
  });
  return found;
}

/** Scores of texts, for a comparison of all bits. */
export const scoresOf = (model, texts) => texts.map((text) => Array.from(model.scores(text)));

if (typeof process !== "undefined" && process.argv[2]) {
  const { readFileSync } = await import("node:fs");
  const { pathToFileURL } = await import("node:url");
  const given = JSON.parse(readFileSync(process.argv[2], "utf-8")), folder = pathToFileURL(`${process.argv[3]}/`);
  const answer = {};
  for (const name of Object.keys(given.models)) {
    const { load } = await import(new URL(`${name}/index.js`, folder));
    const model = await load();
    answer[name] = Array.isArray(given.models[name]) ? check(name, model, given) : scoresOf(model, given.texts);
  }
  process.stdout.write(JSON.stringify(answer));
}
