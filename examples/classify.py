"""Train a text classifier with few labels and much unlabelled text, save it, and use it with numpy alone.

Run it with:  python examples/classify.py
It has every twentieth label of the docs corpus, and prints which share of the test documents it classifies right, and
the likeliest classes of a new sentence. The corpus is made of the packages that are installed, so the figures differ
with their versions.
"""

import tempfile
from pathlib import Path

import numpy as np

from wgcn import TextModel, WGCNTextClassifier
from wgcn_paper.datasets.docstrings import docs_corpus


def main() -> None:
    docs = docs_corpus()
    texts = np.array(docs.texts, dtype=object)

    # Keep every twentieth label of a class; None marks the texts without.
    labels = docs.labels[docs.train].astype(object)
    for name in docs.classes:
        places = np.flatnonzero(labels == name)
        labels[np.setdiff1d(places, places[::20])] = None

    # Texts without labels shape vocabulary and word graph, and teach: the model labels them and learns from all.
    model = WGCNTextClassifier(min_count=2).fit(texts[docs.train].tolist(), labels)
    accuracy = np.mean(model.predict(texts[docs.test].tolist()) == docs.labels[docs.test])
    print(f"{sum(label is not None for label in labels)} labels: {accuracy:.1%} of the test documents right")

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        loaded = TextModel.load(Path(folder, "model"))  # needs neither scikit-learn nor torch
        sentence = "Draw random samples from a normal distribution."
        likely = loaded.predict_proba([sentence])[0]
        for i in likely.argsort()[::-1][:3]:
            print(f"{likely[i]:6.1%}  {loaded.classes[i]}")


if __name__ == "__main__":
    main()
