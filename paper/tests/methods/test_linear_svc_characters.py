"""Words and characters; what it shares with the linear support vector machine is tested there."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion
from sklearn.svm import LinearSVC

from wgcn_paper.methods import linear_svc_characters
from wgcn_paper.methods.linear_svc import LinearSVCMethod
from wgcn_paper.methods.linear_svc_characters import LinearSVCCharactersMethod
from wgcn_paper.protocol import Query, Task

TEXTS = ("red wine", "white wine and red wine", "fast car", "slow car and fast car", "old merlot", "merlot")
LABELS = np.array(["drink", "drink", "drive", "drive", None, None], object)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)
NEW = ("a glass of wine", "two cars, one fast", "merlots", "", "?")


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    linear_svc_characters._kept.clear()


def digest(task: Task = TASK, **settings: object) -> str | None:
    return LinearSVCCharactersMethod(settings).fit(task).digest


def test_it_is_tf_idf_of_words_beside_characters() -> None:
    method = LinearSVCCharactersMethod({"C": 3.0})
    method.fit(TASK)
    union = FeatureUnion(
        [
            ("words", TfidfVectorizer(sublinear_tf=True, dtype=np.float32)),
            (
                "characters",
                TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=2, sublinear_tf=True, dtype=np.float32),
            ),
        ]
    )
    terms = union.fit_transform(TEXTS)
    svc = LinearSVC(C=3.0, random_state=0).fit(terms[:4], LABELS[:4].astype(str))
    np.testing.assert_allclose(method._model.coef_, svc.coef_)
    assert method.predict(Query(NEW, None, None)).tolist() == svc.predict(union.transform(NEW)).tolist()
    assert method._vectorizer.get_feature_names_out().shape == method._vectorizer.idf_.shape == (terms.shape[1],)


def test_forms_of_a_word_are_alike() -> None:
    texts = ("winery", "wineries", "carmaker", "carmakers")
    task = Task(texts, None, LABELS[:4], np.empty(0, np.int64), None)
    method = LinearSVCCharactersMethod()
    method.fit(task)
    assert method.predict(Query(("wines", "cars"), None, None)).tolist() == ["drink", "drive"]


def test_every_setting_is_used() -> None:
    values = {"C": 0.3, "ngrams": 2, "sublinear": False, "shortest": 1, "longest": 3, "min_documents": 1}
    assert set(LinearSVCCharactersMethod.defaults) == set(values)
    task = replace(TASK, texts=("a red red wine", *TEXTS[1:]))
    found = {digest(task), *(digest(task, **{name: value}) for name, value in values.items())}
    assert len(found) == 7
    assert digest(task) != LinearSVCMethod({"C": 0.0}).fit(task).digest


def test_characters_are_kept_for_other_labels_of_the_same_texts() -> None:
    others = replace(TASK, labels=np.array([None, "drink", None, "drive", "drink", None], object))
    LinearSVCCharactersMethod().fit(TASK)
    [kept] = linear_svc_characters._kept.values()
    found = digest(others)
    assert next(iter(linear_svc_characters._kept.values())) is kept
    linear_svc_characters._kept.clear()
    assert digest(others) == found


def test_order_of_documents_changes_nothing() -> None:
    order = np.random.default_rng(0).permutation(len(TEXTS))
    other = replace(TASK, texts=tuple(TEXTS[i] for i in order), labels=LABELS[order])
    assert not LinearSVCCharactersMethod.seeded
    assert digest() == digest(other)


def test_cross_validation_chooses_among_words_and_c() -> None:
    texts = tuple(f"{word} n{i}" for i, word in enumerate(["wine", "car"] * 10))
    task = Task(texts, None, np.array(["drink", "drive"] * 10, object), np.empty(0, np.int64), None)
    method = LinearSVCCharactersMethod({"ngrams": 0})
    assert method.fit(task).validation_accuracy == 1.0
    assert method.chosen == (1, 0.1)


def test_one_document_per_class() -> None:
    task = replace(TASK, labels=np.array(["drink", None, "drive", None, None, None], object))
    method = LinearSVCCharactersMethod()
    assert method.fit(task).validation_accuracy is None
    assert method.predict(Query(("wine", "car"), None, None)).tolist() == ["drink", "drive"]
