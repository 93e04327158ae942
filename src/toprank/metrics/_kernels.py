"""Compiled loops over a staircase: one list of rows reduced to what its positives see.

A staircase has `K` steps, one per tie group that holds a positive, from the highest score down.
`run[g]` is the weight of the negatives ranked strictly between step `g - 1` and step `g`
(`run[K]` is the weight of those below the last positive), `rise[g]` the weight of the positives of
step `g`, and `tied[g]` the weight of the negatives that share its score. On the ROC plane the list
goes right by `run[g]`, then along a ramp `tied[g]` right and `rise[g]` up. Steps of zero width or
height are allowed: a bootstrap sample may miss every row of a step.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

SLACK = 1e-12  # shares such as .55 of 100 rows come out as 55.00000000000001


@njit(cache=True, nogil=True)
def steps_of_list(positives, negatives):
    """Staircase of cumulative class weights per tie group, and the groups that are steps."""
    n_groups = len(positives)
    run = np.empty(n_groups + 1, np.float64)
    rise = np.empty(n_groups, np.float64)
    tied = np.empty(n_groups, np.float64)
    group = np.empty(n_groups, np.int64)
    above_positive, left_of_run, left_of_tie, k = 0.0, 0.0, 0.0, 0
    for g in range(n_groups):
        if positives[g] > above_positive:
            run[k] = left_of_tie - left_of_run
            rise[k] = positives[g] - above_positive
            tied[k] = negatives[g] - left_of_tie
            group[k] = g
            above_positive = positives[g]
            left_of_run = negatives[g]
            k += 1
        left_of_tie = negatives[g]
    run[k] = left_of_tie - left_of_run
    return run[: k + 1].copy(), rise[:k].copy(), tied[:k].copy(), group[:k].copy()


@njit(cache=True, nogil=True)
def ramp_area(left, low, width, height, start, stop, floor):
    """Area above `floor` under a straight line from (left, low) within `start <= x <= stop`."""
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
def roc_area(run, rise, tied, start, stop, floor):
    """Area between the ROC curve and `floor` for `start <= negatives <= stop`, in weight units."""
    area, x, y = 0.0, 0.0, 0.0
    for g in range(len(rise)):
        if run[g] > 0.0:
            area += ramp_area(x, y, run[g], 0.0, start, stop, floor)
            x += run[g]
        if tied[g] > 0.0:
            area += ramp_area(x, y, tied[g], rise[g], start, stop, floor)
            x += tied[g]
        y += rise[g]
        if x >= stop:
            return area
    return area + ramp_area(x, y, max(run[-1], stop - x), 0.0, start, stop, floor)


@njit(cache=True, nogil=True)
def precision_sum(run, rise, tied):
    """Mean over the positives of the precision at the end of their tie group."""
    total, x, y = 0.0, 0.0, 0.0
    for g in range(len(rise)):
        x += run[g] + tied[g]
        if rise[g] > 0.0:
            y += rise[g]
            total += rise[g] * (y / (x + y))
    return total / y


@njit(cache=True, nogil=True)
def interpolated_precision_area(run, rise, tied):
    """Area under the recall-precision curve with the interpolation of Davis and Goadrich."""
    area, x, y = 0.0, 0.0, 0.0
    for g in range(len(rise)):
        x += run[g]
        if rise[g] > 0.0:
            slope = tied[g] / rise[g]
            a = 1.0 + slope
            b = x - slope * y
            piece = rise[g] / a
            if x + y > 0.0 and b != 0.0:
                piece -= b / (a * a) * math.log1p(a * rise[g] / (x + y))
            area += piece
            y += rise[g]
        x += tied[g]
    return area / y


@njit(cache=True, nogil=True)
def list_point(run, rise, tied, size, whole):
    """Positives, negatives and ROC area of the `size` highest rows.

    A cut inside a tie group takes the same share of both classes, or all of the group when `whole`.
    """
    area, x, y = 0.0, 0.0, 0.0
    for g in range(len(rise)):
        step = min(run[g], max(size - x - y, 0.0))
        area += y * step
        x += step
        width = rise[g] + tied[g]
        share = 0.0
        if width > 0.0:
            share = min(max(size - x - y, 0.0) / width, 1.0)
            if whole and share > 0.0:
                share = 1.0
        area += tied[g] * share * (y + rise[g] * share / 2.0)
        x += tied[g] * share
        y += rise[g] * share
        if x + y >= size:
            return y, x, area
    step = min(run[-1], max(size - x - y, 0.0))
    return y, x + step, area + y * step


@njit(cache=True, nogil=True)
def top_positives(run, rise, tied):
    """Weight of the positives scored strictly above every negative."""
    total = 0.0
    for g in range(len(rise)):
        if run[g] > 0.0 or tied[g] > 0.0:
            break
        total += rise[g]
    return total


@njit(cache=True, nogil=True)
def best_precision(run, rise, tied, positives):
    """Highest precision over the thresholds that catch at least `positives`."""
    best, x, y = 0.0, 0.0, 0.0
    needed = positives * (1.0 - SLACK)
    for g in range(len(rise)):
        x += run[g] + tied[g]
        y += rise[g]
        if rise[g] > 0.0 and y >= needed:
            best = max(best, y / (x + y))
    return best


@njit(cache=True, nogil=True)
def best_recall(run, rise, tied, precision):
    """Weight of the positives caught by the longest list of at least this precision."""
    best, x, y = 0.0, 0.0, 0.0
    needed = precision * (1.0 - SLACK)
    for g in range(len(rise)):
        x += run[g] + tied[g]
        y += rise[g]
        if rise[g] > 0.0 and y / (x + y) >= needed:
            best = y
    return best


@njit(cache=True, nogil=True)
def length_for_positives(run, rise, tied, positives):
    """Weight of the shortest list, cut at a threshold, that catches at least `positives`."""
    x, y = 0.0, 0.0
    needed = positives * (1.0 - SLACK)
    for g in range(len(rise)):
        x += run[g] + tied[g]
        y += rise[g]
        if rise[g] > 0.0 and y >= needed:
            break
    return x + y


@njit(cache=True, nogil=True)
def first_reciprocal(run, rise, tied):
    """Expected reciprocal rank of the first positive over all orders of the tied rows.

    With `q` negatives and `p` positives tied after `x` negatives, the chance that the first
    positive comes after more than `j` tied rows is the product over i < j of (q - i)/(q + p - i).
    """
    x = 0.0
    for g in range(len(rise)):
        x += run[g]
        if rise[g] > 0.0:
            negatives, rows = tied[g], tied[g] + rise[g]
            survival, expected, j = 1.0, 0.0, 0.0
            while survival > 1e-18 and negatives > j:
                later = survival * (negatives - j) / (rows - j)
                expected += (survival - later) / (x + j + 1.0)
                survival = later
                j += 1.0
            return expected + survival / (x + j + 1.0)
        x += tied[g]
    return 0.0


@njit(cache=True, nogil=True)
def digamma(x):
    """Logarithmic derivative of the gamma function for x >= 1 (to about 1e-15)."""
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
    """Sum of 1/k for k = low + 1 .. high, continued to real numbers by the digamma function."""
    count = high - low
    if count <= 16.0 and count == math.floor(count):
        total = 0.0
        for k in range(1, int(count) + 1):
            total += 1.0 / (low + k)
        return total
    return digamma(high + 1.0) - digamma(low + 1.0)


@njit(cache=True, nogil=True)
def precision_over_lengths(run, rise, tied):
    """Mean over every list length of the expected precision of that list."""
    total, x, y = 0.0, 0.0, 0.0
    for g in range(len(rise)):
        if run[g] > 0.0:
            total += y * harmonic(x + y, x + y + run[g])
            x += run[g]
        width = rise[g] + tied[g]
        if width > 0.0:
            share = rise[g] / width
            rest = y - share * (x + y)
            total += rise[g] + rest * harmonic(x + y, x + y + width)
            x += tied[g]
            y += rise[g]
    if run[-1] > 0.0:
        total += y * harmonic(x + y, x + y + run[-1])
    return total / (x + y + run[-1])


@njit(cache=True, nogil=True)
def logarithmic_integral(x):
    """li(x) for x > 1 by its power series in log x, every term of which is positive."""
    t = math.log(x)
    total, term, k = 0.5772156649015329 + math.log(t), 1.0, 1.0
    while True:
        term *= t / k
        total += term / k
        if k > t and term / k < 1e-17 * total:
            return total
        k += 1.0


@njit(cache=True, nogil=True)
def inverse_log_sum(first, last):
    """Sum of 1/ln(m) for the whole numbers m = first .. last (Euler-Maclaurin when it is long)."""
    total = 0.0
    direct = last if last - first <= 4096.0 else max(first, 1024.0)
    while first <= direct:
        total += 1.0 / math.log(first)
        first += 1.0
    if first > last:
        return total
    u, v = 1.0 / math.log(first), 1.0 / math.log(last)
    total += logarithmic_integral(last) - logarithmic_integral(first) + (u + v) / 2.0
    slope = u * u / first - v * v / last
    third = _third_derivative(last, v) - _third_derivative(first, u)
    return total + slope / 12.0 - third / 720.0


@njit(cache=True, nogil=True)
def _third_derivative(x, u):
    """Third derivative of 1/ln at x, where u = 1/ln(x)."""
    return -(u * u / x**3) * (2.0 + 6.0 * u + 6.0 * u * u)


@njit(cache=True, nogil=True)
def discount_between(low, high):
    """Sum of 1/log2(1 + rank) over the stretch of ranks from `low` (left out) to `high`.

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
def binary_gain(run, rise, tied, k):
    """Normalised discounted gain of the first `k` rows when every positive gains 1."""
    gain, x, y = 0.0, 0.0, 0.0
    for g in range(len(rise)):
        x += run[g]
        if x + y >= k:
            y += rise[g]
            continue
        width = rise[g] + tied[g]
        if rise[g] > 0.0:
            gain += rise[g] / width * discount_between(x + y, min(x + y + width, k))
        x += tied[g]
        y += rise[g]
    return gain / discount_between(0.0, min(y, k))
