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
