"""Why a text gets its scores: the part of every term in the score of every class, with numpy alone.

A linear model adds up the rows of a text's terms, times their weights, so a term's part in a score is one product. The
row of a word that has edges in the word graph is itself a sum (see `wgcn.linear.model`):

    table[w] = U[w] + a sum_j A_wj U[j] + (S V)[w]

The word's own part is (1 + a A_ww) U[w]; every neighbour j in the graph has the part a A_wj U[j]; and the spelling of
the word has the part (S V)[w], computed as for a word that training did not see (`wgcn.scoring.spelling`). A model
keeps the own parts and the strongest neighbours of each word, in half precision, which is enough to read them
(`Split`). What all other neighbours add is the difference to the row, which is exact, so the parts always sum to the
whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import Floats
from wgcn.base.errors import InputError, StoreError
from wgcn.scoring.spelling import half_precision
from wgcn.text.tokenize import Tokenizer
from wgcn.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MIN_DOCUMENTS = 3  # texts of the training that a top word of a class is in, if that many are in the training
_NAMED = 5  # neighbours that a word keeps


class NeighbourPart(NamedTuple):
    """A neighbour of a word in the graph, and what it adds to the score of each class through that word."""

    word: str
    contributions: Floats  # (classes,)


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a text gets its scores.

    Contributions are products in double precision, in the order in which the model adds them up. `total` rounds their
    sum as the model does, so for a linear model it is equal to `scores` to the last bit. For a network it is equal up
    to rounding: there, contributions go through the hidden units that are active for this text.

    A text with no known word has no terms, and its bias are the scores of the class shares in training (the prior).

    Examples
    --------
    >>> from wgcn import WGCNTextClassifier
    >>> model = WGCNTextClassifier().fit(["red wine", "fast car"], ["drink", "drive"])
    >>> why = model.explain(["a glass of red wine"])[0]
    >>> why.label, [term for term, _ in why.top(n=2)], why.unknown
    ('drink', ['red', 'wine'], ['a', 'glass', 'of'])
    """

    text: str
    classes: npt.NDArray[Any]  # (classes,)
    terms: list[str]  # the known words and n-grams, each once, then words that only their spelling says something of
    weights: Floats  # (terms,), their tf-idf weights in this text
    contributions: Floats  # (terms, classes)
    bias: Floats  # (classes,)
    scores: Floats  # (classes,)
    probabilities: Floats  # (classes,)
    label: Any  # the predicted class; for a multi-label model the list of all that are predicted
    tokens: list[str]  # the words of the text in their order, known or not
    holders: list[list[int]]  # for each token the places in `terms` of the term occurrences that hold it
    unknown: list[str]  # the words that training did not see, each once; stop words are not among them
    # The part of each term itself; None if the model has not kept it, as folders of wgcn 0.2.0 and networks. A word
    # that `extend` has added has no part of its own: its row is made of other words.
    own: Floats | None = None  # (terms, classes)
    neighbours: list[list[NeighbourPart]] | None = None  # of each term, the strongest first
    spelling: Floats | None = None  # (terms, classes), the part of each term's spelling; None if the model has none

    @property
    def other_neighbours(self) -> Floats | None:
        """What the neighbours add that are not named: contributions - own - spelling - named ones, (terms, classes).

        Where a model was fitted to unlabelled documents without self-training, the teacher's part is in it too.
        """
        if self.own is None or self.neighbours is None:
            return None
        named = [sum((part for _, part in near), np.zeros(len(self.classes))) for near in self.neighbours]
        spelling = 0 if self.spelling is None else self.spelling
        return np.asarray(self.contributions - self.own - spelling - np.reshape(named, self.own.shape))

    @property
    def decided(self) -> int:
        """The place of the class with the highest score, which is explained where no other is asked for."""
        return int(self.scores.argmax())

    def place(self, label: Any = None) -> int:
        """Return the place of a class in `classes`; of the one with the highest score for None."""
        return self.decided if label is None else find_class(self.classes, label)

    def total(self) -> Floats:
        """Return the sum of the contributions and the bias, of shape (classes,), rounded as the model does."""
        if not self.terms:
            return self.bias.copy()
        return np.asarray(_add_up(self.contributions).astype(self.bias.dtype) + self.bias)

    def top(self, label: Any = None, n: int = 10, *, against: bool = False) -> list[tuple[str, float]]:
        """Return the n terms that speak most for a class, or against it, with their contributions to its score."""
        column = self.contributions[:, self.place(label)]
        order = np.argsort(column if against else -column, kind="stable")[: _checked(n)]
        return [(self.terms[i], float(column[i])) for i in order if (column[i] < 0 if against else column[i] > 0)]

    def words(self, label: Any = None) -> list[tuple[str, float]]:
        """Return every word of the text that is in a known term, with what the score of a class loses without it.

        This is the sum of the contributions of all terms that hold the word: itself and n-grams, so that what two words
        add together counts for both. The highest come first.
        """
        column, held = self.contributions[:, self.place(label)], dict[str, set[int]]()
        for token, terms in zip(self.tokens, self.holders, strict=True):
            if terms:
                held.setdefault(token, set()).update(terms)
        sums = [(word, float(column[sorted(terms)].sum())) for word, terms in held.items()]
        return sorted(sums, key=lambda pair: -pair[1])

    def shares(self, label: Any = None) -> Floats:
        """Return for each token its share of the contributions to a class, of shape (tokens,): they have the same sum.

        A term is shared equally by its occurrences, and an n-gram by its words.
        """
        column = self.contributions[:, self.place(label)]
        parts = np.bincount([i for terms in self.holders for i in terms], minlength=len(column))
        share = column / np.maximum(parts, 1)
        return np.array([sum(share[i] for i in terms) for terms in self.holders], np.float64)


