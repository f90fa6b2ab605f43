/** A class, as it was in training. */
export type Label = string | number;

/** A neighbour of a word in the graph, and what it adds to the score of each class through that word. */
export interface Neighbour {
  word: string;
  contributions: Float64Array;
}

export interface Answer {
  /** One label; of a multi-label model a list; null if `abstain` was given and the answer is left out. */
  label: Label | Label[] | null;
  scores: Float32Array;
  /** One per class, in the order of `TextModel.classes`. */
  probabilities: Float64Array;
  /** Words of the text. */
  nWords: number;
  /** Of these, the ones that are not in the vocabulary; they may be read by their spelling. */
  nUnknown: number;
  /** Only if `abstain` was given. */
  outOfScope?: number;
}

export interface Abstention {
  /** Above 0 and below 1: give no label where it is less likely than this, or the text is out of scope. */
  abstain?: number;
}

/** Why a text gets its scores. Matrices have one row per term and one column per class, row after row. */
export declare class Explanation {
  readonly text: string;
  readonly classes: Label[];
  /** Known words and n-grams, each once, then words that only their spelling says something of. */
  readonly terms: string[];
  readonly weights: Float32Array;
  readonly contributions: Float64Array;
  readonly bias: Float32Array;
  readonly scores: Float32Array;
  readonly probabilities: Float64Array;
  readonly label: Label | Label[];
  readonly tokens: string[];
  /** Where each token begins and ends in the text, in UTF-16 code units. */
  readonly spans: [number, number][];
  /** For each token the places in `terms` of the terms that hold it. */
  readonly holders: number[][];
  readonly unknown: string[];
  /** The part of each term itself; null if the model has not kept it. */
  readonly own: Float64Array | null;
  readonly neighbours: Neighbour[][] | null;
  readonly spelling: Float64Array | null;
  /** The place of a class; of the one with the highest score if none is given. */
  place(label?: Label | null): number;
  /** The n terms that speak most for a class, or against it. */
  top(label?: Label | null, n?: number, against?: boolean): [string, number][];
  /** For each token its share of the contributions to a class. */
  shares(label?: Label | null): Float64Array;
}

/** A trained text classifier. */
export declare class TextModel {
  /** Read the table that `wgcn export` wrote: an ArrayBuffer, or bytes such as a Buffer of Node. */
  static fromBuffer(given: ArrayBuffer | ArrayBufferView): TextModel;
  readonly classes: Label[];
  readonly multilabel: boolean;
  /** Whether `abstain` and `outOfScope` are possible. */
  readonly canAbstain: boolean;
  tokenize(text: string): string[];
  scores(text: string): Float32Array;
  probabilities(text: string): Float64Array;
  predict(text: string, options?: Abstention): Label | Label[] | null;
  classify(text: string, options?: Abstention): Answer;
  /** The share of held-out training texts that look less strange than this one. */
  outOfScope(text: string): number;
  /** The labels that are credible, the likeliest first: the right one is among them for the share `coverage`. */
  predictSet(text: string, coverage?: number): Label[];
  explain(text: string): Explanation;
}
