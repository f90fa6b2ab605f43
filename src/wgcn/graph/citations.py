"""Word graphs from a graph of documents: eq. 3 and 4 of the paper.

A_vv^(m,n) = X^T A^m (A^T)^n X, where A is the citation graph A_dd, normalised with self-loops as in Kipf & Welling
(2017). The powers are applied to X one at a time, so that no d x d power is ever formed.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, eye_array

from wgcn.errors import InputError
from wgcn.graph.association import EdgeRules, floating, product

__all__ = ["from_citations", "normalize_documents"]


def normalize_documents(document_graph: csr_array, *, directed: bool = False) -> csr_array:
    """Return D^-1/2 (A + I) D^-1/2.

    Parameters
    ----------
    document_graph : csr_array of shape (documents, documents)
        Entry [i, j] is positive if document i cites document j.
    directed : bool
        Keep the direction, with D on the left for what a document cites and on the right for what cites it. Otherwise a
        citation counts both ways.
    """
    graph = csr_array(document_graph, dtype=np.float32)
    if graph.shape[0] != graph.shape[1]:
        raise InputError(f"A document graph has as many rows as columns, got {graph.shape[0]} by {graph.shape[1]}.")
    if graph.nnz and (not np.isfinite(graph.data).all() or graph.data.min() < 0):
        raise InputError("A document graph must have finite weights that are not negative.")
    if not directed:
        graph = csr_array(graph.maximum(graph.T))
    graph = csr_array(graph + eye_array(graph.shape[0], dtype=np.float32, format="csr"))
    out, into = (1 / np.sqrt(graph.sum(axis=axis)) for axis in (1, 0))
    return csr_array(graph.multiply(out[:, None]).multiply(into[None, :]), dtype=np.float32)


def from_citations(
    document_terms: csr_array,
    document_graph: csr_array,
    *,
    order: int | tuple[int, int] = 1,
    directed: bool = False,
    rules: EdgeRules | None = None,
) -> csr_array:
    """Weigh pairs of words by the citations between their documents.

    Parameters
    ----------
    document_terms : csr_array of shape (documents, words)
        X_dv.
    document_graph : csr_array of shape (documents, documents)
        A_dd as it is given: it is normalised here.
    order : int or (int, int)
        k = m + n, the length of citation paths (eq. 4), or m and n (eq. 3). They differ only if directed: then m
        follows citations backwards from the first word, n from the second.
    directed : bool
        See `normalize_documents`. As edges between words have no direction, the result is the mean of both.
    rules : EdgeRules, optional

    Returns
    -------
    csr_array of shape (words, words)
    """
    m, n = order if isinstance(order, tuple) else (order // 2, order - order // 2)
    if min(m, n) < 0:
        raise InputError(f"order must not be negative, got {order}.")
    terms = floating(document_terms)
    if terms.shape[0] != document_graph.shape[0]:
        raise InputError(
            f"{terms.shape[0]} documents in document_terms but {document_graph.shape[0]} in document_graph: "
            "they must be the same documents in the same order."
        )
    # X^T A^m (A^T)^n X = ((A^T)^m X)^T ((A^T)^n X)
    step = csr_array(normalize_documents(document_graph, directed=directed).T)
    powers = [terms]
    for _ in range(max(m, n)):
        powers.append(csr_array(step @ powers[-1]))
    return product(powers[m], powers[n], rules or EdgeRules())
