"""What the linear model is trained on, how, what a training leaves behind, and what of that another can use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.arrays import Floats
from wgcn.base.errors import MOST, check_least, check_share
from wgcn.labels.splits import Rows, canonical_order
from wgcn.labels.targets import Targets, places_in
from wgcn.linear.calibration import HeldOut
from wgcn.linear.model import Blocks, LinearSettings, Scales
from wgcn.linear.tuning import Tuned
from wgcn.scoring.scorer import Scorer
from wgcn.semi.seed_words import SeedRows
from wgcn.semi.teacher import Teacher


@dataclass(frozen=True)
class Thresholds:
    """Numbers of labelled documents from which a training takes other steps, or up to which it looks at them."""

    hold_out: int = 100  # fewer are all needed for fitting, and too few to calibrate by
    beside_teacher: int = 500  # with fewer and a teacher, cross-validating the teacher is quicker and more certain
    tune: int = 1000  # fewer are too few to choose settings by
    many: int = 50_000  # from here on, what trials with few documents chose is compared again
    trial: int = 3000  # to which trials are fitted
    trial_tol: float = 5e-2  # tolerance of trials
    short: int = 40  # words and n-grams per document of short texts


THRESHOLDS = Thresholds()


@dataclass(frozen=True)
class LinearTraining:
    """How the linear model is trained."""

    settings: LinearSettings
    teacher: float = 1.5  # weight of the teacher's scores, times the share of unlabelled documents
    self_training: float = 0.3  # weight of an unlabelled document in the second fit, beside a labelled one; 0 for none
    validation_fraction: float = 0.1  # share of the labelled documents held out for calibration
    tune: bool = True  # whether settings are chosen where there are enough labels
    random_state: Any = 0
    n_jobs: int | None = None
    limits: Thresholds = field(default_factory=lambda: THRESHOLDS)

    def __post_init__(self) -> None:
        check_least(self, 0, "teacher", "self_training", most=MOST)
        check_share(self, "validation_fraction")

    @classmethod
    def of(cls, parameters: object) -> Self:
        """Return the training that the attributes of an estimator describe; what it lacks has its default."""
        of_model, of_training = (
            {each.name: getattr(parameters, each.name) for each in fields(kind) if hasattr(parameters, each.name)}
            for kind in (LinearSettings, cls)
        )
        return cls(LinearSettings(**of_model), **of_training)

    def tunes(self, n_labelled: int) -> bool:
        """Whether settings are chosen where so many different documents are labelled."""
        return self.tune and n_labelled >= self.limits.tune


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearTask:
    """The documents to train on. Unlabelled ones are not used where a document may have several classes."""

    terms: csr_array  # (labelled documents, words)
    targets: Targets  # (labelled documents, classes)
    multilabel: bool = False  # whether a document may have several classes
    weight: npt.NDArray[np.float64]  # (labelled documents,)
    unlabelled: csr_array  # (unlabelled documents, words)
    adjacency: csr_array  # A_vv, (words, words)
    word_vectors: Floats | None = None  # (words, values), for the teacher
    # Shares of the classes among the unlabelled documents and those to be predicted, if not those among the labels.
    class_prior: npt.NDArray[np.float64] | None = None  # (classes,)
    seeds: SeedRows | None = None  # words that stand for classes; there may be no labelled document then
    subwords: csr_array | None = None  # (words, subwords)
    # By how many terms at the beginning of a text count more, the rows of labelled and unlabelled documents.
    leads: Mapping[int, tuple[csr_array, csr_array]] = field(default_factory=dict)
    teacher: Teacher | None = None  # of these documents, the labelled ones first, if there is one already
    # Of the labelled documents and then of the unlabelled ones, by which they are ordered and known as copies.
    digests: npt.NDArray[np.int64] | None = None
    are_texts: bool = False  # whether labelled documents with nearly the same terms are copies too
    # The place that each of them had when the task was given, before `selected`; None where it is as it was.
    places: Rows | None = None

    @property
    def blocks(self) -> Blocks:
        """What words have in common."""
        return Blocks(self.adjacency, self.subwords)

    @property
    def codes(self) -> Rows:
        """The class of each document; all 0 where there may be several."""
        return np.zeros(len(self.targets), np.int64) if self.multilabel else self.targets.codes

    @property
    def given_places(self) -> Rows:
        """The place that each document had when the task was given, counted through both kinds."""
        return np.arange(len(self.targets) + self.unlabelled.shape[0]) if self.places is None else self.places

    def selected(self, own: Rows, others: Rows) -> LinearTask:
        """Return the task with some of the labelled documents and of the unlabelled ones, in this order."""
        every = np.append(own, len(self.targets) + others)
        return replace(
            self,
            terms=self.terms[own],
            targets=self.targets[own],
            weight=self.weight[own],
            unlabelled=self.unlabelled[others],
            leads={lead: (rows[own], more[others]) for lead, (rows, more) in self.leads.items()},
            teacher=None if self.teacher is None else self.teacher.reordered(every),
            digests=None if self.digests is None else self.digests[every],
            places=self.given_places[every],
        )

    def in_order(self) -> LinearTask:
        """Return the task with its documents by their digests: in which rows they were makes no difference then."""
        if self.digests is None:
            return self
        n = len(self.targets)
        own = canonical_order(self.digests[:n], self.targets, self.weight)
        return self.selected(own, canonical_order(self.digests[n:]))


class LinearTrained(NamedTuple):
    """The result of training."""

    scorer: Scorer
    history: list[dict[str, float]]  # objective after each iteration of the last fit
    tuned: Tuned | None
    held_out_accuracy: float | None
    n_held_out: int
    held_out: HeldOut | None
    # Of the fits to the labelled documents and, with self-training, to all documents, the labelled ones first.
    duals: list[Floats]
    teacher: Teacher | None
    own_rows: Floats  # of the last fit, as those of `LinearFit` with a column per class
    factor: float
    subword_rows: Floats | None  # likewise
    scale: tuple[Scales, int]  # of graph and subwords, and the number of labelled documents that gave it
    adjacency: csr_array  # the edges that were used
    n_copies: int = 0  # labelled documents that are copies or near-copies of others
    measured: str = ""  # how the accuracy was: "teacher" and "folds", cross-validated, or "held out" of a first fit


# Up to this share of all documents, new ones are few: the word graph is not counted again for them. With fewer
# documents than this, counting takes little time, and new words matter more.
_FEW, LEAST_DOCUMENTS = 0.125, 2000


def are_few(n_new: int, n_all: int) -> bool:
    """Return whether so many new documents leave the word graph, and its scale, about as they were."""
    return n_all >= LEAST_DOCUMENTS and n_new <= _FEW * n_all


class Added(NamedTuple):
    """The documents and classes of a training, the labelled documents first: their places in an earlier one, or -1."""

    documents: Rows  # (documents,)
    classes: Rows  # (classes,)
    # Labelled documents, and scores of shape (rows, classes) by the earlier model, which did not have them.
    scored: tuple[Rows, Floats] | None = None
    same_graph: bool = False  # whether the word graph has the same edges

    @classmethod
    def to(cls, before: npt.NDArray[np.bool_], now: npt.NDArray[np.bool_], classes: Rows) -> Added:
        """Compare which documents were labelled before and are now: the first of now are those of before, in order."""
        more = np.zeros(len(now) - len(before), bool)
        earlier, order = (np.argsort(~labelled, kind="stable") for labelled in (before, now))
        places = np.append(np.argsort(earlier), more - 1)
        return cls(places[order], classes)

    def ordered(self, places: Rows, n_labelled: int) -> Added:
        """Return the same for the documents of now in another order, of which `places` has the place of each here."""
        scored = self.scored
        if scored is not None:
            scored = np.argsort(places[:n_labelled])[scored[0]], scored[1]
        return self._replace(documents=self.documents[places], scored=scored)

    def starts(self, duals: Iterable[Floats], n_labelled: int, binary: bool) -> list[Floats]:
        """Return the warm starts of fits to the labelled documents and to all, from the duals of the earlier ones."""
        parts = zip(duals, (self.documents[:n_labelled], self.documents), strict=False)
        return [warm_start(dual, documents, self.classes[int(binary) :]) for dual, documents in parts]

    def held_out(self, rows: Rows, scores: Floats, n_labelled: int, share: float) -> tuple[Rows, Floats] | None:
        """Return the newest held-out scores, of a share of the labelled documents; None if they are too few.

        `rows` and `scores`, (rows, earlier classes), are those of the earlier training, to which the scored documents
        are added. With other classes, they cannot be used.
        """
        if not np.array_equal(self.classes, np.arange(scores.shape[1])):
            return None
        places, wanted = places_in(self.documents[:n_labelled], rows), max(round(share * n_labelled), 1)
        places, scores = places[places >= 0], scores[places >= 0]
        if self.scored is not None:
            wanted = max(wanted, len(self.scored[0]))
            places, scores = np.append(places, self.scored[0]), np.vstack([scores, self.scored[1]])
        return (places[-wanted:], scores[-wanted:]) if 2 * len(places) >= wanted else None


def warm_start(dual: Floats, documents: Rows, classes: Rows) -> Floats:
    """Return earlier duals for the documents and classes of now, of shape (documents, classes), 0 for new ones.

    `dual` has the shape (earlier documents, earlier classes), or one column, that of the second of two classes. Earlier
    documents beyond its rows count as new. A dual without columns, which was not kept, gives a start without any.
    """
    if not dual.shape[1]:
        return np.zeros((len(documents), 0), dual.dtype)
    if dual.shape[1] == 1:
        dual = np.hstack([-dual, dual])
    start = np.zeros((len(documents), len(classes)), dual.dtype)
    rows, columns = np.flatnonzero((documents >= 0) & (documents < len(dual))), np.flatnonzero(classes >= 0)
    start[np.ix_(rows, columns)] = dual[np.ix_(documents[rows], classes[columns])]
    return start


class Earlier(NamedTuple):
    """An earlier training, from which another begins."""

    trained: LinearTrained
    added: Added  # how the task differs from that one's
