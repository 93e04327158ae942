"""The search for the best axis-parallel cut of a cell, over columns as bytes.

P and N are the weights of the positives and negatives of a cell, p and n those of one part of it. The
criterion is |p/P - n/N|, the |TPR - FPR| of the cut; the kernels compare |p N - n P|, which is exact for
whole weights. `order[begin:end]` are the rows of the cell. A cut is (feature, threshold, missing_first):
rows whose byte is at most `threshold` come first, or, for categories (threshold -1), rows whose byte is in
a set of 256 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from toprank.binning import MISSING, N_BINS, OTHER

__all__ = [
    "BinnedSample",
    "Workspace",
    "comes_first",
    "find_cut",
    "partition",
    "shuffle",
    "workspace",
]

FEATURE, THRESHOLD, MISSING_FIRST = range(3)  # the first entries of a cell
SET_BYTES = N_BINS // 8  # of a set of bytes
SMALL = 40  # up to this many rows sorting them beats filling 256 counters
BLOCK = 32  # features whose counters are filled in one pass over the rows: they fit the cache
RELATIVE_NOISE = 1e-12  # a smaller share of the scale is rounding: the earlier cut stays


class BinnedSample(NamedTuple):
    """Rows as the kernels read them."""

    codes: np.ndarray  # bytes, of shape (n_rows, n_columns)
    positive: np.ndarray
    weight: np.ndarray
    n_bins: np.ndarray  # the bytes of a column are below this number, or MISSING
    is_category: np.ndarray  # whether a cell may cut the column into any two sets of bytes
    # whether the side of the greater bytes must have the greater share of positives
    rising: np.ndarray


class Workspace(NamedTuple):
    """Scratch memory: class weights of bins, rows (byte, p, n) of equal bytes, sort keys, row numbers."""

    counters: np.ndarray
    groups: np.ndarray
    keys: np.ndarray
    waiting: np.ndarray


@njit(cache=True, nogil=True)
def workspace(n_features, n_rows):
    """Return scratch memory for cells of at most so many features and rows."""
    return Workspace(
        np.empty((min(BLOCK, n_features), 2 * N_BINS)),
        np.empty((N_BINS, 3)),
        np.empty(SMALL, np.int64),
        np.empty(n_rows, np.int64),
    )


@njit(cache=True, nogil=True)
def shuffle(rng, pool, n_drawn):
    """Put `n_drawn` random members of `pool` to its front (Fisher-Yates)."""
    n_pool = len(pool)
    if n_drawn < n_pool:
        for k in range(n_drawn):
            other = k + int(rng.random() * (n_pool - k))
            pool[k], pool[other] = pool[other], pool[k]


@njit(cache=True, nogil=True)
def comes_first(code, threshold, missing_first, bits):
    """Return whether a byte falls in the first part of a cut."""
    if threshold < 0:
        return (bits[code >> 3] >> (code & 7)) & 1 == 1
    if code == MISSING:
        return missing_first == 1
    return code <= threshold


@njit(cache=True, nogil=True)
def partition(codes, order, begin, end, cut, bits, waiting):
    """Reorder the rows of a cell so that the first part of the cut leads; return where it ends."""
    feature, threshold, missing_first = cut[FEATURE], cut[THRESHOLD], cut[MISSING_FIRST]
    middle, n_waiting = begin, 0
    for i in range(begin, end):
        row = order[i]
        if comes_first(codes[row, feature], threshold, missing_first, bits):
            order[middle] = row
            middle += 1
        else:
            waiting[n_waiting] = row
            n_waiting += 1
    for i in range(n_waiting):
        order[middle + i] = waiting[i]
    return middle


@njit(cache=True, nogil=True)
def find_cut(rows, order, begin, end, P, N, features, min_weight, work, cut, bits):
    """Write the best cut of a cell over `features`; return whether there is one.

    Of equal cuts the one on the feature first in `features` wins.
    """
    best = 0.0
    cut[FEATURE] = -1
    small = end - begin <= SMALL
    for k in range(len(features)):
        feature = features[k]
        if small:
            count = _groups_by_sorting(rows, order, begin, end, feature, work)
        else:
            if k % BLOCK == 0:
                _fill_counters(rows, order, begin, end, features[k : k + BLOCK], work.counters)
            count = _groups_by_counting(work.counters[k % BLOCK], rows.n_bins[feature], work.groups)
        before = best
        groups = work.groups[:count]
        if rows.is_category[feature]:
            has_other = rows.n_bins[feature] > OTHER
            best = _scan_categories(groups, P, N, min_weight, best, has_other, cut, bits)
        else:
            best = _scan_numbers(groups, P, N, min_weight, best, rows.rising[feature], cut)
        if best > before:
            cut[FEATURE] = feature
    return cut[FEATURE] >= 0


@njit(cache=True, nogil=True)
def _groups_by_sorting(rows, order, begin, end, feature, work):
    """Write the distinct bytes of a few rows, ascending, with their class weights; return how many."""
    keys, groups = work.keys, work.groups
    size = end - begin
    for i in range(size):
        key = int(rows.codes[order[begin + i], feature]) * SMALL + i
        k = i
        while k > 0 and keys[k - 1] > key:
            keys[k] = keys[k - 1]
            k -= 1
        keys[k] = key
    count, last = 0, -1
    for k in range(size):
        code = keys[k] // SMALL
        row = order[begin + keys[k] - code * SMALL]
        if code != last:
            groups[count, 0], groups[count, 1], groups[count, 2] = code, 0.0, 0.0
            count += 1
            last = code
        groups[count - 1, 2 - rows.positive[row]] += rows.weight[row]
    return count


@njit(cache=True, nogil=True)
def _fill_counters(rows, order, begin, end, features, counters):
    """Add up the weight of each class in each bin of a block of features."""
    codes, n_features = rows.codes, len(features)
    counters[:n_features] = 0.0
    for i in range(begin, end):
        row = order[i]
        w, c = rows.weight[row], 1 - int(rows.positive[row])
        for k in range(n_features):
            counters[k, 2 * int(codes[row, features[k]]) + c] += w


@njit(cache=True, nogil=True)
def _groups_by_counting(counters, n_bins, groups):
    """Write the occupied bins of a feature, ascending, with their class weights; return how many."""
    count = 0
    for code in range(n_bins + 1):
        at = MISSING if code == n_bins else code
        p, n = counters[2 * at], counters[2 * at + 1]
        if p + n > 0.0:
            groups[count, 0], groups[count, 1], groups[count, 2] = at, p, n
            count += 1
    return count


@njit(cache=True, nogil=True)
def _scan_numbers(groups, P, N, min_weight, best, rising, cut):
    """Try every threshold, with missing cells on either side; return the best value so far."""
    count = len(groups)
    missing_p, missing_n, present = 0.0, 0.0, count
    if count > 0 and groups[count - 1, 0] == MISSING:
        present = count - 1
        missing_p, missing_n = groups[present, 1], groups[present, 2]
    has_missing = present < count
    total = P + N
    p, n = 0.0, 0.0
    # with missing cells the last cut puts all present cells against them
    for k in range(present if has_missing else present - 1):
        p += groups[k, 1]
        n += groups[k, 2]
        for side in range(2 if has_missing and k + 1 < present else 1):
            p_first, n_first = p + side * missing_p, n + side * missing_n
            first = p_first + n_first
            if first < min_weight or total - first < min_weight:
                continue
            value = n_first * P - p_first * N
            if not rising:
                value = abs(value)
            if value > best + RELATIVE_NOISE * P * N:
                best = value
                if k + 1 < present:  # half-way through the empty bins between the two parts
                    cut[THRESHOLD] = int(groups[k, 0] + groups[k + 1, 0] - 1) // 2
                else:
                    cut[THRESHOLD] = MISSING - 1
                cut[MISSING_FIRST] = side if has_missing else (1 if first > total - first else 0)
    return best


@njit(cache=True, nogil=True)
def _scan_categories(groups, P, N, min_weight, best, has_other, cut, bits):
    """Try every cut of the categories in the order of their shares of positives; return the best value."""
    _sort_by_share(groups)
    total = P + N
    p, n, last, heavier = 0.0, 0.0, -1, False
    for k in range(len(groups) - 1):
        p += groups[k, 1]
        n += groups[k, 2]
        if p + n < min_weight or total - p - n < min_weight:
            continue
        value = abs(p * N - n * P)
        if value > best + RELATIVE_NOISE * P * N:
            best, last, heavier = value, k, p + n > total - p - n
    if last >= 0:
        cut[THRESHOLD], cut[MISSING_FIRST] = -1, 0
        bits[:] = 255 if heavier else 0  # bytes absent from the cell join the heavier part
        for k in range(len(groups)):
            _set_bit(bits, int(groups[k, 0]), k <= last)
        if not has_other:  # then OTHER is a category never seen, which behaves as missing
            _set_bit(bits, OTHER, comes_first(MISSING, -1, 0, bits))
    return best


@njit(cache=True, nogil=True)
def _sort_by_share(groups):
    """Sort categories by their share of positives, the greatest first."""
    for i in range(1, len(groups)):
        code, p, n = groups[i, 0], groups[i, 1], groups[i, 2]
        k = i
        # cross-multiplied, so that equal shares stay in the order of their codes
        while k > 0 and groups[k - 1, 1] * n < p * groups[k - 1, 2]:
            groups[k] = groups[k - 1]
            k -= 1
        groups[k, 0], groups[k, 1], groups[k, 2] = code, p, n


@njit(cache=True, nogil=True)
def _set_bit(bits, code, value):
    """Put a byte into a set, or take it out."""
    if value:
        bits[code >> 3] |= 1 << (code & 7)
    else:
        bits[code >> 3] &= 255 - (1 << (code & 7))
