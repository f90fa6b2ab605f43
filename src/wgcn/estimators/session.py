"""Session: prepared texts, the labels that they have so far, and the model that was trained on these.

Fits, updates, the labelling page and fits out of core work on it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.base import clone

from wgcn.active.curve import CurvePoint, judging, learning_curve
from wgcn.active.review import Doubt, Seen, doubts
from wgcn.active.suggest import suggest
from wgcn.base.arrays import Floats, check_memory
from wgcn.base.errors import InputError
from wgcn.estimators.matrix import WGCNClassifier
from wgcn.estimators.preparation import Preparation, Prepared, find_texts
from wgcn.graph import WordGraph
from wgcn.labels.reading import Labels, check_lengths, read_labels, read_some_labels, relabelled
from wgcn.labels.splits import Rows
from wgcn.labels.targets import Targets, places_in
from wgcn.linear.operator import row_slice
from wgcn.linear.task import Added, Earlier, LinearTask, LinearTraining
from wgcn.linear.training import MakeTrainer
from wgcn.model.text_model import TextModel
from wgcn.scoring.scorer import Scorer
from wgcn.semi.seed_words import GivenSeeds, SeedCheck, SeedRows, SeedWord, seed_report
from wgcn.semi.teacher import Teacher
from wgcn.trust.abstention import Trust, held_out_trust
from wgcn.trust.scope import n_tokens

_REVIEW_ARRAYS = 12  # of texts by classes
_QUICK = 0.1  # tolerance of a quick training


def _no_labels() -> Labels:
    return Labels(np.empty(0), np.empty(0, bool), Targets.single(np.empty(0, np.int64), 0), multilabel=False)


@dataclass(frozen=True, eq=False)
class Session:
    """Prepared texts, their labels so far, and the model that was trained on these.

    Texts beyond the end of `labels` and `weight` are unlabelled. A session stays as it is: `train` and `update` return
    another one, so answers can come from one while the next is under way.

    Examples
    --------
    >>> from wgcn import WGCNTextClassifier
    >>> texts = ["red wine", "white wine", "fast car", "slow car", "a fast red car"]
    >>> session = Session.of(WGCNTextClassifier(), texts)
    >>> session = session.train(["drink", "drink", "drive", "drive", None])
    >>> session.suggest(1).tolist(), session.model().predict(["a glass of wine"]).tolist()
    ([4], ['drink'])
    """

    prepared: Prepared
    classifier: WGCNClassifier  # how models are trained; in a session that `train` returned, the trained one
    labels: Labels = field(default_factory=_no_labels)
    weight: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    seeds: GivenSeeds | None = None
    seed_words: dict[Any, list[SeedWord]] | None = None  # by class, those that seeds drew in too
    fixed: str = ""  # what came with the texts, if others cannot come without
    seconds: float = 0.0  # that the training took
    teachers: dict[bool, Teacher] = field(default_factory=dict)  # that were asked for, by whether they have seeds

    @classmethod
    def of(cls, estimator: object, texts: Iterable[str]) -> Session:
        """Return a session of texts, prepared as the parameters of an estimator say."""
        return cls(Preparation.of(estimator).prepare(texts), WGCNClassifier.of(estimator))

    def train(
        self,
        y: object,
        weight: npt.NDArray[np.float64] | None = None,
        *,
        seeds: GivenSeeds | None = None,
        vectors: Mapping[str, npt.ArrayLike] | None = None,
        document_graph: csr_array | None = None,
        before: Session | None = None,
        keeps_teacher: bool = False,
        quick: bool = False,
    ) -> Session:
        """Train a model on labels of the first texts, in any form that `fit` takes; `weight` is 1 by default.

        seeds, vectors, document_graph : as in `WGCNTextClassifier.fit`
        before : where the training begins: a session that was trained on the first of these texts
        keeps_teacher : whether later trainings from this session use its teacher; `y` has an entry for each text then
        quick : whether to train less exactly, and without calibration
        """
        started, classifier, labels = time.perf_counter(), clone(self.classifier), read_labels(y)
        prepared, graph = self.prepared, self.prepared.word_graph
        if document_graph is not None:
            graph = prepared.citation_graph(document_graph)
        elif graph is None and before is not None:
            graph = before.classifier.word_graph_
        weight = np.ones(len(labels.labelled)) if weight is None else weight
        rows = prepared.seed_rows(seeds, labels.classes)
        given = replace(self, classifier=classifier, labels=labels, weight=weight, seeds=seeds)
        given_vectors = None if vectors is None else prepared.word_vectors(vectors)
        task = given.task(graph, rows, given_vectors, chooses_lead=before is None)
        if keeps_teacher:
            order = np.argsort(~labels.labelled, kind="stable")
            task = replace(task, teacher=self.teacher(rows).reordered(order))
        training = LinearTraining.of(classifier)
        if quick:
            loose = replace(training.settings, tol=_QUICK)
            training = replace(training, settings=loose, validation_fraction=0.0)
        classifier.train(task, None if before is None else given.earlier(before), training, self.make_trainer)
        if classifier.tuned_ is not None:
            prepared = prepared.with_lead(int(classifier.tuned_.settings["lead"]))
        seeded = None if (found := classifier.trained_.teacher) is None else found.seeded
        words = None if seeded is None else dict(zip(labels.classes.tolist(), seeded.words, strict=True))
        return replace(given, prepared=prepared, seed_words=words, seconds=time.perf_counter() - started)

    @property
    def make_trainer(self) -> MakeTrainer | None:
        """What trains on these texts; None for the usual trainer, of texts in memory."""
        return None

    def task(
        self, graph: WordGraph | None, seeds: SeedRows | None, vectors: Floats | None, *, chooses_lead: bool
    ) -> LinearTask:
        """Return what to train on; with `chooses_lead`, the training may choose between the leads of the texts."""
        prepared, n = self.prepared, len(self.labels.labelled)
        terms = prepared.document_terms
        return self.classifier.task(
            row_slice(terms, 0, n),
            self.labels,
            self.weight,
            word_graph=graph,
            unlabeled=row_slice(terms, n, terms.shape[0]) if n < terms.shape[0] else None,
            word_vectors=vectors,
            seeds=seeds,
            subwords=prepared.subword_matrix(self.classifier.subwords),
            leads=prepared.by_lead if chooses_lead else None,
            digests=prepared.digests,
        )

    def earlier(self, before: Session) -> Earlier | None:
        """Return what a session knows of these texts; None if it left out some, of weight 0, or had seeds."""
        trained, labels = before.classifier.trained_, self.labels
        n = len(before.prepared.digests)
        if len(trained.duals[0]) < len(before.labels.targets) or before.seeds is not None:
            return None
        was_labelled = np.append(before.labels.labelled, np.zeros(n - len(before.labels.labelled), bool))
        added = Added.to(was_labelled, labels.labelled, places_in(before.labels.classes, labels.classes))
        added = added._replace(same_graph=self.prepared.n_in_graph == before.prepared.n_in_graph)
        new = np.flatnonzero(labels.labelled[n:]) + n
        if len(new) and self.classifier.class_prior is None and (added.classes >= 0).all():
            scores = before.classifier.scorer_.scores_of(self.prepared.terms_as_in(before.prepared, new))
            added = added._replace(scored=(np.cumsum(labels.labelled)[new] - 1, scores))
        return Earlier(trained, added)

    def update(self, texts: Iterable[str], labels: object, classifier: WGCNClassifier) -> Session:
        """Return a session with more texts and labels, trained from where this one ended; `classifier` says how.

        Texts and labels are as in `WGCNTextClassifier.update`.
        """
        given, before = list(texts), self.labels
        more = read_some_labels(labels, before.classes)
        check_lengths(len(given), len(more.labelled))
        found, n_before = find_texts(self.prepared.digests, given), len(self.prepared.digests)
        if len(found.new) and self.fixed:
            raise InputError(f"{len(found.new):,} of the texts are new, and the last fit had {self.fixed}: fit again.")
        n_texts = n_before + len(found.new)
        which = np.append(found.given, found.new)
        documents = np.append(found.documents, np.arange(n_before, n_texts))
        unnamed = before.classes[before.targets.sums() == 0]  # given without a label
        seeded = (*(self.seeds.classes if self.seeds else ()), *unnamed.tolist())
        now = relabelled(before, more, which, documents, n_texts, seeded)
        classifier.check_parameters(now)
        prepared = self.prepared
        if len(found.new):
            prepared = prepared.preparation.prepare([given[i] for i in found.new], earlier=prepared)
        weight = np.append(self.weight, np.ones(n_texts - len(self.weight)))
        larger = replace(self, prepared=prepared, classifier=classifier, teachers={})
        return larger.train(now, weight, seeds=self.seeds, before=self)

    def model(self, parameters: Mapping[str, Any] | None = None) -> TextModel:
        """Return the model that was trained; its card has the parameters of the estimator."""
        classifier, trained = self.classifier, self.classifier.trained_
        settings = {name: value for name, value in (parameters or {}).items() if name not in ("tune", "n_jobs")}
        settings |= {} if classifier.tuned_ is None else classifier.tuned_.settings
        settings |= {} if classifier.tuned_ is None else {"lead": self.prepared.weighting.lead}
        model = self.prepared.text_model(classifier, settings, self.seconds)
        if trained.teacher is not None and trained.teacher.seeded is not None and self.seed_words is not None:
            shares = dict(zip(self.seed_words, trained.teacher.estimated_shares().tolist(), strict=True))
            given = None if classifier.class_prior is None else model.scorer.prior.tolist()
            told = seed_report(self.seeds, self.seed_words, trained.teacher.seeded.trust, shares, given)
            model = replace(model, report=model.report | told)
        return model if trained.held_out is None else replace(model, trust=self.trust(model, *trained.held_out))

    def trust(self, model: TextModel, rows: Rows, scores: Floats) -> Trust | None:
        """Return what scores of held-out labelled texts say about the answers of a model."""
        prepared = self.prepared
        lengths = partial(n_tokens, prepared.tokens, ngram_range=model.ngram_range, stop_words=model.stop_words)
        return held_out_trust(model, prepared.document_terms, prepared.term_counts, lengths, self.labels, rows, scores)

    def teacher(self, seeds: SeedRows | None = None) -> Teacher:
        """Return the teacher of the texts; it is made once, and once more with seeds."""
        has_seeds = seeds is not None
        if seeds is not None and has_seeds in self.teachers:
            return self.teachers[has_seeds].with_seeds(seeds)
        if has_seeds not in self.teachers:
            graph = self.prepared.word_graph or self.classifier.word_graph_  # which citations made
            terms, n_jobs = self.prepared.document_terms, self.classifier.n_jobs
            self.teachers[has_seeds] = Teacher(terms, graph.adjacency, n_jobs=n_jobs, seeds=seeds)
        return self.teachers[has_seeds]

    def check_seeds(self, seeds: GivenSeeds) -> SeedCheck:
        """Return what is known of seeds without labels and without fitting: see `WGCNTextClassifier.check_seeds`."""
        classes = read_labels([], seeds.classes).classes
        teacher, names = self.teacher(self.prepared.seed_rows(seeds, classes)), classes.tolist()
        assert teacher.seeded is not None
        shares = dict(zip(names, teacher.estimated_shares().tolist(), strict=True))
        return SeedCheck(dict(zip(names, teacher.seeded.words, strict=True)), teacher.seeded.trust, shares)

    def suggest(self, n: int = 10, *, done: npt.NDArray[np.bool_] | None = None, scorer: Scorer | None = None) -> Rows:
        """Return the indices of `n` texts to label next, the most useful first: see `wgcn.active.suggest`.

        `done` are the texts to leave out, by default those with a label; `scorer` is that of another model.
        """
        done, teacher = self.labels.labelled if done is None else done, None
        if hasattr(self.classifier, "trained_"):
            scorer, teacher = scorer or self.classifier.scorer_, self.classifier.trained_.teacher
        return suggest(self.prepared.document_terms, (teacher or self.teacher()).place, done, n, scorer)

    def review(self, n: int | None = None) -> list[Doubt]:
        """Return the `n` labels that look most wrong, or all: see `wgcn.active.review`."""
        labels, trained = self.labels, self.classifier.trained_
        rows = np.flatnonzero(labels.labelled)
        terms, scorer = csr_array(self.prepared.document_terms[rows]), trained.scorer
        # Texts of weight 0 have no dual: rows of the others do not tell which texts they are.
        held_out = trained.held_out if len(trained.duals[0]) >= len(rows) else None
        n_bytes = _REVIEW_ARRAYS * 4 * len(rows) * len(labels.classes)
        check_memory("Reviewing so many labels of so many classes", n_bytes, "Fit to fewer texts, or to fewer classes.")
        scores = np.asarray(terms @ scorer.word_embeddings + scorer.bias)
        seen = Seen(terms, labels.targets.toarray(), scores, held_out)
        return doubts(seen, labels.classes, rows, labels.multilabel, n)

    def learning_curve(self, y: object, sizes: Sequence[int] | None = None) -> list[CurvePoint]:
        """Return the accuracy for growing numbers of labels, by cross-validation: see `wgcn.active.curve`."""
        labels = read_labels(y)

        def fit(terms: csr_array, own: Labels) -> Scorer:
            fitted: WGCNClassifier = clone(self.classifier).fit(terms, own, word_graph=self.prepared.word_graph)
            return fitted.scorer_

        return learning_curve(labels, judging(self.prepared.document_terms, labels, fit), sizes)
