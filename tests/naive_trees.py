"""Slow, plain twins of what the ranking trees compute."""

from __future__ import annotations

from itertools import chain, combinations, permutations

import numpy as np
from scipy.optimize import minimize

MISSING = 255


def best_criterion(codes, positive, weight, is_category, min_leaf=1.0):
    """The greatest |p N - n P| over every split of every column, by trying them all.

    Numbers: every threshold with missing cells on either side, and present against missing.
    Categories: every subset of the values, missing being one of them.
    """
    P, N = weight[positive == 1].sum(), weight[positive == 0].sum()
    best = 0.0
    for j in range(codes.shape[1]):
        for first in _subsets(codes[:, j], is_category[j]):
            p, n = weight[first & (positive == 1)].sum(), weight[first & (positive == 0)].sum()
            if p + n >= min_leaf and P + N - p - n >= min_leaf:
                best = max(best, abs(p * N - n * P))
    return best


def _subsets(column, category):
    values = np.unique(column)
    if category:
        sizes = range(1, len(values))
        for some in chain.from_iterable(combinations(values, size) for size in sizes):
            yield np.isin(column, some)
        return
    present = values[values != MISSING]
    missing = column == MISSING
    for value in present:
        below = (column <= value) & ~missing
        if not below.all():
            yield below
        if missing.any() and not (below | missing).all():
            yield below | missing


def leafrank_sides(rows, positive, weight, max_depth):
    """Which rows LeafRank sends left, for numbers without ties between splits: recursively, by definition.

    Returns the mask, and the cells as arrays of row numbers.
    """
    P, N = weight[positive == 1].sum(), weight[positive == 0].sum()
    cells = []

    def cut(members, depth):
        here, w = positive[members] == 1, weight[members]
        p_cell, n_cell = w[here].sum(), w[~here].sum()
        best, part = 0.0, None
        if depth < max_depth and p_cell > 0 and n_cell > 0:
            for j in range(rows.shape[1]):
                column = rows[members, j]
                for value in np.unique(column)[:-1]:
                    first = column <= value
                    p, n = w[first & here].sum(), w[first & ~here].sum()
                    value_of_split = abs(p / p_cell - n / n_cell)
                    if value_of_split > best + 1e-12:
                        best, part = value_of_split, first
        if part is None:
            cells.append(members)
            return
        cut(members[part], depth + 1)
        cut(members[~part], depth + 1)

    cut(np.arange(len(positive)), 0)
    left = np.zeros(len(positive), dtype=bool)
    for members in cells:
        here, w = positive[members] == 1, weight[members]
        left[members] = w[here].sum() / P > w[~here].sum() / N
    return left, cells


def all_subtrees(left, right):
    """Every subtree that keeps the root, as the set of nodes that stay split."""

    def below(node):
        if left[node] < 0:
            return [frozenset()]
        kept = [
            {node} | first | second for first in below(left[node]) for second in below(right[node])
        ]
        return [frozenset(), *map(frozenset, kept)]

    return below(0)


def best_subtree(left, right, gain, penalty):
    """The value and the size of the smallest subtree that maximises gain - penalty * leaves."""
    values = [
        (sum(gain[node] for node in kept) - penalty * (len(kept) + 1), -len(kept))
        for kept in all_subtrees(left, right)
    ]
    return max(values)


def pairwise_auc(y, scores, weight):
    """The AUC pair by pair, ties one half."""
    total, good = 0.0, 0.0
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            pair = weight[i] * weight[j]
            total += pair
            good += pair * (
                1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0
            )
    return good / total


def footrule_cost(ranks, order):
    """Sum over trees and cells of |place - rank|."""
    places = np.empty(len(order))
    places[list(order)] = np.arange(len(order))
    return float(np.abs(ranks - places[:, None]).sum())


def kendall_cost(ranks, order):
    """Pairs that trees put the other way, counted one by one."""
    return sum(
        int(ranks[below, tree] < ranks[above, tree])
        for tree in range(ranks.shape[1])
        for k, above in enumerate(order)
        for below in order[k + 1 :]
    )


def best_order_cost(ranks, cost):
    """The least cost of any order."""
    return min(cost(ranks, list(order)) for order in permutations(range(len(ranks))))


def svm_dual_value(kernel, sign, dual):
    """The dual objective to be minimised, with the intercept inside the kernel."""
    signed = dual * sign
    return 0.5 * signed @ (kernel + 1.0) @ signed - dual.sum()


def svm_dual_optimum(kernel, sign, costs):
    """The least dual objective, by a general solver."""
    result = minimize(
        lambda dual: svm_dual_value(kernel, sign, dual),
        np.zeros(len(sign)),
        jac=lambda dual: sign * ((kernel + 1.0) @ (dual * sign)) - 1.0,
        bounds=[(0.0, cost) for cost in costs],
        method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    return result.fun
