import csv
import io

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics import average_precision_score

from wgcn import WGCNTextClassifier
from wgcn.active.review import SMOOTHING, Doubt, Seen, doubts, leave_one_out_scores, report, write_report
from wgcn.base.errors import InputError

TOPICS = {"sea": "wave ship salt harbour sail anchor", "sky": "cloud star wind bird plane moon"}
TOPICS |= {"earth": "stone tree root sand mine field"}


def made_texts(n: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.choice(list(TOPICS), n)
    common = ["the", "of", "and", "to", "in", "is", "it", "on"]
    return [" ".join([*random.choice(TOPICS[c].split(), 3), *random.choice(common, 4)]) for c in labels], labels


def with_slips(labels: np.ndarray, n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Change some labels; return them, and which were changed."""
    random, names, changed = np.random.default_rng(seed), list(TOPICS), labels.copy()
    wrong = random.choice(len(labels), n, replace=False)
    for i in wrong:
        changed[i] = random.choice([name for name in names if name != labels[i]])
    return changed, np.isin(np.arange(len(labels)), wrong)


@pytest.mark.parametrize("n_texts", [40, 240])
def test_wrong_labels_come_first_with_the_right_ones_suggested(n_texts: int) -> None:
    texts, truth = made_texts(n_texts)
    labels, wrong = with_slips(truth, n_texts // 10)
    found = WGCNTextClassifier().fit(texts, labels).review()
    assert sorted(doubt.index for doubt in found) == list(range(n_texts))
    assert [doubt.score for doubt in found] == sorted((doubt.score for doubt in found), reverse=True)
    scores = np.zeros(n_texts)
    scores[[doubt.index for doubt in found]] = [doubt.score for doubt in found]
    assert average_precision_score(wrong, scores) > 0.95
    for doubt in found[: n_texts // 10]:
        assert (doubt.label, doubt.suggestion) == (labels[doubt.index], truth[doubt.index])


def test_unlabelled_texts_are_not_reviewed_and_indices_are_those_of_x() -> None:
    texts, truth = made_texts(120)
    labels, wrong = with_slips(truth, 6)
    known = np.arange(120) % 3 != 0
    model = WGCNTextClassifier().fit(texts, [label if k else None for label, k in zip(labels, known, strict=True)])
    found = model.review()
    assert {doubt.index for doubt in found} == set(np.flatnonzero(known))
    n_wrong = int((wrong & known).sum())
    assert {doubt.index for doubt in found[:n_wrong]} == set(np.flatnonzero(wrong & known))
    assert model.review(2) == found[:2]
    assert model.review(0) == []


def test_texts_of_weight_zero_can_be_reviewed_too() -> None:
    texts, truth = made_texts(150)
    labels, wrong = with_slips(truth, 10)
    weight = (np.arange(150) % 5 > 0).astype(float)
    found = WGCNTextClassifier().fit(texts, labels, weight).review(10)
    assert {doubt.index for doubt in found} == set(np.flatnonzero(wrong))


def test_multilabel_texts_are_ranked_by_their_most_doubtful_class() -> None:
    texts, truth = made_texts(160)
    pairs = [f"{a} {b}" for a, b in zip(texts[:80], texts[80:], strict=True)]
    labels = [sorted({a, b}) for a, b in zip(truth[:80].tolist(), truth[80:].tolist(), strict=True)]
    right = {i: labels[i] for i in (5, 30, 61)}
    for i in right:
        labels[i] = [name for name in TOPICS if name not in labels[i]] or labels[i][:1]
    found = WGCNTextClassifier().fit(pairs, labels).review(3)
    assert {doubt.index for doubt in found} == set(right)
    assert all(doubt.label == labels[doubt.index] for doubt in found)
    assert all(doubt.suggestion == right[doubt.index] for doubt in found)


def test_review_needs_the_texts_of_the_fit() -> None:
    texts, labels = made_texts(30)
    model = WGCNTextClassifier().fit(texts, labels)
    with pytest.raises(InputError, match="fit again"):
        model.extend(["a new word"], min_count=1).review()
    for n in (-1, 2.5, True):
        with pytest.raises(InputError, match="whole number"):
            model.review(n)  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_naive_bayes_leaves_a_text_out_of_the_counts_of_its_own_class(seed: int, n_classes: int) -> None:
    random = np.random.default_rng(seed)
    dense = (random.random((9, 6)) * (random.random((9, 6)) < 0.5)).astype(np.float32)
    codes, weight = random.integers(0, n_classes, 9), random.random(9).astype(np.float32)
    scores, table = leave_one_out_scores(csr_array(dense), codes, n_classes, weight)
    present = (dense > 0) * weight[:, None]
    inside = np.array([present[codes == k].sum(axis=0) for k in range(n_classes)]).T  # (words, classes)
    totals = inside.sum(axis=1, keepdims=True)
    share = np.maximum(inside.sum(axis=0), 1e-12) / np.maximum(inside.sum(axis=0), 1e-12).sum()
    assume((share < 1).all())  # several classes have words
    a, b, offset = SMOOTHING * share, SMOOTHING * (1 - share), np.log((1 - share) / share)
    np.testing.assert_allclose(table, np.log((inside + a) / (totals - inside + b)) + offset, rtol=1e-3, atol=1e-3)
    for i, k in enumerate(codes):
        without = inside[:, k] - present[i]
        expected = dense[i] @ (np.log((without + a[k]) / (totals[:, 0] - inside[:, k] + b[k])) + offset[k])
        np.testing.assert_allclose(scores[i, k], expected, rtol=1e-3, atol=1e-3)


def test_a_text_without_words_and_a_class_of_one_text_have_finite_scores() -> None:
    terms = csr_array(np.array([[1, 0], [0.6, 0.8], [0, 0], [0, 1]], np.float32))
    targets = np.eye(3, dtype=np.float32)[[0, 0, 1, 2]]
    found = doubts(Seen(terms, targets, 2 * targets - 1, None), np.array(["a", "b", "c"]), np.arange(4), False)
    assert all(0 <= doubt.score <= 1 for doubt in found)


def test_a_class_that_all_texts_have_is_not_in_doubt() -> None:
    terms = csr_array(np.eye(4, dtype=np.float32))
    targets = np.array([[1, 1], [1, 0], [1, 1], [1, 0]], np.float32)
    for doubt in doubts(Seen(terms, targets, 2 * targets - 1, None), np.array(["all", "some"]), np.arange(4), True):
        assert "all" in doubt.suggestion


def test_reports_have_rows_from_one_and_whole_texts_only_in_csv() -> None:
    texts, found = ["short", 'a "long" text, ' * 20], [Doubt(1, "x", "y", 0.876), Doubt(0, ["x", "z"], ["z"], 0.2)]
    lines = list(report(found, texts, width=30))
    assert lines[0].split() == ["row", "label", "suggestion", "doubt", "text"]
    assert lines[1].split()[:4] == ["2", "x", "y", "88%"]
    assert lines[1].endswith("…")
    assert len(lines[1]) < 70
    assert lines[2].split() == ["1", "x;z", "z", "20%", "short"]
    file = io.BytesIO()
    write_report(file, found, texts)
    rows = list(csv.reader(io.StringIO(file.getvalue().decode())))
    assert rows[1] == ["2", "x", "y", "0.8760", texts[1]]
    assert rows[2] == ["1", "x;z", "z", "0.2000", "short"]
