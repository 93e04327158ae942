"""Compiled loops of the lambda objectives: what a rank is worth, and pairs inside a tie group.

A tie group of weight m that starts below weight a covers the ranks a + 1, ..., a + m. Its rows share
the mean worth of those ranks, and a pair inside it gets the mean absolute difference of worth
between two of them: expectations over the orders of the group. Where the worth itself depends on
the order (AP, MRR, partial AUC), the positives of the group are taken to be spread evenly over its
ranks.

Partial AUC is read from the positives: one with n negatives above it is worth
g(n) = |[low, high] ∩ [n, N]| negatives of the range. A positive that takes the place of a negative moves
to that place's n, and every positive between them loses one negative above it; so with sums over the
positives above a place, E of g(n) - g(n + 1) and D of g(n - 1) - g(n), the worths of the place are
g(n + 1) - E when the positive stands higher and g(n) - D when it stands lower.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

AUC, AVERAGE_PRECISION, DISCOUNT, TOP, RECIPROCAL = 0, 1, 2, 3, 4

_CELLS_PER_ROW = 4.0


@njit(cache=True, nogil=True)
def _first_ranks(scores, weight, codes, lo, hi):
    """Expected ranks of the first and of the second positive of one query (infinite if none).

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
        end, group, positive = start, 0.0, 0.0
        while end < hi and scores[end] == scores[start]:
            group += weight[end]
            if codes[end] > 0:
                positive += weight[end]
            end += 1
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
def _worth(kind, rank, above_positives, reciprocal_sum, cutoff, first, second, discounts):
    """Worth of a rank to a swap of a positive over a negative, and of a negative over a positive."""
    if kind == AVERAGE_PRECISION:
        good = above_positives / rank - reciprocal_sum
        return good, good + 1.0 / rank
    if kind == DISCOUNT:
        if rank >= cutoff + 0.5:
            return 0.0, 0.0
        good = discounts[int(rank) - 1] if len(discounts) else 1.0 / math.log2(1.0 + rank)
        return good, good
    if kind == TOP:
        good = 1.0 / cutoff if rank < cutoff + 0.5 else 0.0
        return good, good
    if kind == RECIPROCAL:
        return max(1.0 / rank, 1.0 / second), max(1.0 / rank, 1.0 / first)
    return -rank, -rank


@njit(cache=True, nogil=True)
def _group_worths(
    kind, cells, above, group, positives, share, reciprocals, cutoff, first, second, discounts
):
    """Mean worths of the ranks of a tie group and mean difference between two of them.

    The group is cut into `cells` of equal weight, one for each rank unless weights are not whole.
    Also returns the sum of reciprocal ranks of positives at its end.
    """
    width = group / cells
    mean_good, mean_bad, spread = 0.0, 0.0, 0.0
    for c in range(cells):
        step = (c + 0.5) * width + 0.5
        rank = above + step
        reciprocals += share * width / rank
        good, bad = _worth(
            kind, rank, positives + share * min(step, group), reciprocals, cutoff, first, second,
            discounts,
        )  # fmt: skip
        mean_good += good / cells
        mean_bad += bad / cells
        spread += (cells - 1.0 - 2.0 * c) * (good + bad)
    # Half for each of the two ways round that a pair may stand, over cells·(cells - 1)/2 pairs.
    return mean_good, mean_bad, spread / max(cells * (cells - 1.0), 1.0), reciprocals


@njit(cache=True, nogil=True)
def _end_of_negatives(scores, weight, codes, start, hi):
    """Where a run of untied negatives of weight 1 ends that begins at `start`."""
    end = start + 1
    while end < hi and codes[end] == 0 and weight[end] == 1.0:
        if end + 1 < hi and scores[end + 1] == scores[end]:
            return end
        end += 1
    return end


