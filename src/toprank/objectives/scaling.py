"""The one place where ranking gradients are rescaled for trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["scale_for_trees"]

_LARGEST_STEP = 1.0


def scale_for_trees(
    gradient: np.ndarray, hessian: np.ndarray, y: Any, sample_weight: Any = None
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
    hessian, total = _raised(np.ascontiguousarray(gradient), np.ascontiguousarray(hessian))
    target = _logistic_total(y, sample_weight)
    if not (total > 0 and target > 0) or not np.isfinite(target / total):
        return gradient, hessian
    hessian *= target / total
    return gradient * (target / total), hessian


@njit(cache=True, nogil=True)
def _raised(gradient, hessian):
    """The Hessian, nowhere below the size of the gradient over the largest step, and its sum."""
    raised, total = np.empty(len(hessian)), 0.0
    for i in range(len(hessian)):
        raised[i] = max(hessian[i], abs(gradient[i]) / _LARGEST_STEP)
        total += raised[i]
    return raised, total


def _logistic_total(y: Any, sample_weight: Any) -> float:
    """Sum of the logistic Hessian at the base rate, n p (1 - p), or its like for grades."""
    labels = np.asarray(y)
    if sample_weight is None:
        total, positive = float(len(labels)), float(np.count_nonzero(labels))
    else:
        weight = np.asarray(sample_weight, dtype=np.float64)
        total, positive = float(weight.sum()), float(weight[labels != 0].sum())
    if total <= 0:
        return 0.0
    if len(labels) and labels.max() > 1:
        codes = labels.astype(np.int64)
        if codes.max() > 65_535:
            codes = np.unique(codes, return_inverse=True)[1]
        shares = np.bincount(codes, sample_weight) / total
        return 0.5 * total * float(1.0 - shares @ shares)
    return positive * (total - positive) / total
