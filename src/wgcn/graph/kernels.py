"""Compiled loops of the word graph: counts of windows, association measures, mirrored triangles.

They are written by hand because no library counts pairs of words in sliding windows. r8 is counted in 0.11 s, against
23.4 s in plain Python, window by window (docs/benchmarks.md). They release the interpreter lock, so that
threads run in parallel.
"""

import numpy as np

from wgcn.base.threads import compiled
from wgcn.text.kernels import sort_words

PMI, NPMI, COUNT = 0, 1, 2


@compiled
def count_rows(  # type: ignore[no-untyped-def]
    ids, offsets, positions, starts, document_of, window, min_count, first, last, scratch
):
    """Count windows for the words first, ..., last - 1 and their pairs with later words; rare pairs are left out.

    A window is named by the position of its first token. The token at position p of a document [s, e) lies in the
    windows max(s, p - window + 1), ..., min(p, e - window), or in the only window s of a shorter document. So the
    windows that hold a word are a union of intervals. For a pair, the tokens in these intervals are visited, and the
    part of each token's own interval that was not yet counted for its word is added.

    `scratch` is an integer array of shape (n_words, 2), all zero before and after: for each word its count in this row,
    and the window up to which it was counted. Its type is that of the counts and must hold the number of tokens.

    Returns #W(i), of shape (last - first,), and #W(i, j) for j > i as indptr, columns and values of sorted rows.
    """
    n_words = len(scratch)
    touched = np.empty(n_words + 1, np.int32)
    bitmap, summary = np.zeros((n_words >> 6) + 1, np.uint64), np.zeros((n_words >> 12) + 1, np.uint64)
    word_windows = np.zeros(last - first, np.int64)
    indptr = np.zeros(last - first + 1, np.int64)
    columns = np.empty(1 << 14, np.int32)
    values = np.empty(1 << 14, scratch.dtype)
    n = 0
    for word in range(first, last):
        n_touched = 0
        k = starts[word]
        while k < starts[word + 1]:
            # The next run [low, high] of adjoining windows that hold the word.
            position = positions[k]
            document = document_of[position]
            begin, end = offsets[document], offsets[document + 1]
            final = max(begin, end - window)  # the last window of the document
            low = max(begin, position - window + 1)
            high = min(position, final)
            k += 1
            while k < starts[word + 1] and positions[k] < end and positions[k] - window + 1 <= high + 1:
                high = min(positions[k], final)
                k += 1
            word_windows[word - first] += high - low + 1
            for i in range(low, min(high + window, end)):
                other = ids[i]
                if other > word:
                    counted_to = scratch[other, 1]
                    a = max(low, i - window + 1, counted_to)
                    b = min(i, high) + 1
                    if b > a:
                        touched[n_touched] = other
                        n_touched += counted_to == 0
                        scratch[other, 0] += b - a
                        scratch[other, 1] = b
        if n + n_touched > len(columns):
            columns = np.concatenate((columns[:n], np.empty(n + n_touched, np.int32)))
            values = np.concatenate((values[:n], np.empty(n + n_touched, scratch.dtype)))
        sort_words(touched, n_touched, bitmap, summary)
        for t in range(n_touched):
            other = touched[t]
            columns[n] = other
            values[n] = scratch[other, 0]
            n += scratch[other, 0] >= min_count
            scratch[other, 0] = scratch[other, 1] = 0
        indptr[word - first + 1] = n
    return word_windows, indptr, columns[:n].copy(), values[:n].copy()


@compiled
def weigh_pairs(  # type: ignore[no-untyped-def]
    indptr, columns, values, log_marginals, log_windows, measure, threshold, min_count, first, last
):
    """Return float32 weights of the pairs in rows first, ..., last - 1 of #W(i, j); those that are not kept get 0."""
    base = indptr[first]
    weights = np.zeros(indptr[last] - base, np.float32)
    for row in range(first, last):
        for k in range(indptr[row], indptr[row + 1]):
            if values[k] < min_count:
                continue
            if measure == COUNT:
                weight = float(values[k])
            else:
                log_p = np.log(np.float64(values[k])) - log_windows
                weight = log_p - log_marginals[row] - log_marginals[columns[k]]
                if measure == NPMI:
                    # Two words that share every window: the limit of PMI / -log p is 1.
                    weight = weight / -log_p if log_p < 0 else 1.0
            if weight > threshold:
                weights[k - base] = weight
    return weights


@compiled
def mirror(indptr, columns, weights, diagonal):  # type: ignore[no-untyped-def]
    """Make a symmetric matrix of its upper triangle and diagonal, without zeros, in a fraction of scipy's memory."""
    n_words = len(diagonal)
    sizes = np.zeros(n_words + 1, np.int64)  # of the rows, then where they begin
    for row in range(n_words):
        sizes[row + 1] += diagonal[row] != 0
        for k in range(indptr[row], indptr[row + 1]):
            if weights[k] != 0:
                sizes[row + 1] += 1
                sizes[columns[k] + 1] += 1
    sizes = np.cumsum(sizes)
    full_columns = np.empty(sizes[n_words], np.int32)
    full_weights = np.empty(sizes[n_words], weights.dtype)
    following = sizes[:-1].copy()
    # When a row is reached, all earlier rows have put their mirrored entries into it, so each row stays sorted.
    for row in range(n_words):
        if diagonal[row] != 0:
            full_columns[following[row]] = row
            full_weights[following[row]] = diagonal[row]
            following[row] += 1
        for k in range(indptr[row], indptr[row + 1]):
            if weights[k] != 0:
                column = columns[k]
                full_columns[following[row]] = column
                full_columns[following[column]] = row
                full_weights[following[row]] = full_weights[following[column]] = weights[k]
                following[row] += 1
                following[column] += 1
    return sizes, full_columns, full_weights


@compiled
def strongest(indptr, columns, weights, k):  # type: ignore[no-untyped-def]
    """Keep the diagonal, and each entry among the k largest others of its row or column; equal ones by column."""
    in_row = np.ones(len(weights), np.bool_)
    for row in range(len(indptr) - 1):
        begin, end = indptr[row], indptr[row + 1]
        others = weights[begin:end][columns[begin:end] != row]
        if len(others) <= k:
            continue
        bound = np.partition(others, len(others) - k)[len(others) - k]
        left = k - np.sum(others > bound)
        for i in range(begin, end):
            if columns[i] != row and weights[i] <= bound:
                in_row[i] = weights[i] == bound and left > 0
                left -= in_row[i]
    mirrored = indptr[:-1].copy()  # the next entry of each row to be met as a column: rows are sorted, A is symmetric
    kept_indptr, kept_columns, kept_weights = np.zeros_like(indptr), np.empty_like(columns), np.empty_like(weights)
    n = 0
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            if in_row[i] or in_row[mirrored[columns[i]]]:
                kept_columns[n] = columns[i]
                kept_weights[n] = weights[i]
                n += 1
            mirrored[columns[i]] += 1
        kept_indptr[row + 1] = n
    return kept_indptr, kept_columns[:n].copy(), kept_weights[:n].copy()


@compiled
def scale_edges(indptr, columns, weights, scale):  # type: ignore[no-untyped-def]
    """Multiply the weight of each edge by the scales of its two words, without arrays of double precision."""
    scaled = np.empty(len(weights), weights.dtype)
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            scaled[k] = weights[k] * (scale[row] * scale[columns[k]])  # in this order, so that it stays symmetric
    return scaled


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
