from itertools import combinations

import numpy as np
import pytest

from wgcn_paper.methods.cross_validation import N_FOLDS, choose_c, deal_out, enough_folds


class Threshold:
    """Says "b" of numbers above C, and notes down what it was fitted to."""

    fits: list[list[float]]

    def __init__(self, c: float) -> None:
        self.c, self.fits = c, []

    def set_params(self, C: float) -> "Threshold":
        self.c = C
        return self

    def fit(self, rows: np.ndarray, labels: np.ndarray) -> "Threshold":
        self.fits.append(rows.tolist())
        return self

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return np.where(rows > self.c, "b", "a")


@pytest.mark.parametrize("labels", ["aabbb" * 6, "abcde" * 2 + "f", "aab", "ab", "aa"])
def test_every_document_but_the_only_one_of_a_class_is_in_one_fold(labels: str) -> None:
    codes = np.array(list(labels))
    folds = deal_out(codes)
    assert len(folds) <= N_FOLDS
    assert all(len(fold) for fold in folds)
    assert sorted(np.concatenate([*folds, np.empty(0, int)])) == [
        i for i, label in enumerate(labels) if labels.count(label) > 1
    ]
    assert all(set(np.delete(codes, fold)) == set(labels) for fold in folds)
    assert all(abs(len(one) - len(other)) <= 1 for one, other in combinations(folds, 2))


def test_the_smallest_of_the_best_is_chosen_and_what_is_held_out_never_trains() -> None:
    rows = np.arange(8.0)
    labels = np.array(list("aaaaabbb"))
    made: list[Threshold] = []

    def classifier(c: float) -> Threshold:
        made.append(Threshold(c))
        return made[-1]

    parts = [np.array([0, 5]), np.array([2, 4, 7])]
    assert choose_c(classifier, (1.0, 4.0, 4.5, 6.0), rows, labels, parts, otherwise=9.0) == (4.0, 1.0)
    assert [model.fits for model in made] == [[[1, 2, 3, 4, 6, 7]] * 4, [[0, 1, 3, 5, 6]] * 4]
    assert choose_c(classifier, (1.0, 6.0), rows, labels, parts, otherwise=9.0) == (6.0, 0.8)
    assert choose_c(classifier, (1.0, 6.0), rows, labels, [], otherwise=9.0) == (9.0, None)


def test_folds_need_two_classes_with_a_document_for_each() -> None:
    for labels, enough in (("aaaaabbbbb", True), ("aaaaabbbbbc", True), ("aaaaaaaaabbbb", False), ("aaaaa", False)):
        codes = np.array(list(labels))
        found = enough_folds(codes)
        assert [part.tolist() for part in found] == [part.tolist() for part in deal_out(codes) if enough]
