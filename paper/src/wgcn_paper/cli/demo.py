"""wgcn-paper demo: train on text that every installation has, and show what the model can do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wgcn.base.progress import stage
from wgcn.cli.console import say, stages

if TYPE_CHECKING:
    from wgcn.estimators.matrix import WGCNClassifier
    from wgcn.estimators.preparation import Prepared
    from wgcn_paper.datasets.docstrings import DocsCorpus

WORDS = ("filter", "distribution", "distance", "sparse", "eigenvalues")
SENTENCE = "Filter a signal with a Butterworth low-pass filter."
MIN_COUNT = 20  # of the neighbours that are shown: rarer words are mostly names of functions
LABELLED = 20  # one text in so many keeps its label in the second row


def demo(
    sentence: Annotated[str, typer.Argument(help="A sentence to classify.")] = SENTENCE,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for model and pictures.")
    ] = Path("demo"),
) -> None:
    """Train on the documentation of numpy, scipy and scikit-learn, and show what comes of it.

    Real text, no download: a document is a docstring, its class the sub-package.
    Example: wgcn-paper demo "Sort an array."
    """
    from wgcn.plots import check_picture, plot_confusion, plot_neighbourhood
    from wgcn.store.folder import check_target
    from wgcn_paper.datasets import docstrings

    model_folder, graph_folder = output / "model", output / "graph"
    picture, confusion = output / f"{WORDS[0]}.png", output / "errors.png"
    check_target(model_folder, "model")
    check_target(graph_folder, "graph")
    check_picture(picture)
    check_picture(confusion)
    say("Collecting the documentation of numpy, scipy and scikit-learn (a few seconds the first time) ...")
    docs = docstrings.docs_corpus()
    parts = f"{len(docs.train):,} to train on, {len(docs.test):,} to test on"
    say(f"{len(docs):,} documents in {len(docs.classes)} classes: {parts}.\n")
    prepared, classifier = _compare(docs)
    model, graph = prepared.text_model(classifier, {}), classifier.word_graph_
    model.save(model_folder)
    graph.save(graph_folder)
    words = [word for word in WORDS if word in graph.vocabulary]
    if words:
        plot_neighbourhood(graph, words[0], picture, min_count=MIN_COUNT)
    truth = model.classes.searchsorted(docs.labels[docs.test])
    guess = model.scorer.decide(model.scores(docs.texts[i] for i in docs.test))
    plot_confusion(truth, guess, model.classes.tolist(), confusion)

    print("\nNeighbours in the word graph:")
    for word in words:
        near = "  ".join(neighbour.word for neighbour in graph.neighbours(word, 6, min_count=MIN_COUNT))
        print(f"  {word:<14}{near}")
    print(f'\n"{sentence}" is about:')
    likely = model.predict_proba([sentence])[0]
    for i in likely.argsort()[::-1][:3]:
        print(f"  {model.classes[i]:<24} {likely[i]:6.1%}")
    print(
        f"\nPictures: {picture} (the neighbours of '{WORDS[0]}') and {confusion} (what is taken for what).\n\n"
        "Try next:\n"
        f'  wgcn-paper demo "Draw random samples from a normal distribution."\n'
        f'  echo "Sort an array." | wgcn predict {model_folder} --proba\n'
        f"  wgcn graph neighbours {graph_folder} variance\n"
        f"  wgcn fit YOUR.csv --text-column TEXT --label-column LABEL --model my-model",
    )


def _compare(docs: DocsCorpus) -> tuple[Prepared, WGCNClassifier]:
    """Print test accuracies beside those of a linear SVM on the same documents; return the model with all labels."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    from wgcn.estimators.matrix import WGCNClassifier
    from wgcn.estimators.preparation import Preparation

    train, test = ([docs.texts[i] for i in part] for part in (docs.train, docs.test))
    labels, truth = docs.labels[docs.train].astype(object), docs.labels[docs.test]
    few = np.zeros(len(labels), bool)
    for name in docs.classes:
        few[np.flatnonzero(labels == name)[::LABELLED]] = True
    with stages():
        prepared = Preparation(min_count=2).prepare(train)
    lines = [f"{'accuracy on the test documents':<46}{'tf-idf + LinearSVC':>20}{'wgcn':>8}"]
    fitted = []
    for name, kept in (("all", np.ones(len(labels), bool)), (f"{1 / LABELLED:.0%} of the", few)):
        given = labels.copy()
        given[~kept] = None
        with stages(), stage(f"Training on {name} labels"):
            classifier = WGCNClassifier().fit(prepared.document_terms, given, word_graph=prepared.word_graph)
            right = np.mean(prepared.text_model(classifier, {}).predict(test) == truth)
            svm = make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC(random_state=0))
            svm.fit([train[i] for i in np.flatnonzero(kept)], labels[kept].astype(str))
        counts = f"{name} labels ({kept.sum():,} of {len(kept):,} texts)"
        lines.append(f"{counts:<46}{svm.score(test, truth):>20.1%}{right:>8.1%}")
        fitted.append(classifier)
    print("", *lines, sep="\n")
    return prepared, fitted[0]
