// The model of this folder.

import { TextModel } from "./wgcn.js";

export { Explanation, TextModel } from "./wgcn.js";

/** Load the model, by default from `model.bin` beside this file: in a browser with fetch, in Node from the disk. */
export async function load(url = new URL("./model.bin", import.meta.url)) {
  const place = new URL(url, import.meta.url);
  if (place.protocol === "file:" && typeof process !== "undefined") {
    const { readFile } = await import("node:fs/promises");
    const { buffer, byteOffset, byteLength } = await readFile(place);
    return TextModel.fromBuffer(buffer.slice(byteOffset, byteOffset + byteLength));
  }
  const answer = await fetch(place);
  if (!answer.ok) throw new Error(`${place} cannot be read: ${answer.status} ${answer.statusText}.`);
  return TextModel.fromBuffer(await answer.arrayBuffer());
}
