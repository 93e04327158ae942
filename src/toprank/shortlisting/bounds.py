"""Exact bounds for shares: how far the truth may be from what was counted.

Counts may be fractions: with weights, a class of total weight W and total squared weight S is worth
W^2 / S rows (Kish 1965, Survey Sampling), which is the number of rows when all weights are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

__all__ = ["at_least", "at_most", "effective_rows", "lower_share", "share_interval", "upper_share"]


def effective_rows(weight: Any, squares: Any) -> np.ndarray:
    """How many rows of equal weight say as much: W^2 / S; 0 where there is no weight.

    Examples
    --------
    >>> float(effective_rows(4.0, 4.0)), float(effective_rows(3.0, 5.0))
    (4.0, 1.8)
    """
    weight, squares = np.asarray(weight, dtype=float), np.asarray(squares, dtype=float)
    return np.divide(weight**2, squares, out=np.zeros_like(squares), where=squares > 0)


def lower_share(hits: Any, total: Any, error: Any) -> np.ndarray:
    """The lower bound of a share that is too high with probability at most `error`.

    The p at which hits or more of total have just that probability (Clopper & Pearson 1934,
    Biometrika 26): a quantile of Beta(hits, total - hits + 1). 0 without a hit.

    Examples
    --------
    >>> round(float(lower_share(5, 5, 0.05)), 3)
    0.549
    """
    hits, total, error = np.broadcast_arrays(
        *(np.asarray(v, dtype=float) for v in (hits, total, error))
    )
    some = (hits > 0) & (total > 0)
    missed = np.maximum(total - hits, 0.0)
    bound = betaincinv(np.where(some, hits, 1.0), missed + 1.0, error)
    return np.where(some, bound, 0.0)


def upper_share(hits: Any, total: Any, error: Any) -> np.ndarray:
    """The upper bound of a share that is too low with probability at most `error`.

    Examples
    --------
    >>> round(float(upper_share(0, 59, 0.05)), 4)
    0.0495
    """
    hits, total = np.asarray(hits, dtype=float), np.asarray(total, dtype=float)
    return 1.0 - lower_share(np.maximum(total - hits, 0.0), total, error)


def share_interval(hits: float, total: float, confidence: float) -> tuple[float, float]:
    """Both bounds, each wrong with half of what `confidence` leaves.

    Examples
    --------
    >>> [round(bound, 3) for bound in share_interval(3, 10, 0.95)]
    [0.067, 0.652]
    """
    error = (1.0 - confidence) / 2
    return float(lower_share(hits, total, error)), float(upper_share(hits, total, error))


def at_least(hits: Any, total: Any, share: float) -> np.ndarray:
    """The probability of `hits` or more of `total` when each is one with probability `share`.

    Examples
    --------
    >>> round(float(at_least(5, 5, 0.5)), 5)
    0.03125
    """
    hits, total = np.asarray(hits, dtype=float), np.asarray(total, dtype=float)
    some = hits > 0
    missed = np.maximum(total - hits, 0.0)
    return np.where(some, betainc(np.where(some, hits, 1.0), missed + 1.0, share), 1.0)


def at_most(hits: Any, total: Any, share: float) -> np.ndarray:
    """The probability of `hits` or fewer of `total` when each is one with probability `share`.

    Examples
    --------
    >>> round(float(at_most(0, 59, 0.05)), 4)
    0.0485
    """
    hits, total = np.asarray(hits, dtype=float), np.asarray(total, dtype=float)
    return at_least(np.maximum(total - hits, 0.0), total, 1.0 - share)
