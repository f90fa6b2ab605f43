import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from wgcn import Corpus, TextModel, WGCNClassifier, WGCNEmbedder, WGCNTextClassifier
from wgcn.errors import InputError
from wgcn.network.settings import NetworkSettings, TrainingSettings
from wgcn.text.docs_corpus import DocsCorpus
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import Norm

TEXTS = ["red wine", "white wine", "fast car", "slow car"]
LABELS = ["drink", "drink", "drive", "drive"]


@pytest.fixture(scope="module")
def split(docs: DocsCorpus) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    assert docs.texts is not None
    train, test = ([docs.texts[i] for i in part] for part in (docs.train, docs.test))
    return train, docs.labels[docs.train], test, docs.labels[docs.test]


@pytest.fixture(scope="module")
def fitted(split: tuple[list[str], np.ndarray, list[str], np.ndarray]) -> WGCNTextClassifier:
    return WGCNTextClassifier(min_count=2).fit(split[0], split[1])


def test_docs_corpus_is_learnt(fitted: WGCNTextClassifier, split) -> None:  # type: ignore[no-untyped-def]
    assert fitted.score(split[2], split[3]) > 0.9


def test_text_matrix_and_loaded_model_give_identical_probabilities(
    fitted: WGCNTextClassifier,
    split,
    tmp_path: Path,  # type: ignore[no-untyped-def]
) -> None:
    from wgcn import Corpus
    from wgcn.text.weighting import document_terms

    texts = [*split[2], "", "zzzz unknownword"]
    expected = fitted.predict_proba(texts)
    corpus = Corpus.from_texts(texts, vocabulary=fitted.model_.vocabulary, ngram_range=fitted.ngram_range)
    matrix = document_terms(corpus, fitted.model_.weighting)
    assert np.array_equal(fitted.classifier_.predict_proba(matrix), expected)
    fitted.save(tmp_path / "model")
    assert np.array_equal(TextModel.load(tmp_path / "model").predict_proba(texts), expected)
    # One at a time as well as all at once.
    assert np.array_equal(np.vstack([fitted.predict_proba([text]) for text in texts[-20:]]), expected[-20:])


