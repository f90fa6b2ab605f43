"""Adding to a fitted estimator for texts, as its methods: texts and labels by `update`, words by `extend`."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from wgcn.base.errors import InputError
from wgcn.base.progress import shown
from wgcn.labels.reading import Labels, check_lengths, read_some_labels, relabelled
from wgcn.labels.targets import places_in
from wgcn.linear.additions import Added, earlier_terms, find_texts
from wgcn.text.tokenize import checked_texts


class Updating:
    """Methods of `wgcn.WGCNTextClassifier`, which prepares texts and fits models to them."""

    classes_: npt.NDArray[Any]
    classifier_: Any  # a fitted `wgcn.WGCNClassifier`
    word_graph_: Any
    training_set_: Any  # of the last fit, a `TrainingSet`
    subwords: float
    class_prior: Any

    @property
    @abstractmethod
    def _fitted(self) -> Any:
        """The `wgcn.TextModel`."""

    @abstractmethod
    def _classifier(self) -> Any:
        """Return a `wgcn.WGCNClassifier` that is not fitted."""

    @abstractmethod
    def _finish(self, classifier: Any, training_set: Any, started: float) -> Any:
        """Take over a fitted classifier."""

    @abstractmethod
    def check_parameters(self, y: Any = None) -> None:
        """Raise an InputError if a parameter cannot be used, or does not fit the labels `y`."""

    def update(self, texts: Iterable[str], labels: Any, *, verbose: bool = False) -> Self:
        """Add texts and labels to those of the last fit, and fit again from where it ended.

        The model is about that of a `fit` to all texts, but sooner. From two million tokens on, the word graph is
        counted again only when over an eighth of all texts are new to it: till then, new words have no edges. The model
        as it was scores the texts that come; with earlier held-out ones they calibrate the new one. What `tune` chose
        stays.

        Parameters
        ----------
        texts : iterable of str
            Texts that the last fit had, in X or `unlabeled`, which get the labels, and new ones, which are added to X.
        labels : sequence
            One label per text, as in `fit`, also of new classes. None leaves the label of a known text as it is. A
            sample weight is that of the fit, 1 for a new text.
        verbose : bool, default=False
            Whether to print the stages of the work with the seconds that each took.
        """
        given, before = list(checked_texts(texts)), self._training_set()
        more = read_some_labels(labels, before.labels.classes)
        check_lengths(len(given), len(more.labelled))
        prepared, n_before = before.prepared, len(before.prepared.digests)
        found = find_texts(prepared.digests, given)
        if len(found.new) and before.fixed:
            raise InputError(
                f"{len(found.new):,} of the texts are new, and the last fit had {before.fixed}: fit again."
            )
        n_texts = n_before + len(found.new)
        new = np.arange(n_before, n_texts)
        which, documents = np.append(found.given, found.new), np.append(found.documents, new)
        unnamed = before.labels.classes[before.labels.targets.sums() == 0]  # given without a label
        seeded = (*(before.seeds.classes if before.seeds else ()), *unnamed.tolist())
        now = relabelled(before.labels, more, which, documents, n_texts, seeded)
        self.check_parameters(now)
        started, classifier = time.perf_counter(), self._classifier()
        with shown(verbose):
            if len(new):
                prepared = prepared.preparation.prepare([given[i] for i in found.new], earlier=prepared)
                started = time.perf_counter()
            weight = np.append(before.weight, np.ones(n_texts - len(before.weight)))
            graph = prepared.word_graph or self.word_graph_
            rows = prepared.seed_rows(before.seeds, now.classes)
            subwords = prepared.subword_matrix(self.subwords)
            task = classifier._task(
                prepared.document_terms,
                now,
                weight,
                graph,
                None,
                seeds=rows,
                subwords=subwords,
                digests=prepared.digests,
            )
            classifier._train(task, self._earlier(before, prepared, now))
        updated: Self = self._finish(classifier, before._replace(prepared=prepared, labels=now, weight=weight), started)
        return updated

    def _earlier(self, before: Any, prepared: Any, labels: Labels) -> Any:
        """Return what the last fit knows of the texts of now; None if it left out some, of weight 0, or had seeds."""
        trained, n = self.classifier_.trained_, len(before.prepared.digests)
        if len(trained.duals[0]) < len(before.labels.targets) or before.seeds is not None:
            return None
        was_labelled = np.append(before.labels.labelled, np.zeros(n - len(before.labels.labelled), bool))
        added = Added.to(was_labelled, labels.labelled, places_in(self.classes_, labels.classes))
        added = added._replace(same_graph=prepared.n_in_graph == before.prepared.n_in_graph)
        new = np.flatnonzero(labels.labelled[n:]) + n
        if len(new) and self.class_prior is None and (added.classes >= 0).all():
            weights = [(each.vocabulary, each.weighting) for each in (prepared, before.prepared)]
            scores = self.classifier_.scorer_.scores_of(earlier_terms(prepared.document_terms[new], *weights))
            added = added._replace(scored=(np.cumsum(labels.labelled)[new] - 1, scores))
        return trained, added

    def _training_set(self) -> Any:
        self._fitted  # noqa: B018
        if not hasattr(self, "training_set_") or not hasattr(self.classifier_, "trained_"):
            raise InputError(
                "This model has no training texts, which update, suggest and review need: it was loaded from a folder "
                "that was saved without them, or extended. Save a fitted estimator by save(folder, session=True), or "
                "fit again."
            )
        if (before := self.training_set_.prepared.preparation).of(self) != before:
            raise InputError("Parameters that say how texts are prepared were changed after the last fit: fit again.")
        return self.training_set_

    def extend(self, texts: Iterable[str], min_count: int = 2) -> Self:
        """Return a fitted estimator that has rows for words which training did not see: see `TextModel.extend`.

        This estimator stays as it is. In the new one, `model_`, `word_embeddings_` and `word_graph_` have the words of
        training first, then the new ones, which have no edges in `word_graph_`. `classifier_` is the one that was
        fitted, with the words of training alone.
        """
        model = self._fitted.extend(texts, min_count)
        extended: Any = clone(self)
        if not hasattr(self, "classifier_"):  # it was loaded
            kept: Self = extended._with_model(model)
        else:
            kept = extended._keep(self.classifier_, self.word_graph_.among(model.vocabulary), model)
        return kept
