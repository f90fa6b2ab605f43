from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from wgcn import Corpus, VocabularyRules, WGCNClassifier, WGCNNetworkClassifier, WordGraph
from wgcn.base.errors import InputError
from wgcn.text.weighting import document_terms
from wgcn_paper.datasets.docstrings import DocsCorpus


@parametrize_with_checks([WGCNClassifier()])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check) -> None:  # type: ignore[no-untyped-def]
    check(estimator)


@pytest.fixture(scope="module")
def docs_terms(docs: DocsCorpus) -> tuple[csr_array, np.ndarray]:
    assert docs.texts is not None
    corpus = Corpus.from_texts(docs.texts, rules=VocabularyRules(min_df=5))
    return document_terms(corpus), docs.labels


def test_words_seen_only_without_labels_are_understood_through_the_graph() -> None:
    # Words 0 and 1 belong together, and so do 2 and 3; labels are known for 0 and 2 alone.
    x = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]], float)
    new = np.array([[0, 1, 0, 0], [0, 0, 0, 1]], float)
    with_graph = WGCNClassifier(teacher=0, self_training=0).fit(x, [0, 1, -1, -1])
    assert with_graph.predict(new).tolist() == [0, 1]
    without = WGCNClassifier(alpha=0, teacher=0, self_training=0).fit(x, [0, 1, -1, -1])
    assert np.ptp(without.decision_function(new)) == 0


def test_documents_without_labels_teach_words_that_no_label_has() -> None:
    x = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]], float)
    new = np.array([[0, 1, 0, 0], [0, 0, 0, 1]], float)
    taught = WGCNClassifier(alpha=0).fit(x, [0, 1, -1, -1])
    assert taught.predict(new).tolist() == [0, 1]
    graph = taught.word_graph_
    apart = WGCNClassifier(alpha=0).fit(x[:2], [0, 1], word_graph=graph, unlabeled=csr_array(x[2:]))
    np.testing.assert_allclose(apart.decision_function(new), taught.decision_function(new), rtol=1e-5)
    untaught = WGCNClassifier(alpha=0).fit(x[:2], [0, 1], word_graph=graph)
    assert np.ptp(untaught.decision_function(new)) == 0


def test_docs_corpus_is_learnt(docs: DocsCorpus, docs_terms: tuple[csr_array, np.ndarray]) -> None:
    x, y = docs_terms
    model = WGCNClassifier().fit(x[docs.train], y[docs.train])
    assert model.score(x[docs.test], y[docs.test]) > 0.88
    assert 0.85 < model.held_out_accuracy_ < 1
    # The probabilities are worth their name: on average as confident as right.
    likely = model.predict_proba(x[docs.test]).max(axis=1)
    assert likely.mean() == pytest.approx(model.score(x[docs.test], y[docs.test]), abs=0.06)


def test_a_fit_gives_the_same_bytes_twice(docs: DocsCorpus, docs_terms: tuple[csr_array, np.ndarray]) -> None:
    x, y = (part[docs.train[:400]] for part in docs_terms)
    tables = [WGCNClassifier().fit(x, y).word_embeddings_.tobytes() for _ in range(2)]
    assert tables[0] == tables[1]


def test_a_citation_graph_makes_the_word_graph(docs_terms: tuple[csr_array, np.ndarray]) -> None:
    x, y = (part[:200] for part in docs_terms)
    links = csr_array(random_array((200, 200), density=0.01, rng=0))
    model = WGCNClassifier().fit(x, y, document_graph=links)
    assert model.word_graph_.settings["weight"] == "citations"


def test_several_labels_a_document() -> None:
    x, y = make_multilabel_classification(300, 30, n_classes=4, random_state=0)
    model = WGCNClassifier().fit(x[:200], y[:200])
    assert model.predict(x[200:]).shape == (100, 4)
    assert np.mean(model.predict(x[200:]) == y[200:]) > 0.7
    proba = model.predict_proba(x[200:])
    assert np.all((proba > 0.5) == (model.decision_function(x[200:]) > 0))


def test_an_empty_document_gets_the_class_shares() -> None:
    x = np.array([[1, 0], [1, 0], [1, 0], [0, 1]], float)
    model = WGCNClassifier().fit(x, ["a", "a", "a", "b"])
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 2))), [[0.75, 0.25]], rtol=1e-6)