@dataclass(frozen=True, eq=False)
class Explainer:
    """What explains the answers of a model: its words, how texts become terms, its weights and its classes."""

    tokenizer: Tokenizer
    ngram_range: tuple[int, int]
    stop_words: Collection[str]
    words: Sequence[str]  # the vocabulary
    idf: npt.NDArray[Any]  # (words,)
    n_learnt: int  # words that were in training; those after them were added by `extend`
    table: npt.NDArray[Any]  # (words, hidden)
    class_weights: npt.NDArray[Any] | None  # (hidden, classes), of a network
    bias: npt.NDArray[Any]  # (classes,)
    classes: npt.NDArray[Any]
    split: Split | None
    new_words: Sequence[str]  # whose ids come after those of the vocabulary
    new_rows: npt.NDArray[Any] | None  # (new words, hidden)
    # The parts of words' spellings in texts of weight 1, of some of the classes.
    spelling: Callable[[Sequence[str], slice], npt.NDArray[Any]] | None
    explained: slice = field(default_factory=lambda: slice(None))  # of the classes: all, or one

    def explain(
        self,
        texts: Sequence[str],
        weights: npt.NDArray[Any],
        words: npt.NDArray[Any],
        offsets: npt.NDArray[Any],
        *answers: npt.NDArray[Any],
        places: npt.NDArray[np.int64] | None = None,
    ) -> list[Explanation]:
        """Explain the answers to texts from their terms, given as `wgcn.scoring.terms.Terms` has them.

        The answers are scores and probabilities of shape (texts, classes), and what is decided: the place of the
        predicted class, of shape (texts,), or for a multi-label model 0 or 1 per class, of shape (texts, classes).
        With `places`, of shape (texts,), one class of each text is explained.
        """
        scores, probabilities, decided = answers
        names, found = self.classes.tolist(), []
        for i, (begin, end) in enumerate(pairwise(offsets)):
            own = self if places is None else self._of_class(int(places[i]))
            label = self.classes[decided[i] != 0].tolist() if decided.ndim == 2 else names[decided[i]]
            weighted = weights[begin:end], words[begin:end]
            found.append(
                own._explain(texts[i], weighted, scores[i, own.explained], probabilities[i, own.explained], label)
            )
        return found

    def _of_class(self, place: int) -> Explainer:
        """Return what explains the score of one class, with a column of each array."""
        one, split = slice(place, place + 1), self.split
        whole = replace(self, bias=self.bias[one], classes=self.classes[one], explained=one)
        if self.class_weights is not None:
            return replace(whole, class_weights=self.class_weights[:, one])
        return replace(
            whole,
            table=self.table[:, one],
            new_rows=None if self.new_rows is None else self.new_rows[:, one],
            split=None if split is None else replace(split, own=split.own[:, one]),
        )

    def _explain(
        self,
        text: str,
        weighted: tuple[npt.NDArray[Any], npt.NDArray[Any]],
        scores: npt.NDArray[Any],
        probabilities: Floats,
        label: Any,
    ) -> Explanation:
        weights, ids = weighted
        n_words = len(self.words)
        terms = [self.words[i] if i < n_words else self.new_words[i - n_words] for i in ids.tolist()]
        contributions, own, neighbours, spelling = self._contributions(weights, ids), None, None, None
        if self.spelling is not None:
            spelling = self._spelling(self.spelling, terms, weights, ids, contributions)
        if self.split is not None and self.class_weights is None:
            rest = contributions if spelling is None else contributions - spelling
            own, neighbours = self._split(self.split, weights, ids, rest)
        tokens, holders, unknown = self._tokens(text, terms, frozenset(self.new_words))
        return Explanation(
            text=text,
            classes=self.classes,
            terms=terms,
            weights=weights,
            contributions=contributions,
            bias=self.bias if terms else scores,
            scores=scores,
            probabilities=probabilities,
            label=label,
            tokens=tokens,
            holders=holders,
            unknown=unknown,
            own=own,
            neighbours=neighbours,
            spelling=spelling,
        )

    def _contributions(self, weights: npt.NDArray[Any], ids: npt.NDArray[Any]) -> Floats:
        """Return the products that the model adds up, of shape (terms, classes)."""
        rows, n_words = np.take(self.table, ids, axis=0, mode="clip"), len(self.table)
        if self.new_rows is not None:
            rows[ids >= n_words] = self.new_rows[ids[ids >= n_words] - n_words]
        products = rows * weights[:, None].astype(np.float64)  # (terms, hidden)
        if self.class_weights is None:
            return np.asarray(products, np.float64)
        active = _add_up(products).astype(self.table.dtype) > 0 if len(ids) else slice(0)
        return np.asarray(products[:, active] @ self.class_weights[active].astype(np.float64))

    def _spelling(
        self,
        spelling: Callable[[Sequence[str], slice], npt.NDArray[Any]],
        terms: list[str],
        weights: npt.NDArray[Any],
        ids: npt.NDArray[Any],
        contributions: Floats,
    ) -> Floats:
        """Return the parts of the spellings of terms: of a new word all of it, of an n-gram nothing."""
        parts = np.where(ids[:, None] >= len(self.words), contributions, 0.0)
        known = [i for i, term in enumerate(terms) if ids[i] < self.n_learnt and " " not in term]
        if known:
            rows = spelling([terms[i] for i in known], self.explained) / self.idf[ids[known], None].astype(np.float64)
            parts[known] = weights[known, None] * rows
        return parts

    def _split(
        self, split: Split, weights: npt.NDArray[Any], ids: npt.NDArray[Any], contributions: Floats
    ) -> tuple[Floats, list[list[NeighbourPart]]]:
        """Return the own parts of terms, of shape (terms, classes), and their named neighbours."""
        own, named = contributions.copy(), list[list[NeighbourPart]]([] for _ in ids)
        own[ids >= self.n_learnt] = 0
        places = np.searchsorted(split.words, ids)
        rows = np.flatnonzero(np.append(split.words, -1)[places] == ids)
        places, weight = places[rows], weights[rows, None].astype(np.float64)
        own[rows] = weight * split.own[places]
        near, strengths = split.neighbours[places], weight * split.strengths[places]  # (rows, k)
        parts = strengths[:, :, None] * split.own[near]  # (rows, k, classes)
        for row, words, each, is_there in zip(rows, split.words[near].tolist(), parts, strengths != 0, strict=True):
            named[row] = [NeighbourPart(self.words[word], each[i]) for i, word in enumerate(words) if is_there[i]]
        return own, named

    def _tokens(
        self, text: str, terms: list[str], new: Collection[str]
    ) -> tuple[list[str], list[list[int]], list[str]]:
        """Return the tokens of a text, the terms that hold each of them, and the words that training did not see."""
        place_of = {term: place for place, term in enumerate(terms)}
        tokens, stopped = self.tokenizer(text), frozenset(self.stop_words)
        kept = [i for i, token in enumerate(tokens) if token not in stopped]
        holders: list[list[int]] = [[] for _ in tokens]
        for n in range(self.ngram_range[0], self.ngram_range[1] + 1):
            for start in range(len(kept) - n + 1):
                members = kept[start : start + n]
                place = place_of.get(" ".join(tokens[i] for i in members))
                if place is not None:
                    for i in members:
                        holders[i].append(place)
        unknown = dict.fromkeys(tokens[i] for i in kept if not holders[i] or tokens[i] in new)
        return tokens, holders, list(unknown)


