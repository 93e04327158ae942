"""The part of a ranked list that lies in a range of cumulative weight, such as a range of FPRs."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["range_weights"]


@njit(cache=True, nogil=True)
def range_weights(scores, weights, low, high):
    """Return the weight of each ranked row between the cumulative weights `low` and `high`.

    For the negatives of a list, with `low` and `high` the ends of a range of false positive rates times
    their total weight, this is how much each of them counts in the partial AUC. A row that
    straddles an end counts with the part inside; rows of equal score share what their tie group has
    inside in proportion to their weights. Compiled, so that other compiled loops can call it.

    Parameters
    ----------
    scores : float64 ndarray of shape (n_rows,)
        Descending.
    weights : float64 ndarray of shape (n_rows,)
    low, high : float
        In units of weight; `high` may be infinite, for the end of the list.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> range_weights(np.array([3.0, 2.0, 2.0, 1.0]), np.ones(4), 0.5, 2.0).tolist()
    [0.5, 0.5, 0.5, 0.0]
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
            for k in range(start, end):
                inside[k] = weights[k] * share
        above += mass
        start = end
    return inside