CLASSIFIERS = [WGCNClassifier(), WGCNNetworkClassifier(max_epochs=5, hidden=4, validation_fraction=0, device="cpu")]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=["linear", "network"])
def test_class_prior_multiplies_the_odds(classifier: WGCNClassifier | WGCNNetworkClassifier) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [20, 30, 10])
    x = csr_array(np.where(rng.random((60, 12)) < 0.2 + 0.3 * (np.arange(12) % 3 == y[:, None]), 1.0, 0))
    x = x[x.sum(axis=1) > 0]
    y = y[: x.shape[0]]
    plain = clone(classifier).fit(x, y)
    shares = np.bincount(y) / len(y)
    given = np.arange(1, len(shares) + 1) / np.arange(1, len(shares) + 1).sum()
    shifted = clone(classifier).set_params(class_prior=dict(enumerate(given))).fit(x, y)
    expected = plain.predict_proba(x) * given / shares
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shifted.predict_proba(x), expected, rtol=1e-3, atol=1e-6)
    nothing = csr_array((1, x.shape[1]), dtype=x.dtype)
    np.testing.assert_allclose(shifted.predict_proba(nothing), [given], rtol=1e-4)


def test_class_weight_moves_the_border() -> None:
    rng = np.random.default_rng(0)
    x = np.vstack([rng.normal(0, 1, (190, 2)), rng.normal(1, 1, (10, 2))])
    y = np.repeat([0, 1], [190, 10])
    plain = WGCNClassifier().fit(x, y).predict(x).sum()
    balanced = WGCNClassifier(class_weight="balanced").fit(x, y).predict(x).sum()
    assert balanced > plain


def test_it_works_in_pipelines_and_searches(docs: DocsCorpus) -> None:
    assert docs.texts is not None
    texts, y = list(docs.texts[:120]), docs.labels[:120]
    pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), WGCNClassifier())
    assert cross_val_score(pipeline, texts, y, cv=2).mean() > 0.5
    search = GridSearchCV(pipeline, {"wgcnclassifier__alpha": [0.0, 1.0]}, cv=2).fit(texts, y)
    assert search.best_params_["wgcnclassifier__alpha"] in (0.0, 1.0)
    names = pipeline.fit(texts, y)[-1].get_feature_names_out()
    assert len(names) == pipeline[-1].transform(pipeline[0].transform(texts[:1])).shape[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": ["a", "a"]}, "one class"),
        ({"y": ["a", "b", "c"]}, "inconsistent numbers"),
        ({"X": np.array([[1, np.nan], [0, 1]])}, "NaN"),
        ({"word_graph": WordGraph.from_corpus(Corpus.from_texts(["a b c"]))}, "2 features but the word graph has 3"),
    ],
)
def test_unusable_input_is_explained(arguments: dict[str, object], message: str) -> None:
    arguments = {"X": np.eye(2), "y": ["a", "b"], **arguments}
    with pytest.raises(ValueError, match=message):
        WGCNClassifier().fit(**arguments)


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=["linear", "network"])
@pytest.mark.parametrize(
    ("parameters", "weight", "message"),
    [
        ({}, [1, -1, 1, 1], "not negative, got -1.0 for document 1"),
        ({}, [1, np.nan, 1, 1], "finite.* for document 1"),
        ({}, [1, 1, 1, np.inf], "finite.* for document 3"),
        ({}, [1, 1, 1], "4 documents"),
        ({}, ["a", 1, 1, 1], "a number for each document"),
        ({}, [0, 0, 0, 0], "weight zero"),
        ({}, [0, 0, 0, 1], "weight zero"),  # the last has no label
        ({"class_weight": {0: -1, 1: 1}}, None, "class_weight .*got -1 for 0"),
        ({"class_weight": {0: 1, 1: np.nan}}, None, "class_weight .*got nan for 1"),
        ({"class_weight": {0: "much", 1: 1}}, None, "class_weight .*'much'"),
        ({"class_weight": {0: 0, 1: 0}}, None, "weight zero"),
    ],
)
def test_unusable_weights_are_explained(
    classifier: WGCNClassifier | WGCNNetworkClassifier, parameters: dict[str, Any], weight: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        clone(classifier).set_params(**parameters).fit(np.eye(4), [0, 1, 0, -1], weight)


@pytest.mark.parametrize(("scale", "weight"), [(1e200, 1.0), (1.0, 1e200)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_too_large_to_compute_with_are_an_error_and_no_constant_model(scale: float, weight: float) -> None:
    with pytest.raises(InputError, match="huge values"):
        WGCNClassifier().fit(scale * np.eye(4), [0, 1, 0, 1], np.full(4, weight))


@pytest.mark.parametrize("scale", [1e-6, 1e9])
def test_documents_of_any_other_size_are_fitted(scale: float) -> None:
    rows = scale * np.eye(4)
    assert WGCNClassifier(C=0.5 / scale**2).fit(rows, [0, 1, 0, 1]).predict(rows).tolist() == [0, 1, 0, 1]


def test_one_class_of_weight_0_is_no_error() -> None:
    assert WGCNClassifier(class_weight={0: 0, 1: 1}).fit(np.eye(4), [0, 1, 0, 1]).predict(np.eye(4)).tolist() == [1] * 4


@pytest.mark.parametrize("missing", [None, float("nan"), -1])
def test_score_leaves_out_documents_without_a_label(missing: object) -> None:
    x = np.array([[1, 0], [0, 1], [1, 0], [0, 1], [1, 1]], float)
    model = WGCNClassifier().fit(x, [0, 1, 0, 1, missing])
    assert model.score(x, [0, 1, 0, 1, missing]) == 1
    assert model.score(x, [0, 1, 0, missing, missing]) == 1
    assert model.score(x, [0, 1, 1, 1, missing]) == 0.75
    assert model.score(x, [0, 1, 1, 1, missing], [1, 1, 2, 0, 5]) == 0.5
    with pytest.raises(InputError, match="nothing to measure by"):
        model.score(x, [missing] * 5)
    with pytest.raises(InputError, match="weight zero"):
        model.score(x, [0, 1, 1, 1, missing], [0, 0, 0, 0, 1])
    with pytest.raises(InputError, match="not negative"):
        model.score(x, [0, 1, 1, 1, missing], [-1, 1, 1, 1, 1])


def test_score_with_minus_one_as_a_class() -> None:
    x = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], float)
    model = WGCNClassifier().fit(x, [-1, 1, -1, 1])
    assert model.score(x, [-1, 1, 1, None]) == pytest.approx(2 / 3)
    assert model.score(x, [-1, -1, None, None]) == 0.5


def test_score_of_several_labels_counts_documents_that_are_wholly_right() -> None:
    x = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]] * 5, float)
    y: list[Any] = [["a"], ["b"], ["a", "b"], None] * 5
    model = WGCNClassifier(C=100).fit(x, y)
    assert model.score(x, y) == 1
    assert model.score(x[:4], [["a"], ["a"], ["a", "b"], None]) == pytest.approx(2 / 3)
    assert model.score(x[:4], [[1, 0], [1, 0], [1, 1], [-1, -1]]) == pytest.approx(2 / 3)
    with pytest.raises(InputError, match="no class 'c'"):
        model.score(x[:1], [["c"]])
    with pytest.raises(InputError, match=r"3 columns, but the predictions have the shape \(2, 2\)"):
        model.score(x[:2], [[1, 0, 0], [0, 1, 0]])


