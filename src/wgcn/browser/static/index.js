// The model of this folder.

import { TextModel } from "./wgcn.js";

export { Explanation, TextModel } from "./wgcn.js";

/** Load the model, by default from `model.bin` beside this file: in a browser with fetch, in Node from the disk. */
export async function load(url = new URL("./model.bin", import.meta.url)) {
  const here = import.meta.url; // bundlers would look for files at a URL that is made of it and a variable
  const place = new URL(url, here);
  if (place.protocol === "file:" && typeof process !== "undefined") {
    const files = "node:fs/promises"; // a name that bundlers for browsers do not look for
    const { readFile } = await import(/* webpackIgnore: true */ /* @vite-ignore */ files);
    return TextModel.fromBuffer(await readFile(place));
  }
  const answer = await fetch(place);
  if (!answer.ok) throw new Error(`${place} cannot be read: ${answer.status} ${answer.statusText}.`);
  return TextModel.fromBuffer(await answer.arrayBuffer());
}
