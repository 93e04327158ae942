"""Numba kernels of boosted rules: weights, histograms, literals and rules over binned rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from toprank.binning import MISSING, OTHER

SMALLEST = 1e-290  # smaller weights would become subnormal numbers, which are very slow


@njit(cache=True, nogil=True)
def update_weights(
    weights, positive, depth, positive_factors, negative_factors, total_positives, total_negatives
):
    """Multiply weights by the factor of their class and depth, then rescale each class to its total.

    In place. Returns the sums of both classes before the rescaling, over their totals.
    """
    positive_sum, negative_sum = 0.0, 0.0
    for i in range(len(weights)):
        if positive[i]:
            weights[i] *= positive_factors[depth[i]]
            positive_sum += weights[i]
        else:
            weights[i] *= negative_factors[depth[i]]
            negative_sum += weights[i]
    positive_scale = total_positives / positive_sum
    negative_scale = total_negatives / negative_sum
    for i in range(len(weights)):
        weights[i] = max(weights[i] * (positive_scale if positive[i] else negative_scale), SMALLEST)
    return 1.0 / positive_scale, 1.0 / negative_scale


@njit(cache=True, nogil=True)
def signed_weights(positive, weights, signed):
    """Write the weights of positives, and minus the weights of negatives, to `signed`."""
    for i in range(len(weights)):
        signed[i] = weights[i] if positive[i] else -weights[i]


@njit(cache=True, nogil=True)
def histograms(codes, rows, values, sums, first, last):
    """Add `values` to the sums by bin of the columns from `first` to before `last`.

    `values[k]` belongs to row `rows[k]`, or to row k where `rows` is None (compiled on its own). Four
    columns at a time: the four additions of a row do not wait for one another.
    """
    n = len(values)
    j = first
    while j + 4 <= last:
        code0, code1, code2, code3 = codes[j], codes[j + 1], codes[j + 2], codes[j + 3]
        sum0, sum1, sum2, sum3 = sums[j], sums[j + 1], sums[j + 2], sums[j + 3]
        for k in range(n):
            i = k if rows is None else rows[k]
            value = values[k]
            sum0[code0[i]] += value
            sum1[code1[i]] += value
            sum2[code2[i]] += value
            sum3[code3[i]] += value
        j += 4
    while j < last:
        code0, sum0 = codes[j], sums[j]
        for k in range(n):
            i = k if rows is None else rows[k]
            sum0[code0[i]] += values[k]
        j += 1


@njit(cache=True, nogil=True)
def cover(codes, member, weights, positive, depth):
    """Mark in `depth` the rows whose bin is a member; return the weights of both classes there."""
    covered = np.zeros(2)
    for i in range(len(codes)):
        inside = member[codes[i]]
        depth[i] = inside
        if inside:
            covered[1 if positive[i] else 0] += weights[i]
    return covered[1], covered[0]


@njit(cache=True, nogil=True)
def row_hashes(codes):
    """Hash the bins of each row to 64 bits (FNV-1a)."""
    n_columns, n = codes.shape
    hashes = np.full(n, np.uint64(14695981039346656037))
    for j in range(n_columns):
        for i in range(n):
            hashes[i] = (hashes[i] ^ np.uint64(codes[j, i])) * np.uint64(1099511628211)
    return hashes


@njit(cache=True, nogil=True)
def literal_weights(positive_sums, negative_sums, seed_codes, n_cuts, is_category):
    """Sum the class weights under every literal that is true of a seed row.

    A column of numbers has one literal for each cut point: "at most" from the seed's bin on, "above"
    before it. A category, or a missing cell, has one. Returns column, cut, positives, negatives.
    """
    n_literals = 0
    for j in range(len(n_cuts)):
        single = is_category[j] or seed_codes[j] == MISSING
        n_literals += 1 if single else n_cuts[j]
    columns = np.empty(n_literals, np.int64)
    cuts = np.empty(n_literals, np.int64)
    positives = np.empty(n_literals)
    negatives = np.empty(n_literals)
    c = 0
    for j in range(len(n_cuts)):
        seed = seed_codes[j]
        if is_category[j] or seed == MISSING:
            if seed != OTHER:
                columns[c], cuts[c] = j, 0
                positives[c], negatives[c] = positive_sums[j, seed], negative_sums[j, seed]
                c += 1
            continue
        low_positives, low_negatives = 0.0, 0.0
        for k in range(n_cuts[j]):
            low_positives += positive_sums[j, k]
            low_negatives += negative_sums[j, k]
            if k >= seed:
                columns[c + k], cuts[c + k] = j, k
                positives[c + k], negatives[c + k] = low_positives, low_negatives
        high_positives, high_negatives = 0.0, 0.0
        for k in range(n_cuts[j] - 1, -1, -1):
            high_positives += positive_sums[j, k + 1]
            high_negatives += negative_sums[j, k + 1]
            if k < seed:
                columns[c + k], cuts[c + k] = j, k
                positives[c + k], negatives[c + k] = high_positives, high_negatives
        c += n_cuts[j]
    return columns[:c], cuts[:c], positives[:c], negatives[:c]


@njit(cache=True, nogil=True)
def count_depths(depth, positive, sample_weight, n_depths):
    """Sum the weights of negatives (column 0) and positives (1) at each depth of a path."""
    counts = np.zeros((n_depths, 2))
    for i in range(len(depth)):
        counts[depth[i], 1 if positive[i] else 0] += sample_weight[i]
    return counts


@njit(cache=True, nogil=True)
def walk_paths(codes, columns, members, values, starts, stops, scores, first, last):
    """Add the values of every round to the scores of the rows from `first` to before `last`.

    The literals of round t are those from `starts[t]` to before `stops[t]`. A row passes them one after
    the other until one fails, and gets the value of the last one it passed.
    """
    for t in range(len(starts)):
        start, stop = starts[t], stops[t]
        for i in range(first, last):
            value = 0.0
            for k in range(start, stop):
                if members[k, codes[columns[k], i]] == 0:
                    break
                value = values[k]
            scores[i] += value


@njit(cache=True, nogil=True)
def add_tables(codes, tables, scores, first, last):
    """Add `tables[j, bin]` of every column to the scores of the rows from `first` to before `last`."""
    for j in range(len(tables)):
        table, code = tables[j], codes[j]
        for i in range(first, last):
            scores[i] += table[code[i]]


@njit(cache=True, nogil=True)
def histograms_of_many(codes, rows, values, sums):
    """Add the rows of `values` (one for each row of the table) that `rows` names to the sums by bin.

    `sums` has the shape (n_columns, 256, n_values).
    """
    for j in range(len(codes)):
        code, own = codes[j], sums[j]
        for k in range(len(rows)):
            i = rows[k]
            bins = own[code[i]]
            for v in range(values.shape[1]):
                bins[v] += values[i, v]
