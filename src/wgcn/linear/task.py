"""What the linear model is trained on, how, and what a training leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.arrays import Floats
from wgcn.base.errors import MOST, check_least, check_share
from wgcn.labels.splits import Rows, canonical_order
from wgcn.labels.targets import Targets
from wgcn.linear.additions import Added
from wgcn.linear.calibration import HeldOut
from wgcn.linear.model import Blocks, LinearSettings, Scales
from wgcn.linear.tuning import Tuned
from wgcn.scoring.scorer import Scorer
from wgcn.semi.seed_words import SeedRows
from wgcn.semi.teacher import Teacher


@dataclass(frozen=True)
class Limits:
    """Numbers of labelled documents from which a training takes other steps, or up to which it looks at them."""

    hold_out: int = 100  # fewer are all needed for fitting, and too few to calibrate by
    beside_teacher: int = 500  # with fewer and a teacher, cross-validating the teacher is quicker and more certain
    tune: int = 1000  # fewer are too few to choose settings by
    many: int = 50_000  # from here on, what trials with few documents chose is compared again
    trial: int = 3000  # to which trials are fitted
    trial_tol: float = 5e-2  # tolerance of trials
    short: int = 40  # words and n-grams per document of short texts


LIMITS = Limits()


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
    limits: Limits = field(default_factory=lambda: LIMITS)

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


@dataclass(frozen=True, eq=False)
class LinearTask:
    """The documents to train on. Unlabelled ones are not used where a document may have several classes."""

    terms: csr_array  # (labelled documents, words)
    targets: Targets  # (labelled documents, classes)
    multilabel: bool  # whether a document may have several classes
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


class Earlier(NamedTuple):
    """An earlier training, from which another begins."""

    trained: LinearTrained
    added: Added  # how the task differs from that one's
