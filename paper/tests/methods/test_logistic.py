"""Logistic regression; what it shares with the linear support vector machine is tested there."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from wgcn_paper.methods.logistic import LogisticMethod, _MergedLogistic, merge_columns
from wgcn_paper.protocol import Query, Task

TEXTS = ("red wine", "white wine and red wine", "wine glass", "fast car", "slow car and fast car", "car and bus")
TEXTS += ("green tree", "old green tree", "tree and leaf", "old merlot", "")
LABELS = np.array(["drink"] * 3 + ["drive"] * 3 + ["grow"] * 3 + [None] * 2, object)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)


def digest(task: Task = TASK, **settings: object) -> str | None:
    return LogisticMethod(settings).fit(task).digest


def test_it_is_the_minimum_of_its_loss() -> None:
    method = LogisticMethod({"C": 10.0})
    fit = method.fit(TASK)
    x = TfidfVectorizer(sublinear_tf=True).fit(TEXTS).transform(TEXTS[:9]).toarray()
    y = np.repeat(np.arange(3), 3)

    def loss(flat: np.ndarray) -> float:
        weights = flat.reshape(3, -1)
        scores = x @ weights[:, 1:].T + weights[:, 0]
        fits = scores[np.arange(9), y] - logsumexp(scores, axis=1)
        return float(np.sum(weights[:, 1:] ** 2) / 2 - 10 * fits.sum())

    best = minimize(loss, np.zeros(3 * (x.shape[1] + 1)), tol=1e-8)
    found = np.column_stack([method._model.intercept_, method._model.coef_])
    assert loss(found.ravel()) == pytest.approx(best.fun, rel=1e-4)
    np.testing.assert_allclose(found[:, 1:], best.x.reshape(3, -1)[:, 1:], atol=0.01)
    assert (fit.epochs, fit.validation_accuracy, fit.seconds_per_epoch) == (None, None, None)


def test_it_learns_and_meets_odd_texts() -> None:
    method = LogisticMethod()
    fit = method.fit(TASK)
    assert fit.validation_accuracy is not None
    guesses = method.predict(Query(("a glass of wine", "two cars: a fast car", "a leaf", "", "unheard"), None, None))
    assert guesses[:3].tolist() == ["drink", "drive", "grow"]
    assert set(guesses[3:]) <= {"drink", "drive", "grow"}


def test_order_of_documents_changes_nothing() -> None:
    order = np.random.default_rng(0).permutation(len(TEXTS))
    other = replace(TASK, texts=tuple(TEXTS[i] for i in order), labels=LABELS[order])
    assert digest() == digest(other)
    methods = [LogisticMethod({"C": 10.0}), LogisticMethod({"C": 10.0})]
    for method, task in zip(methods, (TASK, other), strict=True):
        method.fit(task)
    assert methods[0].predict(Query(TEXTS[:10], None, None)).tolist() == (
        methods[1].predict(Query(TEXTS[:10][::-1], None, None))[::-1].tolist()
    )


def test_every_setting_is_used() -> None:
    values = {"C": 7.0, "ngrams": 2, "sublinear": False}
    assert set(LogisticMethod.defaults) == set(values)
    digests = [digest(), *(digest(**{setting: value}) for setting, value in values.items())]
    assert len(set(digests)) == 4
    assert digest(**LogisticMethod.defaults) == digests[0]


def test_no_seed_changes_it() -> None:
    assert not LogisticMethod.seeded
    assert LogisticMethod(seed=0).fit(TASK).digest == LogisticMethod(seed=1).fit(TASK).digest


def test_one_document_for_a_class() -> None:
    method = LogisticMethod()
    method.fit(replace(TASK, labels=np.where(np.arange(11) < 7, LABELS, None)))
    assert method.predict(Query(("green tree", "red wine"), None, None)).tolist() == ["grow", "drink"]


# Merged columns


def test_columns_of_one_row_are_merged_and_nothing_is_lost() -> None:
    rows = csr_matrix(np.array([[1, 3, 4, 0, 0, 0], [1, 0, 0, 2, 0, 0], [1, 0, 0, 0, 0, 0]], np.float32))
    merge = merge_columns(rows)
    assert (rows @ merge).toarray().tolist() == [[1, 5, 0], [1, 0, 2], [1, 0, 0]]
    np.testing.assert_allclose((merge.T @ merge).toarray(), np.eye(3), atol=1e-6)
    # A column that no row has means nothing, and a new row is seen by the share that it has of the others.
    new = csr_matrix(np.array([[0, 1, 0, 0, 7, 9]], np.float32))
    np.testing.assert_allclose((new @ merge).toarray(), [[0, 0.6, 0]], atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_merged_columns_have_the_minimum_of_the_same_loss(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    rows = csr_matrix((rng.random((40, 300)) * (rng.random((40, 300)) < 0.03)).astype(np.float32))
    assert merge_columns(rows).shape[1] < 250
    labels = rng.integers(0, n_classes, 40).astype(str)
    values = {"tol": 1e-6, "max_iter": 1000}
    merged, plain = _MergedLogistic(**values, solver="newton-cg", warm_start=True), LogisticRegression(**values)
    for c in (1.0, 10.0):
        merged.set_params(C=c).fit(rows, labels)
        plain.set_params(C=c).fit(rows.astype(np.float64), labels)
        assert merged.coef_.shape == plain.coef_.shape
        np.testing.assert_allclose(merged.coef_, plain.coef_, atol=2e-3)
        np.testing.assert_allclose(merged.predict_proba(rows), plain.predict_proba(rows), atol=2e-3)


def test_a_warm_start_begins_with_the_weights_of_the_fit_before() -> None:
    rows = TfidfVectorizer(dtype=np.float32).fit_transform(TEXTS[:9])
    model = _MergedLogistic(tol=1e-4, warm_start=True, solver="newton-cg").fit(rows, LABELS[:9].astype(str))
    steps = model.n_iter_[0]
    assert model.fit(rows, LABELS[:9].astype(str)).n_iter_[0] < steps
