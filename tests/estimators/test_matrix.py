from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from wgcn import Corpus, VocabularyRules, WGCNClassifier, WordGraph
from wgcn.errors import InputError
from wgcn.graph.citations import attach_citations
from wgcn.network.settings import TrainingSettings
from wgcn.text.docs_corpus import DocsCorpus
from wgcn.text.weighting import document_terms


@parametrize_with_checks(
    [
        WGCNClassifier(),
        WGCNClassifier(loss="softmax", validation_fraction=0),
        WGCNClassifier(learn_alpha="shared"),
        WGCNClassifier(learn_alpha="word"),
    ]
)
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


def test_a_citation_graph_makes_the_word_graph(docs: DocsCorpus, docs_terms: tuple[csr_array, np.ndarray]) -> None:
    x, y = docs_terms
    model = WGCNClassifier(validation_fraction=0, max_iter=20).fit(x, y, document_graph=docs.document_graph)
    assert model.word_graph_.settings["weight"] == "citations"


def test_alpha_is_as_given_or_learnt(docs: DocsCorpus, docs_terms: tuple[csr_array, np.ndarray]) -> None:
    x, y = docs_terms
    x, y = x[docs.train], y[docs.train]
    given, shared, word = (WGCNClassifier(learn_alpha=each).fit(x, y) for each in (None, "shared", "word"))
    assert given.alpha_ == 0.5
    assert isinstance(shared.alpha_, float)
    assert shared.alpha_ != 0.5
    assert isinstance(word.alpha_, np.ndarray)
    assert word.alpha_.shape == (x.shape[1],)
    assert np.ptp(word.alpha_) > 0.01
    for model in (shared, word):
        assert model.score(x, y) > 0.9
        assert model.word_embeddings_.tobytes() == clone(model).fit(x, y).word_embeddings_.tobytes()


@pytest.mark.parametrize("learn_alpha", ["shared", "word"])
def test_alpha_is_learnt_with_two_classes_and_with_several_labels(learn_alpha: Literal["shared", "word"]) -> None:
    x, y = make_multilabel_classification(200, 30, n_classes=4, random_state=0)
    for labels in (y, y[:, 0]):
        model = WGCNClassifier(learn_alpha=learn_alpha, C=2.0).fit(x, labels)
        assert np.any(model.alpha_ != 0.5)
        assert model.score(x, labels) > 0.4


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


@pytest.mark.parametrize("model", ["linear", "network", "average"])
def test_class_prior_multiplies_the_odds(model: Literal["linear", "network", "average"]) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [20, 30, 10])
    x = csr_array(np.where(rng.random((60, 12)) < 0.2 + 0.3 * (np.arange(12) % 3 == y[:, None]), 1.0, 0))
    x = x[x.sum(axis=1) > 0]
    y = y[: x.shape[0]]
    options: dict[str, Any] = {"model": model, "training": TrainingSettings(max_epochs=5), "validation_fraction": 0}
    plain = WGCNClassifier(**options).fit(x, y)
    shares = np.bincount(y) / len(y)
    given = np.arange(1, len(shares) + 1) / np.arange(1, len(shares) + 1).sum()
    shifted = WGCNClassifier(**options, class_prior=dict(enumerate(given))).fit(x, y)
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
    texts, y = list(docs.texts[:300]), docs.labels[:300]
    pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), WGCNClassifier(max_iter=20))
    assert cross_val_score(pipeline, texts, y, cv=2).mean() > 0.5
    search = GridSearchCV(pipeline, {"wgcnclassifier__alpha": [0.0, 1.0]}, cv=2).fit(texts, y)
    assert search.best_params_["wgcnclassifier__alpha"] in (0.0, 1.0)
    names = pipeline.fit(texts, y)[-1].get_feature_names_out()
    assert len(names) == pipeline[-1].transform(pipeline[0].transform(texts[:1])).shape[1]


METHODS = ("predict", "predict_proba", "decision_function", "transform")


@pytest.fixture(scope="module")
def small() -> WGCNClassifier:
    rng = np.random.default_rng(0)
    return WGCNClassifier(max_iter=10).fit(rng.random((30, 5)), rng.integers(0, 3, 30))


@given(
    x=arrays(np.float64, (7, 5), elements=st.floats(0, 9)), links=arrays(np.int8, (4, 3), elements=st.integers(0, 1))
)
@pytest.mark.parametrize("hops", [1, 2])
def test_a_document_without_citations_is_predicted_as_ever(
    small: WGCNClassifier, x: np.ndarray, links: np.ndarray, hops: int
) -> None:
    alone = links.sum(axis=1) == 0
    for name in METHODS:
        method = getattr(small, name)
        attached = method(x[:4], document_graph=csr_array(links), documents=x[4:], hops=hops)
        assert np.array_equal(attached[alone], method(x[:4])[alone])
        rows = attach_citations(csr_array(x[:4]), csr_array(links), csr_array(x[4:]), hops=hops)
        assert np.array_equal(attached, method(rows))


def test_links_among_the_new_documents_count(small: WGCNClassifier) -> None:
    x = np.eye(2, 5)
    one, other = small.transform(x)
    both = small.transform(x, document_graph=csr_array(np.eye(2, k=1)))
    np.testing.assert_allclose(both, [(one + other) / 2] * 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"documents": np.eye(5)}, "no document_graph"),
        ({"document_graph": np.ones((2, 3))}, "must be 2 by 2"),
        ({"document_graph": np.ones((2, 3)), "documents": np.eye(3)}, "documents cannot be used.*has 3 features"),
        ({"document_graph": np.ones((2, 1)), "documents": np.full((1, 5), np.nan)}, "documents cannot be used.*NaN"),
        ({"document_graph": np.eye(2), "hops": -1}, "hops"),
    ],
)
@pytest.mark.parametrize("name", METHODS)
def test_unusable_citations_are_explained(
    small: WGCNClassifier, name: str, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=f"(?s){message}"):
        getattr(small, name)(np.eye(2, 5), **arguments)


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


