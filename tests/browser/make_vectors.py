"""Models made by hand and what Python says of texts: ``python tests/browser/make_vectors.py`` writes vectors.json.

Python, Node and Chromium are held to this file. The models are the same bits on every machine: nothing is fitted.
"""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from wgcn import TextModel
from wgcn.explain.explanation import Split
from wgcn.explain.render import find_tokens
from wgcn.scoring.scorer import Scorer
from wgcn.scoring.spelling import Spelling
from wgcn.text.ngrams import ngrams
from wgcn.text.subwords import subword_hashes
from wgcn.text.tokenize import TOKENIZERS
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting
from wgcn.trust.abstention import Trust
from wgcn.trust.scope import Scope

FILE = Path(__file__).with_name("vectors.json")

TEXTS = [
    "",
    " \t\n",
    "Don't panic: the DOG'S dinner, rock 'n' roll, 'quoted' and o''neil's ''",
    "naïve café №7 — déjà-vu; e\u0301te\u0301 CAFE\u0301 \u0301alone",  # composed, decomposed, a mark without a letter
    "İstanbul ISTANBUL ıstanbul İİ straße STRASSE ẞ ﬁne ǅ Ǆ K Å",
    "ΟΔΥΣΣΕΥΣ ΣΑΣ Σ ΑΣ' ΑΣ\u0301 ΑΣ\u00adΑ Α.Σ Σ\u0301Σ 𐐀Σ Σ𐐀",  # sigma: final, inside, beside what is ignorable
    "l’été d’or l'hiver it’s ’tis rock’",
    "👍🏽 👩‍💻 ❤️ 🇫🇷🇩🇪🇫 1️⃣ #️⃣ ★✓ a👍b 👩‍ 💻 🏴󠁧󠁢󠁥󠁮󠁧󠁿 👍👍",
    "हिन्दी भाषा தமிழ் العَرَبِيَّة עִבְרִית می‌خواهم क्‍ष",
    "我喜欢Python, ภาษาไทย 3 年! カタカナ と ひらがな が ゝ 〇 𠀀𠀁 か\u3099",
    "x_1 __init__ 3.14 1,000 ½ ² Ⅷ ٣ 42nd v2.0-rc1",
    "\ud800 lone \udfff surrogates a\udc00b 𝐁𝐨𝐥𝐝 𐐀𐐁 𞤀",
    "It's good, isn't it? (Yes!) they'd we'll I've N'T n't ` 'll",
    "unseen unforeseen seeming seems redder reddest blueish bluest unblued " + "x" * 64 + " " + "y" * 65,
    "the the the red red wine and the red car of the the",
    "<script>alert('x')</script> <b onclick=\"x\">bold</b> &amp; </textarea>",
    "Red wine with cheese. White wine, fruit and bread; a glass of the red wine.",
    "A fast car with brakes and gears, a slow car of lights and seats: the car.",
    "\x01\x7f\x80\u2028line\u2029paragraph\u0085next\ufefftext\u200bzero\u2060width",
    "red wine " * 80 + "and a fast car",  # long: its lead counts
    "fast car " * 45 + "zebra " + "red wine with cheese " * 20,
]
TRAINED = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 17]  # the texts that the vocabularies are made of
EXPLAINED = [0, 2, 3, 4, 7, 9, 12, 13, 14, 15, 16]
CLASSES = {
    "words": ["drink", "drive", "<i>other</i>"],
    "characters": [7, -3],
    "text_gcn": ["a", "b"],
    "tags": ["x", "y"],
}