def find_class(classes: npt.NDArray[Any], label: Any) -> int:
    """Return the place of a class; a label that is none is an InputError that names the classes."""
    names = [str(name) for name in classes.tolist()]
    if str(label) in names:
        return names.index(str(label))
    shown = ", ".join(map(repr, names[:20])) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    raise InputError(f"There is no class {label!r:.80}. The classes are {shown}.")


def rank_words(
    vocabulary: Vocabulary,
    idf: Floats,
    table: Floats,
    class_weights: Floats | None,
    place: int,
    n: int,
    *,
    multilabel: bool,
) -> list[tuple[str, float]]:
    """Return the n words and n-grams that speak most for a class, with the values that they are ranked by.

    The value of a word is what it adds to the score of the class beyond what it adds to the classes on average, times
    its `idf`, which is its weight in a text where it occurs once up to the length of the text, times log(1 + texts of
    the training that have it). Without this last factor the names of people and machines that a few texts have come
    first. A word is in at least three of these texts, if any is. A multi-label model decides on each class for itself,
    so nothing is subtracted there. A network is asked for the scores of texts of one word.
    """
    rows = table if class_weights is None else np.maximum(table, 0) @ class_weights  # (words, classes)
    words, document_counts = vocabulary.words, vocabulary.document_counts
    column = rows[:, place].astype(np.float64) - (0 if multilabel else rows.mean(axis=1, dtype=np.float64))
    least = min(_MIN_DOCUMENTS, int(document_counts.max(initial=0)))
    column = np.where(document_counts >= least, column * idf * np.log1p(document_counts), -np.inf)
    best = np.lexsort((np.arange(len(column)), -column))[: _checked(n)]
    return [(words[i], float(column[i])) for i in best if column[i] > 0]


