"""The average of the network and the linear model, as one table: prediction stays one look-up.

The network's scores are relu(X E) W + b, the linear model's z + c with z = X T. Since z = relu(z) - relu(-z), one
network has the mean of both:

    relu(X [E, T, -T]) [s W; t I; -t I] + s b + t c

s and t are half of what turns the scores of each into the logarithms of probabilities.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.errors import InputError
from wgcn.inference.model import Scorer
from wgcn.network.settings import NetworkSettings

__all__ = ["averaged", "columns_with_edges", "settings_of_columns"]


def averaged(network: Scorer, linear: Scorer) -> Scorer:
    """Return one scorer whose scores are the mean of both, each times its own sharpness.

    Parameters
    ----------
    network : Scorer
        With class weights.
    linear : Scorer
        Without, of the same words and classes. The answer for a document with no known word is taken from it.
    """
    assert network.class_weights is not None
    assert linear.class_weights is None
    kind = linear.bias.dtype
    share, other = (np.asarray(scorer.sharpness / 2, kind) for scorer in (network, linear))
    own = other * np.eye(len(linear.bias), dtype=kind)
    return replace(
        linear,
        word_embeddings=np.hstack([network.word_embeddings, linear.word_embeddings, -linear.word_embeddings]),
        class_weights=np.vstack([share * network.class_weights, own, -own]),
        bias=share * network.bias + other * linear.bias,
        sharpness=1.0,
    )


def columns_with_edges(adjacency: csr_array) -> npt.NDArray[np.int64]:
    """Return the columns that the network learns: those that have an edge, or all if none has.

    Without a residual it has nothing to say of the others; in texts these are mostly n-grams, which are many.
    """
    found = np.flatnonzero(np.diff(adjacency.indptr))
    return found if len(found) else np.arange(adjacency.shape[0])


def settings_of_columns(
    network: NetworkSettings | None, columns: npt.NDArray[np.int64], n_words: int
) -> NetworkSettings | None:
    """Return the settings of a network of some of the words, whose features are fewer too."""
    if network is None or network.word_features is None:
        return network
    features = np.asarray(network.word_features)
    if features.ndim != 2 or len(features) != n_words:
        raise InputError(
            f"word_features has the shape {features.shape}; expected one row for each of the {n_words:,} words."
        )
    return replace(network, word_features=features[columns])
