"""What a model of texts tells beside a label: why, which words, what else it might be, and whether it knows at all.

`TextModel` and `WGCNTextClassifier` share these methods. Needs numpy alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import row_batches
from wgcn.explain.explanation import Explainer, Explanation, find_class, rank_words
from wgcn.text.tokenize import checked_texts, resolve_tokenizer
from wgcn.trust.abstention import checked_trust
from wgcn.trust.scope import familiarity_of

Floats = npt.NDArray[np.float64]


class Answers:
    """Methods of a model of texts, or of an estimator that has one."""

    @property
    @abstractmethod
    def _fitted(self) -> Any:
        """The `wgcn.TextModel`."""

    def explain(self, texts: Iterable[str], label: Any = None, *, alone: bool = False) -> list[Explanation]:
        """Return for each text the contribution of every term to the score of every class: see `Explanation`.

        Contributions and bias sum to the scores, in a linear model to the last bit. With `alone`, an explanation has
        one class: `label`, or by default the one with the highest score. With many classes that takes far less.
        """
        model = self._fitted
        terms, scorer = model.terms(texts := list(checked_texts(texts))), model.scorer
        n_learnt = len(model.vocabulary) - sum(entry["words"] for entry in model.extensions)
        tokenizer = resolve_tokenizer(model.tokenizer)
        explainer = Explainer(
            *(tokenizer, model.ngram_range, model.stop_words, model.vocabulary.words, model.weighting.idf, n_learnt),
            *(scorer.word_embeddings, scorer.class_weights, scorer.bias, model.classes, model.split),
            *(terms.new_words, terms.new_rows, model.spelling and model.spelling.sums_of),
        )
        scores = scorer.scores(*terms.scored)
        answers = scores, scorer.probabilities(scores), scorer.decide(scores)
        places = None
        if alone:
            places = scores.argmax(axis=1) if label is None else np.full(len(texts), find_class(model.classes, label))
        return explainer.explain(texts, *terms[:3], *answers, places=places)

    def top_words(self, label: Any, n: int = 20) -> list[tuple[str, float]]:
        """Return the n words and n-grams that speak most for a class, with the values they are ranked by.

        See `wgcn.explain.explanation.rank_words`. Words of fewer than three training texts are left out.
        """
        model, scorer = self._fitted, self._fitted.scorer
        weights, place = (scorer.word_embeddings, scorer.class_weights), find_class(model.classes, label)
        return rank_words(model.vocabulary, model.weighting.idf, *weights, place, n, multilabel=scorer.multilabel)

    def out_of_scope(self, texts: Iterable[str], n_jobs: int | None = 1) -> Floats:
        """Return how strange each text is: the share of held-out training texts that look less strange.

        A text is strange if its words are unknown or rare, its n-grams unknown, or no class likely.
        """
        model = self._fitted
        trust = checked_trust(model.trust)
        return np.concatenate([trust.out_of_scope(*each) for each in judged(model, texts, n_jobs)])

    def predict_set(
        self, texts: Iterable[str], coverage: float = 0.9, n_jobs: int | None = 1, *, as_mask: bool = False
    ) -> Any:
        """Return for each text a list of the labels that are credible, the likeliest first (conformal prediction).

        If the texts are like those in training, the right label is among them for the share `coverage`. A list is empty
        where no label is credible. With `as_mask`, a matrix of shape (texts, classes), True for a label in the set.
        """
        model = self._fitted
        trust = checked_trust(model.trust, model.scorer.multilabel)
        likely = (model.predict_proba(batch, n_jobs) for batch in _batches(model, texts))
        if as_mask:
            return np.concatenate([trust.sets(each, coverage) for each in likely])
        return [labels for each in likely for labels in trust.label_sets(each, coverage, model.classes)]


def _batches(model: Any, texts: Iterable[str]) -> Iterator[list[str]]:
    """Cut texts into lists whose scores are a bounded number."""
    given = list(checked_texts(texts))
    return (given[rows] for rows in row_batches(len(given), len(model.classes)))


def judged(model: Any, texts: Iterable[str], n_jobs: int | None) -> Iterator[tuple[Floats, Floats]]:
    """Yield for some texts at a time probabilities, of shape (texts, classes), and familiarity, of shape (texts, 4)."""
    scores, n = model.scorer.scores, len(model.classes)

    def rows(terms: Any) -> Floats:
        return np.hstack([scores(*terms.scored), familiarity_of(model, terms)])

    for batch in _batches(model, texts):
        found = model._rows(rows, batch, n_jobs)
        yield model.scorer.probabilities(found[:, :n]), found[:, n:]
