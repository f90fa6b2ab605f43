"""Representations learnt without labels, and their heads."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from wgcn import WGCNEmbedder
from wgcn.base.errors import InputError
from wgcn_paper.methods import embedder
from wgcn_paper.methods.baseline import in_fixed_order
from wgcn_paper.methods.embedder import HEADS, REPRESENTATIONS, EmbeddingMethod
from wgcn_paper.protocol import Query, Task

KINDS = ("bird", "cat", "dog")


def texts_of(n: int, seed: int) -> tuple[tuple[str, ...], np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.array([KINDS[i % 3] for i in range(n)], object)
    own = [[f"{label}{i}" for i in rng.integers(0, 12, 4)] for label in labels]
    return tuple(" ".join([*words, *(f"word{i}" for i in rng.integers(0, 20, 5))]) for words in own), labels


TEXTS, LABELS = texts_of(60, 0)
NEW, TRUTH = texts_of(30, 1)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)
CASES = [(kind, head) for kind in REPRESENTATIONS for head in HEADS]


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    embedder._kept.clear()
    with threadpool_limits(1, "blas"):
        yield


def fitted(task: Task = TASK, **settings: Any) -> EmbeddingMethod:
    method = EmbeddingMethod({"n_components": 6, **settings})
    method.fit(task)
    return method


def guesses(method: EmbeddingMethod, texts: tuple[str, ...] = NEW) -> list[str]:
    found: list[str] = method.predict(Query(texts, None, None)).tolist()
    return found


@pytest.mark.parametrize(("kind", "head"), CASES)
def test_every_representation_and_head_learns(kind: str, head: str) -> None:
    assert np.mean(np.array(guesses(fitted(representation=kind, head=head))) == TRUTH) > 0.9


def reference(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of TEXTS, in the method's order, and of NEW, by scikit-learn where it can."""
    texts = in_fixed_order(TASK)[0].texts
    assert texts is not None
    if kind == "wgcn":
        model = WGCNEmbedder(6).fit(texts)
        return model.transform(texts), model.transform(NEW)
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    known, new = vectorizer.fit_transform(texts), vectorizer.transform(NEW)
    if kind == "tf-idf":
        return known.toarray(), new.toarray()
    svd = TruncatedSVD(6, random_state=0).fit(known)
    return tuple(rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in map(svd.transform, (known, new)))  # type: ignore[return-value]


@pytest.mark.parametrize("kind", REPRESENTATIONS)
def test_heads_are_logistic_regression_and_the_largest_cosine(kind: str) -> None:
    known, new = reference(kind)
    labels = np.array(in_fixed_order(TASK)[0].labels.tolist())
    expected = LogisticRegression(C=10.0, max_iter=2000, tol=1e-8).fit(known, labels).predict(new)
    assert np.mean(np.array(guesses(fitted(representation=kind, C=10.0))) == expected) > 0.95
    nearest = labels[(new @ known.T).argmax(axis=1)]
    assert np.mean(np.array(guesses(fitted(representation=kind, head="nearest"))) == nearest) > 0.95


def test_rows_are_the_same_alone_and_in_blocks() -> None:
    for kind in REPRESENTATIONS:
        method = fitted(representation=kind, head="nearest")
        together = guesses(method)
        assert [guess for text in NEW for guess in guesses(method, (text,))] == together
        method.block = 7
        assert guesses(method) == together


def test_what_needs_no_labels_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = embedder._represent

    def represent(texts: Any, kind: str, width: int) -> Any:
        made.append((kind, width))
        return original(texts, kind, width)

    monkeypatch.setattr(embedder, "_represent", represent)
    for seed in range(3):
        labels = LABELS.copy()
        labels[np.random.default_rng(seed).permutation(60)[:30]] = None
        for kind in ("wgcn", "svd"):
            for head in HEADS:
                fitted(replace(TASK, labels=labels), representation=kind, head=head)
    assert made == [("wgcn", 6), ("svd", 6)]
    fitted(n_components=4)
    assert made[2:] == [("wgcn", 4)]
    fitted(replace(TASK, texts=(*TEXTS[:-1], "other")))
    assert made[3:] == [("wgcn", 6)]


@pytest.mark.parametrize(("kind", "head"), CASES)
def test_texts_without_labels_shape_the_representation(kind: str, head: str) -> None:
    settings = {"n_components": 6, "representation": kind, "head": head}
    labels = LABELS.copy()
    labels[30:] = None
    few = replace(TASK, labels=labels)
    alone = replace(TASK, texts=TEXTS[:30], labels=LABELS[:30])
    assert EmbeddingMethod(settings).fit(few).digest != EmbeddingMethod(settings).fit(alone).digest


@pytest.mark.parametrize(("kind", "head"), CASES)
def test_no_seed_and_no_order_changes_it(kind: str, head: str) -> None:
    settings = {"n_components": 6, "representation": kind, "head": head}
    assert not EmbeddingMethod.seeded
    digest = EmbeddingMethod(settings).fit(TASK).digest
    order = np.random.default_rng(0).permutation(60)
    other = replace(TASK, texts=tuple(TEXTS[i] for i in order), labels=LABELS[order])
    embedder._kept.clear()
    assert EmbeddingMethod(settings, seed=5).fit(other).digest == digest


def test_every_setting_is_used() -> None:
    digests = {
        EmbeddingMethod({"n_components": 6, "C": 10.0, **change}).fit(TASK).digest
        for change in ({}, {"representation": "svd"}, {"n_components": 4}, {"head": "nearest"}, {"C": 100.0})
    }
    assert len(digests) == 5
    chosen = EmbeddingMethod({"n_components": 6}).fit(TASK)
    assert chosen.validation_accuracy is not None
    assert chosen.validation_accuracy > 0.8


@pytest.mark.parametrize("head", HEADS)
def test_documents_set_apart_choose_but_do_not_train(head: str) -> None:
    apart = np.array([0, 1, 2, 30, 31, 32])
    fit = EmbeddingMethod({"n_components": 6, "head": head}).fit(replace(TASK, validation=apart))
    assert fit.validation_accuracy in [i / 6 for i in range(7)]
    method = fitted(replace(TASK, validation=apart), head="nearest")
    assert len(method._labels) == 54


def test_few_labels_no_labels_in_a_class_and_empty_texts() -> None:
    labels = np.full(60, None, object)
    labels[:3] = LABELS[:3]
    method = fitted(replace(TASK, labels=labels, texts=("", *TEXTS[1:])))
    assert method._probe.C == embedder._WITHOUT_CHOICE
    for head in HEADS:
        method = fitted(replace(TASK, labels=labels), head=head)
        assert set(guesses(method, ("", "zzq", NEW[0]))) <= set(KINDS)
        assert guesses(method, ()) == []


@pytest.mark.parametrize("setting", [{"representation": "bert"}, {"head": "tree"}])
def test_unknown_choices_are_named(setting: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"one of wgcn, svd, tf-idf, head one of probe, nearest; got"):
        fitted(**setting)