def _add_up(products: Floats) -> Floats:
    """Return the sums of columns, added in the order of the rows, as `wgcn.scoring.terms.add_up` does."""
    return np.asarray(np.cumsum(products, axis=0)[-1])


def _checked(n: int) -> int:
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}.")
    return n


@dataclass(frozen=True, eq=False)
class Split:
    """The own parts and the strongest neighbours of the words that have any; any other row is its own part alone."""

    words: npt.NDArray[np.int32]  # (words,), ascending ids in the vocabulary
    own: npt.NDArray[np.float16]  # (words, classes): (1 + a A_ww) U[w]
    neighbours: npt.NDArray[np.int32]  # (words, k): the places of neighbours in `words`, the strongest first
    # (words, k): the part of neighbour j is its strength times own[j]; 0 where a word has fewer neighbours
    strengths: npt.NDArray[np.float16]

    @classmethod
    def load(cls, tensor: Callable[..., Floats], n_words: int, n_classes: int) -> Split:
        """Read the split of a saved model: `tensor` is that of its folder. Anything unsound is a StoreError."""
        words = tensor("split.words", None, dtype=np.int32)
        own = tensor("split.own", len(words), n_classes, dtype=np.float16)
        places = tensor("split.neighbours", len(words), None, dtype=np.int32)
        strengths = tensor("split.strengths", *places.shape, dtype=np.float16)
        ascending = (words[1:] > words[:-1]).all() and (words >= 0).all() and (words < n_words).all()
        if not ascending or ((places < 0) | (places >= len(words))).any():
            raise StoreError("The tensors 'split' of the model name words that it does not have. Save it again.")
        return cls(words, own, places, strengths)


def make_split(adjacency: csr_array, rows: Floats, factor: float, k: int = _NAMED) -> Split:
    """Return the split of a fitted model.

    `adjacency` is A, (words, words), symmetric; `rows`, (words with edges, classes), are U of the words that have an
    edge, be it to themselves. `factor` is a, the weight of the graph; at 0 no word has a neighbour. A word keeps the
    `k` neighbours with the largest a |A_wj| |U[j]|.
    """
    from wgcn.graph.kernels import strongest_neighbours

    diagonal, n_edges = adjacency.diagonal(), np.diff(adjacency.indptr)
    has_neighbours = (n_edges > (diagonal != 0)) & (factor != 0) & (len(rows) > 0)
    words = np.flatnonzero(has_neighbours)
    own = rows[has_neighbours[n_edges > 0]] if len(words) else rows[:0]
    places, lengths = np.zeros(len(n_edges), np.int32), np.zeros(len(n_edges), adjacency.dtype)
    places[words], lengths[words] = np.arange(len(words)), np.sqrt(np.einsum("ij,ij->i", own, own))
    graph = adjacency.indptr, adjacency.indices, adjacency.data
    found, weights = strongest_neighbours(*graph, words, lengths, k)
    neighbours = places[found]
    own_factor = 1 + factor * diagonal[words]  # U counts for the word itself by this, so parts are divided by it
    strengths = factor * weights / own_factor[neighbours]
    return Split(
        words.astype(np.int32), half_precision(own * own_factor[:, None]), neighbours, half_precision(strengths)
    )