# scikit-learn itself cannot stratify None and NaN.
@pytest.mark.parametrize(("missing", "cv"), [(None, KFold(3)), (float("nan"), KFold(3)), (-1, KFold(3)), (-1, 3)])
def test_cross_validation_with_documents_that_have_no_label(missing: object, cv: Any) -> None:
    x = np.array([[1, 0], [0, 1], [1, 1], [1, 0], [0, 1], [1, 1]] * 3, float)
    y = np.array([0, 1, missing] * 6, object if missing is None else None)
    assert cross_val_score(WGCNClassifier(), x, y, cv=cv).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((3, 2)), "a row of numbers for each of the 4 columns"),
        (np.ones(4), "got float64 of shape"),
        (np.full((4, 2), "a"), "a row of numbers"),
        (np.full((4, 2), np.nan), "not finite"),
    ],
)
def test_unusable_word_vectors_are_explained(vectors: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        WGCNClassifier().fit(np.eye(4), [0, 1, 0, 1], word_vectors=vectors)


def test_every_parameter_can_be_searched() -> None:
    model = WGCNClassifier()
    defaults = model.get_params()
    assert len(defaults) <= 12
    assert clone(model.set_params(**{**defaults, "C": 2.0})).get_params() == {**defaults, "C": 2.0}
    grid = {name: [value] for name, value in defaults.items()}
    assert GridSearchCV(model, grid, cv=2).fit(np.eye(4), [0, 0, 1, 1]).best_params_ == defaults


def test_subwords_are_one_row_per_word_and_need_a_weight() -> None:
    rng = np.random.default_rng(0)
    x, y = csr_array(rng.random((20, 6))), np.arange(20) % 2
    s = csr_array((rng.random((6, 4)) < 0.5).astype(np.float32))
    with pytest.raises(InputError, match="X has 6 features but subwords has 5 rows: there must be one row per column"):
        WGCNClassifier().fit(x, y, subwords=s[:5])
    without = WGCNClassifier().fit(x, y)
    assert without.trained_.subword_rows is None
    zero = WGCNClassifier(subwords=0).fit(x, y, subwords=s)
    assert zero.word_embeddings_.tobytes() == without.word_embeddings_.tobytes()
    given = WGCNClassifier().fit(x, y, subwords=s)
    assert given.word_embeddings_.dtype == np.float64
    assert given.trained_.subword_rows is not None
    assert given.trained_.subword_rows.shape == (4, 2)
    assert not np.array_equal(given.word_embeddings_, without.word_embeddings_)
    with pytest.raises(InputError, match="subwords must be at least 0, got -1"):
        WGCNClassifier(subwords=-1).fit(x, y)
