import re
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from wgcn import Corpus, TextModel, WGCNClassifier, WGCNEmbedder, WGCNTextClassifier
from wgcn.base.errors import InputError
from wgcn.estimators.preparation import Preparation
from wgcn.graph.citations import attach_citations
from wgcn.text.vocabulary import Vocabulary
from wgcn_paper.datasets.docstrings import DocsCorpus

TEXTS = ["red wine", "white wine", "fast car", "slow car"]
LABELS = ["drink", "drink", "drive", "drive"]


@pytest.fixture(scope="module")
def split(docs: DocsCorpus) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    assert docs.texts is not None
    train, test = ([docs.texts[i] for i in part] for part in (docs.train, docs.test))
    return train, docs.labels[docs.train], test, docs.labels[docs.test]


@pytest.fixture(scope="module")
def fitted(split: tuple[list[str], np.ndarray, list[str], np.ndarray]) -> WGCNTextClassifier:
    return WGCNTextClassifier(min_count=3).fit(split[0], split[1])


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
    without = replace(fitted.model_, spelling=None)  # a matrix has no words that training did not see
    assert np.array_equal(fitted.classifier_.predict_proba(matrix), without.predict_proba(texts))
    assert not np.array_equal(without.predict_proba(texts), expected)
    fitted.save(tmp_path / "model")
    assert np.array_equal(TextModel.load(tmp_path / "model").predict_proba(texts), expected)
    # One at a time as well as all at once.
    assert np.array_equal(np.vstack([fitted.predict_proba([text]) for text in texts[-20:]]), expected[-20:])


