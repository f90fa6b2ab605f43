"""Scores as decisions, margins and probabilities; the sums behind them are in test_terms.py."""

import numpy as np
import pytest

from wgcn.scoring.scorer import Scorer

SCORES = np.array([[1.0, 3.0], [2.0, -1.0]])


def scorer(n_classes: int, multilabel: bool = False) -> Scorer:
    prior = np.full(n_classes, 1 / n_classes)
    return Scorer(np.zeros((1, n_classes)), None, np.zeros(n_classes), prior, multilabel=multilabel)


def test_the_margin_of_two_classes_is_half_of_what_lies_between_their_scores() -> None:
    assert scorer(2).margins(SCORES).tolist() == [1.0, -1.5]


@pytest.mark.parametrize(("n_classes", "multilabel"), [(2, True), (3, False)])
def test_other_margins_are_the_scores(n_classes: int, multilabel: bool) -> None:
    scores = np.arange(2.0 * n_classes).reshape(2, n_classes)
    assert scorer(n_classes, multilabel).margins(scores) is scores


def test_a_text_has_each_class_of_several_whose_score_is_above_zero() -> None:
    scores = np.array([[0.2, -0.2], [1.5, 0.0]])
    assert scorer(2, multilabel=True).decide(scores).tolist() == [[1, 0], [1, 0]]
    assert scorer(2).decide(scores).tolist() == [0, 0]
