from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from wgcn_paper.methods.baseline import in_fixed_order
from wgcn_paper.methods.cross_validation import deal_out
from wgcn_paper.methods.linear_svc import LinearBaseline, LinearSVCMethod
from wgcn_paper.methods.logistic import LogisticMethod
from wgcn_paper.protocol import Query, Task

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
    np.testing.assert_allclose(method._model.coef_, svc.coef_)
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


# Cross-validation


def noisy(n: int = 60, seed: int = 0) -> Task:
    """Two kinds of documents with words of their own and words of both; a tenth of the labels is wrong."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    words = [("alpha beta gamma delta and of it so", "one two three four and of it so")[c].split() for c in codes]
    texts = tuple(" ".join(rng.choice(known, 6)) + f" n{i}" for i, known in enumerate(words))
    wrong = rng.random(n) < 0.1
    return Task(texts, None, np.array(["greek", "number"], object)[codes ^ wrong], np.empty(0, np.int64), None)


def permuted(task: Task, seed: int = 1) -> Task:
    assert task.texts is not None
    order = np.random.default_rng(seed).permutation(len(task.texts))
    place = np.argsort(order)
    return replace(
        task,
        texts=tuple(task.texts[i] for i in order),
        labels=task.labels[order],
        validation=place[task.validation],
    )


def test_nought_chooses_c_by_cross_validation() -> None:
    task = noisy()
    fit = (method := LinearSVCMethod({"C": 0.0})).fit(task)
    # The same folds, written out: documents by class, then by digest, dealt out to five.
    assert task.texts is not None
    terms = TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit_transform(task.texts)
    keys = [(label, sha256(text.encode()).hexdigest()) for text, label in zip(task.texts, task.labels, strict=True)]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    right = {}
    for c in (0.1, 0.3, 1.0, 3.0, 10.0):
        right[c] = 0
        for i in range(5):
            rest = np.setdiff1d(order, order[i::5])
            svc = LinearSVC(C=c, random_state=0).fit(terms[rest], task.labels[rest].astype(str))
            right[c] += int(np.sum(svc.predict(terms[order[i::5]]) == task.labels[order[i::5]]))
    assert len(set(right.values())) > 1
    assert fit.validation_accuracy == max(right.values()) / 60
    best = min(c for c in right if right[c] == max(right.values()))
    assert method._model.get_params()["C"] == best


def test_order_of_documents_changes_no_prediction() -> None:
    task = noisy()
    assert task.texts is not None
    query = Query((*task.texts, "alpha", "two", "", "unheard"), None, None)
    for c in (0.0, 1.0):
        fits, guesses = [], []
        for one in (task, permuted(task)):
            fits.append((method := LinearSVCMethod({"C": c})).fit(one))
            guesses.append(method.predict(query).tolist())
        assert guesses[0] == guesses[1]
        if not c:
            assert fits[0] == fits[1]
    assert query.texts is not None
    assert method.predict(Query(query.texts[::-1], None, None)).tolist() == guesses[0][::-1]


def test_a_class_with_one_document_is_always_learnt_from() -> None:
    # Two classes of one document each, which no fold may take away, and one of two.
    texts = ("red wine", "white wine", "fast car", "green tree")
    labels = np.array(["drink", "drink", "drive", "grow"], object)
    method = LinearSVCMethod({"C": 0.0})
    fit = method.fit(Task(texts, None, labels, np.empty(0, np.int64), None))
    assert fit.validation_accuracy is not None
    assert method.predict(Query(("car", "tree", "wine"), None, None)).tolist() == ["drive", "grow", "drink"]
    alone = LinearSVCMethod({"C": 0.0})
    few = Task(texts[1:], None, labels[1:], np.empty(0, np.int64), None)
    assert alone.fit(few).validation_accuracy is None
    assert alone._model.get_params()["C"] == 1.0


def test_documents_for_validation_choose_c_and_do_not_train() -> None:
    task = noisy()
    apart = np.arange(40, 60)
    method = LinearSVCMethod({"C": 0.0})
    fit = method.fit(replace(task, validation=apart))
    wrong = replace(task, validation=apart, labels=task.labels.copy())
    wrong.labels[apart] = np.where(task.labels[apart] == "greek", "number", "greek")
    assert digest(replace(task, validation=apart)) == digest(wrong) != digest(task)
    assert fit.validation_accuracy == np.mean(method.predict(task.documents(apart)) == task.labels[apart])


# Choice of the n-gram range


def by_pairs(n: int = 60) -> Task:
    """Texts of the same words, whose order alone decides the label."""
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for i in range(n):
        ends = rng.choice([f"word{k}" for k in range(20)], 4)
        texts.append(" ".join([*ends[:2], *(("hot", "dog") if i % 2 else ("dog", "hot")), *ends[2:]]))
        labels.append("food" if i % 2 else "animal")
    return Task(tuple(texts), None, np.array(labels, object), np.empty(0, np.int64), None)


def by_words(n: int = 40) -> Task:
    """Texts with one word of their class among others in any order, so that most pairs are new."""
    rng = np.random.default_rng(0)
    labels = np.array(["greek", "number"], object)[np.arange(n) % 2]
    texts = [
        " ".join(rng.permutation([f"{label}{rng.integers(4)}", *(f"word{k}" for k in rng.integers(0, 20, 10))]))
        for label in labels
    ]
    return Task(tuple(texts), None, labels, np.empty(0, np.int64), None)


LINEAR = pytest.mark.parametrize("kind", [LinearSVCMethod, LogisticMethod])


@LINEAR
def test_nought_takes_pairs_where_only_pairs_decide(kind: type[LinearBaseline]) -> None:
    method = kind({"ngrams": 0, "C": 0.0})
    fit = method.fit(by_pairs())
    assert method.chosen[0] == 2
    assert method.chosen[1] in method.choices
    assert fit.validation_accuracy == 1.0
    query = Query(("a hot dog", "a dog hot"), None, None)
    assert method.predict(query).tolist() == ["food", "animal"]


@LINEAR
def test_nought_takes_single_words_where_they_decide(kind: type[LinearBaseline]) -> None:
    task = by_words()
    method = kind({"ngrams": 0, "C": 0.0})
    fit = method.fit(task)
    single, pairs = (kind({"ngrams": n, "C": 0.0}).fit(task).validation_accuracy for n in (1, 2))
    assert single is not None
    assert pairs is not None
    assert method.chosen[0] == 1
    assert fit.validation_accuracy == single > pairs


def cross_validated(task: Task, ngrams: int, c: float) -> float:
    """Return the accuracy on the folds."""
    task, _ = in_fixed_order(task)
    assert task.texts is not None
    terms = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, ngrams), dtype=np.float32).fit_transform(task.texts)
    labels = task.labels.astype(str)
    right = 0
    for part in deal_out(labels):
        rest = np.setdiff1d(np.arange(len(labels)), part)
        svc = LinearSVC(C=c, random_state=0).fit(terms[rest], labels[rest])
        right += int(np.sum(svc.predict(terms[part]) == labels[part]))
    return right / len(labels)


def test_n_grams_and_c_are_chosen_on_the_same_folds() -> None:
    for task in (by_pairs(30), by_words(30), noisy()):
        method = LinearSVCMethod({"ngrams": 0, "C": 0.0})
        fit = method.fit(task)
        # `max` returns the first of equals: the smaller range, then the smaller C.
        single = {(1, c): cross_validated(task, 1, c) for c in LinearSVCMethod.choices}
        least = max(single, key=lambda pair: single[pair])[1]
        tried = single | {(2, c): cross_validated(task, 2, c) for c in LinearSVCMethod.choices if c >= least}
        best = max(tried, key=lambda pair: tried[pair])
        assert (method.chosen, fit.validation_accuracy) == (best, tried[best])
        given = LinearSVCMethod(dict(zip(("ngrams", "C"), best, strict=True)))
        assert fit.digest == given.fit(in_fixed_order(task)[0]).digest


def test_equally_good_ranges_give_single_words() -> None:
    texts = tuple(f"{word} n{i}" for i, word in enumerate(["wine", "car"] * 10))
    task = Task(texts, None, np.array(["drink", "drive"] * 10, object), np.empty(0, np.int64), None)
    method = LinearSVCMethod({"ngrams": 0, "C": 0.0})
    assert method.fit(task).validation_accuracy == 1.0
    assert method.chosen == (1, 0.1)


@LINEAR
@pytest.mark.parametrize("c", [0.0, 3.0])
def test_order_of_documents_does_not_change_the_choice(kind: type[LinearBaseline], c: float) -> None:
    for task in (by_pairs(30), by_words(30)):
        methods = [kind({"ngrams": 0, "C": c}) for _ in range(2)]
        fits = [method.fit(one) for method, one in zip(methods, (task, permuted(task)), strict=True)]
        assert fits[0] == fits[1]
        assert methods[0].chosen == methods[1].chosen


@LINEAR
@pytest.mark.parametrize(("c", "expected"), [(0.0, 1.0), (3.0, 3.0)])
def test_few_labels_give_single_words(kind: type[LinearBaseline], c: float, expected: float) -> None:
    # One class has enough documents for five folds, the other has not.
    task = by_pairs()
    few = replace(task, labels=task.labels.copy())
    few.labels[9:] = None
    assert sorted(sum(few.labels == label) for label in ("animal", "food")) == [4, 5]
    method = kind({"ngrams": 0, "C": c})
    assert method.fit(few).validation_accuracy is None
    assert method.chosen == (1, expected)


def test_documents_for_validation_choose_n_grams_and_do_not_train() -> None:
    apart = np.arange(40, 60)
    task = replace(by_pairs(), validation=apart)
    method = LinearSVCMethod({"ngrams": 0, "C": 0.0})
    fit = method.fit(task)
    assert method.chosen[0] == 2
    assert fit.validation_accuracy == np.mean(method.predict(task.documents(apart)) == task.labels[apart])
    ngrams, c = method.chosen
    assert fit.digest == LinearSVCMethod({"ngrams": ngrams, "C": c}).fit(in_fixed_order(task)[0]).digest


def test_given_settings_are_reported_as_chosen() -> None:
    method = LinearSVCMethod({"ngrams": 2, "C": 3.0})
    method.fit(TASK)
    assert method.chosen == (2, 3.0)
