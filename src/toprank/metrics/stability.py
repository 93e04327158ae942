"""Instability of a ranking: how much the order changes when the model is trained again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numba import njit

from toprank.ranking import descending_order
from toprank.validation import check_choice, check_scores

__all__ = ["instability"]


def instability(scores: Any, *, distance: str = "spearman") -> float:
    """Mean distance between the orderings that several models give to the same rows.

    ``2/(B(B-1)) * sum over b < b' of d(order_b, order_b')`` (Depecker, Clemencon and Vayatis, "An
    empirical comparison of learning algorithms for nonparametric scoring", 2011). Every distance
    is divided by its value for a reversed order without ties, so that 0 means the same ordering
    everywhere and 1 the opposite one. Equal scores get the mean of the ranks they share.

    Parameters
    ----------
    scores : array-like of shape (n_models, n_rows)
        Scores of one set of rows by at least two models, such as those trained on B bootstrap
        samples.
    distance : {"spearman", "kendall", "footrule"}, default="spearman"
        - "spearman": Euclidean distance between the vectors of ranks;
        - "kendall": share of the pairs of rows in opposite orders, a pair tied by only one of the
          two models counting one half;
        - "footrule": sum of the absolute differences of ranks.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> instability([[1, 2, 3, 4], [1, 2, 3, 4], [4, 3, 2, 1]])
    0.6666666666666666
    """
    from scipy.stats import rankdata  # slow to import, and only needed here

    measure = DISTANCES[check_choice(distance, "distance", tuple(DISTANCES))]
    matrix = np.asarray(scores)
    if matrix.ndim != 2 or matrix.shape[0] < 2 or matrix.shape[1] < 2:
        raise ValueError(
            f"scores must be a matrix of at least 2 models by 2 rows, got shape {matrix.shape}."
        )
    ranks = [rankdata(-check_scores(row)) for row in matrix]
    distances = [measure(first, second) for first, second in combinations(ranks, 2)]
    return float(sum(distances) / len(distances))


def spearman_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the Euclidean distance of two rank vectors over that of a reversal, sqrt((n^3 - n)/3)."""
    n = float(len(first))
    return float(np.sqrt(np.square(first - second).sum() / ((n**3 - n) / 3)))


def footrule_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the sum of absolute rank differences over that of a reversal, floor(n^2 / 2)."""
    n = len(first)
    return float(np.abs(first - second).sum() / (n * n // 2))


def kendall_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the share of pairs in opposite orders; pairs tied in one ranking only count one half."""
    order = descending_order(-first)
    return _discordant_pairs(first[order], second[order]) / (len(first) * (len(first) - 1) / 2)


DISTANCES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "spearman": spearman_distance,
    "kendall": kendall_distance,
    "footrule": footrule_distance,
}


@njit(cache=True, nogil=True)
def _discordant_pairs(first, second):
    """Count pairs by a Fenwick tree over the doubled mid-ranks of `second`; `first` ascends.

    Rows enter the tree one tie group of `first` at a time, so a pair tied there is never met in the
    tree: it counts one half when `second` tells it apart.
    """
    n = len(first)
    tree = np.zeros(2 * n + 2, np.int64)
    before = np.zeros(2 * n + 2, np.int64)  # rows of earlier groups at each place
    within = np.zeros(2 * n + 2, np.int64)  # rows of this group at each place
    total, i = 0.0, 0
    while i < n:
        j = i
        while j < n and first[j] == first[i]:
            place = int(2.0 * second[j])
            later, node = i, place
            while node > 0:
                later -= tree[node]
                node -= node & -node
            apart = (j - i) - within[place]
            within[place] += 1
            total += later + (before[place] + apart) / 2.0
            j += 1
        for k in range(i, j):
            place = int(2.0 * second[k])
            within[place] = 0
            before[place] += 1
            node = place
            while node < len(tree):
                tree[node] += 1
                node += node & -node
        i = j
    return total
