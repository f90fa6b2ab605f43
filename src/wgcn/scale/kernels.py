"""Compiled loops over sorted runs of pair counts.

A run has the rows of an upper triangle as bytes: for each pair the gap to the column before it (in the first pair of a
row, the column itself) and the count, both as numbers of seven bits per byte, the lowest first, where all bytes but the
last have their highest bit set. Most pairs of a row take two or three bytes this way, instead of eight.
"""

import numpy as np

from wgcn.base.threads import compiled
from wgcn.text.kernels import sort_words


@compiled
def pack_rows(indptr, columns, values):  # type: ignore[no-untyped-def]
    """Return rows, sorted by column, as bytes, and where the bytes of each row begin, and the end."""
    data, n = np.empty(4 * len(columns) + 32, np.uint8), 0
    starts = np.zeros(len(indptr), np.int64)
    for row in range(len(indptr) - 1):
        before = np.int64(0)
        for k in range(indptr[row], indptr[row + 1]):
            if n + 20 > len(data):
                data = np.concatenate((data[:n], np.empty(n // 2 + 20, np.uint8)))
            for number in (np.int64(columns[k]) - before, np.int64(values[k])):
                while number >= 128:
                    data[n] = number & 127 | 128
                    number >>= 7
                    n += 1
                data[n] = number
                n += 1
            before = np.int64(columns[k])
        starts[row + 1] = n
    return data[:n].copy(), starts


@compiled
def merge_rows(data, starts, n_words, min_count):  # type: ignore[no-untyped-def]
    """Add up rows of several runs, and leave out counts below `min_count`.

    `starts`, of shape (runs, rows + 1), says where the bytes of each row begin and end in `data`. Returns indptr,
    columns and values of sorted rows.
    """
    n_runs, n_rows = len(starts), starts.shape[1] - 1
    totals, touched = np.zeros(n_words, np.int64), np.empty(n_words + 1, np.int32)
    bitmap, summary = np.zeros((n_words >> 6) + 1, np.uint64), np.zeros((n_words >> 12) + 1, np.uint64)
    indptr = np.zeros(n_rows + 1, np.int64)
    columns, values, n = np.empty(1 << 14, np.int32), np.empty(1 << 14, np.int64), 0
    for row in range(n_rows):
        n_touched = 0
        for run in range(n_runs):
            at, end, column = starts[run, row], starts[run, row + 1], np.int64(0)
            while at < end:
                number, shift = np.int64(data[at] & 127), 7
                while data[at] >= 128:
                    at += 1
                    number |= np.int64(data[at] & 127) << shift
                    shift += 7
                at += 1
                column += number
                number, shift = np.int64(data[at] & 127), 7
                while data[at] >= 128:
                    at += 1
                    number |= np.int64(data[at] & 127) << shift
                    shift += 7
                at += 1
                touched[n_touched] = column
                n_touched += totals[column] == 0
                totals[column] += number
        if n + n_touched > len(columns):
            columns = np.concatenate((columns[:n], np.empty(n // 2 + n_touched, np.int32)))
            values = np.concatenate((values[:n], np.empty(n // 2 + n_touched, np.int64)))
        sort_words(touched, n_touched, bitmap, summary)
        for t in range(n_touched):
            column = touched[t]
            columns[n], values[n] = column, totals[column]
            n += totals[column] >= min_count
            totals[column] = 0
        indptr[row + 1] = n
    return indptr, columns[:n].copy(), values[:n].copy()


@compiled
def add_to_strongest(  # type: ignore[no-untyped-def]
    indptr, columns, weights, first_row, first_word, best, places, sizes, bounds
):
    """Put the edges of rows from `first_row` on into heaps of the strongest edges of some words.

    `best` and `places`, of shape (words, k), are the heaps of the words from `first_word` on, of which the first
    `sizes` entries count: weights, and the words at the other end. At the root is the weakest edge; of equal ones, that
    to the last word. Edges must come by rows, so that those of a word come by the place of the other. `bounds` are the
    weights at the roots of full heaps, otherwise -inf: an array that fits the caches, since most edges are too weak.
    """
    n_words, k = best.shape
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            for side in range(2):
                word, other = (first_row + row, columns[i]) if side == 0 else (columns[i], first_row + row)
                word -= first_word
                if word < 0 or word >= n_words or weights[i] <= bounds[word]:
                    continue
                heap, ends, size, weight = best[word], places[word], sizes[word], weights[i]
                if size < k:
                    child = size
                    sizes[word] += 1
                    while child > 0:
                        parent = (child - 1) >> 1
                        if heap[parent] < weight or (heap[parent] == weight and ends[parent] > other):
                            break
                        heap[child], ends[child] = heap[parent], ends[parent]
                        child = parent
                    heap[child], ends[child] = weight, other
                else:
                    parent = 0
                    while 2 * parent + 1 < k:
                        child = 2 * parent + 1
                        if child + 1 < k and (
                            heap[child + 1] < heap[child]
                            or (heap[child + 1] == heap[child] and ends[child + 1] > ends[child])
                        ):
                            child += 1
                        if weight < heap[child] or (weight == heap[child] and other > ends[child]):
                            break
                        heap[parent], ends[parent] = heap[child], ends[child]
                        parent = child
                    heap[parent], ends[parent] = weight, other
                if sizes[word] == k:
                    bounds[word] = heap[0]


@compiled
def are_strongest(indptr, columns, weights, first_row, bounds, lasts):  # type: ignore[no-untyped-def]
    """Mark the edges that are among the strongest of one of their words.

    These are, of each word, those above its bound, and of those that have it, those to words up to `lasts`.
    """
    marks = np.zeros(len(columns), np.bool_)
    for row in range(len(indptr) - 1):
        word = first_row + row
        for i in range(indptr[row], indptr[row + 1]):
            weight, other = weights[i], columns[i]
            marks[i] = (
                weight > bounds[word]
                or weight > bounds[other]
                or (weight == bounds[word] and other <= lasts[word])
                or (weight == bounds[other] and word <= lasts[other])
            )
    return marks