@pytest.mark.parametrize("model", ["linear", "network"])
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
    model: Literal["linear", "network"], parameters: dict[str, Any], weight: Any, message: str
) -> None:
    if model == "network":
        pytest.importorskip("torch", reason="the network needs torch")
    with pytest.raises(InputError, match=message):
        WGCNClassifier(model=model, **parameters).fit(np.eye(4), [0, 1, 0, -1], weight)


@pytest.mark.parametrize(("scale", "weight"), [(1e18, 1.0), (1e200, 1.0), (1.0, 1e200)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_too_large_to_compute_with_are_an_error_and_no_constant_model(scale: float, weight: float) -> None:
    with pytest.raises(InputError, match="huge values"):
        WGCNClassifier().fit(scale * np.eye(4), [0, 1, 0, 1], np.full(4, weight))


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
    with pytest.raises(InputError, match="3 columns, but the model has 2 classes"):
        model.score(x[:2], [[1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("missing", [None, float("nan"), -1])
@pytest.mark.parametrize("cv", [KFold(3), 3])
def test_cross_validation_with_documents_that_have_no_label(missing: object, cv: Any) -> None:
    if cv == 3 and missing != -1:
        pytest.skip("scikit-learn cannot stratify missing labels")
    x = np.array([[1, 0], [0, 1], [1, 1], [1, 0], [0, 1], [1, 1]] * 3, float)
    y = np.array([0, 1, missing] * 6, object if missing is None else None)
    assert cross_val_score(WGCNClassifier(), x, y, cv=cv).tolist() == [1, 1, 1]


def test_a_senseless_validation_share_is_refused() -> None:
    with pytest.raises(InputError, match="validation_fraction"):
        WGCNClassifier(validation_fraction=1.0).fit(np.eye(2), [0, 1])


def test_the_network_learns_and_predicts_with_numpy_what_torch_would() -> None:
    torch = pytest.importorskip("torch", reason="the network needs torch")
    from wgcn.network.module import WGCN, sparse_matrix
    from wgcn.network.settings import NetworkSettings, TrainingSettings

    x = csr_array(np.array([[1, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]] * 10, np.float32))
    y = np.array(["a", "b"] * 20)
    model = WGCNClassifier(
        model="network",
        network=NetworkSettings(hidden=8),
        training=TrainingSettings(max_epochs=60, validation_fraction=0, device="cpu"),
    ).fit(x, y)
    assert model.score(x, y) == 1
    assert model.word_embeddings_.shape == (4, 8)
    assert len(model.history_) == 60
    reference = WGCN(4, 2, hidden=8, order=0).eval()
    with torch.no_grad():
        for name, value in (("word_weights", model.word_embeddings_), ("class_weights", model.scorer_.class_weights)):
            getattr(reference, name).copy_(torch.from_numpy(value))
        reference.bias.copy_(torch.from_numpy(model.scorer_.bias))
        logits = reference(sparse_matrix(x), sparse_matrix(model.word_graph_.adjacency, symmetric=True)).numpy()
    np.testing.assert_allclose(model._scores(x), logits, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stopping", ["best", "mean"])
@pytest.mark.parametrize("refit", [False, True])
def test_the_accuracy_that_the_network_reports_is_that_of_the_weights_it_keeps(
    stopping: Literal["best", "mean"], refit: bool
) -> None:
    pytest.importorskip("torch", reason="the network needs torch")
    from wgcn.network.settings import NetworkSettings, TrainingSettings

    rng = np.random.default_rng(0)
    training = TrainingSettings(
        max_epochs=100, patience=6, stopping=stopping, validation_fraction=0.4, refit=refit, device="cpu"
    )
    # Labels that mean nothing: the accuracy goes up and down.
    model = WGCNClassifier(model="network", network=NetworkSettings(hidden=8), training=training)
    model.fit(rng.random((60, 10)), rng.integers(0, 2, 60))
    searched = [record for record in model.history_ if not record["refit"]]
    losses = [record["validation_loss"] for record in searched]
    kept = searched[-1] if stopping == "mean" else searched[int(np.argmin(losses))]
    assert len(searched) < 100
    assert model.held_out_accuracy_ == kept["validation_accuracy"]
    assert model.n_held_out_ == 24


def test_the_network_tells_how_many_documents_of_a_long_tail_were_held_out() -> None:
    pytest.importorskip("torch", reason="the network needs torch")
    model = WGCNClassifier(model="network", training=TrainingSettings(max_epochs=2, device="cpu"))
    model.fit(np.eye(60), np.maximum(np.arange(60) - 2, 0))  # three of the first class, one of each other
    assert model.n_held_out_ == 1
    model.fit(np.eye(60), np.arange(60))
    assert (model.n_held_out_, model.held_out_accuracy_) == (0, None)


NOT_FOR_NETWORKS = {
    "check_sample_weight_equivalence_on_dense_data": "dropout and early stopping draw documents, not weights",
    "check_sample_weight_equivalence_on_sparse_data": "dropout and early stopping draw documents, not weights",
    "check_transformer_preserve_dtypes": "the network is trained in single precision",
}


@parametrize_with_checks([WGCNClassifier(model="network")], expected_failed_checks=lambda _: NOT_FOR_NETWORKS)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract_of_the_network(estimator, check) -> None:  # type: ignore[no-untyped-def]
    check(estimator)


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
