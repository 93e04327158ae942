"""Kernels of ranked lists; apart from `ranking`, so that a model can be loaded and score without Numba."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def merge_classes(positive_scores, negative_scores):
    """Merge two ascending arrays into tie groups from the highest score down."""
    n_positives, n_negatives = len(positive_scores), len(negative_scores)
    n = n_positives + n_negatives
    scores = np.empty(n, positive_scores.dtype)
    ends = np.empty(n, np.int64)
    positives = np.empty(n, np.float64)
    negatives = np.empty(n, np.float64)
    i, j, g = n_positives - 1, n_negatives - 1, 0
    while i >= 0 or j >= 0:
        if j < 0 or (i >= 0 and positive_scores[i] >= negative_scores[j]):
            score = positive_scores[i]
            i -= 1
        else:
            score = negative_scores[j]
            j -= 1
        while i >= 0 and positive_scores[i] == score:
            i -= 1
        while j >= 0 and negative_scores[j] == score:
            j -= 1
        scores[g] = score
        positives[g] = n_positives - 1 - i
        negatives[g] = n_negatives - 1 - j
        ends[g] = n - 2 - i - j
        g += 1
    return scores[:g].copy(), ends[:g].copy(), positives[:g].copy(), negatives[:g].copy()


@njit(cache=True, nogil=True)
def weigh_groups(order, row_scores, positive, weight):
    """Tie groups of an ordered list with the cumulative weight of each class."""
    n = len(order)
    scores = np.empty(n, row_scores.dtype)
    ends = np.empty(n, np.int64)
    positives = np.empty(n, np.float64)
    negatives = np.empty(n, np.float64)
    above_positive, above_negative, g = 0.0, 0.0, 0
    for k in range(n):
        row = order[k]
        if positive[row]:
            above_positive += weight[row]
        else:
            above_negative += weight[row]
        if k + 1 == n or row_scores[order[k + 1]] != row_scores[row]:
            scores[g] = row_scores[row]
            ends[g] = k + 1
            positives[g] = above_positive
            negatives[g] = above_negative
            g += 1
    return scores[:g].copy(), ends[:g].copy(), positives[:g].copy(), negatives[:g].copy()


@njit(cache=True, nogil=True)
def group_by_code(order, codes, n_codes):
    """Stable counting sort of `order` by the code of its rows."""
    starts = np.zeros(n_codes + 1, np.int64)
    for row in order:
        starts[codes[row] + 1] += 1
    for c in range(n_codes):
        starts[c + 1] += starts[c]
    grouped = np.empty_like(order)
    fill = starts[:-1].copy()
    for row in order:
        grouped[fill[codes[row]]] = row
        fill[codes[row]] += 1
    return grouped, starts


@njit(cache=True, nogil=True)
def sort_keys(scores, bits, keys):
    """Fill in integers that ascend as the scores fall, with the row's number in the low `bits`."""
    raw = scores.view(np.int64)
    mask = ~np.uint64((1 << bits) - 1)
    for i in range(len(scores)):
        # As integers, negative floats already grow as they fall; the others are turned round.
        key = np.uint64(raw[i]) if raw[i] < 0 else ~np.uint64(raw[i] | np.int64(-(2**63)))
        keys[i] = (key & mask) | np.uint64(i)


@njit(cache=True, nogil=True)
def read_keys(keys, scores, bits, order, ranked):
    """Fill in the rows of sorted keys and their scores."""
    mask = np.uint64((1 << bits) - 1)
    for k in range(len(keys)):
        order[k] = np.int64(keys[k] & mask)
        ranked[k] = scores[order[k]]


@njit(cache=True, nogil=True)
def settle(order, ranked):
    """Sort by insertion what the bits left out, within reason; return whether it got there."""
    n, moves = len(order), 0
    for k in range(1, n):
        if ranked[k] > ranked[k - 1]:
            score, row, j = ranked[k], order[k], k - 1
            while j >= 0 and ranked[j] < score:
                ranked[j + 1], order[j + 1] = ranked[j], order[j]
                j -= 1
                moves += 1
            ranked[j + 1], order[j + 1] = score, row
            if moves > 2 * n:
                return False
    return True