def test_plain_and_compiled_look_up_give_identical_probabilities(fitted: WGCNTextClassifier, split) -> None:  # type: ignore[no-untyped-def]
    model = fitted.model_
    assert model.ngram_range == (1, 2)
    compiled = fitted.predict_proba(split[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wgcn.text.tokenize.term_code.is_compiled", False)
        for worth_a_table in (-1, 1 << 60):
            patch.setattr("wgcn.scoring.terms._WORTH_A_TABLE", worth_a_table)
            assert np.array_equal(replace(model).predict_proba(split[2]), compiled)


def test_plain_and_compiled_look_up_of_single_words_give_identical_probabilities(split) -> None:  # type: ignore[no-untyped-def]
    fitted = WGCNTextClassifier(min_count=3, ngram_range=(1, 1)).fit(split[0][::4], split[1][::4])
    compiled = fitted.predict_proba(split[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wgcn.text.tokenize.term_code.is_compiled", False)
        assert np.array_equal(replace(fitted.model_).predict_proba(split[2]), compiled)


METHODS = ("predict", "predict_proba", "decision_function", "transform")
WITH_CITATIONS = METHODS[:2]


def test_texts_and_matrix_with_citations_give_identical_results(
    fitted: WGCNTextClassifier,
    split,  # type: ignore[no-untyped-def]
) -> None:
    from wgcn import Corpus
    from wgcn.text.weighting import document_terms

    links = csr_array(random_array((len(split[2]), len(split[0])), density=0.001, rng=0))
    words = {"vocabulary": fitted.model_.vocabulary, "ngram_range": fitted.ngram_range}
    corpora = (Corpus.from_texts(texts, **words) for texts in (split[2], split[0]))
    new, known = (document_terms(corpus, fitted.model_.weighting) for corpus in corpora)
    alone = np.diff(links.indptr) == 0
    without = copy(fitted)
    without.model_ = replace(fitted.model_, spelling=None)  # a matrix has no words that training did not see
    for name in WITH_CITATIONS:
        given = {"document_graph": links, "documents": split[0], "hops": 2}
        attached, plain = getattr(without, name)(split[2], **given), getattr(without, name)(split[2])
        assert np.array_equal(attached, getattr(fitted.classifier_, name)(attach_citations(new, links, known, hops=2)))
        assert np.array_equal(attached[alone], plain[alone])
        attached, plain = getattr(fitted, name)(split[2], **given), getattr(fitted, name)(split[2])
        assert np.array_equal(attached[alone], plain[alone])
        assert not np.array_equal(attached, plain)


def test_a_text_of_unknown_words_is_known_by_what_it_cites() -> None:
    model = WGCNTextClassifier().fit(TEXTS, LABELS)
    new = ["zzzz", "", "zzzz"]
    links = csr_array(np.array([[1, 0], [0, 1], [0, 0]]))
    likely = model.predict_proba(new, document_graph=links, documents=["white wine", "fast car"])
    assert model.classes_[likely.argmax(axis=1)[:2]].tolist() == ["drink", "drive"]
    np.testing.assert_allclose(likely[2], [0.5, 0.5])
    assert model.predict([], document_graph=csr_array((0, 1)), documents=["wine"]).shape == (0,)


def test_citations_with_several_labels_a_text() -> None:
    model = WGCNTextClassifier().fit(TEXTS * 5, [["drink", "red"], ["drink"], ["drive"], ["drive"]] * 5)
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
@pytest.mark.parametrize("name", WITH_CITATIONS)
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
    model = WGCNTextClassifier().fit(few, labels)
    assert model.predict(["merlot", "sedan"]).tolist() == ["drink", "drive"]
    extra = WGCNTextClassifier().fit(few[:2], labels[:2], unlabeled=few[2:])
    np.testing.assert_allclose(extra.predict_proba(few), model.predict_proba(few), atol=1e-5)
    assert extra.model_.report["n_documents"] == 30
    assert extra.model_.report["n_labelled"] == 2


@pytest.mark.parametrize(("n_texts", "n_labels", "n_more"), [(4, 3, 0), (3, 4, 0), (3, 4, 1), (4, 3, 2), (2, 4, 1)])
def test_texts_and_labels_that_do_not_match_are_refused(n_texts: int, n_labels: int, n_more: int) -> None:
    message = f"{n_texts} texts but {n_labels} labels"
    for texts in (TEXTS[:n_texts], iter(TEXTS[:n_texts])):
        with pytest.raises(InputError, match=message):
            WGCNTextClassifier().fit(texts, LABELS[:n_labels], unlabeled=TEXTS[:n_more])


def test_ngrams_are_words_of_the_model(tmp_path: Path) -> None:
    model = WGCNTextClassifier().fit(["not good", "good", "not bad", "bad"] * 5, [0, 1, 1, 0] * 5)
    assert "not good" in model.model_.vocabulary
    assert model.predict(["not good", "not bad"]).tolist() == [0, 1]
    model.save(tmp_path / "model")
    assert np.array_equal(
        TextModel.load(tmp_path / "model").predict_proba(["not bad"]), model.predict_proba(["not bad"])
    )


def test_several_labels_a_text() -> None:
    labels = [["drink", "red"], ["drink"], ["drive"], ["drive"]] * 5
    model = WGCNTextClassifier().fit(TEXTS * 5, labels)
    assert model.classes_.tolist() == ["drink", "drive", "red"]
    assert model.predict(TEXTS).tolist() == [[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0]]


def test_scikit_learn_tools_work() -> None:
    model = WGCNTextClassifier(C=3.0)
    assert clone(model).C == 3.0
    assert cross_val_score(model, TEXTS * 3, LABELS * 3, cv=3).mean() == 1
    search = GridSearchCV(model, {"alpha": [0, 1], "window": [2, 5]}, cv=2).fit(TEXTS * 3, LABELS * 3)
    assert search.predict(["wine"]).tolist() == ["drink"]
    fitted = model.fit(TEXTS, LABELS)
    assert fitted.transform(TEXTS).shape == (4, len(fitted.get_feature_names_out()))
    assert fitted.decision_function(TEXTS).shape == (4,)
    assert len(fitted.history_) >= 1
    assert fitted.word_embeddings_.shape[0] == len(fitted.word_graph_.vocabulary)


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
    WGCNTextClassifier(n_jobs=n_jobs).fit(TEXTS, LABELS)
    assert set(asked) == {n_jobs}
    assert len(asked) >= len(places) + 2  # the linear model scales the graph and the subwords, and fits


def test_no_threads_are_refused() -> None:
    with pytest.raises(InputError, match="n_jobs"):
        WGCNTextClassifier(n_jobs=0).fit(TEXTS, LABELS)


def test_all_cores_fit_and_predict() -> None:
    model = WGCNTextClassifier(n_jobs=-1).fit(TEXTS, LABELS)
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
    (["red wine", float("nan")], "got float at place 1 .*nan"),
    (pd.Series(["red wine", pd.NA], dtype=object), "got NAType at place 1"),
    ([b"red wine", "car"], "got bytes at place 0 .*Decode"),
    (["red wine", 3], "got int at place 1"),
]


@pytest.fixture(scope="module")
def small() -> WGCNTextClassifier:
    return WGCNTextClassifier().fit(TEXTS, LABELS)


@pytest.mark.parametrize(("texts", "message"), NO_TEXTS)
def test_what_is_no_list_of_texts_is_explained_everywhere(small: WGCNTextClassifier, texts: Any, message: str) -> None:
    estimator = small
    embedder = WGCNEmbedder(n_components=2).fit(TEXTS)
    model, graph = estimator.model_, csr_array(np.ones((4, 4)))
    calls: list[Callable[[], object]] = [
        *(partial(getattr(estimator, name), texts) for name in (*METHODS, "extend")),
        *(partial(getattr(estimator, name), TEXTS, document_graph=graph, documents=texts) for name in WITH_CITATIONS),
        *(partial(getattr(estimator, name), texts, document_graph=graph) for name in WITH_CITATIONS),
        *(partial(getattr(model, name), texts) for name in ("predict", "predict_proba", "scores", "transform")),
        *(partial(getattr(model, name), texts) for name in ("terms", "extend")),
        partial(estimator.score, texts, LABELS),
        partial(WGCNTextClassifier().fit, texts, ["a", "b"]),
        partial(WGCNTextClassifier().fit, TEXTS, LABELS, unlabeled=texts),
        partial(WGCNTextClassifier().fit, TEXTS, LABELS, background=texts),
        partial(Preparation().prepare, texts),
        partial(Preparation().prepare, TEXTS, background=texts),
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


@pytest.mark.parametrize("texts", [["a a a", "a a", "a", ""], ["a"] * 4, ["red wine"] * 4])
@pytest.mark.parametrize("labels", [["x", "y", "x", "x"], ["x", "y", None, None]])
def test_texts_whose_words_have_no_edges(texts: list[str], labels: list[str | None]) -> None:
    fitted = WGCNTextClassifier().fit(texts, labels)
    assert np.isfinite(fitted.predict_proba([*texts, "", "zzz"])).all()


def test_many_classes_of_one_text() -> None:
    texts = [f"word{i} other{i % 7}" for i in range(110)]
    model = WGCNTextClassifier().fit(texts, [f"class {i}" for i in range(110)])
    assert model.score(texts, [f"class {i}" for i in range(110)]) == 1
    assert model.classifier_.held_out_accuracy_ is None
    few = WGCNTextClassifier().fit(texts, [f"class {max(i, 5)}" for i in range(110)])
    assert few.classifier_.n_held_out_ == 5


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


THINGS = [f"the {word} is here today" for pair in zip(FOOD, TOOLS, strict=True) for word in pair] * 2
KINDS = ["food", "tools"] * 16
VECTORS = {word: [float(word in FOOD), float(word in TOOLS), 0.1] for word in FOOD + TOOLS} | {"the": [0.0, 0.0, 1.0]}


def test_vectors_separate_words_that_no_label_has_and_are_not_needed_to_predict(tmp_path: Path) -> None:
    given = [*KINDS[:4], *[None] * 28]
    plain, taught = (WGCNTextClassifier().fit(THINGS, given, vectors=vectors) for vectors in (None, VECTORS))
    assert np.mean(plain.predict(THINGS) == KINDS) < 0.9
    assert (taught.predict(THINGS) == KINDS).all()
    taught.save(tmp_path / "m")
    assert TextModel.load(tmp_path / "m").predict(["an apple", "a saw"]).tolist() == ["food", "tools"]


def test_vectors_change_nothing_where_every_text_is_labelled() -> None:
    plain, taught = (WGCNTextClassifier().fit(THINGS, KINDS, vectors=vectors) for vectors in (None, VECTORS))
    assert plain.word_embeddings_.tobytes() == taught.word_embeddings_.tobytes()


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ({"zzz": [1.0]}, "none of these words"),
        ({}, "none of these words"),
        ({"apple": [1.0], "saw": [1.0, 2.0]}, "the shapes"),
        ({"apple": 1.0, "saw": 2.0}, "the shapes"),
        ({"apple": [np.nan], "saw": [1.0]}, "not finite"),
    ],
)
def test_unusable_vectors_are_explained(vectors: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WGCNTextClassifier().fit(THINGS, [*KINDS[:4], *[None] * 28], vectors=vectors)


@pytest.mark.parametrize("vectors", [None, {f"thing{i}": [float(i), 1.0] for i in range(20)}])
def test_few_labels_of_many_classes_are_no_reason_to_warn(vectors: dict[str, list[float]] | None) -> None:
    texts = [f"word{i} thing{i % 20} other" for i in range(60)]
    labels = [f"class {i % 20}" for i in range(30)] + [None] * 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WGCNTextClassifier().fit(texts, labels, vectors=vectors)


def test_texts_from_elsewhere_give_their_words_a_row_through_the_graph_and_teach_nothing() -> None:
    texts, labels = ["red wine", "white wine", "fast car", "slow car"] * 5, ["drink", "drink", "drive", "drive"] * 5
    elsewhere = ["merlot wine", "a merlot wine", "sedan car", "a sedan car"] * 3
    model = WGCNTextClassifier(subwords=0).fit(texts, labels, background=elsewhere)
    assert model.predict(["merlot", "sedan"]).tolist() == ["drink", "drive"]
    assert model.model_.report["n_documents"] == len(texts)
    assert model.model_.report["n_background"] == len(elsewhere)
    # Without a graph and subwords, nothing is said of words that no text of its own has.
    alone = WGCNTextClassifier(alpha=0, subwords=0).fit(texts, labels, background=elsewhere)
    assert not alone.word_embeddings_[alone.model_.vocabulary.id_of("merlot")].any()
    # Teacher and self-training, which need unlabelled texts, have nothing to do.
    prepared = Preparation().prepare(texts, background=elsewhere)
    plain = WGCNClassifier(teacher=0, self_training=0)
    plain.fit(prepared.document_terms, labels, word_graph=prepared.word_graph)
    assert plain.word_embeddings_.tobytes() == model.word_embeddings_.tobytes()


@pytest.mark.parametrize("name", ["unlabeled", "background"])
def test_one_text_in_place_of_more_texts_is_explained(name: str) -> None:
    with pytest.raises(InputError, match="put it into a list"):
        WGCNTextClassifier().fit(["red wine", "fast car"], ["drink", "drive"], **{name: "white wine"})  # type: ignore[arg-type]


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
        ({"window": 1}, "window"),
        ({"alpha": -1}, "alpha"),
        ({"subwords": -1}, "subwords must be at least 0, got -1"),
        ({"subwords": "many"}, "subwords must be a number, got 'many'"),
        ({"C": 0}, "C must be above 0"),
        ({"C": "much"}, "C must be a number, got 'much'"),
        ({"class_weight": "fair"}, "class_weight"),
        ({"class_weight": {"drink": -1, "drive": 1}}, "class_weight"),
        ({"class_weight": {"drink": "x", "drive": 1}}, "class_weight"),
        ({"class_prior": "equal"}, "class_prior"),
        ({"class_prior": {"drink": 1, "sleep": 1}}, "'sleep'"),
        ({"class_prior": {"drink": 1}}, "'drive'"),
        ({"class_prior": {"drink": 1, "drive": 0}}, "above 0"),
        ({"n_jobs": "all"}, "n_jobs"),
    ],
)
def test_wrong_parameters_are_told_before_any_text_is_read(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        WGCNTextClassifier(**parameters).fit(never_read(), LABELS)


def test_what_does_not_fit_the_labels_is_told_before_any_text_is_read(tmp_path: Path) -> None:
    several = [["drink"], ["drink", "red"], ["drive"], ["drive"]]
    for parameters in ({"class_weight": "balanced"}, {"class_prior": "uniform"}):
        with pytest.raises(InputError, match="one class each"):
            WGCNTextClassifier(**parameters).fit(never_read(), several)
    with pytest.raises(InputError, match="one class"):
        WGCNTextClassifier().fit(never_read(), ["drink"] * 4)
    with pytest.raises(InputError, match=r"sample_weight has the shape \(3,\)"):
        WGCNTextClassifier().fit(never_read(), LABELS, [1, 2, 3])


def test_every_parameter_can_be_searched() -> None:
    model = WGCNTextClassifier()
    defaults = model.get_params()
    assert len(defaults) <= 12
    assert clone(model.set_params(**{**defaults, "C": 2.0})).get_params() == {**defaults, "C": 2.0}
    grid = {name: [value] for name, value in defaults.items()}
    assert GridSearchCV(WGCNTextClassifier(), grid, cv=2).fit(TEXTS, LABELS).best_params_ == defaults


def test_fit_is_a_preparation_and_a_fit_of_the_matrix() -> None:
    more, links = ["merlot wine", "sedan car"] * 3, csr_array(np.eye(4, k=1) + np.eye(4, k=-1))
    for graph in (None, links):
        whole = WGCNTextClassifier().fit(TEXTS, LABELS, unlabeled=more, document_graph=graph)
        prepared = Preparation().prepare([*TEXTS, *more], with_graph=graph is None)
        terms = prepared.document_terms
        words = prepared.word_graph if graph is None else prepared.citation_graph(graph)
        apart = WGCNClassifier().fit(
            terms[:4], LABELS, word_graph=words, unlabeled=terms[4:], subwords=prepared.subword_matrix()
        )
        assert apart.word_embeddings_.tobytes() == whole.word_embeddings_.tobytes()
        assert prepared.text_model(apart, {}).vocabulary == whole.model_.vocabulary


@pytest.mark.parametrize("size", [1e9, 1e12, 1e15])
def test_a_huge_c_is_fitted_or_refused_but_never_gives_equal_probabilities(size: float) -> None:
    texts = [f"{text} {i}" for i in range(8) for text in ("red wine", "white wine", "fast car", "slow car")]
    fitted = WGCNTextClassifier(C=size).fit(texts, ["drink", "drink", "drive", "drive"] * 8)
    assert fitted.predict(["red wine", "slow car"]).tolist() == ["drink", "drive"]
    assert fitted.predict_proba(["red wine", "slow car"]).max(axis=1).min() > 0.7