@njit(cache=True, nogil=True)
def _fill_worths(kind, above, positives, reciprocals, cutoff, first, second, discounts, good, bad):
    """Worths of the ranks after `above`, with so many positives down to each of them."""
    if kind == AVERAGE_PRECISION:  # written out to vectorise
        for k in range(len(good)):
            inverse = 1.0 / (above + 1.0 + k)
            good[k] = positives * inverse - reciprocals
            bad[k] = good[k] + inverse
    elif kind == RECIPROCAL:
        least_good, least_bad = 1.0 / second, 1.0 / first
        for k in range(len(good)):
            inverse = 1.0 / (above + 1.0 + k)
            good[k] = max(inverse, least_good)
            bad[k] = max(inverse, least_bad)
    elif kind == DISCOUNT and len(discounts):
        start, seen = int(above), max(0, min(len(good), int(min(cutoff, 1e15)) - int(above)))
        for k in range(seen):
            good[k] = discounts[start + k]
            bad[k] = good[k]
        for k in range(seen, len(good)):
            good[k] = bad[k] = 0.0
    else:
        for k in range(len(good)):
            good[k], bad[k] = _worth(
                kind, above + 1.0 + k, positives, reciprocals, cutoff, first, second, discounts
            )


@njit(cache=True, nogil=True)
def rank_worths(kind, scores, weight, codes, starts, cutoffs, discounts, good, bad, inside):
    """Fill, for each place, the worths of its rank and (if tied) the expected swap in its group.

    `discounts` are those of the ranks 1, 2, ..., or empty: then they are computed where they are needed.
    """
    for q in range(len(starts) - 1):
        lo, hi = starts[q], starts[q + 1]
        cutoff, density = cutoffs[q], _cell_density(weight, lo, hi)
        first = second = math.inf
        if kind == RECIPROCAL:
            first, second = _first_ranks(scores, weight, codes, lo, hi)
        above, positives, reciprocals = 0.0, 0.0, 0.0
        start = lo
        while start < hi:
            end, group, positive = start, 0.0, 0.0
            while end < hi and scores[end] == scores[start]:
                group += weight[end]
                if codes[end] > 0:
                    positive += weight[end]
                end += 1
            if group == 1.0 and end == start + 1:  # by far the most common: one row, one rank
                end = (
                    _end_of_negatives(scores, weight, codes, start, hi) if positive == 0.0 else end
                )
                positives += positive
                reciprocals += positive / (above + 1.0)
                _fill_worths(
                    kind, above, positives, reciprocals, cutoff, first, second, discounts,
                    good[start:end], bad[start:end],
                )  # fmt: skip
                above += end - start
                start = end
                continue
            if kind == AUC:  # the mean of the ranks, and of the distance between two of them
                mean_good = mean_bad = -(above + 0.5 * (group + 1.0))
                expected = (group + 1.0) / 3.0
            else:
                share, before = positive / group, reciprocals
                cells = max(int(group * density + 0.5), 1)
                mean_good, mean_bad, expected, reciprocals = _group_worths(
                    kind, cells, above, group, positives, share, before, cutoff, first, second,
                    discounts,
                )  # fmt: skip
                if end > start + 1 and cells == 1:  # rows that share one rank: look inside it
                    expected = _group_worths(
                        kind, 2, above, group, positives, share, before, cutoff, first, second,
                        discounts,
                    )[2]  # fmt: skip
            for k in range(start, end):
                good[k], bad[k] = mean_good, mean_bad
                if end > start + 1:
                    inside[k] = expected
            above += group
            positives += positive
            start = end


