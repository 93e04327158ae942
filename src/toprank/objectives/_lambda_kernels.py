"""Compiled loops of the lambda objectives: values of ranks, and pairs inside a tie group.

A tie group of weight m that starts below weight a covers the ranks a + 1, ..., a + m. Its rows share
the mean value of those ranks, and a pair inside it gets the mean absolute difference of values
between two of them: expectations over the orders of the group. Where the value itself depends on
the order (AP, MRR, partial AUC), the positives of the group are taken to be spread evenly over its
ranks.

Each place has two values: `ordered` for pairs whose better row ranks higher, `inverted` for the others.

Partial AUC is read from the positives: one with n negatives above it counts
g(n) = |[low, high] ∩ [n, N]| negatives of the range. A positive that takes the place of a negative moves
to that place's n, and every positive between them loses one negative above it; so with sums over the
positives above a place, E of g(n) - g(n + 1) and D of g(n - 1) - g(n), the values of the place are
g(n + 1) - E when the positive ranks higher and g(n) - D when it ranks lower.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

AUC, AVERAGE_PRECISION, DISCOUNT, TOP, RECIPROCAL = 0, 1, 2, 3, 4

_CELLS_PER_ROW = 4.0
_FAR = 32.0  # a tie group below so many times its own ranks


class QueryMetric(NamedTuple):
    """What values of ranks depend on in one query.

    `first` and `second` are the ranks of its first two positives; `discounts` are those of the ranks 1,
    2, ..., or empty: then they are computed where they are needed.
    """

    kind: int
    cutoff: float
    first: float
    second: float
    discounts: np.ndarray


@njit(cache=True, nogil=True)
def _tie_group(scores, weight, codes, start, hi):
    """Return the end of the tie group that begins at `start`, its weight and that of its positives."""
    end, group, positive = start, 0.0, 0.0
    while end < hi and not scores[end] < scores[start]:
        group += weight[end]
        if codes[end] > 0:
            positive += weight[end]
        end += 1
    return end, group, positive


@njit(cache=True, nogil=True)
def _first_ranks(scores, weight, codes, lo, hi):
    """Return the expected ranks of the first and of the second positive of one query (infinite if none).

    Positives of a weight below 1 count as one when half a copy has been met.
    """
    total = 0.0
    for k in range(lo, hi):
        if codes[k] > 0:
            total += weight[k]
    half = min(0.5, 0.5 * total)
    first = math.inf
    above, met, start = 0.0, 0.0, lo
    while start < hi:
        end, group, positive = _tie_group(scores, weight, codes, start, hi)
        met += positive
        step = (group + 1.0) / (positive + 1.0)
        fresh = positive > 0.0 and first == math.inf and met >= half
        if fresh:
            first = above + step
        if positive > 0.0 and met >= 1.0 + half:
            return first, above + (min(2.0 * step, group) if fresh else step)
        above += group
        start = end
    return first, math.inf


@njit(cache=True, nogil=True)
def _rank_value(metric, rank, positives, reciprocals):
    """Return the values of a rank for ordered and for inverted pairs.

    `positives` counts those down to the rank, and `reciprocals` adds up their reciprocal ranks.
    """
    if metric.kind == AVERAGE_PRECISION:
        ordered = positives / rank - reciprocals
        return ordered, ordered + 1.0 / rank
    if metric.kind == DISCOUNT:
        if rank >= metric.cutoff + 0.5:
            return 0.0, 0.0
        table = metric.discounts
        discount = table[int(rank) - 1] if len(table) else 1.0 / math.log2(1.0 + rank)
        return discount, discount
    if metric.kind == TOP:
        top = 1.0 / metric.cutoff if rank < metric.cutoff + 0.5 else 0.0
        return top, top
    if metric.kind == RECIPROCAL:
        return max(1.0 / rank, 1.0 / metric.second), max(1.0 / rank, 1.0 / metric.first)
    return -rank, -rank


@njit(cache=True, nogil=True)
def _group_values(metric, cells, above, group, positives, share, reciprocals):
    """Return the mean values of the ranks of a tie group and the mean difference between two of them.

    The group is cut into `cells` of equal weight, one for each rank unless weights are not whole.
    Also returns the sum of reciprocal ranks of positives at its end.
    """
    width = group / cells
    sum_ordered, sum_inverted, spread = 0.0, 0.0, 0.0
    for c in range(cells):
        step = (c + 0.5) * width + 0.5
        rank = above + step
        if share > 0.0:
            reciprocals += share * width / rank
        ordered, inverted = _rank_value(
            metric, rank, positives + share * min(step, group), reciprocals
        )
        sum_ordered += ordered
        sum_inverted += inverted
        spread += (cells - 1.0 - 2.0 * c) * (ordered + inverted)
    # Half for each of the two ways round that a pair may stand, over cells·(cells - 1)/2 pairs.
    expected = spread / max(cells * (cells - 1.0), 1.0)
    return sum_ordered / cells, sum_inverted / cells, expected, reciprocals


@njit(cache=True, nogil=True)
def _far_discounts(above, group, cutoff):
    """Return the same two of discounts, which are slow to compute, by Gauss's three nodes.

    Far down the list the group is short beside its ranks, and a discount all but straight in it.
    """
    if above >= cutoff:
        return 0.0, 0.0
    middle, reach = above + 0.5 * (group + 1.0), 0.5 * math.sqrt(0.6) * group
    near, far = 1.0 / math.log2(1.0 + middle - reach), 1.0 / math.log2(1.0 + middle + reach)
    mean = (5.0 * near + 8.0 / math.log2(1.0 + middle) + 5.0 * far) / 18.0
    return mean, 5.0 / 9.0 * math.sqrt(0.6) * (near - far) * (1.0 + 1.0 / group)


@njit(cache=True, nogil=True)
def _end_of_negatives(scores, weight, codes, start, hi):
    """Return where a run of untied negatives of weight 1 ends that begins at `start`."""
    end = start + 1
    while end < hi and codes[end] == 0 and weight[end] == 1.0:
        if end + 1 < hi and scores[end + 1] == scores[end]:
            return end
        end += 1
    return end


@njit(cache=True, nogil=True)
def _fill_values(metric, above, positives, reciprocals, ordered, inverted):
    """Fill in the values of the ranks after `above`, with so many positives down to each of them."""
    if metric.kind == AVERAGE_PRECISION:  # written out to vectorise
        for k in range(len(ordered)):
            inverse = 1.0 / (above + 1.0 + k)
            ordered[k] = positives * inverse - reciprocals
            inverted[k] = ordered[k] + inverse
    elif metric.kind == RECIPROCAL:
        least_ordered, least_inverted = 1.0 / metric.second, 1.0 / metric.first
        for k in range(len(ordered)):
            inverse = 1.0 / (above + 1.0 + k)
            ordered[k] = max(inverse, least_ordered)
            inverted[k] = max(inverse, least_inverted)
    elif metric.kind == DISCOUNT and len(metric.discounts):
        start, table = int(above), metric.discounts
        seen = max(0, min(len(ordered), int(min(metric.cutoff, 1e15)) - start))
        for k in range(seen):
            ordered[k] = table[start + k]
            inverted[k] = ordered[k]
        for k in range(seen, len(ordered)):
            ordered[k] = inverted[k] = 0.0
    else:
        for k in range(len(ordered)):
            ordered[k], inverted[k] = _rank_value(metric, above + 1.0 + k, positives, reciprocals)


@njit(cache=True, nogil=True)
def rank_values(
    kind, scores, weight, codes, starts, cutoffs, discounts, ordered, inverted, tied
):  # fmt: skip
    """Fill, for each place, the values of its rank and (if tied) the expected swap in its group."""
    for q in range(len(starts) - 1):
        lo, hi = starts[q], starts[q + 1]
        first = second = math.inf
        if kind == RECIPROCAL:
            first, second = _first_ranks(scores, weight, codes, lo, hi)
        metric = QueryMetric(kind, cutoffs[q], first, second, discounts)
        density = _cell_density(weight, lo, hi)
        above, positives, reciprocals = 0.0, 0.0, 0.0
        start = lo
        while start < hi:
            end, group, positive = _tie_group(scores, weight, codes, start, hi)
            if group == 1.0 and end == start + 1:  # by far the most common: one row, one rank
                if positive == 0.0:
                    end = _end_of_negatives(scores, weight, codes, start, hi)
                positives += positive
                reciprocals += positive / (above + 1.0)
                _fill_values(
                    metric, above, positives, reciprocals, ordered[start:end], inverted[start:end]
                )
                above += end - start
                start = end
                continue
            if kind == AUC:  # the mean of the ranks, and of the distance between two of them
                mean_ordered = mean_inverted = -(above + 0.5 * (group + 1.0))
                expected = (group + 1.0) / 3.0
            else:
                share, before = positive / group, reciprocals
                edge = above < metric.cutoff < above + group
                cells = max(int(group * density + 0.5), 1)
                if kind == DISCOUNT and cells > 3 and above > _FAR * group and not edge:
                    mean_ordered, expected = _far_discounts(above, group, cutoffs[q])
                    mean_inverted = mean_ordered
                else:
                    mean_ordered, mean_inverted, expected, reciprocals = _group_values(
                        metric, cells, above, group, positives, share, before
                    )
                if end > start + 1 and cells == 1:  # rows that share one rank: look inside it
                    expected = _group_values(metric, 2, above, group, positives, share, before)[2]
            for k in range(start, end):
                ordered[k], inverted[k] = mean_ordered, mean_inverted
                if end > start + 1:
                    tied[k] = expected
            above += group
            positives += positive
            start = end


@njit(cache=True, nogil=True)
def partial_auc_values(scores, weight, codes, starts, lows, highs, ordered, inverted, tied):
    """Fill the values of each place for the area between `lows` and `highs` negatives of each query.

    An end of the range that is an end of the list is infinite: rows spread over a tie group may
    have less than one negative above or below them.
    """
    for q in range(len(starts) - 1):
        low, high, start = lows[q], highs[q], starts[q]
        density = _cell_density(weight, starts[q], starts[q + 1])
        above, lost, gained = 0.0, 0.0, 0.0  # negatives above, and the sums E and D
        while start < starts[q + 1]:
            end, group, positive = _tie_group(scores, weight, codes, start, starts[q + 1])
            cells = max(int(group * density + 0.5), 1 if end == start + 1 else 2)
            negatives, positives = (group - positive) / cells, positive / cells
            # a copy in the middle of a cell of several ranks has this share of the cell above it
            half = 0.5 * max(1.0 - cells / group, 0.0)
            mean_ordered, mean_inverted, spread = 0.0, 0.0, 0.0
            for c in range(cells):
                n = above + half * negatives
                here = _negatives_left(n, low, high)
                loss = here - _negatives_left(n + 1.0, low, high)
                gain = _negatives_left(n - 1.0, low, high) - here
                cell_ordered = here - loss - lost - half * positives * loss
                cell_inverted = here - gained - half * positives * gain
                mean_ordered += cell_ordered / cells
                mean_inverted += cell_inverted / cells
                spread += (cells - 1.0 - 2.0 * c) * (cell_ordered + cell_inverted)
                lost += positives * loss
                gained += positives * gain
                above += negatives
            for k in range(start, end):
                ordered[k], inverted[k] = mean_ordered, mean_inverted
                if end > start + 1:
                    tied[k] = spread / (cells * (cells - 1.0))
            start = end


@njit(cache=True, nogil=True)
def _negatives_left(n, low, high):
    """Return the negatives of the range below the n-th, up to a constant."""
    return -min(max(n, low), high)


@njit(cache=True, nogil=True)
def _cell_density(weight, lo, hi):
    """Return the ranks for each unit of weight.

    Very heavy rows would need one for each copy; then each rank covers several.
    """
    total = 0.0
    for k in range(lo, hi):
        total += weight[k]
    return min(1.0, max(_CELLS_PER_ROW * (hi - lo), 1e6) / max(total, 1.0))


@njit(cache=True, nogil=True)
def add_ties(scores, weight, codes, starts, level_values, tied, gradient, hessian):
    """Add what tied rows of different levels do to each other; return their loss by query."""
    n_levels = level_values.shape[1]
    held = np.zeros(n_levels)
    losses = np.zeros(len(starts) - 1)
    for q in range(len(starts) - 1):
        start = starts[q]
        while start < starts[q + 1]:
            end, mixed = start + 1, False
            while end < starts[q + 1] and scores[end] == scores[start]:
                mixed = mixed or codes[end] != codes[start]
                end += 1
            if mixed:
                for level in range(n_levels):
                    held[level] = 0.0
                for k in range(start, end):
                    held[codes[k]] += weight[k]
                for level in range(n_levels):
                    push = pull = 0.0
                    for other in range(n_levels):
                        gap = abs(level_values[q, level] - level_values[q, other]) * tied[start]
                        push += (gap if other > level else -gap) * held[other]
                        pull += gap * held[other]
                    losses[q] += 0.5 * math.log(2.0) * held[level] * pull
                    for k in range(start, end):
                        if codes[k] == level:
                            gradient[k] += 0.5 * weight[k] * push
                            hessian[k] += 0.25 * weight[k] * pull
            start = end
    return losses
