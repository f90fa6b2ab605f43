"""Would leave-one-out scores from the dual do for calibration? ``python -m benchmarks.leave_one_out [SETS]``.

A model is fitted to 80 % of the training documents, and the other 20 % say how good the two ways are that need only the
80 %: holding out a tenth of them, as the library does, and leave-one-out scores. For a document with slack these are

    y - (y - score) / (1 - h)        h: the share of the score that comes from the document itself

h is estimated for all documents at once by a random vector of signs (Hutchinson 1990): solve as for a Newton direction,
multiply by the signs, and average over the positive and over the negative documents of a class.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.model_selection import train_test_split

from benchmarks import sets
from wgcn.estimators.preparation import Preparation
from wgcn.labels.reading import read_labels
from wgcn.labels.targets import Targets
from wgcn.linear.calibration import calibrate
from wgcn.linear.model import Blocks, LinearFit, LinearSettings, block_scales, fit_linear
from wgcn.linear.naive_bayes import NaiveBayesScales, word_counts
from wgcn.linear.operator import DocumentOperator, GraphBlock, Memory, SubwordBlock
from wgcn.linear.solver import Problem, Search, State
from wgcn.scoring.scorer import Scorer

Floats = npt.NDArray[np.float32]
DRAWS, STEPS = 2, 8


class Fitted:
    """A model of some documents, without subwords."""

    def __init__(self, terms: csr_array, targets: Floats, adjacency: csr_array) -> None:
        self.terms, self.columns = terms, targets if targets.shape[1] > 2 else targets[:, 1:]
        self.blocks, self.settings = Blocks(adjacency), LinearSettings()
        self.fit: LinearFit = fit_linear(terms, self.columns, self.blocks, self.settings)

    def scores(self, terms: csr_array) -> Floats:
        """Return the scores of documents, one column per class."""
        return both(np.asarray(terms @ self.fit.word_embeddings + self.fit.bias))

    def leave_one_out(self) -> Floats:
        """Return the scores that documents would have if they were left out."""
        weight, settings = np.ones(len(self.columns)), self.settings
        with ThreadPoolExecutor() as pool:
            memory, transposed = Memory(np.float32), csr_array(self.terms.T)
            targets, every = Targets.of(self.columns), slice(0, self.columns.shape[1])
            count = word_counts(transposed, targets, weight, pool)
            scales, _ = NaiveBayesScales(count, settings.naive_bayes, pool, None, [every])(every)
            factor = settings.alpha * block_scales(self.terms, self.blocks, weight).graph
            blocks = GraphBlock(self.blocks.graph, factor, pool, memory), SubwordBlock(None, 0.0, pool, memory)
            operator = DocumentOperator(self.terms, transposed, blocks, pool, memory)
            operator.scale(scales, None)
            signs, cost = 2 * self.columns - 1, np.full((len(weight), 1), 2 * settings.C, np.float32)
            problem = Problem(operator.product, signs, cost)
            state = State(problem, self.fit.dual)
            search = Search(state, np.arange(signs.shape[1]))
            probe = np.random.default_rng(0).choice(np.array([-1, 1], np.float32), size=signs.shape)
            active = search.weight
            mean = np.sum(active * probe, axis=0) / np.maximum(active.sum(axis=0), 1)
            search.residual = active * (probe - mean)
            for _ in range(STEPS):
                search.advance()
        shift = np.sum(active * (probe - search.image), axis=0) / np.maximum(active.sum(axis=0), 1)
        own = probe * (search.image + shift)  # unbiased for h, and noisy
        scores = state.scores + state.bias.astype(np.float32)
        for side in (signs > 0, signs < 0):
            here = side & (active > 0)
            share = np.sum(own * here, axis=0) / np.maximum(here.sum(axis=0), 1)
            left_out = signs - (signs - scores) / (1 - np.clip(share, 0, 0.99))
            scores = np.where(here, left_out, scores)
        return both(scores.astype(np.float32))


def both(scores: Floats) -> Floats:
    """Return a column for each of two classes."""
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


def log_loss(scorer: Scorer, sharpness: float, scores: Floats, targets: Floats) -> float:
    likely = replace(scorer, sharpness=sharpness).probabilities(scores)
    return float(-np.log(np.maximum(likely[targets > 0], 1e-12)).mean())


def measure(name: str) -> None:
    texts, labels, *_ = sets.split(name)
    prepared, targets = Preparation().prepare(texts), read_labels(labels).targets.toarray()
    assert prepared.word_graph is not None
    terms, adjacency, n_classes = prepared.document_terms, prepared.word_graph.adjacency, targets.shape[1]
    codes = targets.argmax(axis=1)
    strata = np.where(np.bincount(codes)[codes] > 1, codes, np.bincount(codes).argmax())
    flat = np.full(n_classes, 1 / n_classes, np.float32)
    scorer = Scorer(np.zeros((1, n_classes), np.float32), None, 0 * flat, flat, 2.0)
    for draw in range(DRAWS):
        rows, others = train_test_split(np.arange(len(codes)), test_size=0.2, random_state=draw, stratify=strata)
        model = Fitted(csr_array(terms[rows]), targets[rows], adjacency)
        scores = model.scores(terms[others])
        truth = float(np.mean(scorer.are_right(scores, Targets.of(targets[others]))))
        kept, held_out = train_test_split(rows, test_size=0.1, random_state=0)
        first = Fitted(csr_array(terms[kept]), targets[kept], adjacency)
        ways = {
            "held out": calibrate(scorer, first.scores(terms[held_out]), targets[held_out]),
            "leave-one-out": calibrate(scorer, model.leave_one_out(), targets[rows]),
        }
        for way, found in ways.items():
            loss = log_loss(scorer, found.sharpness, scores, targets[others])
            assert found.accuracy is not None
            error = 100 * (found.accuracy - truth)
            print(f"{name}, draw {draw}, {way}: log loss {loss:.4f}, accuracy {error:+.2f} points", flush=True)


if __name__ == "__main__":
    for each in sys.argv[1:] or ("mr", "r8", "ohsumed", "r52"):
        measure(each)
