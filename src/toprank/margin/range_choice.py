"""Which range of negatives to minimise the loss over, for the best partial AUC in the range wanted.

Candidates are [0, 1], [0, 1/2], [0, 1/4], ... down to [0, b], then [a, 1/2], ... down to [a, b]; each is
solved starting from the one before. The one whose solutions do best on held-out folds is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from toprank.margin._matrix import product
from toprank.margin.partial_batch import BatchOptions, RangeSolution, fit_range
from toprank.margin.partial_loss import PartialLoss

__all__ = ["candidate_ranges", "choose_range"]

_QUICK_EVALUATIONS = 30
_EQUAL_SCORES = 0.98  # share of the loss of equal scores above which a minimum is not trusted

Measure = Callable[[np.ndarray, np.ndarray], float]


def candidate_ranges(fpr: tuple[float, float]) -> list[tuple[float, float]]:
    """The ranges to try, widest first.

    Examples
    --------
    >>> candidate_ranges((0.1, 0.25))
    [(0.0, 1.0), (0.0, 0.5), (0.0, 0.25), (0.1, 0.5), (0.1, 0.25)]
    """
    low, high = fpr
    ends, end = [], 1.0
    while end > 1.3 * high:
        ends.append(end)
        end /= 2.0
    ends.append(high)
    above = [(low, end) for end in ends if end < 1.0 or high == 1.0] if low > 0.0 else []
    return [(0.0, end) for end in ends] + above


def choose_range(
    X: Any, loss: PartialLoss, options: BatchOptions, measure: Measure, folds: np.ndarray
) -> RangeSolution:
    """Find the range whose minimiser does best on held-out folds.

    Parameters
    ----------
    X : matrix of shape (n_rows, n_columns)
    loss : PartialLoss
        With the range [a, b] that is wanted.
    options : BatchOptions
    measure : callable
        measure(rows, scores) is the quality of the scores of the rows with these numbers.
    folds : ndarray of int
        The fold of each row; with a single fold, rows are judged by scores they were learnt on.

    Returns
    -------
    RangeSolution
        Learnt from all rows to a low accuracy: meant as a start.
    """
    ranges = candidate_ranges(loss.fpr)
    quality = np.zeros(len(ranges))
    n_folds = int(folds.max()) + 1
    for fold in range(n_folds):
        held_out = np.flatnonzero(folds == fold)
        kept = held_out if n_folds == 1 else np.flatnonzero(folds != fold)
        part = replace(loss, positive=loss.positive[kept], weight=loss.weight[kept])
        for k, found in enumerate(_descent(X[kept], part, options, ranges)):
            speaks = k == 0 or found.loss < _EQUAL_SCORES * loss.at_zero
            score = measure(held_out, product(X[held_out], found.w)) if speaks else -np.inf
            quality[k] += score
    best = int(np.argmax(quality))
    *_, found = _descent(X, loss, options, ranges[: best + 1])
    return found


def _descent(
    X: Any, loss: PartialLoss, options: BatchOptions, ranges: list[tuple[float, float]]
) -> Iterator[RangeSolution]:
    """Solve for one range after the other, each from the solution before."""
    quick = replace(options, certify=False, max_iter=min(options.max_iter, _QUICK_EVALUATIONS))
    w, first = np.zeros(X.shape[1]), None
    for fpr in ranges:
        if first is not None and fpr[0] > 0.0 and fpr[1] == ranges[1][1]:
            w = first  # the lower end moves up: back to the widest range that can have it
        found = fit_range(X, loss.over(fpr), quick, w)
        w = found.w
        if fpr == ranges[min(1, len(ranges) - 1)]:
            first = w
        yield found
