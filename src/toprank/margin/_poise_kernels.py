"""Compiled loops of the partial-AUC learners: losses of ranked rows, orderings, Pegasos steps.

All take float64 arrays. "Ranked" means from the highest score down. Nothing here depends on the order
of rows with equal scores.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def weights_in_range(scores, weights, low, high):
    """Weight of each ranked row that lies between the cumulative weights `low` and `high`.

    A row that straddles an end counts with the part inside; rows of equal score share what their
    group has inside in proportion to their weights.
    """
    n = len(scores)
    inside = np.zeros(n)
    above = 0.0
    start = 0
    while start < n and above < high:
        end = start
        mass = 0.0
        while end < n and scores[end] == scores[start]:
            mass += weights[end]
            end += 1
        overlap = min(above + mass, high) - max(above, low)
        if overlap > 0.0 and mass > 0.0:
            share = min(overlap / mass, 1.0)
            for j in range(start, end):
                inside[j] = weights[j] * share
        above += mass
        start = end
    return inside


@njit(cache=True, nogil=True)
def hinge_pair_sums(positive_scores, positive_weights, negative_scores, negative_weights):
    """Sum over pairs of w_i u_j max(0, 1 - f_i + f_j), and its derivatives, by two pointers.

    Both lists are ranked; the cost is linear in their lengths.
    """
    n_positives, n_negatives = len(positive_scores), len(negative_scores)
    positive_gradient = np.zeros(n_positives)
    negative_gradient = np.zeros(n_negatives)
    total, mass, moment = 0.0, 0.0, 0.0
    j = 0
    for i in range(n_positives):
        reach = positive_scores[i] - 1.0
        while j < n_negatives and negative_scores[j] > reach:
            mass += negative_weights[j]
            moment += negative_weights[j] * negative_scores[j]
            j += 1
        total += positive_weights[i] * (moment - mass * reach)
        positive_gradient[i] = -positive_weights[i] * mass
    mass = 0.0
    i = n_positives - 1
    for j in range(n_negatives - 1, -1, -1):
        # the same comparison as above, so that the two gradients count the same pairs
        while i >= 0 and negative_scores[j] > positive_scores[i] - 1.0:
            mass += positive_weights[i]
            i -= 1
        negative_gradient[j] = negative_weights[j] * mass
    return total, positive_gradient, negative_gradient


@njit(cache=True, nogil=True)
def _tie_groups(scores, weights):
    """Distinct scores of a ranked list, the weight of each, and where each group ends."""
    n = len(scores)
    values, masses = np.empty(n), np.empty(n)
    ends = np.empty(n, np.int64)
    g = -1
    for j in range(n):
        if g < 0 or scores[j] != values[g]:
            g += 1
            values[g] = scores[j]
            masses[g] = 0.0
        masses[g] += weights[j]
        ends[g] = j + 1
    return values[: g + 1], masses[: g + 1], ends[: g + 1]


@njit(cache=True, nogil=True)
def _pieces(values, masses, low, high):
    """Cut the tie groups at the two ends of the range.

    Returns the score, weight and group of every piece, and how many pieces lie before the range
    and up to its end.
    """
    n = len(values)
    scores, weights = np.empty(n + 2), np.empty(n + 2)
    groups = np.empty(n + 2, np.int64)
    k, before, upto = 0, 0, 0
    above = 0.0
    for g in range(n):
        left = masses[g]
        for zone in range(3):
            end = low if zone == 0 else (high if zone == 1 else np.inf)
            take = min(left, end - above)
            if take <= 0.0:
                continue
            scores[k], weights[k], groups[k] = values[g], take, g
            k += 1
            above += take
            left -= take
            if zone == 0:
                before = k
            if zone <= 1:
                upto = k
    return scores[:k], weights[:k], groups[:k], before, max(before, upto)


@njit(cache=True, nogil=True)
def most_violated_ordering(
    positive_scores, positive_weights, negative_scores, negative_weights, low, high
):
    """Most violated ordering of a structural SVM for the partial AUC.

    Maximises, over orderings pi (pi_ij = 1 when negative j stands above positive i),

        sum_ij w_i v_j pi_ij (c_j - f_i + f_j),

    c_j = 1 where the cumulative weight of the negatives lies between `low` and `high`, else 0. The
    negatives keep their order by score, so the row of each positive is a prefix of them: either it
    ends before the range, where a negative enters if f_j >= f_i, or it takes all of that and goes
    on inside the range while f_j >= f_i - 1 and behind it while f_j >= f_i. Both lists are ranked.

    Returns the maximum and its derivatives by the scores of the positives and of the negatives.
    """
    values, masses, ends = _tie_groups(negative_scores, negative_weights)
    scores, weights, groups, before, upto = _pieces(values, masses, low, high)
    n_pieces = len(scores)
    mass, moment = np.zeros(n_pieces + 1), np.zeros(n_pieces + 1)
    for k in range(n_pieces):
        mass[k + 1] = mass[k] + weights[k]
        moment[k + 1] = moment[k] + weights[k] * scores[k]
    entered = np.zeros(n_pieces + 1)
    positive_gradient = np.empty(len(positive_scores))
    total = 0.0
    short, inside, behind = 0, before, upto
    for i in range(len(positive_scores)):
        score = positive_scores[i]
        while short < before and scores[short] >= score:
            short += 1
        while inside < upto and scores[inside] >= score - 1.0:
            inside += 1
        while behind < n_pieces and scores[behind] >= score:
            behind += 1
        long = behind if behind > upto and inside == upto else inside
        best_short = moment[short] - score * mass[short]
        best_long = moment[long] - score * mass[long] + mass[min(long, upto)] - mass[before]
        prefix, best = (long, best_long) if best_long > best_short else (short, best_short)
        total += positive_weights[i] * best
        positive_gradient[i] = -positive_weights[i] * mass[prefix]
        entered[prefix] += positive_weights[i]
    negative_gradient = np.empty(len(negative_scores))
    share = np.zeros(len(values))  # weight of the positives below each group, averaged over pieces
    below = 0.0
    for k in range(n_pieces - 1, -1, -1):
        below += entered[k + 1]
        share[groups[k]] += below * weights[k] / masses[groups[k]]
    start = 0
    for g in range(len(values)):
        for j in range(start, ends[g]):
            negative_gradient[j] = negative_weights[j] * share[g]
        start = ends[g]
    return total, positive_gradient, negative_gradient


@njit(cache=True, nogil=True)
def range_loss(scores, positive, weights, order, starts, low, high, structural):
    """Mean over queries of the hinge loss (or its structural bound) in a range of the negatives.

    `order` ranks the rows inside each query, `starts` says where each query begins in it. `low`
    and `high` are shares of the weight of the negatives. Queries without both classes are left
    out. Returns the mean, its derivative by the score of every row, and how many queries counted.
    """
    gradient = np.zeros(len(scores))
    total, n_queries = 0.0, 0
    for q in range(len(starts) - 1):
        rows = order[starts[q] : starts[q + 1]]
        above = rows[positive[rows]]
        below = rows[~positive[rows]]
        if len(above) == 0 or len(below) == 0:
            continue
        n_queries += 1
        mass = weights[below].sum()
        pairs = weights[above].sum() * mass * (high - low)
        # the end of the list is the end of the range, whatever the rounding of the weights
        end = high * mass if high < 1.0 else np.inf
        if structural:
            value, up, down = most_violated_ordering(
                scores[above], weights[above], scores[below], weights[below], low * mass, end
            )
        else:
            inside = weights_in_range(scores[below], weights[below], low * mass, end)
            value, up, down = hinge_pair_sums(scores[above], weights[above], scores[below], inside)
        total += value / pairs
        gradient[above] = up / pairs
        gradient[below] = down / pairs
    return total / n_queries, gradient / n_queries, n_queries