@njit(cache=True, nogil=True)
def partial_worths(scores, weight, codes, starts, lows, highs, good, bad, inside):
    """Fill the worths of each place for the area between `lows` and `highs` negatives of each query.

    An end of the range that is an end of the list is infinite: rows spread over a tie group may
    have less than one negative above or below them.
    """
    for q in range(len(starts) - 1):
        low, high, start = lows[q], highs[q], starts[q]
        density = _cell_density(weight, starts[q], starts[q + 1])
        above, lost, gained = 0.0, 0.0, 0.0  # negatives above, and the sums E and D
        while start < starts[q + 1]:
            end, group, positive = start, 0.0, 0.0
            while end < starts[q + 1] and scores[end] == scores[start]:
                group += weight[end]
                if codes[end] > 0:
                    positive += weight[end]
                end += 1
            cells = max(int(group * density + 0.5), 1 if end == start + 1 else 2)
            negatives, positives = (group - positive) / cells, positive / cells
            # a copy in the middle of a cell of several ranks has this share of the cell above it
            half = 0.5 * max(1.0 - cells / group, 0.0)
            mean_good, mean_bad, spread = 0.0, 0.0, 0.0
            for c in range(cells):
                n = above + half * negatives
                here = _worth_of_rest(n, low, high)
                loss = here - _worth_of_rest(n + 1.0, low, high)
                gain = _worth_of_rest(n - 1.0, low, high) - here
                cell_good = here - loss - lost - half * positives * loss
                cell_bad = here - gained - half * positives * gain
                mean_good += cell_good / cells
                mean_bad += cell_bad / cells
                spread += (cells - 1.0 - 2.0 * c) * (cell_good + cell_bad)
                lost += positives * loss
                gained += positives * gain
                above += negatives
            for k in range(start, end):
                good[k], bad[k] = mean_good, mean_bad
                if end > start + 1:
                    inside[k] = spread / (cells * (cells - 1.0))
            start = end


@njit(cache=True, nogil=True)
def _worth_of_rest(n, low, high):
    """Negatives of the range below the n-th, up to a constant."""
    return -min(max(n, low), high)


@njit(cache=True, nogil=True)
def _cell_density(weight, lo, hi):
    """Ranks for each unit of weight: very heavy rows would need one for each copy, then each covers several."""
    total = 0.0
    for k in range(lo, hi):
        total += weight[k]
    return min(1.0, max(_CELLS_PER_ROW * (hi - lo), 1e6) / max(total, 1.0))


@njit(cache=True, nogil=True)
def tie_terms(scores, weight, codes, starts, potentials, inside, gradient, hessian):
    """Add what tied rows of different levels do to each other; return their loss by query."""
    n_levels = potentials.shape[1]
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
                        gap = abs(potentials[q, level] - potentials[q, other]) * inside[start]
                        push += (gap if other > level else -gap) * held[other]
                        pull += gap * held[other]
                    losses[q] += 0.5 * math.log(2.0) * held[level] * pull
                    for k in range(start, end):
                        if codes[k] == level:
                            gradient[k] += 0.5 * weight[k] * push
                            hessian[k] += 0.25 * weight[k] * pull
            start = end
    return losses


@njit(cache=True, nogil=True)
def frozen_pairs(
    firsts, lasts, queries, scores, weight, codes, groups, potentials, good, bad, inside
):
    """Sum of |Delta| · softplus(worse - better) over the pairs inside each stretch of places.

    Stretch r is `firsts[r]:lasts[r]`, a part of query `queries[r]`.
    """
    n_levels = potentials.shape[1]
    total = 0.0
    for r in range(len(firsts)):
        starts = np.zeros(n_levels + 1, np.int64)
        for k in range(firsts[r], lasts[r]):
            starts[codes[k] + 1] += 1
        for level in range(n_levels):
            starts[level + 1] += starts[level]
        fill = starts.copy()
        places = np.empty(lasts[r] - firsts[r], np.int64)
        for k in range(firsts[r], lasts[r]):
            places[fill[codes[k]]] = k
            fill[codes[k]] += 1
        for better in range(1, n_levels):
            for worse in range(better):
                gap = abs(potentials[queries[r], better] - potentials[queries[r], worse])
                for i in places[starts[better] : starts[better + 1]]:
                    subtotal = 0.0
                    for j in places[starts[worse] : starts[worse + 1]]:
                        if groups[i] == groups[j]:
                            worth = inside[i]
                        else:
                            worth = good[i] - good[j] if i < j else bad[j] - bad[i]
                        lead = scores[i] - scores[j]
                        softplus = max(-lead, 0.0) + math.log1p(math.exp(-abs(lead)))
                        subtotal += weight[j] * worth * softplus
                    total += gap * weight[i] * subtotal
    return total
