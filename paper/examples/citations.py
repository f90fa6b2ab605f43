"""Let new documents bring their citations: their words are averaged with those of what they cite, without training.

Run it with:  python paper/examples/citations.py
The docs corpus has the "See Also" links of docstrings. It prints which share of the test documents is classified right
without and with their links: links help with the first 20 words of a docstring; a whole docstring says enough by
itself, and links gain little or nothing.
"""

import numpy as np

from wgcn import WGCNTextClassifier
from wgcn_paper.datasets import docs_corpus


def main() -> None:
    docs = docs_corpus()
    texts = np.array(docs.texts, dtype=object)
    train, test = texts[docs.train].tolist(), texts[docs.test].tolist()

    # Keep every twentieth label of a class; None marks the texts without.
    labels = docs.labels[docs.train].astype(object)
    for name in docs.classes:
        places = np.flatnonzero(labels == name)
        labels[np.setdiff1d(places, places[::20])] = None
    model = WGCNTextClassifier(min_count=3).fit(train, labels)

    # Entry [i, j] is 1 if test document i lists training document j under "See Also".
    assert docs.document_graph is not None
    links = docs.document_graph[docs.test][:, docs.train]
    print(f"{np.mean(np.diff(links.indptr) > 0):.0%} of the test documents cite a training document")

    beginnings = [" ".join(text.split()[:20]) for text in test]
    for name, new in (("first 20 words", beginnings), ("whole texts", test)):
        alone = model.predict(new)
        attached = model.predict(new, document_graph=links, documents=train)
        right = [np.mean(guess == docs.labels[docs.test]) for guess in (alone, attached)]
        print(f"{name}: {right[0]:.1%} right without citations, {right[1]:.1%} with")


if __name__ == "__main__":
    main()
