"""Columns of predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from wgcn import WGCNTextClassifier
from wgcn.io.tables import known_words, prediction_columns, unknown_words

CLASSES = ["a", "b", "c", "d"]


@given(arrays(np.float64, (5, 4), elements=st.floats(0.001, 1)), st.integers(1, 6))
def test_the_most_likely_classes_come_in_order(weights: np.ndarray, top: int) -> None:
    likely = weights / weights.sum(axis=1, keepdims=True)
    decided = likely.argmax(axis=1)
    columns = dict(prediction_columns(CLASSES, decided, likely, top=top, proba=True))
    nested = dict(prediction_columns(CLASSES, decided, likely, top=top, nested=True))
    for row, values in enumerate(likely):
        order = sorted(range(4), key=lambda i: (-values[i], i))[:top]
        names = ["", *(f"_{place}" for place in range(2, len(order) + 1))]
        assert [columns[f"label{name}"][row] for name in names] == [CLASSES[i] for i in order]
        assert [columns[f"confidence{name}"][row] for name in names] == [round(values[i], 4) for i in order]
        assert [columns[f"probability_{name}"][row] for name in CLASSES] == [round(value, 4) for value in values]
        if top > 1:
            pairs = [{"label": CLASSES[i], "confidence": round(values[i], 4)} for i in order]
            assert nested["top"][row] == pairs


def test_labels_alone_and_several_labels() -> None:
    assert prediction_columns(CLASSES, np.array([2, 0])) == [("label", ["c", "a"])]
    likely, unknown = np.array([[0.9, 0.1, 0.8, 0.2], [0.1] * 4]), np.array([1 / 3, 1.0])
    columns = prediction_columns(CLASSES, (likely > 0.5).astype(np.int64), likely, unknown)
    assert columns == [
        ("label", [["a", "c"], []]),
        ("confidence", [[0.9, 0.8], []]),
        ("unknown_words", [0.3333, 1.0]),
    ]


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 2)])
def test_share_of_unknown_words_counts_words_and_not_ngrams(ngram_range: tuple[int, int]) -> None:
    texts = ["red wine", "white wine", "fast car", "slow car"] * 2
    model = WGCNTextClassifier(ngram_range=ngram_range).fit(texts, ["drink", "drink", "drive", "drive"] * 2).model_
    known = known_words(model.vocabulary)
    shares = unknown_words(["wine RED car", "red zzz wine yyy", "zzz", "", "! ?"], model.tokenizer, known)
    assert shares.tolist() == [0, 0.5, 1, 1, 1]
    assert unknown_words([], "words", known).shape == (0,)
