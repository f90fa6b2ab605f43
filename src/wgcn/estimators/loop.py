"""The labelling loop as methods of an estimator for texts.

Which words stand for a class, what to label next, which labels look wrong, and what more of them might bring.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.active.curve import CurvePoint, judging, learning_curve
from wgcn.active.notices import told_apart
from wgcn.active.review import Doubt, Seen, doubts
from wgcn.active.suggest import suggest
from wgcn.base.arrays import check_memory
from wgcn.base.errors import InputError
from wgcn.labels.reading import Labels, check_lengths, read_labels
from wgcn.semi.seed_words import SeedCheck, SeedRows, SeedWord, read_seeds
from wgcn.semi.teacher import Teacher
from wgcn.text.tokenize import checked_texts

Texts = Iterable[str]

_REVIEW_ARRAYS = 12  # of texts by classes


class LabellingLoop:
    """Methods of `wgcn.WGCNTextClassifier`, which prepares texts, and fits models to them."""

    classifier_: Any  # a fitted `wgcn.WGCNClassifier`
    word_graph_: Any  # a `wgcn.WordGraph`
    n_jobs: int | None

    @property
    @abstractmethod
    def _fitted(self) -> Any:
        """The `wgcn.TextModel`."""

    @abstractmethod
    def _training_set(self) -> Any:
        """Return what the last fit saw, a `TrainingSet`."""

    @abstractmethod
    def _prepare(self, texts: Texts) -> Any:
        """Return texts as matrices, a `Prepared`."""

    @abstractmethod
    def _classifier(self) -> Any:
        """Return a `wgcn.WGCNClassifier` that is not fitted."""

    @abstractmethod
    def check_parameters(self, y: Any = None) -> None:
        """Raise an InputError if a parameter cannot be used, or does not fit the labels `y`."""

    def expand_seeds(self, X: Texts, seeds: Mapping[Any, Sequence[str]] | Sequence[Any]) -> dict[Any, list[SeedWord]]:
        """Return what `fit` makes of seeds, without fitting: per class the given words, then those they draw in."""
        return self.check_seeds(X, seeds).words

    def check_seeds(self, X: Texts, seeds: Mapping[Any, Sequence[str]] | Sequence[Any]) -> SeedCheck:
        """Return what is known of seeds without labels and without fitting: words, coverage, agreement and shares."""
        given, prepared = read_seeds(seeds), self._prepare(checked_texts(X, "X"))
        classes = read_labels([], given.classes).classes
        teacher, names = self._teacher(prepared, prepared.seed_rows(given, classes)), classes.tolist()
        assert teacher.seeded is not None
        shares = dict(zip(names, teacher.estimated_shares().tolist(), strict=True))
        return SeedCheck(dict(zip(names, teacher.seeded.words, strict=True)), teacher.seeded.trust, shares)

    def review(self, n: int | None = None) -> list[Doubt]:
        """Return the `n` labels of the last fit that look most wrong, or all, most doubtful first.

        A `Doubt` has the index of the text in X, the given label, the most likely one, and how much speaks against
        the given one, from 0 to 1: see `wgcn.active.review`.
        """
        training_set, trained = self._training_set(), self.classifier_.trained_
        prepared, labels = training_set.prepared, training_set.labels
        rows = np.flatnonzero(labels.labelled)
        terms, scorer = csr_array(prepared.document_terms[rows]), trained.scorer
        # Texts of weight 0 have no dual: rows of the others do not tell which texts they are.
        held_out = trained.held_out if len(trained.duals[0]) >= len(rows) else None
        n_bytes = _REVIEW_ARRAYS * 4 * len(rows) * len(labels.classes)
        check_memory("Reviewing so many labels of so many classes", n_bytes, "Fit to fewer texts, or to fewer classes.")
        scores = np.asarray(terms @ scorer.word_embeddings + scorer.bias)
        seen = Seen(terms, labels.targets.toarray(), scores, held_out)
        return doubts(seen, labels.classes, rows, labels.multilabel, n)

    def suggest(self, n: int = 10, texts: Texts | None = None) -> npt.NDArray[np.int64]:
        """Return the indices of `n` unlabelled texts to label next, the most useful first: `wgcn.active.suggest`.

        After a fit they count through its texts, X first and then `unlabeled`. Before one, give the `texts`.
        """
        if texts is None:
            seen, scorer = self._training_set(), self._fitted.scorer
            teacher = self.classifier_.trained_.teacher or self._teacher(seen.prepared)

            def likely(rows: csr_array) -> npt.NDArray[Any]:
                return scorer.probabilities(scorer.scores_of(rows))  # type: ignore[no-any-return]

            terms, labelled = seen.prepared.document_terms, seen.labels.labelled
            return suggest(terms, teacher.place, labelled, n, likely, scorer.multilabel)
        if hasattr(self, "model_"):
            raise InputError("After a fit, suggest chooses from the texts of the fit: give it more as unlabeled.")
        prepared = self._prepare(checked_texts(texts, "texts"))
        return suggest(prepared.document_terms, self._teacher(prepared).place, np.empty(0, bool), n)

    def learning_curve(self, X: Texts, y: Any, sizes: Sequence[int] | None = None) -> list[CurvePoint]:
        """Return the accuracy for growing numbers of labels, by cross-validation: see `wgcn.active.curve`.

        `X` and `y` are as for `fit`. By default, each of at most six numbers is twice the one before. The held-out
        texts shape vocabulary and word graph alone. This estimator stays as it is.
        """
        labels = read_labels(y)
        texts = list(told_apart(checked_texts(X, "X"), labels))
        self.check_parameters(labels)
        check_lengths(len(texts), len(labels.labelled))
        prepared = self._prepare(texts)

        def fit(terms: csr_array, own: Labels) -> Any:
            return self._classifier().fit(terms, own, word_graph=prepared.word_graph).scorer_

        return learning_curve(labels, judging(prepared.document_terms, labels, fit), sizes)

    def _teacher(self, prepared: Any, seeds: SeedRows | None = None) -> Teacher:
        """Return the teacher of prepared texts."""
        graph = prepared.word_graph or self.word_graph_  # which citations made, after a fit
        return Teacher(prepared.document_terms, graph.adjacency, n_jobs=self.n_jobs, seeds=seeds)
