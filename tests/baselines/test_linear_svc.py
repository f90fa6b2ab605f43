from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from wgcn.baselines.linear_svc import LinearSVCMethod
from wgcn.protocol import Query, Task

TEXTS = ("red wine", "white wine and red wine", "fast car", "slow car and fast car", "old merlot")
LABELS = np.array(["drink", "drink", "drive", "drive", None], object)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)


def digest(task: Task = TASK, **settings: object) -> str | None:
    return LinearSVCMethod(settings).fit(task).digest


def test_it_is_tf_idf_and_a_linear_svc() -> None:
    method = LinearSVCMethod({"C": 3.0})
    fit = method.fit(TASK)
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    terms = vectorizer.fit_transform(TEXTS)
    svc = LinearSVC(C=3.0, random_state=0).fit(terms[:4], LABELS[:4].astype(str))
    new = ("a glass of wine", "two cars, one fast", "merlot")
    assert method.predict(Query(new, None, None)).tolist() == svc.predict(vectorizer.transform(new)).tolist()
    np.testing.assert_allclose(method._svc.coef_, svc.coef_)
    assert (fit.epochs, fit.validation_accuracy, fit.seconds_per_epoch) == (None, None, None)


@pytest.mark.parametrize(("setting", "value"), [("C", 0.1), ("ngrams", 2), ("sublinear", False)])
def test_every_setting_is_used(setting: str, value: object) -> None:
    assert set(LinearSVCMethod.defaults) == {"C", "ngrams", "sublinear"}
    assert digest() != digest(**{setting: value})
    assert digest() == digest(**{setting: LinearSVCMethod.defaults[setting]})


def test_texts_without_labels_count_for_vocabulary_and_idf() -> None:
    method = LinearSVCMethod()
    method.fit(TASK)
    assert "merlot" in method._vectorizer.vocabulary_
    assert digest() != digest(replace(TASK, texts=(*TEXTS[:4], "old wine")))


def test_no_seed_changes_it() -> None:
    assert not LinearSVCMethod.seeded
    assert LinearSVCMethod(seed=0).fit(TASK).digest == LinearSVCMethod(seed=1).fit(TASK).digest
