"""When to trust an answer: labels that are left out, sets of labels that hold the right one, texts out of scope.

All of it is judged by training texts that were held out of a first fit. Needs numpy alone.

Sets of labels are split conformal prediction (Vovk et al. 2005; Sadinle et al. 2019): the nonconformity of a label is 1
minus its probability, and a set has the labels whose nonconformity is at most the quantile ceil((n + 1) coverage) / n
of the right labels of the n held-out texts. If new texts are like those in training, the right label is in the set for
the given share of them. A set is empty where no label is credible, which has to happen where the share of right labels
is above the coverage.

Held-out texts are weighted (weighted conformal prediction, Tibshirani et al. 2019), because mail of one thread, news of
one day or lines of one document are alike, and mostly lie close together in a file. A text that is held out at random
then has siblings in training, which new texts lack: it is predicted too well. The weights depend on

    s = cosine to the most similar training text, of words that few texts have

and bring the distribution of s to that of the similarity to training texts which lie far away in the input. As fewer
texts are far away than there are, the distribution is compared with that of texts that are far away in a random order.
If the order of the texts is random, the weights are about 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import Floats, Ints, row_batches
from wgcn.base.errors import LARGEST, InputError, StoreError
from wgcn.scoring.terms import Terms
from wgcn.trust.scope import N_SIGNS, Scope, doubt, familiarity, familiarity_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from wgcn.labels.reading import Labels

Names = npt.NDArray[Any]  # of classes: strings, integers or, where labels are left out, objects

OUT_OF_SCOPE = 0.99  # a text that is stranger than this share of held-out texts counts as out of scope
_MIN_TEXTS = 20  # held-out texts, to judge strangeness by
_MAX_TEXTS = 5000  # values that are kept; of more, evenly spaced ones of the sorted
_PARTS = ("nonconformity", "weights", "strangeness", "scales")
_FAR = 0.1  # texts of a class that lie between two texts which are far from each other, as a share of the class
_BINS = 8  # of similarity
_COMMON, _MIN_COMMON = 0.05, 50  # words in more texts than this share, and this number, are left out


class Trust(NamedTuple):
    """What held-out training texts tell about answers. An array is empty where there were too few of them."""

    nonconformity: Floats  # (held-out texts,), of the right labels, sorted
    weights: Floats  # (held-out texts,); their sum is the number of different texts
    scope: Scope

    @classmethod
    def calibrate(cls, right: Floats, weights: Floats, doubts: Floats, familiar: Floats) -> Trust:
        """Learn from held-out texts.

        right : (held-out texts,), the probability of the right label
        weights : (held-out texts,), not negative; (0,) if a text may have several labels
        doubts, familiar : (n,) and (n, 4), the results of `doubt` and, left one out, `familiarity` for some texts
        """
        used = np.flatnonzero(weights)
        nonconformity = 1 - right[used]
        order = _thinned(np.argsort(nonconformity, kind="stable"))
        scope = Scope(np.empty((0, 3)), np.empty(0))
        if len(doubts) >= _MIN_TEXTS:
            n_words, *signs = familiar.T
            scope = Scope.calibrate(n_words, np.column_stack([*signs, doubts]))
            scope = scope._replace(strangeness=_thinned(scope.strangeness))
        return cls(nonconformity[order], weights[used[order]] * (len(used) / max(len(order), 1)), scope)

    def out_of_scope(self, probabilities: Floats, familiar: Floats) -> Floats:
        """Return for each text the share of held-out texts that look less strange; 1 for one without a known word.

        `probabilities` are of shape (texts, classes), `familiar` as `familiarity` returns it.
        """
        if not len(self.scope.strangeness):
            raise InputError(
                f"Fewer than {_MIN_TEXTS} labelled texts were held out of training, too few to tell what is out of "
                "scope. Label more texts and fit again."
            )
        n_words, *signs = familiar.T
        strangeness = self.scope.strange(n_words, np.column_stack([*signs, doubt(probabilities)]))
        return np.where(n_words == 0, 1.0, self.scope.share_below(strangeness))

    def labels(self, probabilities: Floats, familiar: Floats, classes: Names, abstain: float) -> Names:
        """Return the likeliest label of each text; None where it is less likely than `abstain`, or out of scope."""
        if not 0 < abstain < 1:
            raise InputError(f"abstain must be a probability above 0 and below 1, got {abstain}.")
        strange = self.out_of_scope(probabilities, familiar) > OUT_OF_SCOPE
        labels: Names = classes[probabilities.argmax(axis=1)].astype(object)
        labels[strange | (probabilities.max(axis=1) < abstain)] = None
        return labels

    def sets(self, probabilities: Floats, coverage: float) -> npt.NDArray[np.bool_]:
        """Return which labels are in the set of each text, of shape (texts, classes)."""
        if not 0 < coverage < 1:
            raise InputError(f"coverage must be above 0 and below 1, got {coverage}.")
        below = np.cumsum(self.weights)
        n = float(below[-1]) if len(below) else 0.0
        place = int(np.searchsorted(below, coverage * (n + 1) - 1e-9))  # a new text counts 1
        if place == len(below):
            needed = int(np.ceil(coverage / (1 - coverage) - 1e-9))
            raise InputError(
                f"Sets with a coverage of {coverage:g} need at least {needed:,} held-out texts, but training held out "
                f"{n:,.0f}: a tenth of the labelled texts if these are at least 100, or all in turn if they are fewer "
                "than 500 and there are unlabelled texts. Label more texts and fit again, or choose a smaller coverage."
            )
        return np.asarray(1 - probabilities <= self.nonconformity[place])

    def label_sets(self, probabilities: Floats, coverage: float, classes: Names) -> list[list[Any]]:
        """Return the labels in the set of each text, the likeliest first."""
        mask, names = self.sets(probabilities, coverage), classes.tolist()
        order = np.argsort(-probabilities, axis=1, kind="stable").tolist()
        return [[names[i] for i in row if kept[i]] for row, kept in zip(order, mask, strict=True)]

    def tensors(self) -> dict[str, Floats]:
        """Return the arrays by the names under which a model folder keeps them."""
        parts = self.nonconformity, self.weights, self.scope.strangeness, self.scope.scales
        return {f"trust.{name}": part for name, part in zip(_PARTS, parts, strict=True)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Floats], path: object) -> Trust | None:
        """Return what `tensors` gave, checked; None if nothing of it is there. `path` is for error messages."""
        found = [tensors[f"trust.{name}"] for name in _PARTS if f"trust.{name}" in tensors]
        if not found:
            return None
        shapes = [part.shape for part in found]
        sound = (
            len(found) == len(_PARTS)
            and all(part.dtype == np.float64 and (np.abs(part) <= LARGEST).all() for part in found)
            and (np.abs(found[0] - 0.5) < 0.5 + 1e-6).all()  # 1 minus a probability, rounded
            and [len(shape) for shape in shapes] == [1, 1, 1, 2]
            and shapes[0] == shapes[1]
            and all((np.diff(part) >= 0).all() and len(part) <= _MAX_TEXTS for part in (found[0], found[2]))
            and shapes[3] == ((N_SIGNS, 3) if shapes[2][0] else (0, 3))
            and all((part >= 0).all() for part in (found[1], found[3][:, 1:]))
        )
        if not sound:
            raise StoreError(f"{path}: the values of held-out texts ('trust.*') do not fit. Save or fetch it again.")
        return cls(found[0], found[1], Scope(found[3], found[2]))


def held_out_trust(
    model: Any,
    terms: csr_array,
    counts: csr_array,
    lengths: Callable[[Ints], Ints],
    labels: Labels,
    rows: Ints,
    scores: Floats,
) -> Trust:
    """Return what the held-out texts of a fit tell about the answers of its model.

    model : TextModel
    terms, counts : (texts, words), the weights of terms and how often they occur, in the order of the input; texts with
        a label are among the first
    lengths : returns how many words and n-grams some texts have, as `wgcn.trust.scope.n_tokens` counts them
    labels : of the first texts
    rows, scores : (held out,) and (held out, classes), which labelled texts were held out, and their scores
    """
    labelled_rows, codes = np.flatnonzero(labels.labelled), labels.targets.codes
    weights = np.empty(0) if labels.multilabel else novelty_weights(terms[labelled_rows], codes, rows)
    once = _thinned(np.unique(rows, return_index=True)[1])  # with few labels, texts come several times
    texts = labelled_rows[rows[once]]
    known = counts[texts]
    parts = known.indices, known.indptr, known.data, lengths(texts)
    familiar = familiarity(model.vocabulary, model.weighting.idf, model.ngram_range, *parts, leave_one_out=True)
    right, doubts = np.empty(len(rows)), np.empty(len(rows))
    for batch in row_batches(*scores.shape):
        likely = model.scorer.probabilities(scores[batch])
        right[batch] = likely[np.arange(len(likely)), codes[rows[batch]]]
        doubts[batch] = doubt(likely)
    return Trust.calibrate(right, weights, doubts[once], familiar)


def checked_trust(trust: Trust | None, multilabel: bool = False) -> Trust:
    """Return it, or raise an InputError that says why a model cannot tell."""
    if multilabel:
        raise InputError(
            "Sets of labels and answers that may be left out are for models that give one label per text. This one "
            "gives several: use the probability that `predict_proba` has for each."
        )
    if trust is None:
        raise InputError(
            "The model does not know how it does on held-out texts: it was fitted by wgcn 0.2 or earlier, by the "
            "network, to fewer than 100 labels without unlabelled texts, or with one label for half of the classes. "
            "Fit it again, with more labels if there were few."
        )
    return trust


def _thinned(values: Floats) -> Floats:
    """Return at most `_MAX_TEXTS` of sorted values, evenly spaced."""
    if len(values) <= _MAX_TEXTS:
        return values
    return values[np.linspace(0, len(values) - 1, _MAX_TEXTS).round().astype(np.int64)]


def answer_columns(
    model: Any,
    scores: Floats,
    terms: Terms,
    *,
    abstain: float | None = None,
    coverage: float | None = None,
    scope: bool = False,
) -> dict[str, list[Any]]:
    """Return columns of an answer to texts: `label`, None if abstained; `set`, a list; `out_of_scope`. Labels are str.

    `model` is a TextModel, `terms` what its method of this name returns, `scores` those of its scorer. There are only
    the columns that were asked for; `label` is asked for by `abstain`.
    """
    columns: dict[str, list[Any]] = {}
    if abstain is None and coverage is None and not scope:
        return columns
    several, likely = model.scorer.multilabel, model.scorer.probabilities(scores)
    trust = checked_trust(model.trust, several and not (abstain is None and coverage is None))
    classes = np.array([str(name) for name in model.classes.tolist()], object)
    if abstain is not None:
        columns["label"] = trust.labels(likely, familiarity_of(model, terms), classes, abstain).tolist()
    if coverage is not None:
        columns["set"] = trust.label_sets(likely, coverage, classes)
    if scope:
        columns["out_of_scope"] = trust.out_of_scope(likely, familiarity_of(model, terms)).tolist()
    return columns


class RiskCoverage(NamedTuple):
    """The share of wrong answers among the most confident ones."""

    coverage: Floats  # (answers,), share of the answers that are given
    risk: Floats  # (answers,), share of wrong ones among those
    area: float  # mean risk over all coverages: smaller is better


def risk_coverage(confidence: npt.ArrayLike, right: npt.ArrayLike) -> RiskCoverage:
    """Return how the share of wrong answers grows when less confident ones are given too.

    `confidence` and `right` (whether an answer is right) are of shape (answers,). Equally confident answers are given
    together, so each counts with the mean risk of its group.

    Examples
    --------
    >>> curve = risk_coverage([0.9, 0.8, 0.7, 0.6], [True, True, False, True])
    >>> curve.risk.round(2).tolist(), round(curve.area, 3)
    ([0.0, 0.0, 0.33, 0.25], 0.146)
    """
    confident, wrong = np.asarray(confidence, np.float64), 1.0 - np.asarray(right, np.float64)
    if confident.shape != wrong.shape or confident.ndim != 1 or not len(confident):
        raise InputError(f"confidence and right must be equally long, got shapes {confident.shape} and {wrong.shape}.")
    order = np.argsort(-confident, kind="stable")
    _, groups, sizes = np.unique(-confident[order], return_inverse=True, return_counts=True)
    wrong = (np.bincount(groups, wrong[order]) / sizes)[groups]
    n = np.arange(1, len(wrong) + 1)
    risk = np.cumsum(wrong) / n
    return RiskCoverage(n / len(n), risk, float(risk.mean()))


def novelty_weights(terms: csr_array, codes: Ints, held_out: Ints, most_compared: int = 2000) -> Floats:
    """Return the weight of each held-out text, at least 0; the sum is the number of different texts that are compared.

    terms : csr_array of shape (texts, words), rows of length 1, in the order of the input
    codes : (texts,), the class of each
    held_out : (n,), rows that were held out. If they are most of the texts, as in cross-validation, only how often each
        comes counts.
    most_compared : held-out texts that are compared; others get the weight 0
    """
    rest = np.setdiff1d(np.arange(len(codes)), held_out)
    if len(rest) < len(codes) / 2:
        return np.asarray(1 / np.bincount(held_out)[held_out])
    random, weights = np.random.default_rng(0), np.zeros(len(held_out))
    chosen = np.sort(random.permutation(len(held_out))[:most_compared])
    places = _places(codes)
    orders = [(order[held_out[chosen]], order[rest]) for order in (places, random.permutation(places))]
    terms = _without_common(terms)
    highest, far, shuffled = _similarities(terms[held_out[chosen]], terms[rest], orders)
    edges = np.unique(np.quantile(shuffled, np.arange(1, _BINS) / _BINS))
    expected, found = (np.bincount(np.searchsorted(edges, each), minlength=len(edges) + 1) for each in (far, shuffled))
    weights[chosen] = (expected / np.maximum(found, 1))[np.searchsorted(edges, highest)]
    total = weights[chosen].sum()
    if total > 0:
        weights *= len(chosen) / total
    return weights


def _without_common(terms: csr_array) -> csr_array:
    """Return the texts without words that many have: they say little about siblings, but take most of the time."""
    kept = terms.copy()
    n_texts = np.bincount(terms.indices, minlength=terms.shape[1])
    kept.data[n_texts[terms.indices] > max(_COMMON * terms.shape[0], _MIN_COMMON)] = 0
    kept.eliminate_zeros()
    return kept


def _places(codes: Ints) -> Floats:
    """Return where each text lies among those of its class, from 0 to 1."""
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    places = np.empty(len(codes))
    begins = np.cumsum(sizes) - sizes
    places[order] = (np.arange(len(codes)) - begins[codes[order]] + 0.5) / sizes[codes[order]]
    return places


def _similarities(some: csr_array, others: csr_array, orders: list[tuple[Floats, Floats]]) -> Floats:
    """Return the cosine of each of some texts to the most similar other one, and to those far away in each order.

    An order has the places of some texts and of the others.
    """
    from wgcn.base.products import highest_products

    found = np.zeros((1 + len(orders), some.shape[0]))
    parts = [part for matrix in (some, others.T.tocsr()) for part in (matrix.indptr, matrix.indices, matrix.data)]
    highest_products(*parts, *(np.array(places) for places in zip(*orders, strict=True)), _FAR, found)
    return found