def numbers(n: int, factor: int, size: int = 1024) -> Any:
    """Numbers between -1 and 1 that are exact in half precision."""
    return ((np.arange(n, dtype=np.int64) * factor + 17 * factor) % 2001 // 4 * 4 - 1000) / size


def made(name: str) -> TextModel:
    """Return one of the models."""
    tokenizer = {"tags": "words"}.get(name, name)
    ngram_range = {"words": (1, 2), "characters": (1, 3), "text_gcn": (2, 3), "tags": (1, 1)}[name]
    found = [ngrams(TOKENIZERS[tokenizer](TEXTS[i]), ngram_range) for i in TRAINED]
    stopped = ("the", "of", "nosuchword") if name == "words" else ()
    terms = [term for i, term in enumerate(dict.fromkeys(chain(*found))) if i % 4 or " " in term]
    terms = [term for term in terms if not {*term.split()} & {*stopped}] + ["the"] * bool(stopped)
    n, n_classes, several = len(terms), len(CLASSES[name]), name == "tags"
    hidden = 4 if name == "text_gcn" else n_classes
    counts = 1 + np.arange(n) * 37 % 90
    idf = (1 + np.arange(n) % 53 / 16).astype(np.float32)
    table = numbers(n * hidden, 7919).reshape(n, hidden).astype(np.float32)
    head = (
        numbers(hidden * n_classes, 4241).reshape(hidden, n_classes).astype(np.float32) if name == "text_gcn" else None
    )
    bias, prior = (numbers(n_classes, factor).astype(np.float32) for factor in (577, 911))
    prior = np.abs(prior) / np.abs(prior).sum()
    scorer = Scorer(table, head, bias, prior, 1.0 if head is not None else 2.5, several)
    weighting = TermWeighting(idf, name != "characters", "l1" if name == "characters" else "l2", 20 * (name == "words"))
    parts: dict[str, Any] = {"stop_words": stopped}
    if name in ("words", "tags"):
        hashes = np.unique(subword_hashes([*terms, "seen", "reds"])[0])[::2]
        rows = numbers(len(hashes) * hidden, 3571, 4096).reshape(-1, hidden).astype(np.float16)
        parts["spelling"] = Spelling(hashes, rows, 2.5)
    if name == "words":
        words = np.flatnonzero([" " not in term for term in terms])[::2].astype(np.int32)
        near = (np.arange(3 * len(words)) * 11 % len(words)).astype(np.int32).reshape(-1, 3)
        own, strengths = numbers(3 * len(words), 1009), numbers(3 * len(words), 2003, 8192)
        strengths[::7] = 0
        parts["split"] = Split(
            words, *(a.reshape(-1, 3).astype(t) for a, t in ((own, "f2"), (near, "i4"), (strengths, "f2")))
        )
        scope = Scope(np.array([[3, 0.5, 4], [0.2, 0.01, 0.5], [-1, 0.25, 1], [0.4, 0.125, 0]]), np.arange(-20, 20) / 8)
        parts["trust"] = Trust(np.arange(60) / 64, np.ones(60), scope)
        parts["report"] = {"extended": [{"how": "texts", "words": 3, "texts": 2}]}
    vocabulary, classes = Vocabulary(terms, counts, np.minimum(counts, 20)), np.array(CLASSES[name])
    return TextModel(tokenizer, ngram_range, vocabulary, weighting, scorer, classes, **parts)


def utf16(text: str, spans: list[tuple[int, int]]) -> list[list[int]]:
    """Return places in a text as JavaScript counts them."""
    places = [0]
    for character in text:
        places.append(places[-1] + (2 if ord(character) > 0xFFFF else 1))
    return [[places[begin], places[end]] for begin, end in spans]


def explained(model: TextModel, text: str) -> dict[str, Any]:
    """Return an explanation as lists."""
    why = model.explain([text])[0]
    spans = find_tokens(text, why.tokens)
    return {
        "terms": why.terms,
        "weights": why.weights.tolist(),
        "contributions": why.contributions.ravel().tolist(),
        "bias": why.bias.tolist(),
        "tokens": why.tokens,
        "spans": spans and utf16(text, spans),
        "holders": why.holders,
        "unknown": why.unknown,
        "own": None if why.own is None else why.own.ravel().tolist(),
        "neighbours": why.neighbours and [[[word, part.tolist()] for word, part in near] for near in why.neighbours],
        "spelling": None if why.spelling is None else why.spelling.ravel().tolist(),
        "top": [list(map(list, why.top(n=3, against=against))) for against in (False, True)],
        "shares": why.shares().tolist(),
    }


def answers(model: TextModel) -> list[dict[str, Any]]:
    """Return all that a model says of the texts."""
    scores, several = model.scores(TEXTS), model.scorer.multilabel
    rows: list[dict[str, Any]] = []
    for i, (text, decided) in enumerate(zip(TEXTS, model.scorer.decide(scores), strict=True)):
        label = model.classes[decided != 0].tolist() if several else model.classes.tolist()[decided]
        terms = model.terms([text])
        row = {"label": label, "scores": scores[i].tolist(), "probabilities": model.predict_proba([text])[0].tolist()}
        row |= {"nWords": terms.n_words, "nUnknown": terms.n_new}
        if model.trust is not None:
            row["outOfScope"] = float(model.out_of_scope([text])[0])
            row["set"], row["abstained"] = model.predict_set([text], 0.8)[0], model.predict([text], abstain=0.6)[0]
        if i in EXPLAINED:
            row["explanation"] = explained(model, text)
        rows.append(row)
    return rows


def vectors() -> dict[str, Any]:
    """Return what the file holds."""
    tokens = {name: [function(text) for text in TEXTS] for name, function in TOKENIZERS.items()}
    return {"texts": TEXTS, "tokens": tokens, "models": {name: answers(made(name)) for name in CLASSES}}


if __name__ == "__main__":
    lines = json.dumps(vectors(), separators=(",", ":")).replace('{"label"', '\n{"label"')
    FILE.write_text(lines.replace('"models"', '\n"models"') + "\n")
