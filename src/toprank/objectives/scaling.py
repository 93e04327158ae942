"""The one place where ranking gradients are rescaled for trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from toprank._pair_tiles import LANES

__all__ = ["scale_for_trees"]

_LARGEST_STEP = 1.0

LEAST = 1e-30
"""Least Hessian of a row for trees, well above the least float32."""


def scale_for_trees(
    gradient: np.ndarray,
    hessian: np.ndarray,
    y: Any,
    sample_weight: Any = None,
    *,
    dtype: Any = np.float64,
    floor: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Rescale a gradient and a Hessian so that Newton trees can work with them.

    The loss of a ranking is a mean over a list: its gradients are of order 1/n, and would vanish
    beside the constants of Newton trees (XGBoost's `min_child_weight` and `lambda`, both 1). Two
    things are done, the same for every ranking objective:

    1. Each row's Hessian is raised to the size of its gradient where it is less. No leaf can then
       want a step above 1, which keeps a pure leaf from running away when its curvature vanishes
       (a softmax that has found its first positives, a pair that is hopelessly the wrong way round).
    2. Both are multiplied by one number, so that the Hessian adds up to :math:`n p (1 - p)`, what it
       is for a logistic loss at the base rate p: close to the number of positives when they are
       rare. (With several grades, half the chance that two rows differ takes the place of p (1 - p).)

    Parameters
    ----------
    gradient, hessian : ndarray of shape (n_rows,)
    y : array-like of shape (n_rows,)
        Labels 0 and 1, or grades.
    sample_weight : array-like of shape (n_rows,), optional
    dtype : dtype, default=numpy.float64
        Of the result; trees work in float32.
    floor : float, default=0.0
        Least Hessian of a row, as a part of the mean Hessian.

    Returns
    -------
    gradient, hessian : ndarray of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> g, h = scale_for_trees(np.array([-1e-6, 5e-7, 5e-7]), np.full(3, 1e-9), [1, 0, 0])
    >>> g.round(6).tolist(), h.round(6).tolist()
    ([-0.333333, 0.166667, 0.166667], [0.333333, 0.166667, 0.166667])
    """
    gradient, hessian = np.ascontiguousarray(gradient), np.ascontiguousarray(hessian)
    total, target = _raised_total(gradient, hessian), _logistic_total(y, sample_weight)
    factor = target / total if total > 0 and target > 0 else 1.0
    factor = factor if np.isfinite(factor) else 1.0
    least = max(floor * factor * total / max(len(gradient), 1), LEAST if floor else 0.0)
    scaled = np.empty(len(gradient), dtype), np.empty(len(gradient), dtype)
    _scale(gradient, hessian, factor, least, *scaled)
    return scaled


@njit(cache=True, nogil=True)
def _raised(gradient, hessian):
    """The Hessian of a row, raised to the size of the gradient over the largest step."""
    return max(hessian, abs(gradient) / _LARGEST_STEP)


@njit(cache=True, nogil=True, fastmath=LANES)
def _raised_total(gradient, hessian):
    total = 0.0
    for i in range(len(hessian)):
        total += _raised(gradient[i], hessian[i])
    return total


@njit(cache=True, nogil=True, fastmath=LANES)
def _scale(gradient, hessian, factor, least, scaled_gradient, scaled_hessian):
    """Fill in both, raised and multiplied."""
    for i in range(len(hessian)):
        scaled_gradient[i] = factor * gradient[i]
        scaled_hessian[i] = max(factor * _raised(gradient[i], hessian[i]), least)


def _logistic_total(y: Any, sample_weight: Any) -> float:
    """Sum of the logistic Hessian at the base rate, n p (1 - p), or its like for grades."""
    labels = np.ascontiguousarray(y, dtype=np.float64)
    weight = None if sample_weight is None else np.ascontiguousarray(sample_weight, np.float64)
    total, positive, highest = _label_totals(labels, weight)
    if total <= 0:
        return 0.0
    if highest > 1:
        codes = labels.astype(np.int64)
        if highest > 65_535:
            codes = np.unique(codes, return_inverse=True)[1]
        shares = np.bincount(codes, weight) / total
        return 0.5 * total * float(1.0 - shares @ shares)
    return positive * (total - positive) / total


@njit(cache=True, nogil=True, fastmath=LANES)
def _label_totals(labels, weight):
    """Weight of all rows and of those above label 0, and the highest label; in one pass."""
    total = positive = highest = 0.0
    for i in range(len(labels)):
        w = 1.0
        if weight is not None:
            w = weight[i]
        total += w
        positive += w if labels[i] > 0 else 0.0
        highest = max(highest, labels[i])
    return total, positive, highest
