"""Few labels and much text: what the estimators make of documents without a label, and of n-grams."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack
from threadpoolctl import threadpool_limits

from wgcn import TextModel, WGCNClassifier, WGCNTextClassifier, WordGraph
from wgcn.base.errors import InputError
from wgcn.estimators.preparation import Preparation
from wgcn.labels.splits import canonical_order, row_digests
from wgcn.labels.targets import Targets
from wgcn.linear.task import Thresholds
from wgcn.semi.teacher import Taught, Teacher

N_TOPICS = 4


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """Matrices so small take a hundred times longer on several threads of a busy machine."""
    with threadpool_limits(1, "blas"):
        yield


def texts_about(topics: np.ndarray, rng: np.random.Generator) -> list[str]:
    """Return texts of four words of a topic, out of 40, and eight that all topics use, out of 60."""
    return [
        " ".join([f"t{topic}w{i}" for i in rng.integers(0, 40, 4)] + [f"common{i}" for i in rng.integers(0, 60, 8)])
        for topic in topics
    ]


class Problem(NamedTuple):
    """Two labelled texts a topic, many without a label, and new ones."""

    texts: list[str]
    topics: np.ndarray
    unlabeled: list[str]
    new: list[str]
    new_topics: np.ndarray


def problem(seed: int, n_topics: int = N_TOPICS) -> Problem:
    rng = np.random.default_rng(seed)
    topics = np.tile(np.arange(n_topics), 2)
    new_topics = np.tile(np.arange(n_topics), 25)
    unlabeled = texts_about(np.tile(np.arange(n_topics), 100), rng)
    return Problem(texts_about(topics, rng), topics, unlabeled, texts_about(new_topics, rng), new_topics)


class Matrices(NamedTuple):
    """A smaller problem as matrices, with a graph of words."""

    x: csr_array
    y: np.ndarray
    unlabeled: csr_array
    graph: WordGraph


def matrices(n_classes: int = 3) -> Matrices:
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(n_classes), 4)
    rows = texts_about(np.concatenate([y, np.tile(np.arange(n_classes), 20)]), rng)
    prepared = Preparation(ngram_range=(1, 1), min_pairs=1).prepare(rows)
    assert prepared.word_graph is not None
    return Matrices(prepared.document_terms[: len(y)], y, prepared.document_terms[len(y) :], prepared.word_graph)


def fitted(data: Matrices, y: object = None, unlabeled: object = None, **settings: object) -> WGCNClassifier:
    model = WGCNClassifier(**settings)  # type: ignore[arg-type]
    return model.fit(data.x, data.y if y is None else y, word_graph=data.graph, unlabeled=unlabeled)  # type: ignore[arg-type]


def bits(model: WGCNClassifier) -> tuple[bytes, bytes]:
    return model.word_embeddings_.tobytes(), model.scorer_.bias.tobytes()


@pytest.mark.parametrize(("seed", "n_topics"), [(0, 2), (1, N_TOPICS)])
def test_words_that_only_unlabelled_texts_tie_together_are_understood(seed: int, n_topics: int) -> None:
    made = problem(seed, n_topics)
    prepared = Preparation().prepare([*made.texts, *made.unlabeled])
    terms, n = prepared.document_terms, len(made.topics)
    accuracy = []
    for share in (0.0, 1.0):
        classifier = WGCNClassifier(teacher=share, self_training=0)
        classifier.fit(terms[:n], made.topics, word_graph=prepared.word_graph, unlabeled=terms[n:])
        model = prepared.text_model(classifier, {})
        accuracy.append(np.mean(model.predict(made.new) == made.new_topics))
    assert accuracy[1] > 0.95
    assert accuracy[1] > accuracy[0] + 0.1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_unlabelled_documents_change_the_model_through_teacher_and_self_training_alone(n_classes: int) -> None:
    data = matrices(n_classes)
    plain = bits(fitted(data))
    for settings in ({}, {"teacher": 0}, {"self_training": 0}):
        assert bits(fitted(data, unlabeled=data.unlabeled, **settings)) != plain
    assert bits(fitted(data, unlabeled=data.unlabeled, teacher=0, self_training=0)) == plain


@pytest.mark.parametrize("n_classes", [2, 3])
def test_where_all_documents_are_labelled_there_is_no_teacher_and_no_second_fit(n_classes: int) -> None:
    data = matrices(n_classes)
    plain = bits(fitted(data, teacher=0, self_training=0))
    assert bits(fitted(data)) == plain
    assert bits(fitted(data, unlabeled=data.unlabeled[:0])) == plain


def test_a_label_of_minus_one_or_none_is_the_same_as_no_label() -> None:
    data = matrices()
    apart = fitted(data, unlabeled=data.unlabeled)
    n_others = data.unlabeled.shape[0]
    both = data._replace(x=csr_array(vstack([data.x, data.unlabeled])))
    assert bits(fitted(both, y=[*data.y.tolist(), *[-1] * n_others])) == bits(apart)
    names = np.array(["a", "b", "c"])[data.y].tolist()
    assert bits(fitted(both, y=[*names, *[None] * n_others])) == bits(apart)
    # Some among the documents, the rest beside them.
    half = data._replace(x=csr_array(vstack([data.x, data.unlabeled[:7]])))
    assert bits(fitted(half, y=[*data.y.tolist(), *[-1] * 7], unlabeled=data.unlabeled[7:])) == bits(apart)
    assert bits(fitted(data, unlabeled=data.unlabeled.toarray())) == bits(apart)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_the_teacher_says_counts_by_its_weight_and_the_share_of_documents_without_a_label(n_classes: int) -> None:
    data = matrices(n_classes)
    n_labelled, n_others = len(data.y), data.unlabeled.shape[0]
    guide = Teacher(csr_array(vstack([data.x, data.unlabeled])), data.graph.adjacency)
    taught = guide.teach(np.eye(n_classes, dtype=np.float32)[data.y], np.arange(n_labelled))
    # With hardly any loss nothing else is learnt.
    model = fitted(data, unlabeled=data.unlabeled, teacher=3.0, self_training=0, C=1e-7)
    expected = 3.0 * n_others / (n_others + n_labelled) * taught.word_scores
    np.testing.assert_allclose(model.word_embeddings_, expected, atol=1e-4)


def test_the_same_bits_come_out_twice_and_out_of_a_saved_model(tmp_path: Path) -> None:
    made = problem(0)
    models = [WGCNTextClassifier().fit(made.texts, made.topics, unlabeled=made.unlabeled) for _ in range(2)]
    expected = models[0].predict_proba(made.new)
    assert np.array_equal(models[1].predict_proba(made.new), expected)
    models[0].save(tmp_path / "model")
    assert np.array_equal(TextModel.load(tmp_path / "model").predict_proba(made.new), expected)
    assert models[0].model_.report["n_labelled"] == len(made.texts)
    assert models[0].model_.report["n_documents"] == len(made.texts) + len(made.unlabeled)


@pytest.mark.parametrize("few", [False, True])
def test_the_teacher_does_not_see_the_labels_of_held_out_documents(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(beside_teacher=121 if few else 120))
    rng = np.random.default_rng(0)
    x = csr_array((rng.random((140, 20)) < 0.3).astype(np.float32))
    y = np.append(np.arange(120) % 3, np.full(20, -1))
    seen: list[np.ndarray] = []
    teach = Teacher.teach
    order = canonical_order(row_digests(x[:120]), Targets.single(y[:120], 3), np.ones(120))

    def watched(self: Teacher, targets: Targets, labelled: np.ndarray, *prior: Any) -> Taught:
        labelled = order[labelled]
        assert np.array_equal(targets.codes, labelled % 3)
        seen.append(labelled)
        return teach(self, targets, np.argsort(order)[labelled], *prior)

    monkeypatch.setattr(Teacher, "teach", watched)
    model = WGCNClassifier().fit(x, y)
    assert model.n_held_out_ == (120 if few else 12)
    assert [len(rows) for rows in seen] == ([120, *[96] * 5, 120] if few else [108, 120])
    held_out = [set(range(120)) - set(rows) for rows in seen if len(rows) < 120]
    assert sum(map(len, held_out)) == len(set.union(*held_out)) == model.n_held_out_


def test_several_labels_a_document_have_neither_teacher_nor_second_fit_but_may_be_missing() -> None:
    data = matrices(2)
    labels = [[["a"], ["a", "b"], [], ["b"]][i % 4] for i in range(len(data.y))]
    with_them = fitted(data, y=labels, unlabeled=data.unlabeled)
    assert bits(with_them) == bits(fitted(data, y=labels))
    assert bits(with_them) == bits(fitted(data, y=labels, unlabeled=data.unlabeled, teacher=0, self_training=0))
    assert with_them.predict(data.unlabeled).shape == (data.unlabeled.shape[0], 2)


def test_several_labels_a_text_with_unlabelled_texts() -> None:
    made = problem(0)
    labels = [["even", f"t{topic}"] if topic % 2 == 0 else [f"t{topic}"] for topic in made.topics]
    model = WGCNTextClassifier().fit(made.texts, labels, unlabeled=made.unlabeled)
    found = model.predict(made.texts)
    assert found.shape == (len(made.texts), N_TOPICS + 1)
    assert [set(model.classes_[row == 1]) for row in found] == [set(each) for each in labels]


def test_unlabelled_texts_without_a_known_word_do_no_harm() -> None:
    made = problem(0)
    model = WGCNTextClassifier().fit(made.texts, made.topics, unlabeled=[*made.unlabeled, "", "!?", ""])
    assert np.mean(model.predict(made.new) == made.new_topics) > 0.95
    assert np.isfinite(model.word_embeddings_).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [("teacher", -0.5), ("teacher", float("nan")), ("naive_bayes", -0.5), ("naive_bayes", 1.25)],
)
def test_senseless_settings_are_refused_with_their_value(name: str, value: float) -> None:
    data = matrices()
    with pytest.raises(InputError, match=f"{name} must be .*, got {value}"):
        fitted(data, **{name: value})


@pytest.mark.parametrize(("naive_bayes", "dtype"), [(0.0, np.float32), (1.0, np.float32), (0.5, np.float64)])
def test_naive_bayes_changes_the_model_and_not_its_type(naive_bayes: float, dtype: type) -> None:
    data = matrices()
    data = data._replace(x=data.x.astype(dtype))
    model = fitted(data, unlabeled=data.unlabeled, naive_bayes=naive_bayes)
    assert model.word_embeddings_.dtype == dtype
    assert not np.array_equal(model.word_embeddings_, fitted(data, unlabeled=data.unlabeled, naive_bayes=0.3))
    assert model.score(data.x, data.y) == 1


def test_ngrams_count_in_the_documents() -> None:
    # The words are the same in both classes; only their order is not.
    texts = ["red wine white rose", "white rose red wine", "red rose white wine", "white wine red rose"] * 3
    model = WGCNTextClassifier().fit(texts, ["a", "a", "b", "b"] * 3)
    assert model.predict(["red wine", "white rose", "red rose", "white wine"]).tolist() == ["a", "a", "b", "b"]
