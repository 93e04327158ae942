"""Areas under the ROC curve, whole and in part.

The curve joins the points (false positive rate, true positive rate) of all thresholds by straight
lines, so that a pair of equal scores counts one half.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.metrics import _kernels
from toprank.metrics.steps import Staircase, list_metric
from toprank.validation import (
    check_choice,
    check_labels,
    check_lengths,
    check_range,
    check_scores,
    check_share,
    check_weight,
)

__all__ = ["partial_auc", "preference_auc", "roc_auc", "two_way_partial_auc"]


@list_metric
def roc_auc(stairs: Staircase) -> float:
    """Area under the ROC curve.

    The mean over all pairs of a positive and a negative of 1 if the positive has the higher score,
    1/2 if the two scores are equal, and 0 otherwise.

    Parameters
    ----------
    %(metric_input)s
    %(metric_options)s

    Returns
    -------
    float
        In [0, 1]; 0.5 for constant scores.

    Examples
    --------
    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    area = _kernels.roc_area(*stairs.steps, 0.0, stairs.total_negatives, 0.0)
    return area / (stairs.total_positives * stairs.total_negatives)


@list_metric
def partial_auc(
    stairs: Staircase, *, fpr: tuple[float, float] = (0.0, 0.1), standardize: str | None = None
) -> float:
    """Area under the ROC curve for false positive rates in a range, divided by its width.

    Parameters
    ----------
    %(metric_input)s
    fpr : tuple (a, b), default=(0, 0.1)
        Range of false positive rates, 0 <= a < b <= 1.
    standardize : {None, "mcclish"}, default=None
        With "mcclish", map the area A so that chance gives 1/2 and a perfect order 1
        (McClish 1989): ``(1 + (A - m) / (1 - m)) / 2``, where ``m = (a + b) / 2`` is the
        area of the diagonal.
    %(metric_options)s

    Returns
    -------
    float
        In [0, 1]; the average true positive rate over the range when not standardised.

    Examples
    --------
    >>> y, scores = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    >>> partial_auc(y, scores, fpr=(0, 0.5))
    0.5
    >>> round(partial_auc(y, scores, fpr=(0, 0.5), standardize="mcclish"), 4)
    0.6667
    """
    low, high = check_range(fpr)
    check_choice(standardize, "standardize", (None, "mcclish"))
    area = _clipped_area(stairs, low, high, 0.0)
    if standardize is None:
        return area
    chance = (low + high) / 2
    return (1 + (area - chance) / (1 - chance)) / 2


@list_metric
def two_way_partial_auc(
    stairs: Staircase, *, fpr: tuple[float, float] = (0.0, 0.3), min_tpr: float = 0.5
) -> float:
    """Area under the ROC curve within a range of false positive rates and above a minimum recall.

    ``integral of max(TPR - min_tpr, 0) over the FPR range / ((b - a) * (1 - min_tpr))``: 1 when
    every positive precedes every negative, 0 when the curve is below `min_tpr` all over the range
    (Yang, Lu, Lyu and Hu, "Two-way partial AUC and its properties", 2019, here divided by its
    largest value).

    Parameters
    ----------
    %(metric_input)s
    fpr : tuple (a, b), default=(0, 0.3)
        Range of false positive rates.
    min_tpr : float, default=0.5
        Smallest true positive rate of interest, in [0, 1).
    %(metric_options)s

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> two_way_partial_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], fpr=(0, 1), min_tpr=0.5)
    0.5
    """
    low, high = check_range(fpr)
    floor = check_share(min_tpr, "min_tpr", zero=True)
    return _clipped_area(stairs, low, high, floor) / (1 - floor)


def _clipped_area(stairs: Staircase, low: float, high: float, floor: float) -> float:
    """Return the area over `floor` between two false positive rates, divided by their distance."""
    positives, negatives = stairs.total_positives, stairs.total_negatives
    area = _kernels.roc_area(*stairs.steps, low * negatives, high * negatives, floor * positives)
    return area / (positives * negatives * (high - low))


def preference_auc(
    y_true: Any, scores: Any, *, sample_weight: Any = None, pos_label: Any = None
) -> float:
    """Share of preferred pairs that are scored in the preferred order; equal scores count half.

    For triples (x, x', z) where z says which of the two rows is preferred.

    Parameters
    ----------
    y_true : array-like of shape (n_pairs,)
        1 (or True) when the first row of the pair is preferred, -1 (or False) when the second is,
        0 for no preference: such pairs are left out. With `pos_label`, the first row is preferred
        where ``y_true == pos_label``, the second elsewhere.
    scores : array-like of shape (n_pairs, 2) or (n_pairs,)
        Scores of the two rows of each pair, or their difference (first minus second).
    sample_weight : array-like of shape (n_pairs,), optional
        Weights >= 0 of the pairs.
    pos_label : label, optional
        See `y_true`.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> preference_auc([1, -1, 1], [[0.9, 0.1], [0.3, 0.2], [0.5, 0.5]])
    0.5
    """
    direction, margin, weight = _preferences(y_true, scores, sample_weight, pos_label)
    return float(np.average((np.sign(direction * margin) + 1) / 2, weights=weight))


def _preferences(
    y_true: Any, scores: Any, sample_weight: Any, pos_label: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the direction (+1 or -1) and signed margin of every pair that has a preference."""
    labels, values = check_labels(y_true), np.asarray(scores)
    check_lengths(y_true=labels, scores=values, sample_weight=sample_weight)
    if values.ndim == 2 and values.shape[1] == 2:
        first, second = check_scores(values[:, 0]), check_scores(values[:, 1])
        margin = (first > second).astype(float) - (first < second)  # no overflow, no rounding
    else:
        margin = check_scores(values)
    if pos_label is not None:
        direction = np.where(labels == pos_label, 1.0, -1.0)
    elif labels.dtype.kind == "b":
        direction = np.where(labels, 1.0, -1.0)
    elif labels.dtype.kind in "iuf" and np.isin(labels, (-1, 0, 1)).all():
        direction = labels.astype(float)
    else:
        raise ValueError("Preferences must be -1, 0 or 1, or booleans, or come with pos_label.")
    weight, kept = check_weight(sample_weight, len(labels))
    if kept is not None:
        direction, margin = direction[kept], margin[kept]
    stated = direction != 0
    if not stated.any():
        raise ValueError("No pair has a preference: every label is 0 (or has weight 0).")
    return direction[stated], margin[stated], None if weight is None else weight[stated]
