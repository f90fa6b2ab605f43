"""The source of the text sets, the repository yao8839836/text_gcn, and of the stop words, the data of NLTK.

There are no published digests of the files in the repository. Instead, a digest of the converted documents is pinned
(`wgcn_paper.datasets.layout.text_digest`) and compared before anything is written.
"""

from __future__ import annotations

import numpy as np

from wgcn.base.errors import InputError
from wgcn_paper.datasets.dataset import Dataset

# Characters that end a line or a field.
_BREAKS = {ord(character): " " for character in "\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}


def listing_name(source: str) -> str:
    """Return the path of the file that lists the documents of a set."""
    return f"data/{source}.txt"


def corpus_name(source: str) -> str:
    """Return the path of the file that has their texts."""
    return f"data/corpus/{source}.txt"


def convert(name: str, listing: bytes, corpus: bytes, origin: str) -> Dataset:
    r"""Return a text set from the two files that hold it, in UTF-8 or else in Latin-1.

    Both have one line per document, in the same order: ``id TAB split TAB label``, and the text. In the result,
    training documents come first. `origin` is where they are from, for messages.

    Examples
    --------
    >>> pets = convert("pets", b"0\ttest\tdog\n1\ttraining\tcat\n", b"It barks.\nIt purrs.\n", "an example")
    >>> pets.texts, pets.labels.tolist(), pets.train.tolist()
    (('It purrs.', 'It barks.'), ['cat', 'dog'], [0])
    """
    rows = _lines(listing)
    texts = _lines(corpus)
    if len(rows) != len(texts):
        raise InputError(f"{origin} lists {len(rows):,} documents of '{name}' and has {len(texts):,} texts.")
    parts: dict[str, list[tuple[str, str]]] = {"train": [], "test": []}
    for number, (row, text) in enumerate(zip(rows, texts, strict=True), 1):
        _, split, label = _fields(row)
        part = next((part for part in parts if part in split), None)
        if part is None or not label:
            raise InputError(
                f"{origin}, line {number} of the list of '{name}': {row!r:.80} is not an id, 'train' or 'test', and a "
                "label, with tabs between them."
            )
        parts[part].append((label, text.translate(_BREAKS).strip()))
    documents = [*parts["train"], *parts["test"]]
    n_train = len(parts["train"])
    return Dataset(
        name,
        tuple(text for _, text in documents),
        None,
        np.array([label for label, _ in documents], dtype=np.str_),
        np.arange(n_train, dtype=np.int64),
        np.arange(n_train, len(documents), dtype=np.int64),
    )


def _fields(row: str) -> tuple[str, str, str]:
    fields = row.strip().split("\t")
    return (fields[0], fields[1], fields[2].strip()) if len(fields) == 3 else ("", "", "")


def _lines(data: bytes) -> list[str]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text.removesuffix("\n").split("\n") if text else []
