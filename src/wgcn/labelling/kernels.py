"""Compiled loops of the labelling loop."""

import numpy as np

from wgcn.cores import compiled


@compiled
def strongest_neighbours(indptr, columns, weights, words, lengths, k):  # type: ignore[no-untyped-def]
    """Return the k neighbours with the largest |weight| * length of each of some words, and the weights.

    Both are of shape (words, k), the largest first, equal ones by column, and 0 where a word has fewer neighbours.
    `lengths` are those of all columns.
    """
    found, kept = np.zeros((len(words), k), np.int32), np.zeros((len(words), k), weights.dtype)
    sizes = np.zeros(k, weights.dtype)
    for row in range(len(words)):
        sizes[:] = 0
        for i in range(indptr[words[row]], indptr[words[row] + 1]):
            size = abs(weights[i]) * lengths[columns[i]]
            if size <= sizes[k - 1] or columns[i] == words[row]:
                continue
            at = k - 1
            while at > 0 and sizes[at - 1] < size:
                sizes[at], found[row, at], kept[row, at] = sizes[at - 1], found[row, at - 1], kept[row, at - 1]
                at -= 1
            sizes[at], found[row, at], kept[row, at] = size, columns[i], weights[i]
    return found, kept


@compiled
def highest_products(indptr, columns, values, indptr_t, columns_t, values_t, places, other_places, far, found):  # type: ignore[no-untyped-def]
    """Find the largest product of each row with the columns of another matrix, and with those that are far away.

    The first matrix has the shape (rows, words), the second (words, columns). `places` of shape (orders, rows) and
    `other_places` (orders, columns) say where both lie. `found`, (1 + orders, rows), is 0 before.
    """
    products = np.zeros(other_places.shape[1], values.dtype)
    for row in range(len(indptr) - 1):
        products[:] = 0
        for k in range(indptr[row], indptr[row + 1]):
            for i in range(indptr_t[columns[k]], indptr_t[columns[k] + 1]):
                products[columns_t[i]] += values[k] * values_t[i]
        for j in range(len(products)):
            found[0, row] = max(found[0, row], products[j])
            for order in range(len(places)):
                if products[j] > found[1 + order, row] and abs(places[order, row] - other_places[order, j]) > far:
                    found[1 + order, row] = products[j]


@compiled
def renumber(indptr, columns, weights, places, indptr_new):  # type: ignore[no-untyped-def]
    """Return columns and weights of a symmetric matrix after row and column i have become `places[i]`.

    The place of an empty row may be -1. `indptr_new` says where the rows begin then. Rows are sorted.
    """
    new_columns, new_weights = np.empty(len(columns), columns.dtype), np.empty(len(columns), weights.dtype)
    old, following = np.full(len(indptr_new) - 1, -1, np.int64), indptr_new[:-1].copy()
    for row in range(len(places)):
        if places[row] >= 0:
            old[places[row]] = row
    for row in range(len(old)):  # a row puts its number into the rows of its columns, so that these stay sorted
        if old[row] >= 0:
            for k in range(indptr[old[row]], indptr[old[row] + 1]):
                column = places[columns[k]]
                new_columns[following[column]] = row
                new_weights[following[column]] = weights[k]
                following[column] += 1
    return new_columns, new_weights
