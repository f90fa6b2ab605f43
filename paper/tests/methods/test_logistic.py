"""Logistic regression; what it shares with the linear support vector machine is tested there."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.feature_extraction.text import TfidfVectorizer

from wgcn_paper.methods.logistic import LogisticMethod
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
