"""Compiled loops over many lists at once: rows of each query in ranked order.

`starts[q]:starts[q + 1]` are the rows of query `q`, highest score first. A query that cannot be
scored (no positive, or a class that it lacks) gets NaN.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from toprank.metrics._kernels import (
    discount_between,
    first_reciprocal,
    list_point,
    precision_sum,
    ramp_area,
)


@njit(cache=True, nogil=True)
def steps_of_queries(starts, scores, positive, weight):
    """Staircases of all queries end to end.

    Returns `bounds` (query `q` owns the steps `bounds[q]:bounds[q + 1]`), `run` (of which query `q`
    owns one entry more, from `bounds[q] + q` on), `rise` and `tied`.
    """
    n_queries = len(starts) - 1
    bounds = np.zeros(n_queries + 1, np.int64)
    run = np.zeros(len(scores) + n_queries, np.float64)
    rise = np.zeros(len(scores), np.float64)
    tied = np.zeros(len(scores), np.float64)
    k = 0
    for q in range(n_queries):
        gap, i = 0.0, starts[q]
        while i < starts[q + 1]:
            up, across, score = 0.0, 0.0, scores[i]
            while i < starts[q + 1] and scores[i] == score:
                if positive[i]:
                    up += weight[i]
                else:
                    across += weight[i]
                i += 1
            if up > 0.0:
                run[k + q], rise[k], tied[k] = gap, up, across
                gap = 0.0
                k += 1
            else:
                gap += across
        run[k + q] = gap
        bounds[q + 1] = k
    return bounds, run[: k + n_queries].copy(), rise[:k].copy(), tied[:k].copy()


@njit(cache=True, nogil=True)
def query_average_precision(bounds, run, rise, tied):
    """Average precision of each query."""
    values = np.full(len(bounds) - 1, np.nan)
    for q in range(len(values)):
        a, b = bounds[q], bounds[q + 1]
        if b > a:
            values[q] = precision_sum(run[a + q : b + q + 1], rise[a:b], tied[a:b])
    return values


@njit(cache=True, nogil=True)
def query_reciprocal_rank(bounds, run, rise, tied):
    """Reciprocal rank of the first positive of each query."""
    values = np.full(len(bounds) - 1, np.nan)
    for q in range(len(values)):
        a, b = bounds[q], bounds[q + 1]
        if b > a:
            values[q] = first_reciprocal(run[a + q : b + q + 1], rise[a:b], tied[a:b])
    return values


@njit(cache=True, nogil=True)
def query_precision(bounds, run, rise, tied, k):
    """Precision of the first `k` rows of each query; `k` = 0 stands for its number of positives."""
    values = np.full(len(bounds) - 1, np.nan)
    for q in range(len(values)):
        a, b = bounds[q], bounds[q + 1]
        if b > a:
            size = k if k > 0.0 else rise[a:b].sum()
            found = list_point(run[a + q : b + q + 1], rise[a:b], tied[a:b], size, False)
            values[q] = found[0] / size
    return values


@njit(cache=True, nogil=True)
def query_gain(starts, scores, codes, weight, gains, k):
    """Normalised discounted gain of the first `k` rows of each query.

    Tied rows share the discounts of their ranks equally, so that each gets its expected gain.
    """
    values = np.full(len(starts) - 1, np.nan)
    level_weight = np.empty(len(gains), np.float64)
    for q in range(len(values)):
        level_weight[:] = 0.0
        total, place, i = 0.0, 0.0, starts[q]
        while i < starts[q + 1]:
            width, gain, score = 0.0, 0.0, scores[i]
            while i < starts[q + 1] and scores[i] == score:
                level_weight[codes[i]] += weight[i]
                width += weight[i]
                gain += weight[i] * gains[codes[i]]
                i += 1
            if gain > 0.0 and place < k:
                total += gain / width * discount_between(place, min(place + width, k))
            place += width
        ideal, place = 0.0, 0.0
        for level in range(len(gains) - 1, -1, -1):
            upto = min(place + level_weight[level], k)
            if gains[level] > 0.0:
                ideal += gains[level] * discount_between(place, upto)
            place = upto
        if ideal > 0.0:
            values[q] = total / ideal
    return values


@njit(cache=True, nogil=True)
def split_levels(weight, ordered, inside, outside):
    """Weight inside and outside the positives of every level.

    The positives of level `c` are the rows of level `c` and above when `ordered`, those of level
    `c` alone otherwise. Both are sums of their own: the difference from the total would leave
    rounding where there is nothing.
    """
    below = 0.0
    for c in range(len(weight)):
        outside[c] = below
        below += weight[c]
    above = 0.0
    for c in range(len(weight) - 1, -1, -1):
        inside[c] = weight[c]
        if ordered:
            inside[c] += above
        else:
            outside[c] += above
        above += weight[c]


@njit(cache=True, nogil=True)
def query_level_areas(starts, scores, codes, weight, n_levels, ordered, start, stop):
    """Area under the ROC curve between two false positive rates, per query and level.

    Areas are divided by `stop - start`; NaN where the query lacks one of the two classes.
    """
    n_queries = len(starts) - 1
    areas = np.full((n_queries, n_levels), np.nan)
    here, positives, negatives, up, across, left, low, area = np.zeros((8, n_levels))
    for q in range(n_queries):
        here[:], left[:], low[:], area[:] = 0.0, 0.0, 0.0, 0.0
        for i in range(starts[q], starts[q + 1]):
            here[codes[i]] += weight[i]
        split_levels(here, ordered, positives, negatives)
        i = starts[q]
        while i < starts[q + 1]:
            here[:], score = 0.0, scores[i]
            while i < starts[q + 1] and scores[i] == score:
                here[codes[i]] += weight[i]
                i += 1
            split_levels(here, ordered, up, across)
            for c in range(n_levels):
                if across[c] > 0.0:
                    first, last = start * negatives[c], stop * negatives[c]
                    area[c] += ramp_area(left[c], low[c], across[c], up[c], first, last, 0.0)
                    left[c] += across[c]
                low[c] += up[c]
        for c in range(n_levels):
            if positives[c] > 0.0 and negatives[c] > 0.0:
                areas[q, c] = area[c] / (positives[c] * negatives[c] * (stop - start))
    return areas


@njit(cache=True, nogil=True)
def query_level_hits(starts, scores, codes, weight, n_levels):
    """Weight of each level, and of its rows that rank in the stretch the level would fill.

    In a perfect order the highest level fills the first ranks, the next the ranks below, and so on.
    Tied rows spread evenly over the ranks they share.
    """
    n_queries = len(starts) - 1
    sizes = np.zeros((n_queries, n_levels))
    hits = np.zeros((n_queries, n_levels))
    here = np.empty(n_levels, np.float64)
    for q in range(n_queries):
        for i in range(starts[q], starts[q + 1]):
            sizes[q, codes[i]] += weight[i]
        place, i = 0.0, starts[q]
        while i < starts[q + 1]:
            here[:] = 0.0
            width, score = 0.0, scores[i]
            while i < starts[q + 1] and scores[i] == score:
                here[codes[i]] += weight[i]
                width += weight[i]
                i += 1
            begin = 0.0
            for c in range(n_levels - 1, -1, -1):
                end = begin + sizes[q, c]
                overlap = min(end, place + width) - max(begin, place)
                if overlap > 0.0:
                    hits[q, c] += here[c] * overlap / width
                begin = end
            place += width
    return sizes, hits
