"""Very many classes: nothing of the size of documents by classes is made, and answers are those of all at once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

from wgcn import TextModel, WGCNClassifier, WGCNTextClassifier
from wgcn.base import arrays as sizes
from wgcn.base.errors import InputError
from wgcn.linear import calibration
from wgcn.linear import model as linear_model
from wgcn.scoring import scorer as sums

TEXTS = [f"{word} {other} text" for word in ("red", "blue", "green") for other in ("wine", "car", "tree", "house")] * 3
LABELS = [text.split()[0] for text in TEXTS]


def documents(n_classes: int, per_class: int = 2, n_words: int = 40) -> tuple[csr_array, np.ndarray]:
    """Return documents of five words, of which a class has three of its own, and their classes."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), per_class)
    words = np.hstack([rng.integers(0, n_words, (n_classes, 3))[y], rng.integers(0, n_words, (len(y), 2))])
    x = np.zeros((len(y), n_words), np.float32)
    np.add.at(x, (np.arange(len(y))[:, None], words), 1)
    return csr_array(x / np.linalg.norm(x, axis=1, keepdims=True)), y


def test_no_array_of_documents_by_classes_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = documents(400)
    dense = 4 * len(y) * 400
    monkeypatch.setattr(linear_model, "SOLVED_BYTES", dense // 5)
    monkeypatch.setattr(linear_model, "DUAL_BYTES", 0)
    monkeypatch.setattr(sizes, "BATCH_VALUES", dense // 40)
    monkeypatch.setattr(sums, "_BLOCK_VALUES", dense // 80)
    monkeypatch.setattr(calibration, "MOST_SCORES", dense // 80)
    small, codes = documents(60)
    WGCNClassifier().fit(small, codes).predict(small)  # imports and compiles
    tracemalloc.start()
    model = WGCNClassifier().fit(x, y)
    predicted = model.predict(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < dense
    assert model.n_held_out_ > 10
    assert np.mean(predicted == y) > 0.9


def test_predictions_in_batches_are_those_of_all_texts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)  # further words, since near-copies would be held out together
    varied = [" ".join([text, *(f"thing{k}" for k in rng.integers(0, 40, 5))]) for text in TEXTS * 6]
    model = WGCNTextClassifier().fit(varied, LABELS * 6)
    texts = [*TEXTS, "", "redder wine"]
    together = model.predict(texts).tolist(), model.predict(texts, abstain=0.3).tolist(), model.out_of_scope(texts)
    sets = model.predict_set(texts, 0.7), model.predict_set(texts, 0.7, as_mask=True)
    monkeypatch.setattr(sizes, "BATCH_VALUES", 7)
    assert model.predict(texts).tolist() == together[0]
    assert model.predict(texts, abstain=0.3).tolist() == together[1]
    np.testing.assert_allclose(model.out_of_scope(texts), together[2])
    assert model.predict_set(texts, 0.7) == sets[0]
    assert np.array_equal(model.predict_set(texts, 0.7, as_mask=True), sets[1])
    rows = model.session_.prepared.document_terms
    assert model.classifier_.predict(rows).tolist() == model.predict(TEXTS * 6).tolist()


def test_a_fit_in_small_batches_is_that_in_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [label if i % 3 else None for i, label in enumerate(LABELS * 5)]
    first = WGCNTextClassifier().fit(TEXTS * 5, some).model_
    monkeypatch.setattr(sizes, "BATCH_VALUES", 10)
    second = WGCNTextClassifier().fit(TEXTS * 5, some).model_
    assert np.array_equal(first.scorer.word_embeddings, second.scorer.word_embeddings)
    assert first.scorer.sharpness == second.scorer.sharpness
    assert first.trust is not None
    assert second.trust is not None
    for one, other in zip(first.trust.tensors().values(), second.trust.tensors().values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_model_too_large_for_the_memory_is_refused_before_it_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "machine_memory", lambda: 1000)
    with pytest.raises(InputError, match=r"A model of .* words and .* by 3 classes would take .*min_count"):
        WGCNTextClassifier().fit(TEXTS, LABELS)


def test_one_long_label_is_kept_saved_and_read_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("models") / "model"
    labels = ["r" * 5000 if label == "red" else label for label in LABELS]
    usual = WGCNTextClassifier().fit(TEXTS, labels)
    assert usual.classes_.dtype.kind == "U"
    monkeypatch.setattr(sizes, "WIDE_BYTES", 1000)
    model = WGCNTextClassifier().fit(TEXTS, labels)
    assert model.classes_.dtype == object
    assert model.classes_.tolist() == usual.classes_.tolist()
    assert np.array_equal(model.word_embeddings_, usual.word_embeddings_)
    assert model.predict(TEXTS).tolist() == usual.predict(TEXTS).tolist()
    model.save(path)
    loaded = TextModel.load(path)
    assert loaded.classes.dtype == object
    assert loaded.predict(TEXTS).tolist() == usual.predict(TEXTS).tolist()
    model.update(["a blue sky"], ["blue"])
    assert model.classes_.tolist() == usual.classes_.tolist()


def test_update_after_a_fit_whose_dual_was_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_model, "DUAL_BYTES", 0)
    model = WGCNTextClassifier().fit(TEXTS, LABELS).update(["a red sky", "violet"], ["red", "violet"])
    assert model.predict(["violet"]).tolist() == ["violet"]
    assert len(model.review()) == len(TEXTS) + 2
