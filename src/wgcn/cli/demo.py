"""wgcn demo: train on a corpus that every machine has, and show what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wgcn.cli.console import out, say, working

if TYPE_CHECKING:
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.text.docs_corpus import DocsCorpus

__all__ = ["demo"]

WORDS = ("eigenvalues", "fourier", "kurtosis", "cluster", "polynomial", "sparse")
SENTENCE = "Compute the eigenvalues and eigenvectors of a symmetric matrix."
FEW = 0.05


def demo(
    sentence: Annotated[str, typer.Argument(help="A sentence to classify.")] = SENTENCE,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where to put what is made.")] = Path(
        "demo"
    ),
) -> None:
    """Train on the documentation of numpy, scipy and scikit-learn, and show what comes of it.

    Real text, no download: a document is a docstring, its class the sub-package. Example: wgcn demo "Sort an array."
    """
    from wgcn.graph.pictures import check_picture, plot_neighbourhood
    from wgcn.inference.folder import check_target
    from wgcn.text.docs_corpus import docs_corpus

    for kind in ("model", "graph"):
        check_target(output / kind, kind)
    for picture in (f"{WORDS[0]}.png", "confusion.png"):
        check_picture(output / picture)
    say("Collecting the documentation of numpy, scipy and scikit-learn (a few seconds the first time) ...")
    docs = docs_corpus()
    say(
        f"{len(docs.texts):,} documents in {len(set(docs.labels))} classes: {len(docs.train):,} to train on, "
        f"{len(docs.test):,} to test on; {docs.document_graph.nnz:,} links between them.\n"
    )
    model = _compare(docs)
    model.save(output / "model")
    model.word_graph_.save(output / "graph")
    plot_neighbourhood(model.word_graph_, WORDS[0], output / f"{WORDS[0]}.png")
    _draw_confusion(docs, model, output / "confusion.png")

    out.print("\nWords that stand near each other:")
    for word in WORDS:
        if word in model.word_graph_.vocabulary:
            near = "  ".join(neighbour.word for neighbour in model.word_graph_.neighbours(word, 7))
            out.print(f"  {word:<12} {near}", markup=False)
    out.print(f'\n"{sentence}"', markup=False)
    likely = model.predict_proba([sentence])[0]
    for i in likely.argsort()[::-1][:3]:
        out.print(f"  {model.classes_[i]:<24} {likely[i]:6.1%}", markup=False)
    out.print(
        f"\nThe model is in {output / 'model'}, the word graph in {output / 'graph'}; pictures: "
        f"{output / WORDS[0]}.png and {output / 'confusion.png'}.\n"
        f'Classify another sentence:  echo "Sort an array." | wgcn predict {output / "model"} --proba\n'
        f"Ask for another word:       wgcn graph neighbours {output / 'graph'} variance",
        markup=False,
    )


def _compare(docs: DocsCorpus) -> WGCNTextClassifier:
    """Print test accuracies beside those of a linear SVM on the same documents; return the model with all labels."""
    import numpy as np

    texts = np.array(docs.texts, dtype=object)
    train, test = texts[docs.train].tolist(), texts[docs.test].tolist()
    labels, truth = docs.labels[docs.train], docs.labels[docs.test]
    few = _few(labels)
    out.print(f"{'accuracy on the test documents':<46}{'tf-idf + LinearSVC':>20}{'wgcn':>8}")

    def show(name: str, svm: float, ours: float) -> None:
        out.print(f"{name:<46}{svm:>20.1%}{ours:>8.1%}")

    with working("Training on all labels"):
        model = _classifier().fit(train, labels)
    show(f"all {len(labels):,} labels", _svm(train, labels, test, truth), float(np.mean(model.predict(test) == truth)))
    with working("Training on few labels"):
        some = labels.astype(object)
        some[~few] = None
        semi = _classifier().fit(train, some)
    svm = _svm([text for text, has in zip(train, few, strict=True) if has], labels[few], test, truth)
    show(f"{few.sum():,} labels, the other texts without", svm, float(np.mean(semi.predict(test) == truth)))
    with working("Training on the links"):
        links = docs.document_graph[docs.train][:, docs.train]
        linked = _classifier().fit(train, some, document_graph=links)
    show("the same, word graph from See Also links", svm, float(np.mean(linked.predict(test) == truth)))
    return model


def _classifier() -> WGCNTextClassifier:
    from wgcn.estimators.text import WGCNTextClassifier

    return WGCNTextClassifier()


def _few(labels: Any) -> Any:
    """Choose a share of the documents of each class, at least one, evenly over the class."""
    import numpy as np

    few = np.zeros(len(labels), bool)
    for name in np.unique(labels):
        places = np.flatnonzero(labels == name)
        few[places[:: max(round(1 / FEW), 1)]] = True
    return few


def _svm(train: list[str], labels: Any, test: list[str], truth: Any) -> float:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    svm = make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC(random_state=0))
    return float(svm.fit(train, labels).score(test, truth))


def _draw_confusion(docs: DocsCorpus, model: WGCNTextClassifier, path: Path) -> None:
    import numpy as np

    from wgcn.graph.pictures import plot_confusion

    names = model.classes_.tolist()
    truth = np.searchsorted(model.classes_, docs.labels[docs.test])
    guess = np.searchsorted(model.classes_, model.predict([docs.texts[i] for i in docs.test]))
    plot_confusion(truth, guess, names, path)
