"""Pruning: the weakest-link sequence of AUC - penalty * leaves, and the penalty by cross-validation.

A tree is given by its children (`left`, `right`, -1 for none; parents stand before their children) and
the gain of each internal node, in AUC. The AUC of a ranking tree is 1/2 plus the sum of these gains, so
the best subtree for a penalty follows from collapsing, again and again, the branch with the least gain
for each leaf it saves (Breiman, Friedman, Olshen & Stone 1984, chapter 3).
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

__all__ = [
    "branch_gains",
    "choose_penalty",
    "collapse_penalties",
    "kept_gains",
    "penalty_candidates",
]


@njit(cache=True, nogil=True)
def branch_gains(left, right, gain):
    """For each node the total gain of the branch beneath it (its own included), and its leaves."""
    branch, leaves = gain.copy(), np.ones(len(left))
    for node in range(len(left) - 1, -1, -1):
        if left[node] >= 0:
            branch[node] = gain[node] + branch[left[node]] + branch[right[node]]
            leaves[node] = leaves[left[node]] + leaves[right[node]]
    return branch, leaves


@njit(cache=True, nogil=True)
def collapse_penalties(left, right, gain):
    """For each internal node the penalty from which on it is a leaf (or gone); 0 for leaves.

    The subtree that maximises AUC - penalty * leaves keeps the nodes whose value exceeds the penalty;
    of equally good subtrees it is the smallest. `gain` is 0 for leaves.

    The weakest link is the first of a heap; a link that changes is put there again, and what it was
    before is passed over.
    """
    n_nodes = len(left)
    branch, leaves = branch_gains(left, right, gain)
    parent = np.full(n_nodes, -1)
    links = [(np.inf, 0)]
    for node in range(n_nodes):
        if left[node] >= 0:
            parent[left[node]] = node
            parent[right[node]] = node
            links.append((branch[node] / (leaves[node] - 1), node))
    heapq.heapify(links)
    penalties = np.zeros(n_nodes)
    gone = np.zeros(n_nodes, np.bool_)
    under = np.empty(n_nodes, np.int64)
    current = 0.0
    while left[0] >= 0 and not gone[0]:
        ratio, weakest = heapq.heappop(links)
        if gone[weakest] or ratio != branch[weakest] / (leaves[weakest] - 1):
            continue
        current = max(current, ratio)
        ancestor = parent[weakest]
        while ancestor >= 0:
            branch[ancestor] -= branch[weakest]
            leaves[ancestor] -= leaves[weakest] - 1
            heapq.heappush(links, (branch[ancestor] / (leaves[ancestor] - 1), ancestor))
            ancestor = parent[ancestor]
        under[0], waiting = weakest, 1
        while waiting > 0:
            waiting -= 1
            node = under[waiting]
            if left[node] >= 0 and not gone[node]:
                gone[node] = True
                penalties[node] = current
                under[waiting], under[waiting + 1] = left[node], right[node]
                waiting += 2
    return penalties


@njit(cache=True, nogil=True)
def penalty_candidates(penalties):
    """One penalty inside each interval on which the pruned tree stays the same, ascending.

    Between two collapses it is their geometric mean; the last one leaves the root alone.
    """
    collapses = np.unique(penalties[penalties > 0.0])
    candidates = np.zeros(len(collapses) + 1)
    for k in range(len(collapses)):
        above = collapses[k + 1] if k + 1 < len(collapses) else np.inf
        candidates[k + 1] = np.sqrt(collapses[k] * above)  # infinite after the last collapse
    return candidates


@njit(cache=True, nogil=True)
def kept_gains(penalties, gain, candidates):
    """For each candidate (ascending) the total `gain` of the nodes that its pruned tree keeps."""
    total = np.zeros(len(candidates))
    for node in range(len(gain)):
        below = np.searchsorted(candidates, penalties[node])  # the candidates that keep the node
        if below > 0:
            total[below - 1] += gain[node]
    for k in range(len(candidates) - 2, -1, -1):
        total[k] += total[k + 1]
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
    """A fold for each row, the classes spread evenly; a class of few rows is absent from some."""
    fold = np.empty(len(positive), dtype=np.int64)
    for label in (True, False):
        members = np.flatnonzero((positive > 0) == label)
        fold[rng.permutation(members)] = np.arange(len(members)) % n_folds
    return fold
