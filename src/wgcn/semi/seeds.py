"""Seed words: some words per class instead of labels.

Seeds and documents have places in one space, in which texts about the same thing are near each other
(`wgcn.semi.space`). With z_d the place of a document and z_s that of a seed, both of length 1:

    near_ds = max(0, z_d z_s)^6                        how much a document is about a seed
    E_dc    = sum over the seeds s of class c of w_s near_ds         evidence; a struck word has w_s = -1
    P_dc    = E_dc pi_c / sum_d E_dc, rows scaled to 1               shares of the classes in a document

w_s is how well a seed agrees with the others of its class (`agreement`), so that a wrong one counts little. P is
corrected by a model of it and by similar documents, and a seed that stands in a document speaks for its class
(`seed_shares`). pi are the shares of the classes, given or estimated (`class_shares`), and enter once.

Whether the classes are topics, so that other words tell them too, is tested: in the documents that have a seed, the
seeds are hidden, and naive Bayes guesses from the other words which class they had (`hidden_agreement`). P is made no
more certain than these guesses are right, and where they are little better than chance, the shares are those of the
documents that have seeds. Constants were chosen on training documents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.special import softmax
from sklearn.metrics import cohen_kappa_score
from sklearn.naive_bayes import ComplementNB
from sklearn.utils import check_random_state

from wgcn.base.arrays import Floats, Ints
from wgcn.labels.splits import copy_groups, evenly, folds
from wgcn.semi.seed_words import FEW_JUDGED, SeedRows, SeedTrust, SeedWord

Place = Callable[[csr_array], Floats]  # from rows of terms to places in the space

_POWER = 6  # of the cosine
_AGREEMENT_POWER = 2  # the same, where seeds are compared: few documents are very near to two seeds
_CHANCE = 0.3  # added to the likeness of seeds
_STRICTNESS = 3  # power of a seed's agreement that is its weight
_PRIOR_SHARPNESS = 4.0  # factor of a model's scores, for the shares of the classes
_ANSWER_SHARPNESS = 8.0  # the same, for its answers
_SPREADING, _STEPS = 0.8, 3  # how much a document takes from similar ones in a step
_CANDIDATES = 20_000  # most frequent words that may be added
_FEWEST = 3  # texts that have a word which is added
_ADDED_WORDS = 10  # per class
_LEAST = 0.02  # value of an added word beside the first
_SAMPLE = 20_000  # documents
_BLOCK = 10_000  # documents
_HIT = 4.0  # times as likely is a class of which a short document has a seed
_SHORT = 50  # different words of a document up to which it is short; in a longer one, a seed says less
_SMOOTHING = 0.1  # of naive Bayes
_HIDDEN, _FOLDS = 5000, 5  # documents with seeds that are guessed, and in how many parts
_SLIGHT = 0.2  # kappa of these guesses: up to here, a model says nothing of documents without a seed;
_NO_TOPICS, _TOPICS = 0.3, 0.5  # up to the first, it says nothing of the shares of the classes
_ESTIMATED = 2 / 3  # of the shares of the classes, beside given ones, where a model tells classes
_NOISE = 0.1  # variance of the logarithms of estimated shares
_LIKELIHOOD = 1e-6  # least share beside the prior


class SeedEvidence(NamedTuple):
    """What seeds say about documents."""

    evidence: Floats  # E, (documents, classes)
    hits: Floats  # (documents, classes), seeds that a document has, as shares: at most 1 together, less in long ones
    words: list[list[SeedWord]]  # of each class
    trust: SeedTrust


def nearness(documents: Floats, seeds: Floats) -> Floats:
    """Return how near documents are to seeds, from places of length 1: near_ds, of shape (documents, seeds)."""
    return np.asarray(np.maximum(documents @ seeds.T, 0) ** _POWER)


def agreement(near: Floats, seeds: SeedRows) -> Floats:
    """Return how well each seed agrees with the others of its class, from 0 to 1: w_s, of shape (seeds,).

    Two seeds are as much alike as they are near to the same documents; 1 is what chance gives. A seed's agreement is
    its mean likeness to its class, divided by the sum of that and its mean likeness to the nearest other class, and
    then by the mean of its class: the seeds of a wide class are all unlike each other, and none of them is wrong. To
    each likeness a part of chance is added, because a ratio of two that are almost 0 says nothing. A seed that is alone
    in its class agrees. A word that is given for several classes counts only where its agreement is best: it cannot
    stand for all of them. One that is unlike all other seeds stays in a wide class rather than in a narrow one, where
    it is the odd one out. `near` is of shape (documents, seeds).
    """
    profile = near ** (_AGREEMENT_POWER / _POWER)
    profile /= np.maximum(profile.sum(axis=0), 1e-12)
    alike = len(near) * (profile.T @ profile)
    other_word = np.array([[a != b for b in seeds.names] for a in seeds.names])
    likeness = np.full((len(alike), seeds.n_classes), np.nan)
    for place in range(seeds.n_classes):
        counted = other_word & ((seeds.classes == place) & ~seeds.struck)[None, :]
        n = counted.sum(axis=1)
        np.divide((alike * counted).sum(axis=1), n, out=likeness[:, place], where=n > 0)
    rows = np.arange(len(alike))
    own, others = likeness[rows, seeds.classes], likeness
    others[rows, seeds.classes] = 0
    nearest = np.nan_to_num(others).max(axis=1)
    share = (own + _CHANCE) / (own + nearest + 2 * _CHANCE)
    agrees = np.full(len(alike), np.inf)
    for place in np.unique(seeds.classes):
        members = (seeds.classes == place) & ~seeds.struck & ~np.isnan(share)
        if members.any():
            agrees[members] = share[members] / share[members].mean()
    weights: Floats = np.minimum(agrees, 1) ** _STRICTNESS
    same_word = ~other_word & ~seeds.struck[None, :]
    elsewhere = agrees < np.where(same_word, agrees[None, :], 0).max(axis=1)
    has_others = np.isin(seeds.classes, seeds.classes[~elsewhere & ~seeds.struck])  # no class may lose all its seeds
    weights[elsewhere & has_others] = 0
    weights[seeds.struck] = -1
    return weights


def evidence(near: Floats, weights: Floats, classes: Ints, n_classes: int) -> Floats:
    """Return E_dc, of shape (documents, classes)."""
    members = np.zeros((len(classes), n_classes), near.dtype)
    members[np.arange(len(classes)), classes] = weights
    return np.asarray(np.maximum(near @ members, 0))


def seed_hits(terms: csr_array, seeds: SeedRows, weights: Floats) -> Floats:
    """Return which documents, (documents, words), have seeds of which classes, by their weights.

    A document has a phrase if it has all of its words. Rows add up to 1, or less in documents of many words.
    """
    has = csr_array((np.ones(terms.nnz, np.float32), terms.indices, terms.indptr), shape=terms.shape)
    found = np.zeros((terms.shape[0], seeds.n_classes), np.float32)
    for place in np.flatnonzero(~seeds.struck & (weights > 0)):
        words = seeds.rows.indices[seeds.rows.indptr[place] : seeds.rows.indptr[place + 1]]
        whole = np.asarray(has[:, words].sum(axis=1)).ravel() == max(len(words), 1)
        found[whole, seeds.classes[place]] += np.float32(weights[place])
    lengths = np.maximum(np.diff(terms.indptr), 1)[:, None]
    return np.asarray(_scaled(found) * np.minimum(1, np.sqrt(_SHORT / lengths)), np.float32)


def hidden_agreement(terms: csr_array, seeds: SeedRows, hits: Floats) -> SeedTrust:
    """Return how well the other words of documents that have a seed tell which class it is of.

    `terms` and `seeds.rows` have the same words, `hits` is the result of `seed_hits`. Documents are guessed by naive
    Bayes that was fitted to others, without copies of them. Beside these documents, a few count as if classes were
    topics: with few documents, little is known.
    """
    classes, rows = hits.argmax(axis=1), np.flatnonzero(hits.any(axis=1))
    coverage, conflicts = len(rows) / max(len(hits), 1), float(np.mean((hits > 0).sum(axis=1) > 1))
    rows = evenly(rows, _HIDDEN)
    known, others = terms[rows], csr_array(terms[rows])
    is_seed = np.zeros(terms.shape[1], bool)
    is_seed[seeds.rows.indices] = True
    others.data = np.where(is_seed[others.indices], 0, others.data)
    own = classes[rows]
    shares = np.bincount(own, minlength=1) / max(len(own), 1)
    groups = copy_groups(known)
    parts = folds(own, _FOLDS, check_random_state(0), groups) if len(rows) else []
    guesses, guessed = np.zeros_like(own), np.zeros(len(own), bool)
    for part in parts if len(parts) > 1 else ():
        rest = np.setdiff1d(np.arange(len(own)), part)
        guesses[part] = ComplementNB(alpha=_SMOOTHING).fit(others[rest], own[rest]).predict(others[part])
        guessed[part] = True
    by_chance, n, agreed, kappa = float((shares**2).sum()), 0, 0.0, 0.0
    if len(np.unique(own[guessed])) > 1:
        n = len(np.unique(groups[guessed]))
        agreed = float(np.mean(guesses == own, where=guessed))
        kappa = cohen_kappa_score(own[guessed], guesses[guessed])
    unknown = FEW_JUDGED / (n + FEW_JUDGED)
    agreed = (1 - unknown) * agreed + unknown * (by_chance + _TOPICS * (1 - by_chance))
    return SeedTrust(coverage, conflicts, agreed, by_chance, float((1 - unknown) * kappa + unknown * _TOPICS), n)


def hit_shares(hits: Floats) -> Floats:
    """Return the shares of the classes among documents that have seeds, as if each class had one document more."""
    shares = _scaled(hits)
    return np.asarray((shares.sum(axis=0, dtype=np.float64) + 1) / (shares.any(axis=1).sum() + shares.shape[1]))


def faith(kappa: float) -> float:
    """Return how much what a model says of documents without a seed counts, from 0 to 1.

    Below a kappa of 0.2 agreement is slight (Landis and Koch 1977); then such documents are of the commonest class.
    """
    return float(np.clip((kappa - _SLIGHT) / (_NO_TOPICS - _SLIGHT), 0, 1))


def topicality(kappa: float) -> float:
    """Return how much the shares of the classes by a model count, from 0 to 1."""
    return float(np.clip((kappa - _NO_TOPICS) / (_TOPICS - _NO_TOPICS), 0, 1))


def class_shares(found: Floats, hits: Floats, kappa: float, fit: Callable[[Floats], Floats]) -> Floats:
    """Estimate the shares of the classes: by documents that have seeds, and by a model as far as it can tell classes.

    `found` is E; `fit` fits a model to shares and returns its scores of the documents. Shares of the model are drawn
    towards equal ones, and stay equal where they differ no more than by chance (empirical Bayes).
    """
    hit = hit_shares(hits)
    trust = topicality(kappa)
    logs = np.log(_softmax(_PRIOR_SHARPNESS * fit(_shares(found, hit))).mean(axis=0))
    logs -= logs.mean()
    logs *= max(1 - _NOISE / max(float(np.mean(logs**2)), 1e-12), 0)
    return _between(hit, np.exp(logs), trust)


def _between(shares: Floats, others: Floats, weight: float) -> Floats:
    """Return the weighted geometric mean of shares."""
    logs = [np.log(each) - np.log(each).mean() for each in (shares, others)]
    mean = np.exp((1 - weight) * logs[0] + weight * logs[1])
    return np.asarray(mean / mean.sum())


def seed_shares(
    found: SeedEvidence,
    fit: Callable[[Floats], Floats],
    neighbours: Callable[[Floats], Floats],
    prior: Floats | None = None,
) -> Floats:
    """Return P_dc, of shape (documents, classes): 0 where there is no evidence.

    `fit` fits a model to shares and returns its scores of the documents. `prior` are the shares of the classes among
    all documents, if they are given. They are estimated too; where other words tell the classes, both count, since
    shares that are given may be wrong. A model of P is asked once more: its answers, times P, are averaged
    with those of similar documents, which `neighbours` adds up. At last a document's own seeds count.
    """
    own, trust = found.evidence, found.trust
    estimated = class_shares(own, found.hits, trust.kappa, fit)
    prior = estimated if prior is None else _between(prior, estimated, _ESTIMATED * topicality(trust.kappa))
    shares = _shares(own, prior)
    agreed = _scaled(shares * _softmax(_ANSWER_SHARPNESS * fit(shares)).astype(np.float32))
    mixed = agreed
    for _ in range(_STEPS):
        mixed = np.float32(_SPREADING) * neighbours(mixed) + np.float32(1 - _SPREADING) * agreed
    mixed = _shares(mixed, prior)  # a class that spreads easily would get more than its share
    return _scaled((_tempered(mixed, prior, trust.agreement) * _HIT**found.hits).astype(np.float32))


def _tempered(shares: Floats, prior: Floats, right: float) -> Floats:
    """Draw shares towards the prior until the largest of a document is as much on average as guesses are right."""
    reached = shares.any(axis=1)
    logs = np.log(np.maximum(shares[reached], _LIKELIHOOD) / prior)

    def drawn(factor: float) -> Floats:
        return _softmax(factor * logs + np.log(prior))

    if not reached.any() or shares[reached].max(axis=1).mean() <= right:
        return shares
    least, most = 0.0, 1.0
    for _ in range(20):
        middle = (least + most) / 2
        least, most = (least, middle) if drawn(middle).max(axis=1).mean() > right else (middle, most)
    result = np.zeros(shares.shape, np.float32)
    result[reached] = drawn(least)
    return result


def _softmax(scores: Floats) -> Floats:
    return np.asarray(softmax(scores.astype(np.float64), axis=1))


def _scaled(shares: Floats) -> Floats:
    totals = shares.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(shares, totals, out=np.zeros_like(shares), where=totals > 0))


def _shares(found: Floats, prior: Floats) -> Floats:
    return _scaled((found * (prior / np.maximum(found.sum(axis=0, dtype=np.float64), 1e-12))).astype(np.float32))


def seed_evidence(seeds: SeedRows, terms: csr_array, place: Place, columns: Ints) -> SeedEvidence:
    """Return the evidence in documents of shape (documents, columns), and the words of the classes.

    `columns` are the words that these documents have, among those of the seeds. `place` gives rows of terms their
    places in the space, of length 1 or 0. What seeds agree on is judged by at most 20,000 documents, evenly chosen.
    """
    n, places = terms.shape[0], place(seeds.rows)
    sample = np.unique(np.linspace(0, n - 1, _SAMPLE).astype(int))
    weights = agreement(nearness(place(terms[sample]), places), seeds)
    words = expand(seeds, weights, places, place)
    found = np.empty((n, seeds.n_classes), np.float32)
    for begin in range(0, n, _BLOCK):
        near = nearness(place(terms[begin : begin + _BLOCK]), places)
        found[begin : begin + _BLOCK] = evidence(near, weights, seeds.classes, seeds.n_classes)
    own = replace(seeds, rows=csr_array(seeds.rows[:, columns]))
    hits = seed_hits(terms, own, weights)
    return SeedEvidence(found, hits, words, hidden_agreement(terms, own, hits))


def label_evidence(documents: csr_array, labelled: csr_array, targets: Floats, place: Place) -> Floats:
    """Return the evidence of labelled documents, which count as seeds do, of shape (documents, classes).

    `documents` and `labelled` have one column per word, `targets` are of shape (labelled documents, classes).
    """
    known, found = place(labelled), np.zeros((documents.shape[0], targets.shape[1]), np.float32)
    for begin in range(0, documents.shape[0] if len(known) else 0, _BLOCK):
        found[begin : begin + _BLOCK] = nearness(place(documents[begin : begin + _BLOCK]), known) @ targets
    return found


def expand(seeds: SeedRows, weights: Floats, places: Floats, place: Place) -> list[list[SeedWord]]:
    """Return the words of each class: the seeds, then words that are near them and near no other class.

    `weights` are those of the seeds, `places` where they are, (seeds, columns). Words that are struck do not come back.
    """
    vocabulary = seeds.vocabulary
    usable = ~vocabulary.are_ngrams & (vocabulary.document_counts >= _FEWEST)
    usable[np.diff(csr_array(seeds.rows.T).indptr) > 0] = False  # words of the seeds themselves
    ids = np.flatnonzero(usable)[:_CANDIDATES]
    single = eye_array(seeds.rows.shape[1], dtype=seeds.rows.dtype, format="csr")[ids]  # documents of one word each
    near = nearness(place(csr_array(single)), places)
    found = evidence(near, weights, seeds.classes, seeds.n_classes)
    value = found * found / np.maximum(found.sum(axis=1, keepdims=True), 1e-30)  # near, and specific
    words = []
    for i in range(seeds.n_classes):
        own = np.flatnonzero((seeds.classes == i) & ~seeds.struck)
        given = [SeedWord(seeds.names[j], float(weights[j]), int(seeds.counts[j]), True) for j in own]
        best = np.argsort(-value[:, i], kind="stable")[:_ADDED_WORDS] if len(own) else own
        best = best[value[best, i] > _LEAST * value[:, i].max(initial=0)]
        counts = vocabulary.document_counts[ids[best]]
        added = [
            SeedWord(vocabulary[int(word)], float(weight), int(n), False)
            for word, weight, n in zip(
                ids[best], value[best, i] / value[best, i].max(initial=1e-30), counts, strict=True
            )
        ]
        words.append(given + added)
    return words
