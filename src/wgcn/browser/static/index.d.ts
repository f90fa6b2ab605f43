import { TextModel } from "./wgcn.js";

export * from "./wgcn.js";

/** Load the model, by default from `model.bin` beside this file: in a browser with fetch, in Node from the disk. */
export declare function load(url?: string | URL): Promise<TextModel>;
