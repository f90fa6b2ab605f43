"""Self-training; what it shares with the linear support vector machine is tested there."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from wgcn_paper.methods.linear_svc import LinearSVCMethod
from wgcn_paper.methods.self_training_svc import SelfTrainingSVCMethod, surest
from wgcn_paper.protocol import Query, Task


def chain(n: int = 40, labelled: int = 2) -> Task:
    """Texts of two classes whose words change little by little, so that far ones share none with the labelled ones."""
    texts = [f"{kind}{i // 2} {kind}{i // 2 + 1} {kind}{i // 2 + 2} and n{i}" for i in range(n) for kind in ("a", "b")]
    labels = np.array(["first", "second"] * n, object)
    labels[2 * labelled :] = None
    return Task(tuple(texts), None, labels, np.empty(0, np.int64), None)


def fitted(task: Task, **settings: object) -> SelfTrainingSVCMethod:
    method = SelfTrainingSVCMethod(settings)
    method.fit(task)
    return method


def digest(task: Task, **settings: object) -> str | None:
    return SelfTrainingSVCMethod(settings).fit(task).digest


FAR = Query(("a19 a20 a21", "b19 b20 b21", "a20", "b20"), None, None)


def test_unlabelled_documents_carry_labels_to_words_that_no_labelled_one_has() -> None:
    task = chain()
    plain = LinearSVCMethod()
    plain.fit(task)
    assert len(set(plain.predict(FAR))) == 1
    assert fitted(task).predict(FAR).tolist() == ["first", "second"] * 2


def test_one_round_is_a_second_fit_to_the_guesses_of_the_first() -> None:
    task = chain(10)
    method = fitted(task, C=3.0, rounds=1)
    assert task.texts is not None
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    rows = vectorizer.fit_transform(task.texts)
    first = LinearSVC(C=3.0, random_state=0).fit(rows[:4], task.labels[:4].astype(str))
    guesses = first.predict(rows)
    guesses[:4] = task.labels[:4]
    taken = np.ones(20, bool)
    for kind in ("first", "second"):  # a class takes no more than its share, half of the unlabelled ones
        places = 4 + np.flatnonzero(guesses[4:] == kind)
        margins = np.abs(first.decision_function(rows[places]))
        taken[places[np.argsort(-margins, kind="stable")[8:]]] = False
    second = LinearSVC(C=3.0, random_state=0).fit(rows[taken], guesses[taken])
    np.testing.assert_allclose(
        method._model.decision_function(method._vectorizer.transform(task.texts)),
        second.decision_function(rows),
        atol=1e-3,
    )


def test_the_surest_documents_of_each_class_are_taken() -> None:
    scores = np.array([[1.0, 0.9, -1], [0.2, -0.5, -1], [0.0, 0.8, 0.7], [-1, 0.3, -1], [0.5, -1, -1]])
    chosen, codes = surest(scores, np.array([1.2, 0.4, 5.0]))
    assert (chosen.tolist(), codes.tolist()) == ([4, 1, 3], [0, 0, 1])
    chosen, codes = surest(np.array([0.5, -2.0, 0.1, 0.7]), np.array([1.0, 2.0]))
    assert (chosen.tolist(), codes.tolist()) == ([1, 3, 0], [0, 1, 1])
    chosen, codes = surest(np.array([0.5, 0.5]), np.array([1.0, 1.0]))
    assert (chosen.tolist(), codes.tolist()) == ([0], [1])


def test_without_unlabelled_documents_it_is_the_linear_svc() -> None:
    task = chain(10, labelled=10)
    plain = LinearSVCMethod({"C": 0.0})
    plain.fit(task)
    np.testing.assert_array_equal(fitted(task)._model.coef_, plain._model.coef_)


def test_every_setting_is_used() -> None:
    task = chain(20)
    values = {"C": 7.0, "ngrams": 2, "sublinear": False, "rounds": 3}
    assert set(SelfTrainingSVCMethod.defaults) == set(values)
    task = replace(task, texts=tuple(f"{text} {text.split()[0]}" for text in task.texts or ()))
    assert len({digest(task), *(digest(task, **{name: value}) for name, value in values.items())}) == 5


def test_no_seed_and_no_order_changes_it() -> None:
    task = chain()
    assert not SelfTrainingSVCMethod.seeded
    assert task.texts is not None
    order = np.random.default_rng(0).permutation(len(task.texts))
    other = replace(task, texts=tuple(task.texts[i] for i in order), labels=task.labels[order])
    assert digest(task) == digest(other) == SelfTrainingSVCMethod(seed=3).fit(task).digest


def test_documents_for_validation_choose_c_and_do_not_train() -> None:
    task = replace(chain(labelled=8), validation=np.arange(8, 16))
    labels = task.labels.copy()
    labels[8:16] = labels[8:16][::-1]
    one, other = (SelfTrainingSVCMethod({"C": c}).fit(replace(task, labels=labels)) for c in (0.0, 0.1))
    assert one.validation_accuracy is not None
    assert one.digest == other.digest == digest(task, C=0.1)


@pytest.mark.parametrize("labels", [["a", "b", "c", None, None], ["a", "a", "b", "c", None]])
def test_single_labels_and_odd_texts(labels: list[str | None]) -> None:
    texts = ("red wine", "white wine", "fast car", "", "unheard of")
    method = fitted(Task(texts, None, np.array(labels, object), np.empty(0, np.int64), None))
    assert set(method.predict(Query(("", "wine", "zzz"), None, None))) <= {"a", "b", "c"}
