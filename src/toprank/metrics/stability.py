"""Instability of a ranking: how much the order changes when the model is trained again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

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
    """Return the share of pairs in opposite orders; pairs tied in one ranking only count one half.

    That is (all pairs - pairs tied in both - S)/2 over all pairs, with S the pairs in the same order minus
    those in opposite orders, which is read off Kendall's tau-c: a whole number, so nothing is lost.
    """
    from scipy.stats import kendalltau

    n, pairs = len(first), len(first) * (len(first) - 1) / 2
    n_levels = min(len(np.unique(first)), len(np.unique(second)))
    score = 0.0
    if n_levels > 1:
        tau = kendalltau(first, second, variant="c").statistic
        score = np.round(tau * n**2 * (n_levels - 1) / n_levels / 2)
    _, sizes = np.unique(first + 1j * second, return_counts=True)
    tied_in_both = (sizes * (sizes - 1) / 2).sum()
    return float((pairs - tied_in_both - score) / 2 / pairs)


DISTANCES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "spearman": spearman_distance,
    "kendall": kendall_distance,
    "footrule": footrule_distance,
}