def test_plain_and_compiled_look_up_give_identical_probabilities(fitted: WGCNTextClassifier, split) -> None:  # type: ignore[no-untyped-def]
    model = fitted.model_
    assert model.ngram_range == (1, 2)
    compiled = fitted.predict_proba(split[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wgcn.inference.terms._worth_compiling", lambda size: False)
        for worth_a_table in (-1, 1 << 60):
            patch.setattr("wgcn.inference.terms._WORTH_A_TABLE", worth_a_table)
            assert np.array_equal(replace(model).predict_proba(split[2]), compiled)


def test_plain_and_compiled_look_up_of_single_words_give_identical_probabilities(split) -> None:  # type: ignore[no-untyped-def]
    fitted = WGCNTextClassifier(min_count=3, ngram_range=(1, 1)).fit(split[0][::4], split[1][::4])
    compiled = fitted.predict_proba(split[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wgcn.inference.terms._worth_compiling", lambda size: False)
        assert np.array_equal(replace(fitted.model_).predict_proba(split[2]), compiled)


METHODS = ("predict", "predict_proba", "decision_function", "transform")


def cited_by_test(docs: DocsCorpus) -> csr_array:
    """Return what the test documents cite of the training documents."""
    return csr_array(docs.document_graph)[docs.test][:, docs.train]


def test_texts_and_matrix_with_citations_give_identical_results(
    fitted: WGCNTextClassifier,
    split,
    docs: DocsCorpus,  # type: ignore[no-untyped-def]
) -> None:
    from wgcn import Corpus
    from wgcn.text.weighting import document_terms

    links = cited_by_test(docs)
    words = {"vocabulary": fitted.model_.vocabulary, "ngram_range": fitted.ngram_range}
    corpora = (Corpus.from_texts(texts, **words) for texts in (split[2], split[0]))
    new, known = (document_terms(corpus, fitted.model_.weighting) for corpus in corpora)
    alone = np.diff(links.indptr) == 0
    for name in METHODS:
        method = getattr(fitted, name)
        attached = method(split[2], document_graph=links, documents=split[0], hops=2)
        matrix = getattr(fitted.classifier_, name)(new, document_graph=links, documents=known, hops=2)
        assert np.array_equal(attached, matrix)
        plain = method(split[2])
        assert np.array_equal(attached[alone], plain[alone])
        assert not np.array_equal(attached, plain)


def test_citations_say_what_few_words_do_not(docs: DocsCorpus, split) -> None:  # type: ignore[no-untyped-def]
    train, labels, test, truth = split[0], split[1].astype(object), split[2], split[3]
    for name in docs.classes:
        places = np.flatnonzero(labels == name)
        labels[np.setdiff1d(places, places[::20])] = None
    model = WGCNTextClassifier(min_count=3, top_k=50).fit(train, labels)
    beginnings = [" ".join(text.split()[:20]) for text in test]
    links = cited_by_test(docs)
    # From 60 % to 68 % for the first words of a docstring; a whole one, of 260 words, hardly needs the help.
    attached = np.mean(model.predict(beginnings, document_graph=links, documents=train) == truth)
    assert attached > np.mean(model.predict(beginnings) == truth) + 0.06
    attached = np.mean(model.predict(test, document_graph=links, documents=train) == truth)
    assert attached > np.mean(model.predict(test) == truth) - 0.02


def test_a_text_of_unknown_words_is_known_by_what_it_cites() -> None:
    model = WGCNTextClassifier().fit(TEXTS, LABELS)
    new = ["zzzz", "", "zzzz"]
    links = csr_array(np.array([[1, 0], [0, 1], [0, 0]]))
    likely = model.predict_proba(new, document_graph=links, documents=["white wine", "fast car"])
    assert model.classes_[likely.argmax(axis=1)[:2]].tolist() == ["drink", "drive"]
    np.testing.assert_allclose(likely[2], [0.5, 0.5])
    assert model.predict([], document_graph=csr_array((0, 1)), documents=["wine"]).shape == (0,)


def test_citations_with_several_labels_a_text() -> None:
    model = WGCNTextClassifier(min_pairs=1).fit(TEXTS * 5, [["drink", "red"], ["drink"], ["drive"], ["drive"]] * 5)
    links = csr_array(np.eye(2, k=1))
    assert model.predict(["zzzz", "red wine"], document_graph=links).tolist() == [[1, 0, 1], [1, 0, 1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"documents": ["a"]}, "no document_graph"),
        ({"document_graph": np.ones((2, 1))}, "must be 2 by 2"),
        ({"document_graph": np.ones((2, 1)), "documents": "a"}, "put it into a list"),
        ({"document_graph": np.ones((2, 1)), "documents": ["a", "b"]}, "2 by 2 or 4 by 4"),
        ({"document_graph": -np.ones((2, 1)), "documents": ["a"]}, "not negative"),
        ({"document_graph": np.eye(2), "hops": -1}, "hops"),
    ],
)
@pytest.mark.parametrize("name", METHODS)
def test_unusable_citations_are_explained(name: str, arguments: dict[str, object], message: str) -> None:
    model = WGCNTextClassifier().fit(TEXTS, LABELS)
    with pytest.raises(InputError, match=message):
        getattr(model, name)(["red wine", "car"], **arguments)


def test_two_fits_save_the_same_bytes_but_for_time(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        WGCNTextClassifier().fit(TEXTS, LABELS).save(folder)
    for name in ("model.safetensors", "vocabulary.txt"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()


def test_unlabelled_texts_shape_the_graph() -> None:
    few = ["wine", "car", "wine merlot", "car sedan", "merlot grapes", "sedan wheels"] * 5
    labels = ["drink", "drive", *[None] * 28]
    model = WGCNTextClassifier(min_pairs=1).fit(few, labels)
    assert model.predict(["merlot", "sedan"]).tolist() == ["drink", "drive"]
    extra = WGCNTextClassifier(min_pairs=1).fit(few[:2], labels[:2], unlabeled=few[2:])
    np.testing.assert_allclose(extra.predict_proba(few), model.predict_proba(few), atol=1e-5)
    assert extra.model_.report["n_documents"] == 30
    assert extra.model_.report["n_labelled"] == 2


def assert_same(left: WGCNTextClassifier, right: WGCNTextClassifier) -> None:
    for name in ("word_embeddings", "bias", "prior"):
        assert getattr(left.model_.scorer, name).tobytes() == getattr(right.model_.scorer, name).tobytes(), name
    assert left.model_.scorer.sharpness == right.model_.scorer.sharpness
    assert left.model_.weighting.idf.tobytes() == right.model_.weighting.idf.tobytes()
    assert left.model_.vocabulary == right.model_.vocabulary
    assert left.model_.settings == right.model_.settings
    reports = [{**model.model_.report, "seconds": 0} for model in (left, right)]
    assert reports[0] == reports[1]


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_fit_is_prepare_and_fit_prepared(split, norm: Norm) -> None:  # type: ignore[no-untyped-def]
    texts, labels, more = split[0][:200], split[1][:200], split[0][200:260]
    model = WGCNTextClassifier(min_count=2, norm=norm)
    whole = clone(model).fit(texts, labels, unlabeled=more)
    apart = clone(model)
    assert apart.fit_prepared(apart.prepare([*texts, *more]), labels) is apart
    assert_same(apart, whole)
    np.testing.assert_array_equal(apart.predict_proba(split[2]), whole.predict_proba(split[2]))
    weights = np.arange(1.0, 201)
    whole = clone(model).fit(texts, labels, weights)
    assert_same(clone(model).fit_prepared(model.prepare(iter(texts)), labels, weights), whole)


def test_fit_with_citations_needs_no_word_graph(docs: DocsCorpus, split) -> None:  # type: ignore[no-untyped-def]
    links = csr_array(docs.document_graph)[docs.train][:, docs.train][:150, :150]
    model = WGCNTextClassifier(min_count=3)
    prepared = model.prepare(split[0][:150], with_graph=False)
    assert prepared.word_graph is None
    apart = clone(model).fit_prepared(prepared, split[1][:150], document_graph=links)
    assert_same(apart, clone(model).fit(split[0][:150], split[1][:150], document_graph=links))


def test_fits_share_what_was_prepared_and_leave_it_as_it_was(split) -> None:  # type: ignore[no-untyped-def]
    texts, labels = split[0][::8], split[1][::8]
    other = labels[::-1]
    prepared = WGCNTextClassifier(min_count=2).prepare(texts)
    assert prepared.word_graph is not None
    terms, graph = prepared.document_terms, prepared.word_graph.adjacency
    arrays = (terms.data, terms.indices, terms.indptr, graph.data, graph.indices, graph.indptr, prepared.weighting.idf)
    before = [array.tobytes() for array in arrays]
    models = [WGCNTextClassifier(min_count=2).fit_prepared(prepared, y) for y in (labels, other, labels[:100])]
    assert [array.tobytes() for array in arrays] == before
    for model, y in zip(models[:2], (labels, other), strict=True):
        assert_same(model, WGCNTextClassifier(min_count=2).fit(texts, y))
    expected = WGCNTextClassifier(min_count=2).fit(texts[:100], labels[:100], unlabeled=texts[100:])
    assert_same(models[2], expected)
    assert models[2].model_.report["n_labelled"] == 100


@pytest.mark.parametrize(("n_texts", "n_labels", "n_more"), [(4, 3, 0), (3, 4, 0), (3, 4, 1), (4, 3, 2), (2, 4, 1)])
def test_texts_and_labels_that_do_not_match_are_refused(n_texts: int, n_labels: int, n_more: int) -> None:
    message = f"{n_texts} texts but {n_labels} labels"
    for texts in (TEXTS[:n_texts], iter(TEXTS[:n_texts])):
        with pytest.raises(InputError, match=message):
            WGCNTextClassifier().fit(texts, LABELS[:n_labels], unlabeled=TEXTS[:n_more])


def test_what_was_prepared_cannot_have_more_labels_than_texts() -> None:
    model = WGCNTextClassifier()
    prepared = model.prepare(TEXTS)
    with pytest.raises(InputError, match="4 texts but 5 labels: there must be one label a text"):
        model.fit_prepared(prepared, [*LABELS, "drive"])
    with pytest.raises(InputError, match="requires y"):
        model.fit_prepared(prepared, None)
    with pytest.raises(InputError, match="one class"):
        model.fit_prepared(prepared, LABELS[:2])
    with pytest.raises(NotFittedError):
        model.predict(TEXTS)


def test_unknown_norm_is_refused() -> None:
    with pytest.raises(InputError, match="norm must be one of"):
        WGCNTextClassifier(norm="l3").fit(TEXTS, LABELS)  # type: ignore[arg-type]


def test_ngrams_are_words_of_the_model(tmp_path: Path) -> None:
    model = WGCNTextClassifier(ngram_range=(1, 2), min_pairs=1).fit(
        ["not good", "good", "not bad", "bad"] * 5, [0, 1, 1, 0] * 5
    )
    assert "not good" in model.model_.vocabulary
    assert model.predict(["not good", "not bad"]).tolist() == [0, 1]
    model.save(tmp_path / "model")
    assert np.array_equal(
        TextModel.load(tmp_path / "model").predict_proba(["not bad"]), model.predict_proba(["not bad"])
    )


def test_several_labels_a_text() -> None:
    labels = [["drink", "red"], ["drink"], ["drive"], ["drive"]] * 5
    model = WGCNTextClassifier(min_pairs=1).fit(TEXTS * 5, labels)
    assert model.classes_.tolist() == ["drink", "drive", "red"]
    assert model.predict(TEXTS).tolist() == [[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0]]


def test_scikit_learn_tools_work() -> None:
    model = WGCNTextClassifier(classifier=WGCNClassifier(C=3.0))
    assert clone(model).get_params()["classifier__C"] == 3.0
    assert cross_val_score(model, TEXTS * 3, LABELS * 3, cv=3).mean() == 1
    search = GridSearchCV(model, {"classifier__alpha": [0, 1], "window": [2, 5]}, cv=2).fit(TEXTS * 3, LABELS * 3)
    assert search.predict(["wine"]).tolist() == ["drink"]
    fitted = model.fit(TEXTS, LABELS)
    assert fitted.transform(TEXTS).shape == (4, len(fitted.get_feature_names_out()))
    assert fitted.decision_function(TEXTS).shape == (4,)
    assert len(fitted.history_) >= 1
    assert fitted.word_embeddings_.shape[0] == len(fitted.word_graph_.vocabulary)


def test_parameters_of_the_classifier_can_be_set_where_it_is_the_default() -> None:
    model = WGCNTextClassifier()
    assert model.get_params()["classifier__C"] == WGCNClassifier().C
    assert "classifier__C" not in model.get_params(deep=False)
    assert model.classifier is None
    assert model.set_params(classifier__C=2, window=5) is model
    assert isinstance(model.classifier, WGCNClassifier)
    assert (model.classifier.C, model.window) == (2, 5)
    assert clone(model).get_params()["classifier__C"] == 2
    assert model.set_params(classifier=None).get_params()["classifier__C"] == WGCNClassifier().C
    # All parameters of one model can be given to another.
    assert WGCNTextClassifier().set_params(**model.get_params()).get_params()["classifier__alpha"] == 0.5
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        model.set_params(classifier__nothing=1)


def test_settings_of_the_default_classifier_are_searched() -> None:
    search = GridSearchCV(WGCNTextClassifier(), {"classifier__C": [0.1, 2.0]}, cv=2).fit(TEXTS * 3, LABELS * 3)
    assert search.best_params_["classifier__C"] in (0.1, 2.0)
    assert search.best_estimator_.classifier_.get_params()["C"] == search.best_params_["classifier__C"]


MORE = ["red wine", "fast car", "merlot wine"] * 6
MISSING = [None, np.nan, pd.NA]


@pytest.mark.parametrize("missing", MISSING, ids=str)
def test_cross_validation_with_texts_that_have_no_label(missing: object) -> None:
    for y in (["drink", "drive", missing] * 6, pd.Series(["drink", "drive", missing] * 6)):
        assert cross_val_score(WGCNTextClassifier(), MORE, y, cv=KFold(3)).tolist() == [1, 1, 1]


def test_stratified_cross_validation_with_texts_that_have_no_label() -> None:
    assert cross_val_score(WGCNTextClassifier(), MORE, [0, 1, -1] * 6, cv=3).tolist() == [1, 1, 1]


def test_labels_of_a_sparse_matrix() -> None:
    labels = csr_array(np.array([[1, 0], [1, 0], [0, 1], [0, 1]] * 3))
    model = WGCNTextClassifier().fit(TEXTS * 3, labels)
    assert model.score(TEXTS * 3, labels) == 1


@pytest.mark.parametrize("n_jobs", [1, -1, -2, 2])
def test_the_threads_of_the_classifier_tokenise_and_count_too(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []

    def note(given: int | None) -> int:
        asked.append(given)
        return 1

    places = ("text.corpus", "graph.counts", "graph.association", "linear.model")
    for place in places:
        monkeypatch.setattr(f"wgcn.{place}.n_threads", note)
    WGCNTextClassifier().set_params(classifier__n_jobs=n_jobs).fit(TEXTS, LABELS)
    assert asked == [n_jobs] * len(places)


def test_no_threads_are_refused() -> None:
    with pytest.raises(InputError, match="n_jobs"):
        WGCNTextClassifier(classifier=WGCNClassifier(n_jobs=0)).fit(TEXTS, LABELS)


def test_all_cores_fit_and_predict() -> None:
    model = WGCNTextClassifier(classifier=WGCNClassifier(n_jobs=-1)).fit(TEXTS, LABELS)
    for n_jobs in (-1, None):
        assert model.model_.predict(["red wine"], n_jobs=n_jobs).tolist() == ["drink"]
        assert model.model_.transform(["red wine"], n_jobs=n_jobs).shape == (1, 2)


NO_TEXTS = [
    ("red wine", "not one text.*put it into a list"),
    (b"red wine", "not one text.*put it into a list"),
    (7, "list of texts, got int"),
    (np.array("red wine"), "put it into a list"),
    (pd.DataFrame({"text": TEXTS}), "2 dimensions: give one column"),
    (["red wine", None], "got NoneType at place 1 .*None"),
    (["red wine", "car", float("nan")], "got float at place 2 .*nan"),
    (pd.Series(["red wine", pd.NA], dtype=object), "got NAType at place 1"),
    ([b"red wine"], "got bytes at place 0 .*Decode"),
    (["red wine", 3], "got int at place 1"),
]


@pytest.mark.parametrize(("texts", "message"), NO_TEXTS)
def test_what_is_no_list_of_texts_is_explained_everywhere(texts: Any, message: str) -> None:
    estimator = WGCNTextClassifier().fit(TEXTS, LABELS)
    embedder = WGCNEmbedder(n_components=2).fit(TEXTS)
    model, graph = estimator.model_, csr_array(np.ones((4, 4)))
    calls: list[Callable[[], object]] = [
        *(partial(getattr(estimator, name), texts) for name in (*METHODS, "extend", "prepare")),
        *(partial(getattr(estimator, name), TEXTS, document_graph=graph, documents=texts) for name in METHODS),
        *(partial(getattr(estimator, name), texts, document_graph=graph) for name in METHODS),
        *(partial(getattr(model, name), texts) for name in ("predict", "predict_proba", "scores", "transform")),
        *(partial(getattr(model, name), texts) for name in ("terms", "extend")),
        partial(estimator.score, texts, LABELS),
        partial(WGCNTextClassifier().fit, texts, ["a", "b"]),
        partial(WGCNTextClassifier().fit, TEXTS, LABELS, unlabeled=texts),
        partial(WGCNTextClassifier().fit, TEXTS, LABELS, background=texts),
        partial(estimator.prepare, TEXTS, background=texts),
        *(partial(getattr(embedder, name), texts) for name in ("fit", "fit_transform", "transform")),
        *(partial(getattr(embedder.model_, name), texts) for name in ("transform", "terms")),
        partial(Corpus.from_texts, texts),
        partial(Corpus.from_texts, texts, ngram_range=(1, 2)),
        partial(Corpus.from_texts, texts, vocabulary=Vocabulary(["red"])),
    ]
    for call in calls:
        with pytest.raises(InputError, match=f"(?s){message}"):
            call()


def test_what_is_wrong_with_texts_is_said_with_the_name_that_they_were_given_by() -> None:
    for name in ("unlabeled", "background"):
        with pytest.raises(InputError, match=f"Each of {name} must be a str, got NoneType at place 1"):
            WGCNTextClassifier().fit(TEXTS, LABELS, **{name: iter(["a", None])})  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["linear", "network"])
@pytest.mark.parametrize("texts", [["a a a", "a a", "a", ""], ["a"] * 4, ["red wine"] * 4])
@pytest.mark.parametrize("labels", [["x", "y", "x", "x"], ["x", "y", None, None]])
def test_texts_whose_words_have_no_edges(
    texts: list[str], labels: list[str | None], model: Literal["linear", "network"]
) -> None:
    if model == "network":
        pytest.importorskip("torch", reason="the network needs torch")
    settings = WGCNClassifier(model=model, training=TrainingSettings(max_epochs=2, device="cpu"))
    fitted = WGCNTextClassifier(classifier=settings).fit(texts, labels)
    assert np.isfinite(fitted.predict_proba([*texts, "", "zzz"])).all()


def test_many_classes_of_one_text() -> None:
    texts = [f"word{i} other{i % 7}" for i in range(110)]
    model = WGCNTextClassifier().fit(texts, [f"class {i}" for i in range(110)])
    assert model.score(texts, [f"class {i}" for i in range(110)]) == 1
    assert model.classifier_.held_out_accuracy_ is None
    few = WGCNTextClassifier().fit(texts, [f"class {max(i, 5)}" for i in range(110)])
    assert few.classifier_.n_held_out_ == 5


def test_several_windows_go_through_the_tools_of_scikit_learn() -> None:
    texts = ["a fine red wine", "a dry white wine", "a fast red car", "a slow old car"] * 3
    for windows in ((2, 10**6), [2, 10**6]):
        model = clone(WGCNTextClassifier(window=windows))
        assert model.get_params()["window"] == windows
        assert model.fit(texts, LABELS * 3).word_graph_.settings["window"] == [2, 10**6]
    search = GridSearchCV(WGCNTextClassifier(), {"window": [2, (2, 20)]}, cv=2).fit(texts, LABELS * 3)
    assert search.predict(["wine"]).tolist() == ["drink"]


def test_fit_leaves_the_given_classifier_alone() -> None:
    classifier = WGCNClassifier()
    WGCNTextClassifier(classifier=classifier).fit(TEXTS, LABELS)
    assert not hasattr(classifier, "classes_")


def test_unfitted_model_says_so() -> None:
    with pytest.raises(NotFittedError):
        WGCNTextClassifier().predict(["a"])


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (TEXTS, LABELS[:3], "4 texts but 3 labels"),
        (TEXTS[:3], LABELS, "3 texts but 4 labels"),
        (TEXTS, ["a"] * 4, "one class"),
        (["", "!"], ["a", "b"], "no word in the 2 documents"),
        ("a text", LABELS, "put it into a list"),
        ([1, 2], ["a", "b"], "must be a str"),
        (np.array([TEXTS]), LABELS, "one-dimensional"),
        (TEXTS, None, "requires y"),
    ],
)
def test_unusable_input_is_explained(texts: object, labels: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        WGCNTextClassifier().fit(texts, labels)  # type: ignore[arg-type]


def test_a_tokenizer_of_your_own_predicts_but_is_not_saved(tmp_path: Path) -> None:
    model = WGCNTextClassifier(tokenizer=str.split).fit(TEXTS, LABELS)
    assert model.predict(["red wine"]).tolist() == ["drink"]
    with pytest.raises(InputError, match="cannot be saved"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_test_texts_leave_no_trace_in_an_inductive_model(tmp_path: Path) -> None:
    digests = []
    for test in (["some text"], ["altogether other words"]):
        model = WGCNTextClassifier().fit(TEXTS, LABELS)
        model.predict(test)
        model.save(tmp_path / "model")
        digests.append((tmp_path / "model" / "model.safetensors").read_bytes())
    assert digests[0] == digests[1]


# Vectors from elsewhere

FOOD = ["apple", "bread", "cheese", "plum", "rice", "soup", "honey", "pear"]
TOOLS = ["hammer", "saw", "nail", "drill", "wrench", "chisel", "clamp", "rasp"]


@pytest.fixture
def things(tmp_path: Path) -> tuple[list[str], list[str], Path]:
    """Return texts that share no telling word, their classes, and a file whose vectors tell these words apart."""
    texts = [f"the {word} is here today" for pair in zip(FOOD, TOOLS, strict=True) for word in pair] * 2
    path = tmp_path / "vectors.txt"
    lines = [f"{word} {int(word in FOOD)} {int(word in TOOLS)} 0.1" for word in FOOD + TOOLS]
    path.write_text("\n".join([*lines, "the 0.0 0.0 1.0"]) + "\n")
    return texts, ["food", "tools"] * 16, path


def test_a_file_of_vectors_tells_what_few_labels_do_not(things: tuple[list[str], list[str], Path]) -> None:
    texts, classes, path = things
    given = [*classes[:4], *[None] * 28]
    right = [
        np.mean(WGCNTextClassifier(vectors=vectors).fit(texts, given).predict(texts) == classes)
        for vectors in (None, str(path))
    ]
    assert right[0] < 0.9
    assert right[1] == 1


def test_vectors_are_distilled_from_the_encoder_and_not_needed_to_predict(
    things: tuple[list[str], list[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    texts, classes, _ = things
    encoded: list[str] = []

    def encode(given: list[str], kind: str) -> np.ndarray:
        encoded.extend(given)
        return np.array(
            [[any(w in text for w in FOOD), any(w in text for w in TOOLS), 1] for text in given], np.float32
        )

    monkeypatch.setattr("wgcn_paper.vectors.encoder.encode_cached", encode)
    model = WGCNTextClassifier(vectors="encoder").fit(iter(texts), [*classes[:4], *[None] * 28])
    assert encoded == texts
    assert (model.predict(texts) == classes).all()
    assert len(encoded) == len(texts)
    model.save(tmp_path / "m")
    loaded = TextModel.load(tmp_path / "m")
    assert loaded.settings["vectors"] == "encoder"
    assert (loaded.predict(["an apple", "a saw"]) == ["food", "tools"]).all()


def test_the_encoder_is_not_asked_about_texts_from_elsewhere(
    things: tuple[list[str], list[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, classes, _ = things
    encoded: list[str] = []

    def encode(given: list[str], kind: str) -> np.ndarray:
        encoded.extend(given)
        return np.array([[any(word in text for word in part) for part in (FOOD, TOOLS)] for text in given], np.float32)

    monkeypatch.setattr("wgcn_paper.vectors.encoder.encode_cached", encode)
    estimator = WGCNTextClassifier(vectors="encoder")
    elsewhere = ["a parsnip of another garden", "a parsnip and an apple", "a parsnip"]
    prepared = estimator.prepare(iter(texts), background=iter(elsewhere))
    assert encoded == texts
    assert prepared.word_vectors is not None
    assert not prepared.word_vectors[prepared.vocabulary.id_of("parsnip")].any()
    model = estimator.fit_prepared(prepared, [*classes[:4], *[None] * 28])
    assert (model.predict(texts) == classes).all()


def test_texts_from_elsewhere_give_their_words_a_row_through_the_graph_and_teach_nothing() -> None:
    texts, labels = ["red wine", "white wine", "fast car", "slow car"] * 5, ["drink", "drink", "drive", "drive"] * 5
    elsewhere = ["merlot wine", "a merlot wine", "sedan car", "a sedan car"] * 3
    model = WGCNTextClassifier().fit(texts, labels, background=elsewhere)
    assert model.predict(["merlot", "sedan"]).tolist() == ["drink", "drive"]
    assert model.model_.report["n_documents"] == len(texts)
    assert model.model_.report["n_background"] == len(elsewhere)
    # Without a graph, nothing is said of words that no text of its own has.
    alone = WGCNTextClassifier(classifier=WGCNClassifier(alpha=0)).fit(texts, labels, background=elsewhere)
    assert not alone.word_embeddings_[alone.model_.vocabulary.id_of("merlot")].any()
    # The teacher and the second fit, which need texts without a label, have nothing to do.
    settings = WGCNClassifier(teacher=0, self_training=0)
    plain = WGCNTextClassifier(classifier=settings).fit(texts, labels, background=elsewhere)
    assert plain.word_embeddings_.tobytes() == model.word_embeddings_.tobytes()


@pytest.mark.parametrize("name", ["unlabeled", "background"])
def test_one_text_in_place_of_more_texts_is_explained(name: str) -> None:
    with pytest.raises(InputError, match="put it into a list"):
        WGCNTextClassifier().fit(["red wine", "fast car"], ["drink", "drive"], **{name: "white wine"})  # type: ignore[arg-type]


def test_vectors_change_nothing_where_every_text_has_a_label(things: tuple[list[str], list[str], Path]) -> None:
    texts, classes, path = things
    plain, with_vectors = (WGCNTextClassifier(vectors=v).fit(texts, classes) for v in (None, str(path)))
    assert plain.word_embeddings_.tobytes() == with_vectors.word_embeddings_.tobytes()


def test_vectors_are_for_the_linear_model(things: tuple[list[str], list[str], Path]) -> None:
    texts, classes, path = things
    model = WGCNTextClassifier(vectors=str(path), classifier=WGCNClassifier(model="network"))
    with pytest.raises(InputError, match="vectors are for the linear model"):
        model.fit(texts, classes)


def test_a_file_of_vectors_that_is_not_there_is_named(things: tuple[list[str], list[str], Path]) -> None:
    with pytest.raises(InputError, match=r"none\.txt"):
        WGCNTextClassifier(vectors="none.txt").fit(*things[:2])


def test_few_labels_of_many_classes_are_no_reason_to_warn(tmp_path: Path) -> None:
    texts = [f"word{i} thing{i % 20} other" for i in range(60)]
    labels = [f"class {i % 20}" for i in range(30)] + [None] * 30
    (tmp_path / "vectors.txt").write_text("\n".join(f"thing{i} {i} 1" for i in range(20)) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for vectors in (None, str(tmp_path / "vectors.txt")):
            WGCNTextClassifier(vectors=vectors).fit(texts, labels)


def never_read() -> Iterator[str]:
    """Give texts that must not be asked for."""
    pytest.fail("the texts were read")
    yield ""


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tokenizer": "sounds"}, "tokenizer"),
        ({"ngram_range": (2, 1)}, "ngram_range"),
        ({"ngram_range": 2}, "ngram_range"),
        ({"ngram_range": (1, 1.5)}, "ngram_range"),
        ({"min_count": 0}, "min_count must be at least 1, got 0"),
        ({"min_count": "two"}, "min_count must be a whole number, got 'two'"),
        ({"stop_words": "english"}, "stop_words"),
        ({"stop_words": 3}, "stop_words"),
        ({"norm": "l3"}, "norm"),
        ({"window": 1}, "window"),
        ({"weight": "guess"}, "weight"),
        ({"threshold": np.nan}, "threshold"),
        ({"min_pairs": 0}, "min_pairs must be at least 1, got 0"),
        ({"top_k": 0}, "top_k"),
        ({"smoothing": 2}, "smoothing"),
        ({"vectors": "nowhere.txt"}, "nowhere.txt"),
        ({"vectors": __file__}, "test_text_classifier.py"),
        ({"tune": True, "tune_seconds": 0}, "tune_seconds"),
        ({"tune": True, "tune_trials": 1.5}, "tune_trials"),
        ({"classifier": "linear"}, "classifier must be"),
    ],
)
def test_wrong_parameters_are_told_before_any_text_is_read(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        WGCNTextClassifier(**parameters).fit(never_read(), LABELS)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "tree"}, "model must be"),
        ({"alpha": -1}, "alpha"),
        ({"learn_alpha": "each"}, "learn_alpha"),
        ({"order": 1.5}, "order must be a whole number, got 1.5"),
        ({"naive_bayes": 2}, "naive_bayes"),
        ({"teacher": -1}, "teacher"),
        ({"self_training": -1}, "self_training"),
        ({"C": 0}, "C must be above 0"),
        ({"C": "much"}, "C must be a number, got 'much'"),
        ({"loss": "hinge"}, "loss"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1}, "tol"),
        ({"top_k": 0}, "top_k"),
        ({"class_weight": "fair"}, "class_weight"),
        ({"class_weight": {"drink": -1, "drive": 1}}, "class_weight"),
        ({"class_weight": {"drink": "x", "drive": 1}}, "class_weight"),
        ({"class_prior": "equal"}, "class_prior"),
        ({"class_prior": {"drink": 1, "sleep": 1}}, "'sleep'"),
        ({"class_prior": {"drink": 1}}, "'drive'"),
        ({"class_prior": {"drink": 1, "drive": 0}}, "above 0"),
        ({"tune": True, "model": "network"}, "tune is for the linear model"),
        ({"tune": True, "tune_trials": 0}, "tune_trials"),
        ({"validation_fraction": 1}, "validation_fraction"),
        ({"n_jobs": "all"}, "n_jobs"),
        ({"random_state": "x"}, "random_state"),
        ({"network": 4}, "network must be NetworkSettings"),
        ({"training": {}}, "training must be TrainingSettings"),
    ],
)
def test_wrong_parameters_of_the_classifier_are_told_before_any_text_is_read(
    parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        WGCNTextClassifier(classifier=WGCNClassifier(**parameters)).fit(never_read(), LABELS)


def test_what_does_not_fit_the_labels_is_told_before_any_text_is_read(tmp_path: Path) -> None:
    several = [["drink"], ["drink", "red"], ["drive"], ["drive"]]
    for parameters in ({"class_weight": "balanced"}, {"class_prior": "uniform"}):
        with pytest.raises(InputError, match="one class each"):
            WGCNTextClassifier(classifier=WGCNClassifier(**parameters)).fit(never_read(), several)
    with pytest.raises(InputError, match="one class"):
        WGCNTextClassifier().fit(never_read(), ["drink"] * 4)
    with pytest.raises(InputError, match=r"sample_weight has the shape \(3,\)"):
        WGCNTextClassifier().fit(never_read(), LABELS, [1, 2, 3])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"training": TrainingSettings(device="abacus")}, "abacus"),
        ({"resume": True}, "resume needs a checkpoint"),
        ({"checkpoint": Path(__file__).parent}, "is a folder"),
        ({"checkpoint": Path(__file__) / "state"}, "cannot be written"),
    ],
)
def test_what_the_network_cannot_use_is_told_before_any_text_is_read(parameters: dict[str, Any], message: str) -> None:
    pytest.importorskip("torch", reason="the network needs torch")
    for model in ("network", "average"):
        with pytest.raises(InputError, match=message):
            WGCNTextClassifier(classifier=WGCNClassifier(model=model, **parameters)).fit(never_read(), LABELS)


@pytest.mark.parametrize("parameters", [{"hidden": "many"}, {"order": 0.5}, {"residual": "x"}])
def test_settings_of_the_network_are_numbers(parameters: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(parameters))} must be a"):
        NetworkSettings(**parameters)
