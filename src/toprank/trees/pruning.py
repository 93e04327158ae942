"""Pruning: the weakest-link sequence of AUC - penalty * leaves, and the penalty by cross-validation.

A tree is given by its children (`left`, `right`, -1 for none; parents stand before their children) and
the gain of each internal node, in AUC. The AUC of a ranking tree is 1/2 plus the sum of these gains, so
the best subtree for a penalty follows from collapsing, again and again, the branch with the least gain
for each leaf it saves (Breiman, Friedman, Olshen & Stone 1984, chapter 3).
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["choose_penalty", "collapse_penalties", "kept_gains", "penalty_candidates"]


@njit(cache=True, nogil=True)
def collapse_penalties(left, right, gain):
    """For each internal node the penalty from which on it is a leaf (or gone); 0 for leaves.

    The subtree that maximises AUC - penalty * leaves keeps the nodes whose value exceeds the penalty;
    of equally good subtrees it is the smallest.
    """
    n_nodes = len(left)
    branch = np.zeros(n_nodes)
    leaves = np.ones(n_nodes)
    parent = np.full(n_nodes, -1)
    for node in range(n_nodes - 1, -1, -1):
        if left[node] >= 0:
            branch[node] = gain[node] + branch[left[node]] + branch[right[node]]
            leaves[node] = leaves[left[node]] + leaves[right[node]]
            parent[left[node]] = node
            parent[right[node]] = node
    penalties = np.zeros(n_nodes)
    gone = np.zeros(n_nodes, np.bool_)
    under = np.zeros(n_nodes, np.bool_)
    current = 0.0
    while left[0] >= 0 and not gone[0]:
        weakest, least = 0, np.inf
        for node in range(n_nodes):
            if left[node] >= 0 and not gone[node]:
                ratio = branch[node] / (leaves[node] - 1)
                if ratio < least:
                    weakest, least = node, ratio
        current = max(current, least)
        ancestor = parent[weakest]
        while ancestor >= 0:
            branch[ancestor] -= branch[weakest]
            leaves[ancestor] -= leaves[weakest] - 1
            ancestor = parent[ancestor]
        for node in range(weakest, n_nodes):
            above = parent[node]
            under[node] = node == weakest or (above >= weakest and under[above])
            if under[node] and not gone[node]:
                gone[node] = True
                if left[node] >= 0:
                    penalties[node] = current
    return penalties


@njit(cache=True, nogil=True)
def penalty_candidates(penalties):
    """One penalty inside each interval on which the pruned tree stays the same, ascending.

    Between two collapses it is their geometric mean; the last one leaves the root alone.
    """
    candidates = np.zeros(len(penalties) + 1)
    count, last = 1, 0.0
    while True:
        step = np.inf
        for penalty in penalties:
            if last < penalty < step:
                step = penalty
        if count > 1:
            candidates[count - 1] = np.sqrt(last * step)  # infinite after the last collapse
        if step == np.inf:
            return candidates[:count]
        last = step
        count += 1


@njit(cache=True, nogil=True)
def kept_gains(penalties, gain, candidates):
    """For each candidate the total `gain` of the nodes that its pruned tree keeps."""
    total = np.zeros(len(candidates))
    for node in range(len(gain)):
        for k in range(len(candidates)):
            if penalties[node] > candidates[k]:
                total[k] += gain[node]
    return total


@njit(cache=True, nogil=True)
def best_candidate(candidates, values):
    """The candidate of the greatest value; of equal ones the greatest penalty."""
    best = len(candidates) - 1
    for k in range(len(candidates) - 1, -1, -1):
        if values[k] > values[best]:
            best = k
    return candidates[best]


def choose_penalty(
    penalties: np.ndarray,
    folds: list[tuple[np.ndarray, np.ndarray]],
) -> float:
    """The penalty whose pruned trees have the best mean AUC on rows held out.

    Parameters
    ----------
    penalties : ndarray
        Of the tree that is to be pruned.
    folds : list of (ndarray, ndarray)
        For the tree grown without a fold: its penalties, and the gains of its nodes on that fold.
    """
    candidates = penalty_candidates(penalties)
    values = np.zeros(len(candidates))
    for fold_penalties, held_out_gain in folds:
        values += kept_gains(fold_penalties, held_out_gain, candidates)
    return float(best_candidate(candidates, values))


def stratified_folds(positive: np.ndarray, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """A fold for each row, the classes spread evenly; fewer folds when a class has too few rows."""
    fold = np.empty(len(positive), dtype=np.int64)
    for label in (True, False):
        members = np.flatnonzero((positive > 0) == label)
        fold[rng.permutation(members)] = np.arange(len(members)) % n_folds
    return fold
