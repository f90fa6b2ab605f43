"""Graphs of documents: word graphs made from them (eq. 3 and 4 of the paper), and new documents with those they cite.

A_vv^(m,n) = X^T A^m (A^T)^n X, where A is the citation graph A_dd, normalised with self-loops as in Kipf & Welling
(2017). The powers are applied to X one at a time, so that no d x d power is ever formed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import block_array, csr_array, eye_array, vstack

from wgcn.base.errors import InputError
from wgcn.graph.association import EdgeRules, floating, product


def normalize_documents(document_graph: csr_array, *, directed: bool = False) -> csr_array:
    """Return D^-1/2 (A + I) D^-1/2, where entry [i, j] of A is positive if document i cites document j.

    If directed, D is for the citations made on the left, received on the right; otherwise one counts both ways.
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
    """Weight pairs of words by the citations between their documents; the graph is normalised here.

    `order` is k = m + n, the length of citation paths (eq. 4), or (m, n) (eq. 3). They differ only if directed: then m
    follows citations backwards from the first word, n from the second, and the result is the mean of both directions.
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


def attach_citations(
    document_terms: csr_array,
    document_graph: csr_array,
    documents: csr_array | None = None,
    *,
    hops: int = 1,
) -> csr_array:
    """Average new documents, (new, words), with those they cite: the first rows of A^hops [X; documents].

    A is normalised as in `normalize_documents`, a citation counting both ways. A document without citations keeps its
    row. A citation weighs less the more often the other document is cited, so rows depend on the new documents given
    together. Entry [i, j] of `document_graph`, (new, known), is positive if new document i cites document j of
    `documents`, (known, words). With the shape (new + known, new + known), the new ones first, or (new, new) without
    `documents`, there may be links among the new ones too.

    Examples
    --------
    >>> import numpy as np
    >>> new, known = csr_array(np.array([[1.0, 0.0], [1.0, 0.0]])), csr_array(np.array([[0.0, 1.0]]))
    >>> attach_citations(new, csr_array(np.array([[1], [0]])), known).toarray().round(3).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    if hops < 0:
        raise InputError(f"hops must not be negative, got {hops}.")
    terms = floating(document_terms)
    n_new, n_words = terms.shape
    known = csr_array((0, n_words)) if documents is None else csr_array(documents)
    if known.shape[1] != n_words:
        raise InputError(
            f"The new documents have {n_words:,} words but those they cite have {known.shape[1]:,}: both must have the "
            "same columns."
        )
    terms = csr_array(vstack([terms, known.astype(terms.dtype)], format="csr"))
    graph, n_known, n_all = csr_array(document_graph), known.shape[0], n_new + known.shape[0]
    if graph.shape not in ((n_all, n_all), (n_new, n_known)):
        shape = " by ".join(map(str, graph.shape))
        raise InputError(
            f"document_graph is {shape} but there are {n_new} new documents and {n_known} in `documents` that they may "
            f"cite: it must be {n_new} by {n_known or n_new} or {n_all} by {n_all}."
        )
    if graph.shape != (n_all, n_all):
        graph = block_array([[csr_array((n_new, n_new)), graph], [None, csr_array((n_known, n_known))]])
    step = normalize_documents(graph)
    # The documents within 0, 1, ... hops of the new ones: the rows that each step needs.
    reached = [np.arange(n_new)]
    for _ in range(hops):
        reached.append(np.unique(step[reached[-1]].indices))
    terms = csr_array(terms[reached[-1]])
    for outer, inner in pairwise(reversed(reached)):
        terms = csr_array(step[inner][:, outer] @ terms)
    terms.sort_indices()
    return terms
