"""Compiled loops over ranked lists: first one list of two classes, then many queries at once.

A list of two classes has one step for each tie group that holds a positive, from the highest score
down. `negatives_between[g]` is the weight of the negatives ranked strictly between step `g - 1` and step
`g` (the last entry is for those below all positives), `positives[g]` the weight of the positives of step
`g`, and `negatives_tied[g]` the weight of the negatives that share its score. On the ROC plane the list
goes right by `negatives_between[g]`, then along a ramp `negatives_tied[g]` right and `positives[g]` up.
Steps of zero width or height are allowed: a bootstrap sample may miss every row of a step. In the loops,
`x` and `y` are the negatives and the positives passed so far.

Of many queries, `starts[q]:starts[q + 1]` are the rows of query `q`, highest score first. A query that
cannot be scored (no positive, or a class that it lacks) gets NaN.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

AVERAGE_PRECISION, RECIPROCAL_RANK, PRECISION = range(3)


@njit(cache=True, nogil=True)
def ramp_area(left, low, width, height, start, stop, floor):
    """Return the area above `floor` under a straight line from (left, low) within `start <= x <= stop`."""
    right = left + width
    x0, x1 = max(left, start), min(right, stop)
    if x1 <= x0:
        return 0.0
    slope = height / width
    y0 = low if x0 == left else low + slope * (x0 - left)
    y1 = low + height if x1 == right else low + slope * (x1 - left)
    if y0 >= floor:
        return (x1 - x0) * ((y0 - floor) + (y1 - floor)) / 2.0
    if y1 <= floor:
        return 0.0
    return (y1 - floor) ** 2 / (2.0 * slope)


@njit(cache=True, nogil=True)
def roc_area(negatives_between, positives, negatives_tied, start, stop, floor):
    """Return the area between the ROC curve and `floor` for `start <= negatives <= stop`, in weight units."""
    area, x, y = 0.0, 0.0, 0.0
    for g in range(len(positives)):
        if negatives_between[g] > 0.0:
            area += ramp_area(x, y, negatives_between[g], 0.0, start, stop, floor)
            x += negatives_between[g]
        if negatives_tied[g] > 0.0:
            area += ramp_area(x, y, negatives_tied[g], positives[g], start, stop, floor)
            x += negatives_tied[g]
        y += positives[g]
        if x >= stop:
            return area
    return area + ramp_area(x, y, max(negatives_between[-1], stop - x), 0.0, start, stop, floor)


@njit(cache=True, nogil=True)
def precision_sum(negatives_between, positives, negatives_tied):
    """Return the mean over the positives of the precision at the end of their tie group."""
    total, x, y = 0.0, 0.0, 0.0
    for g in range(len(positives)):
        x += negatives_between[g] + negatives_tied[g]
        if positives[g] > 0.0:
            y += positives[g]
            total += positives[g] * (y / (x + y))
    return total / y


@njit(cache=True, nogil=True)
def interpolated_precision_area(negatives_between, positives, negatives_tied):
    """Return the area under the recall-precision curve with the interpolation of Davis and Goadrich."""
    area, x, y = 0.0, 0.0, 0.0
    for g in range(len(positives)):
        x += negatives_between[g]
        if positives[g] > 0.0:
            slope = negatives_tied[g] / positives[g]
            a = 1.0 + slope
            b = x - slope * y
            piece = positives[g] / a
            if x + y > 0.0 and b != 0.0:
                piece -= b / (a * a) * math.log1p(a * positives[g] / (x + y))
            area += piece
            y += positives[g]
        x += negatives_tied[g]
    return area / y


@njit(cache=True, nogil=True)
def list_point(negatives_between, positives, negatives_tied, size, whole):
    """Return positives, negatives and ROC area of the `size` highest rows.

    A cut inside a tie group takes the same share of both classes, or all of the group when `whole`.
    """
    area, x, y = 0.0, 0.0, 0.0
    for g in range(len(positives)):
        step = min(negatives_between[g], max(size - x - y, 0.0))
        area += y * step
        x += step
        width = positives[g] + negatives_tied[g]
        share = 0.0
        if width > 0.0:
            share = min(max(size - x - y, 0.0) / width, 1.0)
            if whole and share > 0.0:
                share = 1.0
        area += negatives_tied[g] * share * (y + positives[g] * share / 2.0)
        x += negatives_tied[g] * share
        y += positives[g] * share
        if x + y >= size:
            return y, x, area
    step = min(negatives_between[-1], max(size - x - y, 0.0))
    return y, x + step, area + y * step


@njit(cache=True, nogil=True)
def first_reciprocal(negatives_between, positives, negatives_tied):
    """Return the expected reciprocal rank of the first positive over all orders of the tied rows.

    With `q` negatives and `p` positives tied after `x` negatives, the chance that the first
    positive comes after more than `j` tied rows is the product over i < j of (q - i)/(q + p - i).
    """
    x = 0.0
    for g in range(len(positives)):
        x += negatives_between[g]
        if positives[g] > 0.0:
            negatives, rows = negatives_tied[g], negatives_tied[g] + positives[g]
            survival, expected, j = 1.0, 0.0, 0.0
            while survival > 1e-18 and negatives > j:
                later = survival * (negatives - j) / (rows - j)
                expected += (survival - later) / (x + j + 1.0)
                survival = later
                j += 1.0
            return expected + survival / (x + j + 1.0)
        x += negatives_tied[g]
    return 0.0


@njit(cache=True, nogil=True)
def digamma(x):
    """Return the logarithmic derivative of the gamma function for x >= 1 (to about 1e-15)."""
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = 1.0 / 132.0
    for c in (1.0 / 240.0, 1.0 / 252.0, 1.0 / 120.0, 1.0 / 12.0):
        series = c - r * series
    return shift + math.log(x) - 0.5 / x - r * series


@njit(cache=True, nogil=True)
def harmonic(low, high):
    """Return the sum of 1/k for k = low + 1 .. high, continued to real numbers by the digamma function."""
    count = high - low
    if count <= 16.0 and count == math.floor(count):
        total = 0.0
        for k in range(1, int(count) + 1):
            total += 1.0 / (low + k)
        return total
    return digamma(high + 1.0) - digamma(low + 1.0)


@njit(cache=True, nogil=True)
def precision_over_lengths(negatives_between, positives, negatives_tied):
    """Return the mean over every list length of the expected precision of that list."""
    total, x, y = 0.0, 0.0, 0.0
    for g in range(len(positives)):
        if negatives_between[g] > 0.0:
            total += y * harmonic(x + y, x + y + negatives_between[g])
            x += negatives_between[g]
        width = positives[g] + negatives_tied[g]
        if width > 0.0:
            share = positives[g] / width
            rest = y - share * (x + y)
            total += positives[g] + rest * harmonic(x + y, x + y + width)
            x += negatives_tied[g]
            y += positives[g]
    if negatives_between[-1] > 0.0:
        total += y * harmonic(x + y, x + y + negatives_between[-1])
    return total / (x + y + negatives_between[-1])


@njit(cache=True, nogil=True)
def logarithmic_integral(x):
    """Return li(x) for x > 1 by its power series in log x, every term of which is positive."""
    t = math.log(x)
    total, term, k = 0.5772156649015329 + math.log(t), 1.0, 1.0
    while True:
        term *= t / k
        total += term / k
        if (k > t and term / k < 1e-17 * total) or k > 1e5:
            return total
        k += 1.0


@njit(cache=True, nogil=True)
def inverse_log_sum(first, last):
    """Return the sum of 1/ln(m) for the whole numbers m = first .. last (Euler-Maclaurin when it is long)."""
    total = 0.0
    short = last - first <= 4096.0
    direct = last if short else max(first, 1024.0)
    for _ in range(math.floor(direct - first) + 1):  # adding 1 may change nothing
        total += 1.0 / math.log(first)
        first += 1.0
    if short or first > last:
        return total
    u, v = 1.0 / math.log(first), 1.0 / math.log(last)
    total += logarithmic_integral(last) - logarithmic_integral(first) + (u + v) / 2.0
    slope = u * u / first - v * v / last
    third = _third_derivative(last, v) - _third_derivative(first, u)
    return total + slope / 12.0 - third / 720.0


@njit(cache=True, nogil=True)
def _third_derivative(x, u):
    """Return the third derivative of 1/ln at x, where u = 1/ln(x)."""
    return -(u * u / x**3) * (2.0 + 6.0 * u + 6.0 * u * u)


@njit(cache=True, nogil=True)
def discount_between(low, high):
    """Return the sum of 1/log2(1 + rank) over the stretch of ranks from `low` (left out) to `high`.

    A fraction of a rank counts as that fraction of its discount.
    """
    if high <= low:
        return 0.0
    first, last = math.floor(low), math.ceil(high)
    if last - first == 1.0:
        return (high - low) * math.log(2.0) / math.log(first + 2.0)
    total = (first + 1.0 - low) / math.log(first + 2.0)
    total += (high - last + 1.0) / math.log(last + 1.0)
    total += inverse_log_sum(first + 3.0, float(last))
    return total * math.log(2.0)


@njit(cache=True, nogil=True)
def binary_gain(negatives_between, positives, negatives_tied, k):
    """Return the normalised discounted gain of the first `k` rows when every positive gains 1."""
    gain, x, y = 0.0, 0.0, 0.0
    for g in range(len(positives)):
        x += negatives_between[g]
        if x + y >= k:
            y += positives[g]
            continue
        width = positives[g] + negatives_tied[g]
        if positives[g] > 0.0:
            gain += positives[g] / width * discount_between(x + y, min(x + y + width, k))
        x += negatives_tied[g]
        y += positives[g]
    return gain / discount_between(0.0, min(y, k))


# -- many queries ----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def steps_of_queries(starts, scores, positive, weight):
    """Return the steps of all queries end to end.

    Query `q` owns the steps `bounds[q]:bounds[q + 1]`, and one entry more of `negatives_between`, which
    starts at `bounds[q] + q`.
    """
    n_queries = len(starts) - 1
    bounds = np.zeros(n_queries + 1, np.int64)
    negatives_between = np.zeros(len(scores) + n_queries, np.float64)
    positives = np.zeros(len(scores), np.float64)
    negatives_tied = np.zeros(len(scores), np.float64)
    k = 0
    for q in range(n_queries):
        gap, i = 0.0, starts[q]
        while i < starts[q + 1]:
            up, across, score = 0.0, 0.0, scores[i]
            while i < starts[q + 1] and not scores[i] < score:
                if positive[i]:
                    up += weight[i]
                else:
                    across += weight[i]
                i += 1
            if up > 0.0:
                negatives_between[k + q], positives[k], negatives_tied[k] = gap, up, across
                gap = 0.0
                k += 1
            else:
                gap += across
        negatives_between[k + q] = gap
        bounds[q + 1] = k
    return (
        bounds,
        negatives_between[: k + n_queries].copy(),
        positives[:k].copy(),
        negatives_tied[:k].copy(),
    )


@njit(cache=True, nogil=True)
def query_values(bounds, negatives_between, positives, negatives_tied, metric, k):
    """Return one metric of each query: average precision, reciprocal rank, or precision of `k` rows.

    `metric` is one of the constants above; `k` = 0 stands for the number of positives of the query.
    """
    values = np.full(len(bounds) - 1, np.nan)
    for q in range(len(values)):
        a, b = bounds[q], bounds[q + 1]
        if b == a:
            continue
        between = negatives_between[a + q : b + q + 1]
        up, tied = positives[a:b], negatives_tied[a:b]
        if metric == AVERAGE_PRECISION:
            values[q] = precision_sum(between, up, tied)
        elif metric == RECIPROCAL_RANK:
            values[q] = first_reciprocal(between, up, tied)
        else:
            size = k if k > 0.0 else up.sum()
            values[q] = list_point(between, up, tied, size, False)[0] / size
    return values


@njit(cache=True, nogil=True)
def query_gain(starts, scores, codes, weight, gains, k):
    """Return the normalised discounted gain of the first `k` rows of each query.

    Tied rows share the discounts of their ranks equally, so that each gets its expected gain.
    """
    values = np.full(len(starts) - 1, np.nan)
    level_weight = np.empty(len(gains), np.float64)
    for q in range(len(values)):
        level_weight[:] = 0.0
        total, place, i = 0.0, 0.0, starts[q]
        while i < starts[q + 1]:
            width, gain, score = 0.0, 0.0, scores[i]
            while i < starts[q + 1] and not scores[i] < score:
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
    """Fill in the weight inside and outside the positives of every level.

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
    """Return the area under the ROC curve between two false positive rates, per query and level.

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
            while i < starts[q + 1] and not scores[i] < score:
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
    """Return the weight of each level, and of its rows that rank in the stretch the level would fill.

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
            while i < starts[q + 1] and not scores[i] < score:
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


@njit(cache=True, nogil=True)
def weigh_around(steps, scores, positive, weight):
    """Weight of the negatives below the first of some ascending scores, at it, between it and the next ...

    An empty `weight` stands for ones. The search has no branches to guess wrong, so with few steps a row takes
    less time than its share of a sort.
    """
    held = np.zeros(2 * len(steps) + 1)
    for i in range(len(scores)):
        if positive[i]:
            continue
        score, first, left = scores[i], 0, len(steps)
        while left > 1:
            half = left >> 1
            first += half * (steps[first + half - 1] < score)
            left -= half
        first += steps[first] < score
        tied = first < len(steps) and steps[first] == score
        held[2 * first + tied] += weight[i] if len(weight) else 1.0
    return held
