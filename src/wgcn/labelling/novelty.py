"""How much held-out texts tell about new ones, where texts that lie close together in the input are alike.

Mail of one thread, news of one day or lines of one document are alike, and mostly lie close together in a file. A text
that is held out at random then has siblings in training, which new texts lack: it is predicted too well. So held-out
texts get weights (weighted conformal prediction, Tibshirani et al. 2019) that depend on

    s = cosine to the most similar training text, of words that few texts have

and bring the distribution of s to that of the similarity to training texts which lie far away in the input. As fewer
texts are far away than there are, the distribution is compared with that of texts that are far away in a random order.
If the order of the texts is random, the weights are about 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["novelty_weights"]

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_FAR = 0.1  # texts of a class that lie between two texts which are far from each other, as a share of the class
_BINS = 8  # of similarity
_COMMON, _MIN_COMMON = 0.05, 50  # words in more texts than this share, and this number, are left out
_MAX_TEXTS = 2000  # held-out texts that are compared; others get the weight 0


def novelty_weights(terms: Any, codes: Rows, held_out: Rows) -> Floats:
    """Return the weight of each held-out text, at least 0; the sum is the number of different texts that are compared.

    terms : csr_array of shape (texts, words), rows of length 1, in the order of the input
    codes : (texts,), the class of each
    held_out : (n,), rows that were held out. If they are most of the texts, as in cross-validation, only how often each
        comes counts.
    """
    rest = np.setdiff1d(np.arange(len(codes)), held_out)
    if len(rest) < len(codes) / 2:
        return np.asarray(1 / np.bincount(held_out)[held_out])
    random, weights = np.random.default_rng(0), np.zeros(len(held_out))
    chosen = np.sort(random.permutation(len(held_out))[:_MAX_TEXTS])
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


def _without_common(terms: Any) -> Any:
    """Return the texts without words that many have: they say little about siblings, but take most of the time."""
    kept = terms.copy()
    n_texts = np.bincount(terms.indices, minlength=terms.shape[1])
    kept.data[n_texts[terms.indices] > max(_COMMON * terms.shape[0], _MIN_COMMON)] = 0
    kept.eliminate_zeros()
    return kept


def _places(codes: Rows) -> Floats:
    """Return where each text lies among those of its class, from 0 to 1."""
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    places = np.empty(len(codes))
    begins = np.cumsum(sizes) - sizes
    places[order] = (np.arange(len(codes)) - begins[codes[order]] + 0.5) / sizes[codes[order]]
    return places


def _similarities(some: Any, others: Any, orders: list[tuple[Floats, Floats]]) -> Floats:
    """Return the cosine of each of some texts to the most similar other one, and to those far away in each order.

    An order has the places of some texts and of the others.
    """
    from wgcn.labelling.kernels import highest_products

    found = np.zeros((1 + len(orders), some.shape[0]))
    parts = [part for matrix in (some, others.T.tocsr()) for part in (matrix.indptr, matrix.indices, matrix.data)]
    highest_products(*parts, *(np.array(places) for places in zip(*orders, strict=True)), _FAR, found)
    return found
