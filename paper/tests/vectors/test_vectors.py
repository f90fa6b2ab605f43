"""Word vectors for `WGCNTextClassifier.fit(vectors=)`: distilled from an encoder, which is replaced here by a stub."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from wgcn import WGCNTextClassifier
from wgcn_paper.methods.wgcn import LinearMethod
from wgcn_paper.protocol import Task
from wgcn_paper.vectors import distilled_vectors

TEXTS = tuple(f"{word} {other} {i}" for i in range(10) for word, other in (("wine", "merlot"), ("car", "turbo")))
LABELS = np.array([*(["drink", "drive"] * 3), *[None] * 14], object)


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """An encoder that knows whether a text is about wine; what it was given is returned."""
    encoded: list[Sequence[str]] = []

    def encode(texts: Sequence[str], kind: str) -> npt.NDArray[np.float32]:
        assert kind == "documents"
        encoded.append(texts)
        return np.array([[1, 0, 1] if "wine" in text else [0, 1, 1] for text in texts], np.float32)

    monkeypatch.setattr("wgcn_paper.vectors.encoder.encode_cached", encode)
    return encoded


def test_words_of_one_subject_have_similar_vectors(stub: list[Sequence[str]]) -> None:
    vectors = distilled_vectors(TEXTS)
    assert stub == [TEXTS]
    assert set(vectors) == {word for text in TEXTS for word in text.split()}
    assert {vector.shape for vector in vectors.values()} == {(3,)}
    assert vectors["wine"] @ vectors["merlot"] > 0 > vectors["wine"] @ vectors["turbo"]


def test_the_words_are_those_of_the_tokenizer() -> None:
    texts = [text.replace(" ", "-") for text in TEXTS]
    assert set(distilled_vectors(texts, str.split)) == set(texts)


def test_a_classifier_trained_with_them_is_the_measured_one() -> None:
    method = LinearMethod({"vectors": "encoder"})
    method.fit(Task(TEXTS, None, LABELS, np.empty(0, np.int64), None))
    model = WGCNTextClassifier().fit(TEXTS, LABELS, vectors=distilled_vectors(TEXTS)).model_
    assert np.array_equal(method.model.predict_proba(TEXTS), model.predict_proba(TEXTS))
    alone = [LinearMethod({"vectors": name, "self_training": 0.0}) for name in ("", "encoder")]  # no second fit
    for each in alone:
        each.fit(Task(TEXTS, None, LABELS, np.empty(0, np.int64), None))
    assert not np.array_equal(*(each.model.scores(TEXTS) for each in alone))
